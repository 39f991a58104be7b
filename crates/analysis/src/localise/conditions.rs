//! Limits on the certainty about a part: busy hosts, virtual machines, hosts that share a machine.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::HostFacts;

use super::told::OpenReason;
use crate::journal::{HostUp, Journal};

/// Share of a host that other programs may use, as in the check `idle` of preflight.
const BUSY: f64 = 0.5;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Conditions {
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

    /// The reason against any of these hosts. An effect `far` beyond that of control pairs counts even on a busy host
    /// or a virtual machine; hosts that are one machine cannot be distinguished, whatever the effect.
    pub(super) fn against<'h>(&self, hosts: impl Iterator<Item = &'h str>, far: bool) -> Option<OpenReason> {
        let of: Vec<OpenReason> = hosts.filter_map(|host| self.of.get(host).copied()).collect();
        let has = |reason: OpenReason| of.contains(&reason);
        let order = [OpenReason::SharedMachine, OpenReason::Busy, OpenReason::VirtualMachine];
        order.into_iter().find(|reason| has(*reason) && (!far || *reason == OpenReason::SharedMachine))
    }
}

/// Whether more than half of a host was in use while its facts were collected.
fn is_busy(facts: &HostFacts) -> bool {
    let taken = facts.load.average.zip(facts.load.busy);
    taken.is_some_and(|(average, busy)| average > f64::from(facts.cpu.threads) * BUSY && busy > BUSY)
}
