//! The flows of a soak: senders, receivers, ports and parts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_model::{
    journal::event::{Case, Soaked},
    plan::model::{Soak, Test},
};
use railgauge_wire::{
    HostFacts, Nanoseconds, TestMetric,
    facts::port_name,
    watch::{ANSWER_WITHIN, ASK_EVERY},
};

use super::{
    ports::{Port, PortName},
    span::{Span, hull, union},
};
use crate::{
    gpus,
    journal::{Journal, JournalEnd},
};

#[derive(Debug, Clone)]
pub(super) struct End {
    /// `None` if the device is unknown.
    pub port: Option<PortName>,
    /// Position among the watched ports.
    pub watched: Option<usize>,
}

pub(super) struct Traffic<'j> {
    pub journal: &'j Journal,
    /// In order of time.
    pub parts: Vec<&'j Soaked>,
    /// Without overlaps.
    pub times: Vec<Span>,
    pub planned: BTreeSet<u64>,
    pub ends: BTreeMap<u64, [End; 2]>,
}

impl<'j> Traffic<'j> {
    pub(super) fn times(journal: &Journal) -> Vec<Span> {
        let spans = journal.soaked.iter().map(|part| Span::new(part.from, part.until));
        union(spans.filter(|span| span.from < span.until).collect())
    }

    /// When agents watched ports in the soak: in its parts, and from its start on wherever they reported.
    pub(super) fn looked(journal: &Journal, times: &[Span]) -> Vec<Span> {
        let Some(begin) = journal.soaked.iter().map(|part| part.from).min() else { return Vec::new() };
        let told = journal.watched.iter().map(|seen| Span::new(seen.seen.from.max(begin), seen.seen.until));
        let told = told.filter(|span| span.from < span.until);
        union(times.iter().copied().chain(told).collect())
    }

    /// In an unfinished run, the time up to which agents have reported: later observations come with their next
    /// records. `None` for a finished run.
    ///
    /// A record of an agent covers a part of the soak at most, and comes with the next answer. A later one is missing.
    pub(super) fn told(&self) -> Option<Nanoseconds> {
        let Self { journal, times, parts, .. } = self;
        let last = hull(times).filter(|_| journal.end == JournalEnd::Running)?.until;
        let part = parts.iter().map(|part| part.until.saturating_sub(part.from)).max()?;
        let late = last.saturating_sub(part).saturating_sub(ASK_EVERY.into()).saturating_sub(ANSWER_WITHIN.into());
        let mut told: BTreeMap<&str, Nanoseconds> = BTreeMap::new();
        for host in self.ends.keys().filter_map(|case| case_of(journal, *case)).flat_map(|case| case.flow.hosts()) {
            // A lost host does not report any more.
            if !journal.lost.contains_key(&**host) {
                told.insert(host, Nanoseconds::ZERO);
            }
        }
        for seen in &journal.watched {
            if let Some(until) = told.get_mut(&*seen.host) {
                *until = seen.seen.until.max(*until);
            }
        }
        Some(told.into_values().min()?.clamp(late, last))
    }

    pub(super) fn of(journal: &'j Journal, soak: &Soak, ports: &[Port]) -> Self {
        // The start of a soak is a part without length.
        let mut parts: Vec<&Soaked> = journal.soaked.iter().filter(|part| part.from < part.until).collect();
        parts.sort_by_key(|part| (part.from, part.until));
        let planned = planned(journal, soak);
        let devices = devices(journal, &parts);
        let places: HashMap<&PortName, usize> = ports.iter().map(|port| &port.name).zip(0..).collect();
        let flows: BTreeSet<u64> =
            parts.iter().flat_map(|part| &part.flows).map(|flow| flow.case).chain(planned.iter().copied()).collect();
        let ends = flows.into_iter().filter_map(|case| {
            let flow = &case_of(journal, case)?.flow;
            let [from, to] = devices.get(&case).cloned().unwrap_or_default();
            Some((case, [end(journal, &places, &flow.from.host, from), end(journal, &places, &flow.to.host, to)]))
        });
        let ends = ends.collect();
        Self { journal, times: Self::times(journal), parts, planned, ends }
    }

    pub(super) fn name(&self, case: u64) -> String {
        case_of(self.journal, case).map_or_else(|| format!("case {case}"), |case| case.flow.name())
    }

