//! The loop over tests, repeats, rounds, cells and flows.
//!
//! The flows of a round run one cell at the same time, so that every measurement of a round meets the same traffic;
//! the next cell starts when the slowest flow is done. Links stay warm in between.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use railgauge_wire::{
    facts::HostFacts,
    failure::{Failure, Kind, Stage},
    link::LinkId,
    message::Ask,
    remedy,
};
use tokio::task::JoinSet;

use super::{
    configure::Configuration,
    group::{self, Group},
    hosts::Hosts,
    links::{self, Link, Links, Wanted},
    order::{self, Step},
    pair,
    spine::{Spine, now},
    together::{self, Job},
};
use crate::cluster::Agent;
use railgauge_model::journal::event::{Case, Event, Outcome, Sample};
use railgauge_model::{
    plan::{Plan, model::Test},
    schedule::{Cell, Flow},
};

/// Failures in a row after which a flow is left alone for the rest of its round.
const PATIENCE: u32 = 2;
/// How long an agent may take to answer after a deadline passed, before its host is given up.
const PULSE_LIMIT: Duration = Duration::from_secs(5);

/// What is to be done and what an earlier process already did.
pub struct Work {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Every case, in the schedule's order.
    pub cases: Vec<Case>,
    /// Cases and repeats that need no further measurement.
    pub done: HashSet<(u64, u32)>,
}

impl Work {
    /// Outcomes still to come if nothing is lost.
    pub fn outstanding(&self) -> u64 {
        let of_test = |test: &Test| {
            let rounds = self.rounds(test);
            let open = |repeat| rounds.values().map(|cases| self.open(test, cases, repeat).len() as u64).sum::<u64>();
            (0..test.repeats).map(open).sum::<u64>()
        };
        self.plan.tests.iter().map(of_test).sum()
    }

    /// Whether every repeat of a case is measured.
    pub(super) fn is_done(&self, test: &Test, case: &Case) -> bool {
        (0..test.repeats).all(|repeat| self.done.contains(&(case.id, repeat)))
    }

    pub(super) fn test(&self, case: &Case) -> Option<(usize, &Test)> {
        self.plan.tests.iter().enumerate().find(|(_, test)| test.name == case.test)
    }

    /// The cases of a test, by round.
    fn rounds(&self, test: &Test) -> BTreeMap<u32, Vec<&Case>> {
        let mut rounds: BTreeMap<u32, Vec<&Case>> = BTreeMap::new();
        for case in self.cases.iter().filter(|case| case.test == test.name) {
            rounds.entry(case.round).or_default().push(case);
        }
        rounds
    }

    /// The cases of a round that are still to be measured. Of flows at once all of a cell are, if one of them is: a
    /// bandwidth beside other flows says nothing without them.
    fn open<'c>(&self, test: &Test, cases: &[&'c Case], repeat: u32) -> Vec<&'c Case> {
        let cell = |case: &Case| (case.cell.size, case.cell.qps);
        let missing = |case: &Case| !self.done.contains(&(case.id, repeat));
        let again: HashSet<_> = match test.at_once() {
            true => cases.iter().filter(|case| missing(case)).map(|case| cell(case)).collect(),
            false => HashSet::new(),
        };
        cases.iter().filter(|case| missing(case) || again.contains(&cell(case))).copied().collect()
    }
}

/// Runs everything that is outstanding, or until the spine is halted. Every outcome is an event. Returns the links
/// as they stand, for what follows the tests.
/// `configured` is the test for which an earlier process left the cluster configured.
pub async fn run<'a>(work: &'a Work, configured: Option<&str>, hosts: &mut Hosts, spine: &'a Spine) -> RunState<'a> {
    let links = Links::new(&work.plan);
    let configuration = Configuration::left(&work.plan, configured);
    let mut floor = RunState { work, links, groups: HashMap::new(), facts: BTreeMap::new(), configuration, spine };
    floor.facts = hosts.facts.iter().map(|(name, facts)| (name.clone(), Arc::new(facts.clone()))).collect();
    let rounds: Vec<BTreeMap<u32, Vec<&Case>>> = work.plan.tests.iter().map(|test| work.rounds(test)).collect();
    let numbers: Vec<Vec<u32>> = rounds.iter().map(|rounds| rounds.keys().copied().collect()).collect();
    for Step { test: index, round, repeat } in order::steps(&work.plan, &numbers) {
        let test = &work.plan.tests[index];
        let open = work.open(test, rounds[index].get(&round).map_or(&[], Vec::as_slice), repeat);
        if open.is_empty() {
            continue;
        }
        spine.emit(Event::Round { test: test.name.clone(), round, repeat });
        floor.round(index, repeat, &open, hosts).await;
        spine.sync();
        if spine.halted().is_some() {
            return floor;
        }
    }
    floor
}

