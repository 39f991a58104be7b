//! What bounds how sure a run can be of a part: hosts that were busy, virtual machines, hosts that are one machine.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::facts::HostFacts;

use super::OpenReason;
use crate::analysis::journal::{HostUp, Journal};

/// Share of a host that something else may take without a word, as in the check `idle` of preflight.
const BUSY: f64 = 0.5;

/// What is known of the hosts of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Conditions {
    /// Hosts by name, with the worst that stands against each.
    of: BTreeMap<String, OpenReason>,
}

impl Conditions {
    pub(super) fn new(journal: &Journal) -> Self {
        let mut machines: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, HostUp { facts, .. }) in &journal.hosts {
            if !facts.hostname.is_empty() {
                machines.entry(&facts.hostname).or_default().insert(name);
            }
        }
        let shared = |facts: &HostFacts| machines.get(facts.hostname.as_str()).is_some_and(|names| names.len() > 1);
        let reason = |facts: &HostFacts| {
            if shared(facts) {
                Some(OpenReason::SharedMachine)
            } else if is_busy(facts) {
                Some(OpenReason::Busy)
            } else if facts.surroundings.virtual_machine == Some(true) {
                Some(OpenReason::VirtualMachine)
            } else {
                None
            }
        };
        let of = journal.hosts.iter().filter_map(|(name, up)| Some((name.clone(), reason(&up.facts)?)));
        Self { of: of.collect() }
    }

    /// What stands against any of these hosts. An effect that is `far` beyond what control pairs show is seen on a busy host
    /// and on a virtual machine, too; hosts that are one machine are no parts to tell apart, whatever the effect.
    pub(super) fn against<'h>(&self, hosts: impl Iterator<Item = &'h str>, far: bool) -> Option<OpenReason> {
        let of: Vec<OpenReason> = hosts.filter_map(|host| self.of.get(host).copied()).collect();
        let has = |reason: OpenReason| of.contains(&reason);
        let order = [OpenReason::SharedMachine, OpenReason::Busy, OpenReason::VirtualMachine];
        order.into_iter().find(|reason| has(*reason) && (!far || *reason == OpenReason::SharedMachine))
    }
}

/// Whether more than half of a host was taken while its facts were collected.
fn is_busy(facts: &HostFacts) -> bool {
    let taken = facts.load.average.zip(facts.load.busy);
    taken.is_some_and(|(average, busy)| average > f64::from(facts.cpu.threads) * BUSY && busy > BUSY)
}
