//! Confirmation: suspects of the tests are measured again, within the run and a time limit.
//!
//! Analysis, which reads the journal, chooses the cases.

use std::{collections::HashSet, error::Error, sync::Arc, time::Instant};

use railgauge_model::journal::event::{Case, Event};

use super::{hosts::Hosts, rounds::RunState};

/// Returns additional cases that settle what the journal leaves open so far; none when nothing is left. Cases of one round are adjacent and
/// share no port. It may take long, and is called again after they ran. Only the words of its error are used.
pub type FollowUp = Arc<dyn Fn() -> Result<Asked, Box<dyn Error + Send + Sync>> + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Asked {
    pub cases: Vec<Case>,
    /// Whether they look for the bad cable or switch; otherwise for the bad host, NIC, path or group.
    pub links: bool,
}

impl RunState<'_> {
    /// Runs the open cases of an earlier process of this run, then new ones, until there are none, the time of the plan is over, or the
    /// spine is halted.
    pub(super) async fn confirm(
        &mut self,
        earlier: &[Case],
        done: &HashSet<(u64, u32)>,
        follow_up: &FollowUp,
        hosts: &mut Hosts,
    ) {
        let mut open: Vec<Case> = earlier.iter().filter(|case| !done.contains(&(case.id, 0))).cloned().collect();
        let start = Instant::now();
        // There is no event for it where a resumed run continues with earlier cases.
        self.spine.expect_suspects(open.len() as u64);
        loop {
            if !self.rounds_of(&open, start, hosts).await {
                return;
            }
            let follow_up = follow_up.clone();
            let judging = Instant::now();
            // Reading a long journal takes seconds, in which agents must still be answered.
            let asked = tokio::task::spawn_blocking(move || follow_up()).await;
            self.stages.judging = self.stages.judging.saturating_add(judging.elapsed().into());
            let Asked { cases, links } = match asked.unwrap_or_else(|error| Err(error.into())) {
                Ok(asked) if asked.cases.is_empty() => return,
                Ok(asked) => asked,
                Err(why) => return self.note(format!("suspects could not be measured again: {why}")),
            };
            self.spine.emit(Event::Confirming { cases: cases.clone(), links });
            open = cases;
        }
    }

    async fn rounds_of(&mut self, cases: &[Case], start: Instant, hosts: &mut Hosts) -> bool {
        let plan = &self.work.plan;
        let own = (start + plan.localise.at_most, "[localise] at_most");
        let of_plan = plan.until_soak().map(|until| (self.spine.begun + until, "at_most"));
        let (until, key) = of_plan.into_iter().fold(own, |first, other| if other.0 < first.0 { other } else { first });
        let rounds = cases.chunk_by(|a, b| (&a.test, a.round) == (&b.test, b.round));
        let rounds = rounds.filter_map(|round| Some((self.work.test(&round[0])?.0, round.iter().collect::<Vec<_>>())));
        let rounds: Vec<(usize, Vec<&Case>)> = rounds.collect();
        let mut left = cases.len();
        for (at, (index, round)) in rounds.iter().enumerate() {
            if Instant::now() >= until {
                self.note(format!("the time to measure suspects again ({key}) is over, with {left} cases not run"));
                return false;
            }
            left -= round.len();
            let test = self.work.plan.tests[*index].name.clone();
            let of_round = |(test, round): &(usize, Vec<&Case>)| self.work.cost(*test, round).at(self.pace(*test));
            self.spine.expect_time(rounds[at..].iter().map(of_round).sum());
            self.spine.emit(Event::Round { test, round: round[0].round, repeat: 0 });
            self.round(*index, 0, round, hosts).await;
            self.spine.sync();
            if self.spine.halted().is_some() {
                return false;
            }
        }
        true
    }
}