/// The state that lives across rounds.
pub struct RunState<'a> {
    pub(super) work: &'a Work,
    links: Links,
    /// Groups that wait for their next cell in the round that runs.
    groups: HashMap<Flow, Group>,
    facts: BTreeMap<String, Arc<HostFacts>>,
    configuration: Configuration,
    pub(super) spine: &'a Spine,
}

/// What one try of one case came to.
struct Tried {
    case: u64,
    flow: Flow,
    qps: u32,
    link: Option<Link>,
    group: Option<Group>,
    outcome: Outcome,
}

/// A case with everything its measurement needs.
struct Ready {
    plan: Arc<Plan>,
    index: usize,
    case: Case,
    from: group::HostAgent,
    to: group::HostAgent,
    warm: Option<Link>,
    id: LinkId,
    max_size: u64,
}

impl Ready {
    /// Its link: the warm one, or a new one.
    async fn link(&self) -> Result<Link, Failure> {
        if let Some(link) = &self.warm {
            return Ok(link.clone());
        }
        let Self { plan, case, from, to, id, max_size, .. } = self;
        let (test, flow, qps) = (&plan.tests[self.index], &case.flow, case.cell.qps);
        let wanted = Wanted { plan, test, flow, qps, max_size: *max_size, id: *id, token: links::token()? };
        links::open(wanted, (&from.0, &from.1), (&to.0, &to.1)).await
    }

    fn tried(self, repeat: u32, started_at: String, link: Option<Link>, result: Result<Sample, Failure>) -> Tried {
        let record = link.as_ref().map(|link| link.record.clone());
        let outcome = Outcome { case: self.case.id, repeat, started_at, link: record, result };
        Tried { case: self.case.id, flow: self.case.flow, qps: self.case.cell.qps, link, group: None, outcome }
    }
}

