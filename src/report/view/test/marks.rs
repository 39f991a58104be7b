//! What of the pair matrix belongs to a part that stands out.

use std::collections::BTreeSet;

use super::Data;
use crate::analysis::localise::{Named, Standing};

/// Cells, rows and columns of parts that stand out.
#[derive(Default)]
pub(super) struct Marks {
    /// Cases that speak of such a part.
    pub(super) cases: BTreeSet<u64>,
    /// Hosts that are such a part, or one NIC of them.
    ends: Vec<(String, Option<u32>)>,
    /// Their names, the worst first.
    names: Vec<String>,
}

impl Marks {
    /// The marks of a test. What was good when measured again is not marked.
    pub(super) fn new(data: &Data<'_>) -> Self {
        let suspects = data.parts.map_or(&[][..], |parts| &parts.suspects);
        let bad = || suspects.iter().filter(|suspect| suspect.standing != Standing::Cleared);
        let end = |part: &&Named| matches!(part.kind, "host" | "nic");
        let ends = bad().filter(end).flat_map(|part| part.hosts.iter().map(|host| (host.clone(), part.rail)));
        Self {
            cases: bad().flat_map(|part| part.cases.iter().copied()).collect(),
            ends: ends.collect(),
            names: bad().map(|part| part.name.clone()).collect(),
        }
    }

    /// What the frames of the matrix mean; empty without any.
    pub(super) fn words(&self) -> String {
        match self.names.as_slice() {
            [] => String::new(),
            names => format!(" Framed: {}.", names.join("; ")),
        }
    }

    /// Whether a host's rail is such a part.
    pub(super) fn end(&self, host: &str, rail: u32) -> bool {
        self.ends.iter().any(|(named, nic)| named == host && nic.is_none_or(|nic| nic == rail))
    }
}
