//! CPU budget: limits how often each kind of work runs, so that all stay below a share of a processor.
//!
//! Each kind has a desired interval and a cost: the CPU time of its last round, or for kinds with many small rounds a mean. If everything
//! fits into the share, each kind gets its interval. Otherwise kinds that need less than an equal part get that, and the others divide
//! the rest equally (max-min fairness). The interval of a limited kind is its cost over its part. It is set after the round by the
//! round's cost, so the sum stays within the share whatever the costs are.

use railgauge_wire::{COUNTERS_EVERY, LARGEST_SHARE, Nanoseconds, STATE_EVERY};

/// Assigned part of the share. The rest is for unmeasured work at the end of a round, after the clock was read.
const GIVEN: f64 = 0.9;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    Look,
    CloseLook,
    Counters,
    Statistics,
    Modules,
    Places,
}

const KINDS: [Work; 6] = [Work::Look, Work::CloseLook, Work::Counters, Work::Statistics, Work::Modules, Work::Places];

impl Work {
    fn wanted(self) -> Nanoseconds {
        match self {
            Self::Look => STATE_EVERY.into(),
            Self::CloseLook | Self::Places => Nanoseconds::from_secs(1),
            Self::Counters => COUNTERS_EVERY.into(),
            // A driver may query its firmware for each of a thousand.
            Self::Statistics => Nanoseconds::from_secs(10),
            // Over a slow bus inside the module; the values change slowly.
            Self::Modules => Nanoseconds::from_secs(60),
        }
    }

    /// Weight of a new cost in the mean: a look that finds a change costs more than others.
    fn weight(self) -> f64 {
        if self == Self::Look { 0.125 } else { 1.0 }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    begun: Option<Nanoseconds>,
    cost: f64,
}

#[derive(Debug, Default)]
pub(super) struct Pace {
    rounds: [Round; KINDS.len()],
}

impl Pace {
    /// At once before the first round.
    pub(super) fn due(&self, work: Work) -> Nanoseconds {
        let Round { begun, cost } = self.rounds[work as usize];
        let stretched = Nanoseconds((cost / self.part()) as u64);
        begun.map_or(Nanoseconds::ZERO, |begun| begun.saturating_add(work.wanted().max(stretched)))
    }

    /// The round started at `begun` and used this CPU time.
    pub(super) fn done(&mut self, work: Work, begun: Nanoseconds, cost: Nanoseconds) {
        let round = &mut self.rounds[work as usize];
        let weight = if round.begun.is_none() { 1.0 } else { work.weight() };
        round.cost += weight * (cost.as_f64() - round.cost);
        round.begun = Some(begun);
    }

    /// A round of one kind included that of another.
    pub(super) fn included(&mut self, work: Work, begun: Nanoseconds) {
        self.rounds[work as usize].begun = Some(begun);
    }

    /// Forgets the cost of unrepeated work, once its time is over.
    pub(super) fn settle(&mut self, now: Nanoseconds) {
        if self.due(Work::Places) <= now {
            self.rounds[Work::Places as usize].cost = 0.0;
        }
    }

    fn part(&self) -> f64 {
        let mut shares = KINDS.map(|work| self.rounds[work as usize].cost / work.wanted().as_f64());
        shares.sort_unstable_by(f64::total_cmp);
        let mut left = GIVEN * LARGEST_SHARE;
        for (at, share) in shares.into_iter().enumerate() {
            let equal = left / (KINDS.len() - at) as f64;
            if share > equal {
                return equal;
            }
            left -= share;
        }
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs all work when due for ten minutes, at these costs. Returns the used share, without the last round of each kind, whose time is
    /// not over, and the number of rounds.
    fn simulated(cost: impl Fn(Work, u64) -> Nanoseconds) -> (f64, [u64; 6]) {
        let (mut pace, mut spent, mut rounds, mut last) =
            (Pace::default(), Nanoseconds::ZERO, [0; 6], [Nanoseconds::ZERO; 6]);
        let end = Nanoseconds::from_secs(600);
        let mut now = Nanoseconds::ZERO;
        while now < end {
            pace.settle(now);
            // Finding places is rare.
            let next =
                KINDS.into_iter().filter(|work| *work != Work::Places).min_by_key(|work| pace.due(*work)).unwrap();
            now = now.max(pace.due(next));
            let took = cost(next, rounds[next as usize]);
            pace.done(next, now, took);
            rounds[next as usize] += 1;
            spent += std::mem::replace(&mut last[next as usize], took);
            now += took;
        }
        (spent.as_f64() / now.as_f64(), rounds)
    }

    #[test]
    fn cheap_work_is_done_as_often_as_it_wants() {
        let (share, rounds) = simulated(|_, _| Nanoseconds(50_000));
        assert!(share < 0.001, "{share}");
        assert!((5_980..=6_001).contains(&rounds[0]) && rounds[2] >= 599 && rounds[3..5] == [60, 10], "{rounds:?}");
    }

    #[test]
    fn dear_work_is_done_less_often_and_the_rest_as_before() {
        // Statistics with a second of CPU time need a tenth of a processor.
        let (share, rounds) =
            simulated(|work, _| Nanoseconds(if work == Work::Statistics { 1_000_000_000 } else { 50_000 }));
        assert!(share <= LARGEST_SHARE, "{share}");
        assert!((5_900..=6_001).contains(&rounds[0]) && rounds[2] > 590, "{rounds:?}");
        assert!((5..10).contains(&rounds[3]), "{rounds:?}");
    }

    #[test]
    fn no_costs_break_the_budget() {
        for step in 1..40 {
            let scale = 1_000 * step * step * step;
            let (share, rounds) = simulated(|work, round| Nanoseconds(scale * (1 + (work as u64 + round * step) % 7)));
            assert!(share <= LARGEST_SHARE, "{share} {rounds:?}");
            assert!(rounds[..3].iter().all(|rounds| *rounds > 2), "{rounds:?}");
        }
    }

    #[test]
    fn what_is_not_repeated_is_paid_off() {
        let mut pace = Pace::default();
        let begin = Nanoseconds::from_secs(5);
        pace.done(Work::Places, begin, Nanoseconds::from_millis(130));
        pace.done(Work::Look, begin, Nanoseconds(100_000));
        let paid = pace.due(Work::Places) - begin;
        assert!((Nanoseconds::from_secs(10)..Nanoseconds::from_secs(60)).contains(&paid), "{paid}");
        pace.settle(begin + paid);
        assert_eq!(pace.due(Work::Places), begin + Work::Places.wanted());
    }

    #[test]
    fn counters_that_cost_too_much_get_longer_rows() {
        let mut pace = Pace::default();
        let begun = Nanoseconds::from_secs(1);
        for work in [Work::Look, Work::CloseLook] {
            pace.done(work, begun, Nanoseconds(100_000));
        }
        pace.done(Work::Counters, begun, Nanoseconds::from_millis(20));
        let wait = pace.due(Work::Counters) - begun;
        assert!((Nanoseconds::from_secs(2)..Nanoseconds::from_secs(4)).contains(&wait), "{wait}");
        assert_eq!(pace.due(Work::Look) - begun, Nanoseconds::from_millis(100));
    }
}