    pub(super) fn hosts(&self, case: u64) -> impl Iterator<Item = &'j str> + use<'j> {
        case_of(self.journal, case).into_iter().flat_map(|case| case.flow.hosts()).map(|host| &**host)
    }

    pub(super) fn watched(&self, case: u64) -> impl Iterator<Item = usize> + '_ {
        self.ends.get(&case).into_iter().flatten().filter_map(|end| end.watched)
    }
}

pub(super) fn case_of(journal: &Journal, case: u64) -> Option<&Case> {
    journal.cases.get(usize::try_from(case).ok()?).filter(|known| known.id == case)
}

pub(super) fn test<'j>(journal: &'j Journal, soak: &Soak) -> Option<&'j Test> {
    journal.plan.tests.iter().find(|test| test.name == soak.test)
}

/// Whether flows move enough at a time to keep the PCIe links of their ends busy.
pub(super) fn is_busy(journal: &Journal, soak: &Soak) -> bool {
    let busy = |case: &&Case| case.cell.metric == TestMetric::Bandwidth && case.cell.size >= gpus::BUSY;
    Case::of_soak(&journal.cases, &soak.test).iter().any(busy)
}

fn planned(journal: &Journal, soak: &Soak) -> BTreeSet<u64> {
    Case::of_soak(&journal.cases, &soak.test).into_iter().map(|case| case.id).collect()
}

/// As last opened in the soak, otherwise as in the test.
fn devices(journal: &Journal, parts: &[&Soaked]) -> HashMap<u64, [String; 2]> {
    let mut found: HashMap<u64, [String; 2]> = HashMap::new();
    for (case, link) in journal.tries.iter().filter_map(|one| Some((one.case, one.link.as_ref()?))) {
        found.insert(case, [link.from_device.clone(), link.to_device.clone()]);
    }
    for flow in parts.iter().flat_map(|part| &part.flows) {
        let known = found.entry(flow.case).or_default();
        for (known, device) in known.iter_mut().zip([&flow.from_device, &flow.to_device]) {
            if let Some(device) = device.as_ref().filter(|device| *device != known) {
                known.clone_from(device);
            }
        }
    }
    found
}

fn end(journal: &Journal, places: &HashMap<&PortName, usize>, host: &str, device: String) -> End {
    if device.is_empty() {
        return End { port: None, watched: None };
    }
    let facts = journal.hosts.get(host).map(|up| &up.facts);
    let names = names(host, &device, facts);
    let watched = names.iter().find_map(|name| Some((name.clone(), *places.get(name)?)));
    let (port, watched) = match watched {
        Some((name, place)) => (Some(name), Some(place)),
        None => (names.into_iter().next(), None),
    };
    End { port, watched }
}

/// Possible names of a watched port that a link calls `device`: its own and, if this is an interface or the address of
/// one, the interface and the RDMA device before it.
fn names(host: &str, device: &str, facts: Option<&HostFacts>) -> Vec<PortName> {
    let name = |device: &str, port: u8| PortName { host: host.to_owned(), device: device.to_owned(), port };
    let (before, number) = port_name(device);
    let numbered = number.map(|number| (before, number));
    let is_rdma = |wanted: &str| facts.is_some_and(|facts| facts.rdma.iter().any(|rdma| rdma.name == wanted));
    let (rdma, port) = numbered.filter(|(device, _)| is_rdma(device)).unwrap_or((device, 1));
    let mut found = vec![name(rdma, port)];
    found.extend(numbered.map(|(device, port)| name(device, port)));
    let Some(facts) = facts else { return found };
    let ports = || facts.rdma.iter().flat_map(|rdma| rdma.ports.iter().map(move |port| (rdma, port)));
    if is_rdma(rdma) {
        let behind = ports().find(|(of, at)| of.name == rdma && at.number == port);
        found.extend(behind.and_then(|(_, port)| port.netdev.as_deref()).map(|interface| name(interface, 1)));
        return found;
    }
    let with_address = |interface: &&railgauge_wire::facts::Interface| {
        interface.name == device || interface.addresses.iter().any(|address| address == device)
    };
    for interface in facts.interfaces.iter().filter(with_address) {
        found.push(name(&interface.name, 1));
        let before = ports().find(|(_, port)| port.netdev.as_deref() == Some(interface.name.as_str()));
        found.extend(before.map(|(rdma, port)| name(&rdma.name, port.number)));
    }
    found
}
