//! The loop over tests, repeats, rounds, cells and flows.
//!
//! The flows of a round run one cell at the same time, so that every measurement of a round meets the same traffic; the next cell starts
//! when the slowest flow is done. Links stay warm in between.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use parking_lot::Mutex;
use railgauge_wire::{Failure, HostFacts, Nanoseconds, Spent, remedy};
use tokio::{
    sync::mpsc::{self, UnboundedSender},
    task::JoinSet,
};

use super::{
    clocks,
    configure::Configuration,
    gather::Gather,
    hosts::{Hosts, without_pulse},
    links::{self, Link, Links},
    measure::{
        case::{HostAgent, PairCase, Tried},
        collective::{self, CollectiveCase, Group},
        concurrent,
        node::{self, NodeCases},
        sweep::{
            self, Left, Sweep,
            pace::{Pace, Place},
        },
        traffic::Traffic,
    },
    order::{self, Budget, Step},
    spine::{Halt, Spine, now},
    watch::Shared,
    work::{Work, cells},
};
use railgauge_model::{
    journal::{
        event::{Case, Change, Event, Outcome},
        stages::{OfFlow, Stages},
    },
    plan::count::count,
    schedule::{Cell, Flow, PerByte, Seen, Time},
};

/// Failures in a row after which a flow is skipped for the rest of its round.
const PATIENCE: u32 = 2;

/// Runs all open cases, or until the spine is halted. Every outcome is an event. Returns the open links, for what follows the tests.
/// `configured` is the change left by an earlier process.
pub(super) async fn run<'a>(
    work: &'a Work,
    configured: Option<&Change>,
    hosts: &mut Hosts,
    spine: &'a Spine,
) -> RunState<'a> {
    let links = Links::new(&work.plan);
    let configuration = Configuration::left(&work.plan, configured);
    let mut floor = RunState {
        work,
        links,
        groups: HashMap::new(),
        facts: BTreeMap::new(),
        configuration,
        stages: Stages::default(),
        spent: HashMap::new(),
        seen: vec![Seen::default(); work.plan.tests.len()],
        spine,
        traffic: Traffic::default(),
        gather: None,
        of_soak: Shared::default(),
    };
    floor.facts = hosts.facts.iter().map(|(name, facts)| (name.clone(), Arc::new(facts.clone()))).collect();
    let rounds: Vec<BTreeMap<u32, Vec<&Case>>> = work.plan.tests.iter().map(|test| work.rounds(test)).collect();
    let numbers: Vec<Vec<u32>> = rounds.iter().map(|rounds| rounds.keys().copied().collect()).collect();
    let steps = order::steps(&work.plan, &numbers);
    let mut left = order::costs(work, &rounds, &steps);
    let (mut budget, mut cut) = (Budget::of(&work.plan), 0);
    for step in &steps {
        let (Step { test: index, round, repeat, .. }, mut open) = (*step, order::open(work, &rounds, step));
        let test = &work.plan.tests[index];
        let (cells, all, pace) = (cells(&open), open.len(), floor.pace(index));
        let until_end: Time = left.iter().enumerate().map(|(test, cost)| cost.at(floor.pace(test))).sum();
        left[index] -= work.cost(index, &open);
        let fit = budget.fitting(test, &cells, pace, spine.begun.elapsed());
        if fit < cells.len() {
            open.retain(|case| cells[..fit].contains(&&*case.cell));
        }
        cut += all - open.len();
        if open.is_empty() {
            continue;
        }
        // Which of several paths a switch gives a queue pair depends on its number or port: each round and repeat is a new random choice.
        if test.compares_paths() {
            floor.close_idle().await;
        }
        spine.expect_time(work.plan.within(until_end, spine.begun.elapsed()));
        spine.emit(Event::Round { test: test.name.clone(), round, repeat });
        floor.round(index, repeat, &open, hosts).await;
        spine.sync();
        if spine.halted().is_some() {
            return floor;
        }
    }
    if cut > 0 {
        floor.note(format!("`at_most` of the plan is over: {} not run", count(cut, "measurement")));
    }
    floor
}

enum Open {
    Link(Link),
    Group(Group),
}

type Sweeps = JoinSet<(Flow, Left)>;

/// Failures in a row of each flow, and the last of them.
type Trouble = HashMap<Flow, (u32, Failure)>;

type Running = JoinSet<Vec<Tried<Open>>>;