impl RunState<'_> {
    /// One round: all its cells, one after the other.
    pub(super) async fn round(&mut self, index: usize, repeat: u32, open: &[&Case], hosts: &mut Hosts) {
        let plan = &self.work.plan;
        if self.configuration.differs(plan, index) {
            // A connection keeps much of what was configured when it was made.
            for link in self.links.empty() {
                links::close(link).await;
            }
            if let Err(failure) = self.configuration.enter(plan, index, hosts, self.spine).await {
                open.iter().for_each(|case| self.refuse(case, repeat, failure.clone()));
                return;
            }
        }
        self.cells(index, repeat, open, hosts).await;
        // The next round's groups have other ranks, and a GPU should not hold the memory of both.
        for (_, group) in std::mem::take(&mut self.groups) {
            group::close(group).await;
        }
    }

    /// Takes back what was configured for the last test; a run that cannot says so in its journal.
    pub(super) async fn settle(&mut self, hosts: &Hosts) {
        // The failure is an event, and readers of the journal tell what is left.
        let _ = self.configuration.leave(&self.work.plan, hosts, self.spine).await;
    }

    async fn cells(&mut self, index: usize, repeat: u32, open: &[&Case], hosts: &mut Hosts) {
        let mut cells: Vec<&Cell> = Vec::new();
        for case in open {
            if !cells.contains(&&case.cell) {
                cells.push(&case.cell);
            }
        }
        let mut trouble: HashMap<Flow, (u32, Failure)> = HashMap::new();
        for cell in cells {
            let mut running = JoinSet::new();
            let mut at_once = Vec::new();
            for case in open.iter().filter(|case| case.cell == *cell) {
                match trouble.get(&case.flow) {
                    Some((times, last)) if *times >= PATIENCE => self.give_up(case, repeat, last),
                    _ if case.cell.manner.is_some() => self.start_group(index, case, repeat, hosts, &mut running),
                    _ if self.work.plan.tests[index].at_once() => at_once.push(*case),
                    _ => self.start(index, case, repeat, hosts, &mut running),
                }
            }
            self.start_at_once(index, &at_once, repeat, hosts, &mut running);
            loop {
                tokio::select! {
                    done = running.join_next() => match done {
                        Some(Ok(all)) => {
                            for tried in all {
                                self.finish(index, tried, &mut trouble, hosts).await;
                            }
                        }
                        Some(Err(error)) => self.spine.log("controller", &format!("a case was dropped: {error}")),
                        None => break,
                    },
                    _ = self.spine.halting() => {
                        running.shutdown().await;
                        return;
                    }
                }
            }
        }
    }

    /// Starts one case unless a host it needs is gone; what is not started has no outcome and counts as not run.
    fn start(&mut self, index: usize, case: &Case, repeat: u32, hosts: &Hosts, running: &mut JoinSet<Vec<Tried>>) {
        let Some(ready) = self.ready(index, case, hosts) else { return };
        running.spawn(async move {
            let started_at = now();
            let (link, result) = match ready.link().await {
                Ok(link) => {
                    let (plan, cell) = (&ready.plan, &ready.case.cell);
                    let result = pair::measure(&link, &plan.tests[index], cell, plan.seed).await;
                    (Some(link), result)
                }
                Err(failure) => (None, Err(failure)),
            };
            vec![ready.tried(repeat, started_at, link, result)]
        });
    }

    /// Starts the cases of one cell whose flows share NICs: all links are open before the first of them is measured.
    fn start_at_once(
        &mut self,
        index: usize,
        cases: &[&Case],
        repeat: u32,
        hosts: &Hosts,
        running: &mut JoinSet<Vec<Tried>>,
    ) {
        let Some(cell) = cases.first().map(|case| case.cell.clone()) else { return };
        let job = Job { plan: self.work.plan.clone(), test: index, cell };
        let flows: Vec<Ready> = cases.iter().filter_map(|case| self.ready(index, case, hosts)).collect();
        running.spawn(async move {
            let started_at = now();
            let mut opening = JoinSet::new();
            for flow in flows {
                opening.spawn(async move { (flow.link().await, flow) });
            }
            let (mut tried, mut open, mut links) = (Vec::new(), Vec::new(), Vec::new());
            for (link, flow) in opening.join_all().await {
                match link {
                    Ok(link) => {
                        open.push(flow);
                        links.push(link);
                    }
                    Err(failure) => tried.push(flow.tried(repeat, started_at.clone(), None, Err(failure))),
                }
            }
            for (flow, (link, result)) in open.into_iter().zip(together::measure(&job, links).await) {
                tried.push(flow.tried(repeat, started_at.clone(), Some(link), result));
            }
            tried
        });
    }

    /// What a case needs to be started; `None` if a host of it is gone.
    fn ready(&mut self, index: usize, case: &Case, hosts: &Hosts) -> Option<Ready> {
        let end = |host: &str| Some((hosts.agents.get(host)?.clone(), self.facts.get(host)?.clone()));
        let (from, to) = (end(&case.flow.from.host)?, end(&case.flow.to.host)?);
        let warm = self.links.take(index, &case.flow, case.cell.qps);
        let id = links::fresh_id();
        let max_size = self.links.largest(index);
        Some(Ready { plan: self.work.plan.clone(), index, case: case.clone(), from, to, warm, id, max_size })
    }

    /// Starts one case of a collective, under the same conditions.
    fn start_group(
        &mut self,
        index: usize,
        case: &Case,
        repeat: u32,
        hosts: &Hosts,
        running: &mut JoinSet<Vec<Tried>>,
    ) {
        let end = |host: &str| Some((hosts.agents.get(host)?.clone(), self.facts.get(host)?.clone()));
        let mut ends = BTreeMap::new();
        for host in case.flow.hosts() {
            let Some(end) = end(host) else { return };
            ends.insert(host.to_string(), end);
        }
        let plan = self.work.plan.clone();
        let warm = self.groups.remove(&case.flow);
        let case = case.clone();
        running.spawn(async move {
            let started_at = now();
            let test = &plan.tests[index];
            let env = case.cell.manner.as_ref().map(|manner| manner.env.clone()).unwrap_or_default();
            let group = match (warm, &test.collective) {
                (Some(group), _) if group.env == env => Ok(group),
                (old, Some(collective)) => {
                    if let Some(old) = old {
                        group::close(old).await;
                    }
                    group::open(&plan, test, collective, &case.flow, &env, &ends).await
                }
                (_, None) => {
                    let cause = "the case is a collective, but its test is not".to_owned();
                    Err(Failure::new(Stage::Open, Kind::Internal, cause))
                }
            };
            let (group, result) = match group {
                Ok(mut group) => {
                    let result = group::measure(&mut group, test, &case.cell, plan.seed).await;
                    (Some(group), result)
                }
                Err(failure) => (None, Err(failure)),
            };
            let record = group.as_ref().and_then(|group| group.record.clone());
            let outcome = Outcome { case: case.id, repeat, started_at, link: record, result };
            vec![Tried { case: case.id, flow: case.flow, qps: case.cell.qps, link: None, group, outcome }]
        });
    }

    /// Records one outcome, keeps its link warm or closes it, and gives up hosts that no longer answer.
    async fn finish(
        &mut self,
        index: usize,
        tried: Tried,
        trouble: &mut HashMap<Flow, (u32, Failure)>,
        hosts: &mut Hosts,
    ) {
        let failure = tried.outcome.result.as_ref().err().cloned();
        self.spine.emit(Event::Outcome(Box::new(tried.outcome)));
        let Some(failure) = failure else {
            trouble.remove(&tried.flow);
            if let Some(group) = tried.group {
                self.groups.insert(tried.flow, group);
                return;
            }
            if let Some(link) = tried.link {
                for old in self.links.keep(index, &tried.flow, tried.qps, link) {
                    links::close(old).await;
                }
            }
            return;
        };
        let times = trouble.get(&tried.flow).map_or(0, |(times, _)| *times) + 1;
        if let Some(link) = tried.link {
            tokio::spawn(links::close(link));
        }
        if let Some(group) = tried.group {
            // Its ranks may still wait for one another: their processes are ended before anything is tried again.
            group::close(group).await;
        }
        for host in tried.flow.hosts() {
            let Some(agent) = hosts.agents.get(&**host).cloned() else { continue };
            if let Some(lost) = without_pulse(&agent, failure.kind).await {
                // Its links are closed at the other ends, so that these do not wait for it.
                for link in self.links.forget(host) {
                    tokio::spawn(links::close(link));
                }
                hosts.lose(host.to_string(), lost, self.spine);
            }
        }
        self.spine.log("controller", &format!("case {}: {failure}", tried.case));
        trouble.insert(tried.flow, (times, failure));
    }

    /// The outcome of a case on a flow that failed too often in this round.
    fn give_up(&self, case: &Case, repeat: u32, last: &Failure) {
        let cause =
            format!("not tried: the {PATIENCE} cases before it on this link failed, the last with: {}", last.cause);
        self.refuse(case, repeat, Failure { cause, ..last.clone() });
    }

    /// The outcome of a case that is not tried.
    fn refuse(&self, case: &Case, repeat: u32, failure: Failure) {
        let result = Err(failure);
        let outcome = Outcome { case: case.id, repeat, started_at: now(), link: None, result };
        self.spine.emit(Event::Outcome(Box::new(outcome)));
    }
}

/// Why an agent must be given up, if it must: its pipe is gone, or it let a deadline pass and does not answer a clock
/// reading either.
async fn without_pulse(agent: &Agent, kind: Kind) -> Option<Failure> {
    if let Some(lost) = agent.lost() {
        return Some(lost);
    }
    if kind != Kind::Deadline || agent.ask(Ask::Clock, PULSE_LIMIT).await.is_ok() {
        return None;
    }
    let cause = format!("the agent is connected but has not answered for {} s", PULSE_LIMIT.as_secs());
    Some(agent.lost().unwrap_or_else(|| {
        Failure::new(Stage::Converse, Kind::Lost, cause).at(agent.host()).remedy(remedy::CHECK_HOST_LOAD)
    }))
}
