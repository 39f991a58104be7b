//! The soak: traffic for hours after the tests, while the ports it passes are watched.
//!
//! The flows of one test run in their rounds, window after window, and each part of the time becomes one record, which keeps the journals
//! of days readable. Agents are asked about their ports meanwhile, whatever the traffic does.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_model::{
    journal::event::{Case, Event, Soaked},
    plan::model::Soak,
};
use railgauge_wire::{Failure, Kind, Nanoseconds, Stage, Window};

use super::{
    clocks, gather::Gather, hosts::Hosts, measure::traffic::Traffic, rounds::RunState, spine::Spine, watch::Watcher,
    work::Work,
};

/// Shortest and longest part of the time that becomes one record. Days are some hundred parts; a killed controller loses one.
const PART: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));
const PARTS: u32 = 400;
/// Shortest time of a round: flows that fail at once are not retried at once.
const SHORTEST_ROUND: Duration = Duration::from_secs(1);

/// The work of the soak: its test with its windows, in each round the cells with the largest message and the most queue pairs. `None` where
/// the plan wants none, or its test has no case.
pub(super) fn work(tests: &Work) -> Option<Work> {
    let soak = tests.plan.soak.as_ref()?;
    let mut plan = (*tests.plan).clone();
    let test = plan.tests.iter_mut().find(|test| test.name == soak.test)?;
    test.window = Window::Duration(soak.window.into());
    test.repeats = 1;
    let cases: Vec<Case> = Case::of_soak(&tests.cases, &soak.test).into_iter().cloned().collect();
    (!cases.is_empty()).then(|| Work { cases, plan: Arc::new(plan), done: HashSet::new() })
}

impl<'a> RunState<'a> {
    /// Runs the traffic of `work` until the soak has lasted as long as the plan says, including `past`, or the spine is halted.
    pub(super) async fn soak(&mut self, soak: &Soak, work: &'a Work, past: Duration, hosts: &mut Hosts) {
        self.work = work;
        let Some((index, test)) = work.cases.first().and_then(|case| work.test(case)) else { return };
        let rounds = work.rounds(test);
        let begun = Instant::now();
        let part = (soak.lasts / PARTS).clamp(PART.0, PART.1);
        // Links of the tests end with their ports.
        self.close_idle().await;
        self.traffic = Traffic { rate_limit: soak.rate_limit, rides_out: true };
        let begin = clocks::since_1970();
        self.spine.emit(Event::Soaked(Box::new(Soaked { from: begin, until: begin, ..Soaked::default() })));
        let watcher = Watcher::start(work, hosts, part, &self.of_soak, self.spine);
        let gather =
            Arc::new(Mutex::new(Gather::new(begin, (test.warm_up.into(), soak.window.into()), watcher.shared())));
        self.gather = Some(gather.clone());
        // Independent of the flows: a round may wait long for one of them.
        let recording = tokio::spawn(record_parts(gather.clone(), part, self.spine.clone()));
        let is_over = || past + begun.elapsed() >= soak.lasts;
        let mut turn = 0;
        'turns: while !is_over() {
            for cases in rounds.values() {
                let round = Instant::now();
                hosts.lose_gone(self.spine);
                gather.lock().round(clocks::since_1970(), rounds.len() == 1);
                let lost = lost(cases, hosts);
                self.round(index, turn, cases, hosts).await;
                for (case, failure) in lost.into_iter().filter(|_| self.spine.halted().is_none()) {
                    gather.lock().missed(case, &failure, clocks::since_1970());
                }
                if rounds.len() > 1 {
                    // An idle link breaks unseen while its port is down, and would fail a good window. New queue pairs also take other
                    // paths where a hash chooses among several.
                    self.close_idle().await;
                }
                if self.spine.halted().is_some() || is_over() {
                    break 'turns;
                }
                tokio::select! {
                    () = tokio::time::sleep(SHORTEST_ROUND.saturating_sub(round.elapsed())) => {}
                    _ = self.spine.halting() => break 'turns,
                }
            }
            turn = turn.wrapping_add(1);
        }
        recording.abort();
        // If interrupted, it has recorded a part or has not begun to.
        let _ = recording.await;
        self.gather = None;
        // Interrupted windows are unknown: their time is not counted, and `--resume` runs it again.
        let until = match self.spine.halted() {
            Some(_) => gather.lock().last(),
            None => clocks::since_1970(),
        };
        part_is_over(&gather, until, self.spine);
        watcher.end().await;
    }
}

async fn record_parts(gather: Arc<Mutex<Gather>>, part: Duration, spine: Spine) {
    loop {
        tokio::time::sleep(part).await;
        part_is_over(&gather, clocks::since_1970(), &spine);
    }
}

fn lost<'c>(cases: &[&'c Case], hosts: &Hosts) -> Vec<(&'c Case, Failure)> {
    let of = |case: &&'c Case| {
        let gone = case.flow.hosts().into_iter().find(|host| !hosts.agents.contains_key(&***host))?;
        let why = hosts.lost.get(&**gone).cloned();
        let unknown = || Failure::new(Stage::Measure, Kind::Lost, "the host is gone").at(gone);
        Some((*case, why.unwrap_or_else(unknown)))
    };
    cases.iter().filter_map(of).collect()
}

fn part_is_over(gather: &Mutex<Gather>, until: Nanoseconds, spine: &Spine) {
    let soaked = gather.lock().take(until);
    spine.emit(Event::Soaked(Box::new(soaked)));
    spine.sync();
}
