//! Classes of links that share one expected value, and what hardware their ends are.

use std::collections::HashMap;

use railgauge_model::{
    journal::event::Case,
    plan::baseline::{Class, EndFacts},
};
use railgauge_preflight::{FactOf, comparable};
use railgauge_wire::{Carrier, HostFacts, Memory, facts::port_name};
use sha2::{Digest, Sha256};

use crate::{history::cell_words, row::Reading};

const MACHINE: [&str; 3] = ["architecture", "machine", "processor"];
const NIC: [&str; 2] = ["driver", "board"];
const GPU: [&str; 2] = ["model", "memory"];

/// `None` if nothing carried its bytes.
pub(super) fn class(case: &Case, reading: &Reading) -> Option<Class> {
    let flow = &case.flow;
    Some(Class {
        test: case.test.to_string(),
        metric: reading.metric,
        size_bytes: case.cell.size,
        ranks: flow.ranks(),
        variant: cell_words(&case.cell),
        rails: if flow.members.is_empty() { (flow.from.rail, flow.to.rail) } else { (0, 0) },
        transport: Carrier::from_word(&reading.transport)?,
    })
}

type Facts<'a> = Box<dyn Fn(&str) -> Option<&'a HostFacts> + 'a>;

pub(super) struct Ends<'a> {
    facts: Facts<'a>,
    known: HashMap<(String, String, bool), Option<(String, EndFacts)>>,
}

impl<'a> Ends<'a> {
    pub(super) fn new(facts: impl Fn(&str) -> Option<&'a HostFacts> + 'a) -> Self {
        Self { facts: Box::new(facts), known: HashMap::new() }
    }

    /// Names of the ends, the initiator first; every kind once for a collective. `None` if a host's facts are unknown.
    pub(super) fn of(&mut self, case: &Case, reading: &Reading) -> Option<Vec<String>> {
        let memory = case.cell.memory;
        let [from_gpu, to_gpu] = [memory.from, memory.to].map(|memory| memory == Memory::Cuda);
        if case.flow.members.is_empty() {
            let [from, to] = &reading.devices;
            let from = self.end(&case.flow.from.host, from, from_gpu)?.0.clone();
            return Some(vec![from, self.end(&case.flow.to.host, to, to_gpu)?.0.clone()]);
        }
        let kind = |host: &std::sync::Arc<str>| Some(self.end(host, "", from_gpu)?.0.clone());
        let mut kinds = case.flow.hosts().into_iter().map(kind).collect::<Option<Vec<_>>>()?;
        kinds.sort_unstable();
        kinds.dedup();
        Some(kinds)
    }

    /// With its name. Without a device it is all of the host.
    pub(super) fn end(&mut self, host: &str, device: &str, cuda: bool) -> Option<&(String, EndFacts)> {
        let facts = &self.facts;
        let key = (host.to_owned(), device.to_owned(), cuda);
        self.known.entry(key).or_insert_with(|| facts(host).map(|facts| named(end(facts, device, cuda)))).as_ref()
    }

    pub(super) fn named(&self, name: &str) -> Option<&EndFacts> {
        self.known.values().flatten().find(|(known, _)| known == name).map(|(_, end)| end)
    }

    /// By name, which is shared by all ends of its kind.
    pub(super) fn known(self) -> impl Iterator<Item = (String, EndFacts)> {
        self.known.into_values().flatten()
    }
}

fn named(end: EndFacts) -> (String, EndFacts) {
    let mut digest = Sha256::new();
    for (fact, value) in &end.hardware {
        digest.update(format!("{fact}={value}\n"));
    }
    let name = hex::encode(&digest.finalize()[..6]);
    (name, end)
}

fn end(facts: &HostFacts, device: &str, cuda: bool) -> EndFacts {
    // A link's record names a port only if it is not the first.
    let (device, _) = port_name(device);
    let mut end = EndFacts::default();
    for known in comparable(facts) {
        let name = match known.of {
            FactOf::Nic { device: of, port: None } if of == device && NIC.contains(&known.fact) => known.of_any(),
            FactOf::Gpu(_) if cuda && GPU.contains(&known.fact) => known.name(),
            FactOf::Host if MACHINE.contains(&known.fact) => known.name(),
            _ => continue,
        };
        end.hardware.insert(name, known.value);
    }
    // TCP runs over an interface, which is not among the facts above.
    if let Some(interface) = facts.interface(device) {
        let driver = interface.driver.as_ref().map(|(name, _)| ("interface driver", name.clone()));
        end.hardware.extend(driver.map(|(fact, value)| (fact.to_owned(), value)));
    }
    end
}
