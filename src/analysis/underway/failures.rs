//! What failed so far, by cause.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::journal::event::Outcome;

/// Causes that are kept apart; further ones are counted together.
const CAUSES: usize = 256;

/// What failed so far.
#[derive(Debug, Clone, Default)]
pub struct Failures {
    causes: BTreeMap<String, Failed>,
    /// Cases of causes that are no longer kept apart.
    pub others: u64,
    /// Measurements whose bytes arrived wrong.
    pub wrong: u64,
    /// Measurements that may not be trusted as they are.
    pub doubtful: u64,
    /// Windows of the soak that failed.
    pub windows: u64,
}

/// Cases of one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Stage and cause, without the hosts.
    pub cause: String,
    /// How many.
    pub cases: u64,
    /// Hosts that they are about.
    pub hosts: BTreeSet<String>,
    /// What to look at or do; empty where that is not known.
    pub remedy: String,
}

impl Failures {
    /// Takes an outcome. Whether there is no measurement.
    pub(super) fn take(&mut self, outcome: &Outcome) -> bool {
        let failure = match &outcome.result {
            Ok(sample) => {
                self.wrong += u64::from(!sample.checked.wrong.is_zero());
                self.doubtful += u64::from(!sample.contaminated.is_empty());
                return false;
            }
            Err(failure) => failure,
        };
        let cause = format!("{}: {}", failure.stage, failure.cause);
        if !self.causes.contains_key(&cause) && self.causes.len() >= CAUSES {
            self.others += 1;
            return true;
        }
        let remedy = failure.remedy.as_ref().map(ToString::to_string).unwrap_or_default();
        let new = || Failed { cause: cause.clone(), cases: 0, hosts: BTreeSet::new(), remedy };
        let failed = self.causes.entry(cause.clone()).or_insert_with(new);
        failed.cases += 1;
        failed.hosts.extend(failure.host.iter().chain(&failure.peer).cloned());
        true
    }

    /// Failed cases are tried again.
    pub(super) fn forget_cases(&mut self) {
        self.causes.clear();
        self.others = 0;
    }

    /// Cases without a measurement.
    pub fn cases(&self) -> u64 {
        self.causes.values().map(|failed| failed.cases).sum::<u64>() + self.others
    }

    /// By cause, the most frequent first.
    pub fn by_cause(&self) -> Vec<&Failed> {
        let mut all: Vec<&Failed> = self.causes.values().collect();
        all.sort_by_key(|failed| std::cmp::Reverse(failed.cases));
        all
    }
}
