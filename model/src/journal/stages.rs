use std::{ops::AddAssign, time::Duration};

use railgauge_wire::{Nanoseconds, Spent};
use serde::{Deserialize, Serialize};

macro_rules! stages {
    ($($(#[$doc:meta])* $part:ident = $word:literal,)*) => {
        /// Wall time of a run by stage. Many hosts do the same at once: each phase counts once, by the host or flow that took longest. Time
        /// between the parts is in `waiting`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Stages { $($(#[$doc])* pub $part: Nanoseconds,)* }

        impl Stages {
            pub fn parts(&self) -> Vec<(&'static str, Nanoseconds)> {
                vec![$(($word, self.$part)),*]
            }
        }

        impl AddAssign for Stages {
            fn add_assign(&mut self, more: Self) {
                $(self.$part = self.$part.saturating_add(more.$part);)*
            }
        }
    };
}

stages! {
    connect = "connect", deploy = "deploy", start = "start", facts = "facts", planning = "planning", open = "open",
    verify = "verify", warm_up = "warm-up", windows = "windows", waiting = "waiting",
    /// Judging which suspects to measure again. The final page is made while agents are released; neither counts.
    judging = "judging",
}

impl Stages {
    pub fn total(&self) -> Nanoseconds {
        self.parts().into_iter().fold(Nanoseconds::ZERO, |sum, (_, part)| sum.saturating_add(part))
    }

    pub fn add_round(&mut self, took: Duration, mut flow: OfFlow) {
        // The ends begin their first case before the controller hears that they have joined.
        let over = flow.accounted().saturating_sub(took.into());
        flow.open = flow.open.saturating_sub(over);
        let (OfFlow { open, spent }, accounted) = (flow, flow.accounted());
        // The controller's time bounds what agents report.
        if accounted > took.into() {
            self.waiting = self.waiting.saturating_add(took.into());
            return;
        }
        *self += Self {
            open,
            verify: spent.verify,
            warm_up: spent.warm_up,
            windows: spent.window,
            waiting: Nanoseconds::from(took).saturating_sub(accounted),
            ..Self::default()
        };
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OfFlow {
    pub open: Nanoseconds,
    pub spent: Spent,
}

impl OfFlow {
    pub fn accounted(&self) -> Nanoseconds {
        let Spent { verify, warm_up, window, .. } = self.spent;
        [self.open, verify, warm_up, window].into_iter().fold(Nanoseconds::ZERO, Nanoseconds::saturating_add)
    }

    pub fn add(&mut self, more: Spent) {
        let sum = &mut self.spent;
        sum.verify = sum.verify.saturating_add(more.verify);
        sum.warm_up = sum.warm_up.saturating_add(more.warm_up);
        sum.window = sum.window.saturating_add(more.window);
        sum.waiting = sum.waiting.saturating_add(more.waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanoseconds = Nanoseconds::from_secs(1);

    #[test]
    fn the_parts_of_a_round_come_to_the_time_it_took() {
        let spent = Spent { verify: SECOND, warm_up: SECOND, window: SECOND, waiting: SECOND };
        let mut stages = Stages::default();
        stages.add_round(Duration::from_secs(10), OfFlow { open: SECOND, spent });
        assert_eq!(stages.total(), Nanoseconds::from_secs(10));
        assert_eq!((stages.windows, stages.waiting), (SECOND, Nanoseconds::from_secs(6)));
    }

    #[test]
    fn opening_a_link_ends_when_its_first_case_begins() {
        let spent = Spent { window: Nanoseconds::from_secs(9), ..Spent::default() };
        let mut stages = Stages::default();
        stages.add_round(Duration::from_secs(10), OfFlow { open: Nanoseconds::from_secs(3), spent });
        assert_eq!((stages.open, stages.windows), (SECOND, spent.window));
        assert_eq!(stages.total(), Nanoseconds::from_secs(10));
    }

    #[test]
    fn agents_cannot_claim_more_time_than_passed() {
        let spent = Spent { window: Nanoseconds(u64::MAX), ..Spent::default() };
        let mut stages = Stages::default();
        stages.add_round(Duration::from_secs(10), OfFlow { open: SECOND, spent });
        assert_eq!((stages.total(), stages.windows), (Nanoseconds::from_secs(10), Nanoseconds::ZERO));
    }
}
