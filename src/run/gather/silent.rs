use railgauge_model::journal::event::Stall;
use railgauge_wire::Nanoseconds;

#[derive(Debug, Clone, Copy)]
pub(super) struct Silent {
    since: Nanoseconds,
    error: Nanoseconds,
    /// For a window without reports: how long traffic may have passed in it, at whatever time.
    traffic: Option<Nanoseconds>,
}

impl Silent {
    pub(super) const fn known(since: Nanoseconds, error: Nanoseconds) -> Self {
        Self { since, error, traffic: None }
    }

    /// A window began and failed without a report of what passed in it: normally at most `traffic`.
    pub(super) fn untold(began: Nanoseconds, failed: Nanoseconds, traffic: Nanoseconds) -> Self {
        Self { since: began, error: failed.saturating_sub(began), traffic: Some(traffic) }
    }

    pub(super) fn until(&self, until: Nanoseconds, until_error: Nanoseconds) -> Stall {
        let stall = Stall { from: self.since, until: until.max(self.since), failed: true, ..Stall::default() };
        // Traffic in an unreported window leaves the rest of its time silent, before or after it, so one of the two is at least half of
        // that.
        let rest = |traffic: Nanoseconds| Nanoseconds(traffic.saturating_add(stall.until - stall.from).0.div_ceil(2));
        let error = self.traffic.map_or(self.error, |traffic| self.error.min(rest(traffic)));
        // A window that began before this was noted moves the end there.
        let until_error = until_error.max(self.since.saturating_sub(until));
        Stall { error, until_error: Some(until_error), ..stall }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanoseconds = Nanoseconds::from_secs(1);

    fn least(stall: Stall) -> Nanoseconds {
        (stall.until - stall.from).saturating_sub(stall.error).saturating_sub(stall.until_error.unwrap())
    }

    #[test]
    fn a_window_that_hangs_is_a_silence_that_is_sure_for_half_of_its_time_without_traffic() {
        let hung = Silent::untold(S * 100, S * 115, S * 3);
        let stall = hung.until(S * 115, Nanoseconds::ZERO);
        assert_eq!((stall.from, stall.until, least(stall)), (S * 100, S * 115, S * 6));
        assert_eq!(least(hung.until(S * 140, Nanoseconds::ZERO)), S * 25);
        assert_eq!(least(Silent::untold(S * 100, S * 103, S * 3).until(S * 103, Nanoseconds::ZERO)), Nanoseconds::ZERO);
    }

    #[test]
    fn a_window_that_began_before_the_end_was_told_moves_it() {
        let stall = Silent::known(S * 10, Nanoseconds::ZERO).until(S * 8, Nanoseconds(5));
        assert_eq!((stall.from, stall.until, stall.until_error), (S * 10, S * 10, Some(S * 2)));
    }
}
