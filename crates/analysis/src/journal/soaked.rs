//! Whether a part of a soak can belong to its run.

use std::collections::HashSet;

use jiff::Timestamp;
use railgauge_model::journal::event::{Case, Soaked, SoakedFlow};
use railgauge_wire::Nanoseconds;

use super::{Journal, times};

/// Error of an agent's clock beyond what it reports, and excess of a window over its part.
const SLACK: Nanoseconds = Nanoseconds::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Parts {
    begun: Option<Nanoseconds>,
    cases: Option<HashSet<u64>>,
}

impl Parts {
    pub(super) fn resumed(&mut self) {
        self.begun = None;
    }

    pub(super) fn contradiction(
        &mut self,
        journal: &Journal,
        part: &Soaked,
        (began, told): (Option<Timestamp>, Option<Timestamp>),
    ) -> Option<String> {
        let Some(soak) = &journal.plan.soak else {
            return Some("a part of a soak, which the plan does not have".into());
        };
        if part.until < part.from {
            return Some("a part of the soak that ends before it begins".into());
        }
        for at in [part.from, part.until] {
            let at = Timestamp::from_nanosecond(at.0.into()).ok();
            if let (Some(began), Some(told)) = (began, told)
                && !at.is_some_and(|at| times::within(began, at, told))
            {
                return Some("a part of the soak outside of the run".into());
            }
        }
        // The line with the start of the soak may be lost.
        if part.from == part.until && part.flows.is_empty() {
            self.begun = Some(part.from);
        }
        let of_soak = || Case::of_soak(&journal.cases, &soak.test).iter().map(|case| case.id).collect();
        let cases = &*self.cases.get_or_insert_with(of_soak);
        let mut seen = HashSet::new();
        part.flows.iter().find_map(|flow| {
            let case = flow.case;
            if !cases.contains(&case) {
                return Some(format!(
                    "case {case} in the soak, which is none of those of test `{}` that carry it",
                    soak.test
                ));
            }
            if !seen.insert(case) {
                return Some(format!("case {case} twice in one part of the soak"));
            }
            self.begun
                .is_some_and(|begun| is_longer(flow, begun, part.until))
                .then(|| format!("case {case} had traffic or stalled for longer than the soak had lasted"))
        })
    }
}

/// Whether a flow measured for longer than the soak lasted, or stalled outside of it.
fn is_longer(flow: &SoakedFlow, begun: Nanoseconds, until: Nanoseconds) -> bool {
    flow.measured > until.saturating_sub(begun).saturating_add(SLACK)
        || flow.stalls.iter().any(|stall| {
            let off = stall.error.max(stall.until_error.unwrap_or_default()).saturating_add(stall.loose);
            let off = off.min(until.saturating_sub(begun)).saturating_add(SLACK);
            stall.until < stall.from
                || stall.from < begun.saturating_sub(off)
                || stall.until > until.saturating_add(off)
        })
}
