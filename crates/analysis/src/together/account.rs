//! The reported times of each end of a flow, and whether they are possible.

use railgauge_model::{
    journal::event::{Moment, Sample},
    schedule::LEAD,
};
use railgauge_wire::{Measurement, Nanoseconds, Window, measure::SLICE};

use crate::case::{CaseResult, Stray};

pub(super) struct Account<'s> {
    pub(super) host: &'s str,
    pub(super) planned: Moment,
    pub(super) end: &'s Measurement,
}

/// Those that count what passed, the initiator's first.
pub(super) fn accounts<'s>(result: &'s CaseResult<'_>, sample: &'s Sample) -> Vec<Account<'s>> {
    let Some(together) = sample.together.as_deref() else { return Vec::new() };
    let flow = &result.case.flow;
    // A responder without an account has counted nothing that could be compared.
    let responder = sample.responder.as_deref().filter(|end| !end.elapsed.is_zero() && end.operations > 0);
    let ends = [(&flow.from.host, together.from, Some(&sample.initiator)), (&flow.to.host, together.to, responder)];
    ends.into_iter().filter_map(|(host, planned, end)| Some(Account { host, planned, end: end? })).collect()
}

impl Account<'_> {
    /// Why this account is outside of the pass: its window began before anything was planned, or after the controller
    /// had its answer. This rests on its host alone and says nothing about other flows.
    pub(super) fn stray(&self, result: &CaseResult<'_>, sample: &Sample) -> Option<Stray> {
        let (planned, began, test) = (self.planned.at, self.end.started, result.test);
        // Without a clock or a window there is no time to judge.
        if planned.is_zero() || began.is_zero() {
            return None;
        }
        // Twice the longest round trip lies before the start, and no clock error exceeds one slice.
        let slack = self.planned.error.saturating_add(SLICE * 4);
        let before = Nanoseconds::from(test.warm_up.saturating_add(LEAD)).saturating_add(slack);
        // Starting the responders may take as long as the test's deadline and delay the timed pass.
        let window = if let Window::Duration(time) = test.window { time } else { Nanoseconds::ZERO };
        let waited = sample.waited.unwrap_or(window).saturating_add(test.deadline.into());
        let (off, after, most) = match began < planned {
            true => (planned - began, false, before),
            false => (began - planned, true, waited.saturating_add(slack)),
        };
        (off > most).then(|| Stray { host: self.host.to_owned(), off, after })
    }
}

pub fn strays(result: &CaseResult<'_>, sample: &Sample) -> Vec<Stray> {
    accounts(result, sample).iter().filter_map(|account| account.stray(result, sample)).collect()
}
