//! The loop over tests, repeats, rounds, cells and flows.
//!
//! The flows of a round run one cell at the same time, so that every measurement of a round meets the same traffic;
//! the next cell starts when the slowest flow is done. Links stay warm in between.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use railgauge_wire::{
    facts::HostFacts,
    failure::{Failure, Kind, Stage},
    message::Ask,
    remedy,
};
use tokio::task::JoinSet;

use super::{
    configure::Configuration,
    hosts::Hosts,
    links::{self, Link, Links},
    measure::{
        case::{HostAgent, PairCase, Tried},
        collective::{self, CollectiveCase, Group},
        concurrent, pair,
    },
    order::{self, Step},
    spine::{Spine, now},
    work::Work,
};
use crate::cluster::Agent;
use railgauge_model::{
    journal::event::{Case, Event, Outcome},
    schedule::{Cell, Flow},
};

/// Failures in a row after which a flow is left alone for the rest of its round.
const PATIENCE: u32 = 2;
/// How long an agent may take to answer after a deadline passed, before its host is given up.
const PULSE_LIMIT: Duration = Duration::from_secs(5);

/// Runs everything that is outstanding, or until the spine is halted. Every outcome is an event. Returns the links
/// as they stand, for what follows the tests.
/// `configured` is the test for which an earlier process left the cluster configured.
pub(super) async fn run<'a>(
    work: &'a Work,
    configured: Option<&str>,
    hosts: &mut Hosts,
    spine: &'a Spine,
) -> RunState<'a> {
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

/// What a case leaves open.
enum Open {
    Link(Link),
    Group(Group),
}

/// Cases that are being measured; each task returns what all of its cases came to.
type Running = JoinSet<Vec<Tried<Open>>>;

/// The state that lives across rounds.
pub(super) struct RunState<'a> {
    pub(super) work: &'a Work,
    links: Links,
    /// Groups that wait for their next cell in the round that runs.
    groups: HashMap<Flow, Group>,
    facts: BTreeMap<String, Arc<HostFacts>>,
    configuration: Configuration,
    pub(super) spine: &'a Spine,
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
            collective::close(group).await;
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
    fn start(&mut self, index: usize, case: &Case, repeat: u32, hosts: &Hosts, running: &mut Running) {
        let Some(case) = self.pair_case(index, case, repeat, hosts) else { return };
        running.spawn(async move { vec![pair::run(case).await.map(Open::Link)] });
    }

    /// Starts the cases of one cell whose flows share NICs.
    fn start_at_once(&mut self, index: usize, cases: &[&Case], repeat: u32, hosts: &Hosts, running: &mut Running) {
        let flows: Vec<_> = cases.iter().filter_map(|case| self.pair_case(index, case, repeat, hosts)).collect();
        running.spawn(
            async move { concurrent::run(flows).await.into_iter().map(|tried| tried.map(Open::Link)).collect() },
        );
    }

    /// Starts one case of a collective, under the same conditions.
    fn start_group(&mut self, index: usize, case: &Case, repeat: u32, hosts: &Hosts, running: &mut Running) {
        let end = |host: &Arc<str>| Some((host.to_string(), self.end(host, hosts)?));
        let Some(ends) = case.flow.hosts().into_iter().map(end).collect() else { return };
        let (plan, warm) = (self.work.plan.clone(), self.groups.remove(&case.flow));
        let case = CollectiveCase { plan, index, case: case.clone(), repeat, ends, warm };
        running.spawn(async move { vec![collective::run(case).await.map(Open::Group)] });
    }

    /// What a case needs to be started; `None` if a host of it is gone.
    fn pair_case(&mut self, index: usize, case: &Case, repeat: u32, hosts: &Hosts) -> Option<PairCase> {
        let (from, to) = (self.end(&case.flow.from.host, hosts)?, self.end(&case.flow.to.host, hosts)?);
        let (plan, id, max_size) = (self.work.plan.clone(), links::fresh_id(), self.links.largest(index));
        let warm = self.links.take(index, &case.flow, case.cell.qps);
        Some(PairCase { plan, index, case: case.clone(), repeat, from, to, warm, id, max_size })
    }

    /// A host's agent and facts; `None` if the host is gone.
    fn end(&self, host: &str, hosts: &Hosts) -> Option<HostAgent> {
        Some((hosts.agents.get(host)?.clone(), self.facts.get(host)?.clone()))
    }

    /// Records one outcome, keeps its link warm or closes it, and gives up hosts that no longer answer.
    async fn finish(
        &mut self,
        index: usize,
        tried: Tried<Open>,
        trouble: &mut HashMap<Flow, (u32, Failure)>,
        hosts: &mut Hosts,
    ) {
        let Tried { case, open, outcome } = tried;
        let failure = outcome.result.as_ref().err().cloned();
        self.spine.emit(Event::Outcome(Box::new(outcome)));
        let Some(failure) = failure else {
            trouble.remove(&case.flow);
            match open {
                Some(Open::Group(group)) => drop(self.groups.insert(case.flow, group)),
                Some(Open::Link(link)) => {
                    for old in self.links.keep(index, &case.flow, case.cell.qps, link) {
                        links::close(old).await;
                    }
                }
                None => {}
            }
            return;
        };
        let times = trouble.get(&case.flow).map_or(0, |(times, _)| *times) + 1;
        match open {
            Some(Open::Link(link)) => drop(tokio::spawn(links::close(link))),
            // Its ranks may still wait for one another: their processes are ended before anything is tried again.
            Some(Open::Group(group)) => collective::close(group).await,
            None => {}
        }
        for host in case.flow.hosts() {
            let Some(agent) = hosts.agents.get(&**host).cloned() else { continue };
            if let Some(lost) = without_pulse(&agent, failure.kind).await {
                // Its links are closed at the other ends, so that these do not wait for it.
                for link in self.links.forget(host) {
                    tokio::spawn(links::close(link));
                }
                hosts.lose(host.to_string(), lost, self.spine);
            }
        }
        self.spine.log("controller", &format!("case {}: {failure}", case.id));
        trouble.insert(case.flow, (times, failure));
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