pub(super) struct RunState<'a> {
    pub(super) work: &'a Work,
    links: Links,
    groups: HashMap<Flow, Group>,
    facts: BTreeMap<String, Arc<HostFacts>>,
    configuration: Configuration,
    pub(super) stages: Stages,
    spent: HashMap<Flow, OfFlow>,
    /// By test.
    seen: Vec<Seen>,
    pub(super) spine: &'a Spine,
    pub(super) traffic: Traffic,
    pub(super) gather: Option<Arc<Mutex<Gather>>>,
    /// Receives the ports of the links of the soak's test: the soak watches them from its start.
    pub(super) of_soak: Shared,
}

impl RunState<'_> {
    pub(super) async fn round(&mut self, index: usize, repeat: u32, open: &[&Case], hosts: &mut Hosts) {
        let begun = Instant::now();
        self.all_of_round(index, repeat, open, hosts).await;
        // The busiest flow accounts for the time of the round.
        let most = std::mem::take(&mut self.spent).into_values().max_by_key(OfFlow::accounted);
        self.stages.add_round(begun.elapsed(), most.unwrap_or_default());
        self.seen[index].add(self.work.cost(index, open), begun.elapsed());
    }

    async fn all_of_round(&mut self, index: usize, repeat: u32, open: &[&Case], hosts: &mut Hosts) {
        // Cases that settle suspects may be of any value; a round of a test is of one.
        let values: Vec<Option<&str>> = open.iter().map(|case| case.cell.applied.as_deref()).collect();
        let all = values.iter().enumerate().filter(|(at, value)| !values[..*at].contains(value));
        for (_, value) in all {
            let of_value: Vec<&Case> =
                open.iter().copied().filter(|case| case.cell.applied.as_deref() == *value).collect();
            self.at_value(index, repeat, *value, &of_value, hosts).await;
            if self.spine.halted().is_some() {
                return;
            }
        }
    }

    async fn at_value(&mut self, index: usize, repeat: u32, value: Option<&str>, open: &[&Case], hosts: &mut Hosts) {
        let plan = &self.work.plan;
        if self.configuration.differs(plan, index, value) {
            // A connection keeps much of the configuration at its creation.
            self.close_idle().await;
            if let Err(failure) = self.configuration.enter(plan, index, value, hosts, self.spine).await {
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

    pub(super) fn pace(&self, test: usize) -> Option<PerByte> {
        let plan = &self.work.plan;
        self.seen[test].pace().or_else(|| PerByte::of(plan, &plan.tests[test], None))
    }

    pub(super) fn note(&self, text: String) {
        self.spine.emit(Event::Note { host: String::new(), text });
    }

    pub(super) async fn close_idle(&mut self) {
        for link in self.links.empty() {
            links::close(link).await;
        }
    }

    /// Undoes the configuration of the last test; a failure is recorded in the journal.
    pub(super) async fn settle(&mut self, hosts: &Hosts) {
        // The failure is an event, from which readers of the journal know what is left.
        let _ = self.configuration.leave(&self.work.plan, hosts, self.spine).await;
    }

    async fn cells(&mut self, index: usize, repeat: u32, open: &[&Case], hosts: &mut Hosts) {
        let cells = cells(open);
        let test = &self.work.plan.tests[index];
        let apart = test.timed_together() || test.transport.is_within_host();
        let is_led = |case: &&&Case| case.cell.manner.is_none() && !apart;
        if open.iter().all(|case| is_led(&case)) {
            return self.sweeps(index, repeat, open, &cells, hosts).await;
        }
        let mut trouble = Trouble::new();
        for cell in cells {
            let mut running = JoinSet::new();
            let mut at_once = Vec::new();
            for case in open.iter().filter(|case| *case.cell == *cell) {
                match trouble.get(&case.flow) {
                    Some((times, last)) if *times >= PATIENCE => self.give_up(case, repeat, last),
                    _ if case.cell.manner.is_some() => self.start_group(index, case, repeat, hosts, &mut running),
                    _ => at_once.push(*case),
                }
            }
            match test.transport.is_within_host() {
                true => self.start_within(index, &at_once, repeat, hosts, &mut running),
                false => self.start_at_once(index, &at_once, repeat, hosts, &mut running),
            }
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

    /// Runs all cells of every flow, each flow by itself; the pace of the round keeps them together.
    async fn sweeps(&mut self, index: usize, repeat: u32, open: &[&Case], cells: &[&Cell], hosts: &mut Hosts) {
        let pace = Pace::new();
        let mut left: BTreeMap<&Flow, VecDeque<(usize, Case)>> = BTreeMap::new();
        for (number, cell) in cells.iter().enumerate() {
            for case in open.iter().filter(|case| *case.cell == **cell) {
                left.entry(&case.flow).or_default().push_back((number, (*case).clone()));
            }
        }
        let mut trouble = Trouble::new();
        let mut running: Sweeps = JoinSet::new();
        let (done, mut tried) = mpsc::unbounded_channel();
        // Take every place before the first flow begins: a single flow has no pace to keep.
        let left: Vec<_> = left
            .into_iter()
            .map(|(flow, cases)| {
                let place = pace.place(cases.front().map_or(0, |(first, _)| *first));
                (flow, cases, place)
            })
            .collect();
        for (flow, cases, place) in left {
            self.start_sweep((index, repeat), flow.clone(), cases, (place, hosts, &done), &mut running);
        }
        loop {
            tokio::select! {
                biased;
                Some(tried) = tried.recv() => self.finish(index, tried, &mut trouble, hosts).await,
                over = running.join_next() => match over {
                    Some(Ok((flow, Left { cases, place, opening }))) => {
                        let open = &mut self.spent.entry(flow.clone()).or_default().open;
                        *open = open.saturating_add(opening.into());
                        while let Ok(tried) = tried.try_recv() {
                            self.finish(index, tried, &mut trouble, hosts).await;
                        }
                        match trouble.get(&flow) {
                            Some((times, last)) if *times >= PATIENCE => {
                                cases.iter().for_each(|(_, case)| self.give_up(case, repeat, last));
                            }
                            _ => self.start_sweep((index, repeat), flow, cases, (place, hosts, &done), &mut running),
                        }
                    }
                    Some(Err(error)) => self.spine.log("controller", &format!("a flow was dropped: {error}")),
                    None => return,
                },
                _ = self.spine.halting() => {
                    running.shutdown().await;
                    while let Ok(tried) = tried.try_recv() {
                        self.finish(index, tried, &mut trouble, hosts).await;
                    }
                    return;
                }
            }
        }
    }

    /// Starts the cases of a flow that can share a link, unless there are none or a host of it is gone; what is not started has no outcome
    /// and counts as not run. The rest is returned with those that were not tried.
    fn start_sweep(
        &mut self,
        (index, repeat): (usize, u32),
        flow: Flow,
        mut cases: VecDeque<(usize, Case)>,
        (place, hosts, done): (Place, &Hosts, &UnboundedSender<Tried<Open>>),
        running: &mut Sweeps,
    ) {
        let Some(qps) = cases.front().map(|(_, case)| case.cell.qps) else { return };
        let share = cases.iter().take_while(|(_, case)| case.cell.qps == qps).count();
        let behind = cases.split_off(share);
        let (Some(from), Some(to)) = (self.end(&flow.from.host, hosts), self.end(&flow.to.host, hosts)) else { return };
        let (plan, id, max_size) = (self.work.plan.clone(), links::fresh_id(), self.links.largest(index));
        let warm = self.links.take(index, &flow, qps);
        place.at(cases.front().map_or(0, |(first, _)| *first));
        let traffic = self.traffic;
        let sweep = Sweep { plan, index, cases, repeat, from, to, warm, id, max_size, traffic, place };
        let done = done.clone();
        running.spawn(async move {
            let passed_on = move |tried: Tried<Link>| {
                let _ = done.send(tried.map(Open::Link));
            };
            let mut left = sweep::run(sweep, passed_on).await;
            left.cases.extend(behind);
            (flow, left)
        });
    }

    fn start_at_once(&mut self, index: usize, cases: &[&Case], repeat: u32, hosts: &Hosts, running: &mut Running) {
        let flows: Vec<_> = cases.iter().filter_map(|case| self.pair_case(index, case, repeat, hosts)).collect();
        running.spawn(
            async move { concurrent::run(flows).await.into_iter().map(|tried| tried.map(Open::Link)).collect() },
        );
    }

    /// Starts the cases of one cell within hosts, all of a host together; skips lost hosts.
    fn start_within(&mut self, index: usize, cases: &[&Case], repeat: u32, hosts: &Hosts, running: &mut Running) {
        let mut by_host: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
        for case in cases {
            by_host.entry(&case.flow.from.host).or_default().push((*case).clone());
        }
        for (name, cases) in by_host {
            let Some(host) = self.end(name, hosts) else { continue };
            let of_host = NodeCases { plan: self.work.plan.clone(), index, cases, repeat, host };
            running.spawn(
                async move { node::run(of_host).await.into_iter().map(|tried| tried.map(Open::Link)).collect() },
            );
        }
    }

    fn start_group(&mut self, index: usize, case: &Case, repeat: u32, hosts: &Hosts, running: &mut Running) {
        let end = |host: &Arc<str>| Some((host.to_string(), self.end(host, hosts)?));
        let Some(ends) = case.flow.hosts().into_iter().map(end).collect() else { return };
        let (plan, warm) = (self.work.plan.clone(), self.groups.remove(&case.flow));
        let case = CollectiveCase { plan, index, case: case.clone(), repeat, ends, warm };
        running.spawn(async move { vec![collective::run(case).await.map(Open::Group)] });
    }

    /// What a case needs to start; `None` if a host of it is gone: what is not started has no outcome and counts as not run.
    fn pair_case(&mut self, index: usize, case: &Case, repeat: u32, hosts: &Hosts) -> Option<PairCase> {
        let (from, to) = (self.end(&case.flow.from.host, hosts)?, self.end(&case.flow.to.host, hosts)?);
        let (plan, id, max_size) = (self.work.plan.clone(), links::fresh_id(), self.links.largest(index));
        let warm = self.links.take(index, &case.flow, case.cell.qps);
        Some(PairCase { plan, index, case: case.clone(), repeat, from, to, warm, id, max_size, traffic: self.traffic })
    }

    fn end(&self, host: &str, hosts: &Hosts) -> Option<HostAgent> {
        Some((hosts.agents.get(host)?.clone(), self.facts.get(host)?.clone()))
    }

    /// Records one outcome, keeps its link warm or closes it, and gives up hosts that no longer answer.
    async fn finish(&mut self, index: usize, tried: Tried<Open>, trouble: &mut Trouble, hosts: &mut Hosts) {
        let Tried { case, open, progress, outcome } = tried;
        let failure = outcome.result.as_ref().err().cloned();
        if let Ok(sample) = &outcome.result {
            let led = Spent {
                window: sample.initiator.elapsed,
                warm_up: self.work.plan.tests[index].warm_up.into(),
                ..Spent::default()
            };
            self.spent.entry(case.flow.clone()).or_default().add(sample.spent.as_deref().copied().unwrap_or(led));
        }
        self.record(&case, outcome, progress);
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
            // Its ranks may still wait for one another: end their processes before the next try.
            Some(Open::Group(group)) => collective::close(group).await,
            None => {}
        }
        for host in case.flow.hosts() {
            let Some(agent) = hosts.agents.get(&**host).cloned() else { continue };
            if let Some(lost) = without_pulse(&agent, failure.kind).await {
                // Close its links at the other ends, so that these do not wait for it.
                for link in self.links.forget(host) {
                    tokio::spawn(links::close(link));
                }
                hosts.lose(host.to_string(), lost, self.spine);
            }
        }
        self.spine.log("controller", &format!("case {}: {failure}", case.id));
        trouble.insert(case.flow, (times, failure));
    }

    fn give_up(&mut self, case: &Case, repeat: u32, last: &Failure) {
        let cause =
            format!("not tried: the {PATIENCE} cases before it on this link failed, the last with: {}", last.cause);
        self.refuse(case, repeat, Failure { cause, ..last.clone() });
    }

    fn refuse(&mut self, case: &Case, repeat: u32, failure: Failure) {
        let result = Err(failure);
        let outcome = Outcome { case: case.id, repeat, started_at: now().into(), link: None, link_line: None, result };
        self.record(case, outcome, None);
    }

    fn record(&mut self, case: &Case, outcome: Outcome, progress: Option<Nanoseconds>) {
        match &self.gather {
            // It would last to the end of the soak, and no flow has stalled.
            Some(_)
                if let Err(failure) = &outcome.result
                    && let Some(remedy) = &failure.remedy
                    && remedy.id == remedy::RATE_FOR_SHARE.id =>
            {
                let told = Failure { remedy: None, ..failure.clone() };
                self.spine.halt(Halt::Unfit(format!("the soak cannot start: {told}"), (**remedy).clone()));
            }
            Some(gather) => gather.lock().add(case, &outcome, progress, clocks::since_1970()),
            None => {
                let is_soaked = self.work.plan.soak.as_ref().is_some_and(|soak| *soak.test == *case.test);
                if let Some(link) = outcome.link.as_ref().filter(|_| is_soaked) {
                    self.of_soak.learn(&case.flow.from.host, &case.flow.to.host, link);
                }
                self.spine.emit(Event::Outcome(Box::new(outcome)));
            }
        }
    }
}
