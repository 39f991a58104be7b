//! When hosts were lost and when they came back. Lines have the time of a wall clock that may be set in between, parts
//! of the soak that of a clock that never steps: what is recorded between two parts happened between them.

use railgauge_wire::{Failure, Nanoseconds};

use super::Loss;

#[derive(Default)]
pub(super) struct Losses {
    found: Vec<Loss>,
    pending: usize,
    until: Nanoseconds,
}

impl Losses {
    pub(super) fn lost(&mut self, host: &str, failure: &Failure, at: Option<Nanoseconds>) {
        // A time before the end of the last part is that of a clock that was set: its true time in the next part is unknown.
        let at = at.filter(|at| *at >= self.until);
        self.found.push(Loss { host: host.to_owned(), at, failure: failure.clone(), back: None });
        self.pending += 1;
    }

    pub(super) fn back(&mut self, host: &str, at: Option<Nanoseconds>) {
        if let Some(loss) = self.found.iter_mut().rev().find(|loss| loss.host == host) {
            loss.back = at.map(|at| at.max(self.until));
        }
    }

    pub(super) fn soaked(&mut self, from: Nanoseconds, until: Nanoseconds) {
        self.until = self.until.max(until);
        for loss in self.found.iter_mut().rev().take(std::mem::take(&mut self.pending)) {
            loss.at = Some(loss.at.map_or(until, |at| at.min(until)));
        }
        // Hosts that came back did so before this part began.
        for back in self.found.iter_mut().filter_map(|loss| loss.back.as_mut()) {
            *back = from.min(*back);
        }
    }

    /// In the order of the journal.
    pub(super) fn finish(self) -> Vec<Loss> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{Kind, Stage};

    use super::*;

    const S: Nanoseconds = Nanoseconds::from_secs(1);

    /// One host that is lost at `lost` and back at `back`, between parts of 10 s, and a pause of 5 s.
    fn one(lost: u64, back: u64) -> (Option<Nanoseconds>, Option<Nanoseconds>) {
        let mut losses = Losses::default();
        losses.soaked(S * 100, S * 110);
        losses.lost("a", &Failure::new(Stage::Measure, Kind::Lost, "gone"), Some(S * lost));
        losses.soaked(S * 110, S * 120);
        losses.back("a", Some(S * back));
        losses.soaked(S * 125, S * 135);
        losses.soaked(S * 135, S * 145);
        let loss = losses.finish().remove(0);
        (loss.at, loss.back)
    }

    #[test]
    fn the_times_of_lines_are_kept_where_they_can_be() {
        assert_eq!(one(113, 123), (Some(S * 113), Some(S * 123)));
    }

    #[test]
    fn a_clock_that_was_set_moves_no_loss_into_another_part() {
        assert_eq!(one(20, 60), (Some(S * 120), Some(S * 120)));
        assert_eq!(one(900, 990), (Some(S * 120), Some(S * 125)));
    }
}
