//! Hosts that a test measured in one direction only: nothing is known of what they send, or of what they receive.

use std::{collections::BTreeSet, fmt};

use foldhash::HashMap;
use railgauge_model::plan::hostlist;
use serde::Serialize;

use crate::analysis::{results::CaseResult, together};

/// Hosts that were measured in one direction only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OneWay {
    /// Hosts that never sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never_sent: Vec<String>,
    /// Hosts that never received.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never_received: Vec<String>,
}

impl OneWay {
    /// Of cases whose bytes go one way. Hosts without any case with a value are not among them. Empty where no host was
    /// measured in both directions: then the plan means it so (neighbours, one to many).
    pub(super) fn of<'c>(measured: impl Iterator<Item = &'c CaseResult<'c>>) -> Self {
        let mut seen: HashMap<&str, (bool, bool)> = HashMap::default();
        for result in measured {
            let (source, sink) = together::ends(result.case);
            seen.entry(&source.host).or_default().0 = true;
            seen.entry(&sink.host).or_default().1 = true;
        }
        if !seen.values().any(|seen| *seen == (true, true)) {
            return Self::default();
        }
        let without = |which: fn(&(bool, bool)) -> bool| -> Vec<String> {
            let hosts: BTreeSet<&str> = seen.iter().filter(|(_, seen)| !which(seen)).map(|(host, _)| *host).collect();
            hosts.into_iter().map(str::to_owned).collect()
        };
        Self { never_sent: without(|seen| seen.0), never_received: without(|seen| seen.1) }
    }

    /// Whether every host was measured in both directions, or nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.never_sent.is_empty() && self.never_received.is_empty()
    }

    /// What is not known; `None` where all is.
    pub fn told(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }
}

/// What is not known, as part of a sentence.
impl fmt::Display for OneWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |(what, hosts): (&str, &Vec<String>)| {
            (!hosts.is_empty()).then(|| format!("{what} {}", hostlist::fold(hosts.iter().map(String::as_str))))
        };
        let parts: Vec<String> = [("sending by", &self.never_sent), ("receiving by", &self.never_received)]
            .into_iter()
            .filter_map(part)
            .collect();
        write!(f, "not measured: {}", parts.join("; "))
    }
}
