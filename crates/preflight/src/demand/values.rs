use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::plan::{Plan, model::Host};
use railgauge_wire::{
    HostFacts,
    facts::{GPUS, MODULES},
};
use serde::{Deserialize, Serialize};

use crate::scene::{Port, Seen, ports_of_plan};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    Met,
    Unread,
    Unmet,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    pub host: String,
    /// As plans name it; `None` for a value of the whole host.
    pub device: Option<String>,
    pub seen: String,
    pub state: Held,
    #[serde(default)]
    pub silent: bool,
}

pub(super) type Reader<'w> = Box<dyn Fn(&str, &HostFacts) -> Vec<Holding> + 'w>;

/// A value to compare every host with: its key, the wanted value in words, the related check, and how to read a host's facts.
pub(super) struct Requirement<'w> {
    pub key: String,
    pub wanted: String,
    pub check: &'static str,
    pub read: Reader<'w>,
}

/// What is known of the host as a whole.
pub(super) fn whole(host: &str, seen: String, state: Held) -> Holding {
    Holding { host: host.to_owned(), device: None, seen, state, silent: false }
}

/// Tolerance for rates that were printed and parsed: 0.01 %.
const RATE_TOLERANCE: f64 = 1e-4;

/// What was read, in words, and how it compares.
type Reading = (String, Held);

pub(super) fn wishes<'w>(plan: &'w Plan, cluster: &'w Seen<'w>) -> Vec<Requirement<'w>> {
    let within = Within { plan, cluster };
    let wanted = &plan.preflight.wanted;
    let mut all: Vec<Requirement<'_>> = Vec::new();
    let mut want = |key: &str, wanted: String, check, read: Reader<'w>| {
        all.push(Requirement { key: key.to_owned(), wanted, check, read });
    };
    if let Some(mtu) = wanted.mtu {
        let named: BTreeMap<&str, &Host> = plan.hosts.iter().map(|host| (host.name.as_str(), host)).collect();
        let of_ports = within.wires(move |port| match port.interface.map(|interface| interface.mtu) {
            Some(Some(seen)) => (seen.to_string(), equal(&seen, &mtu)),
            Some(None) => unread("not reported by the interface"),
            None => unread("no interface behind the port"),
        });
        let read = move |name: &str, facts: &HostFacts| match facts.rdma.is_empty() {
            true => vec![interfaces(name, facts, named.get(name).map_or(&[], |host| &host.tcp), mtu)],
            false => of_ports(name, facts),
        };
        want("mtu", mtu.to_string(), "mtu", Box::new(read));
    }
    if let Some(rate) = wanted.link_rate_gbps {
        let read = within.ports(move |port| match port.port.rate_gbps {
            Some(seen) => (format!("{seen} Gb/s"), met(seen.0 >= rate.0 * (1.0 - RATE_TOLERANCE))),
            None => unread("not reported by the port"),
        });
        want("link_rate", format!("{rate} Gb/s"), "link-rate", read);
    }
    if let Some(ports) = wanted.rdma_ports {
        let read = move |name: &str, facts: &HostFacts| {
            let count = ports_of_plan(plan, name, facts, cluster).len();
            vec![whole(name, count.to_string(), equal(&count, &ports))]
        };
        want("rdma_ports", ports.to_string(), "device-count", Box::new(read));
    }
    if let Some(gpus) = wanted.gpus {
        let read = host(move |facts| {
            let why = facts.unreadable.get(GPUS).map(|why| format!(" ({why})")).unwrap_or_default();
            (format!("{}{why}", facts.gpus.len()), equal(&facts.gpus.len(), &gpus))
        });
        want("gpus", gpus.to_string(), "gpu-count", read);
    }
    let unread_of_roce =
        |port: &Port<'_>| unread(if port.is_roce() { "not reported by the driver" } else { "not a RoCE port" });
    if let Some(pfc) = &wanted.pfc_priority {
        let read = within.wires(move |port| match port.interface.and_then(|interface| interface.dcb.as_ref()) {
            Some(dcb) => (listed(&dcb.pfc), equal(&dcb.pfc, pfc)),
            None => unread_of_roce(port),
        });
        want("pfc_priority", listed(pfc), "pfc", read);
    }
    if let Some(trust) = &wanted.trust {
        let read = within.wires(move |port| match port.interface.and_then(|interface| interface.trust.as_ref()) {
            Some(field) => (field.clone(), equal(field, trust)),
            None => unread_of_roce(port),
        });
        want("trust", trust.clone(), "qos-trust", read);
    }
    if let Some(request) = wanted.max_read_request {
        let read = within.devices(move |port| match port.device.function.max_read_request {
            Some(bytes) => (format!("{bytes} B"), met(bytes >= request)),
            None => unread("only root can read it, and an emulated device has none"),
        });
        want("max_read_request", format!("{request} B"), "max-read-request", read);
    }
    for (selector, version) in &wanted.firmware {
        let read = move |name: &str, facts: &HostFacts| within.firmware(name, facts, selector, version);
        want(&format!("firmware.{selector}"), version.clone(), "firmware", Box::new(read));
    }
    for (module, version) in &wanted.modules {
        let read = host(move |facts| match facts.modules.get(module).map(String::as_str) {
            None if !MODULES.contains(&module.as_str()) => unread("agents do not look for this module"),
            None => ("not loaded".to_owned(), Held::Unmet),
            Some(seen) if version == "*" => (if seen.is_empty() { "loaded" } else { seen }.to_owned(), Held::Met),
            Some("") => unread("loaded, version not reported"),
            Some(seen) => (seen.to_owned(), met(seen == version)),
        });
        want(&format!("modules.{module}"), version.clone(), "versions", read);
    }
    let by_host = "not reported by the host";
    if let Some(kernel) = &wanted.kernel {
        let read = host(move |facts| match facts.kernel.as_str() {
            "" => unread(by_host),
            seen => (seen.to_owned(), met(seen == kernel)),
        });
        want("kernel", kernel.clone(), "versions", read);
    }
    if let Some(driver) = &wanted.gpu_driver {
        let read = host(move |facts| match facts.gpus.iter().filter_map(|gpu| gpu.driver.as_ref()).min() {
            Some(version) => (version.clone(), equal(version, driver)),
            None => match facts.unreadable.get(GPUS) {
                Some(why) => unread(why),
                None if facts.gpus.is_empty() => ("no GPU".to_owned(), Held::Unmet),
                None => unread("not reported by the driver"),
            },
        });
        want("gpu_driver", driver.clone(), "gpu-driver", read);
    }
    if let Some(governor) = &wanted.governor {
        let read = host(move |facts| match &facts.cpu.governor {
            Some(seen) => (seen.clone(), equal(seen, governor)),
            None => unread(by_host),
        });
        want("governor", governor.clone(), "governor", read);
    }
    if let Some(iommu) = &wanted.iommu {
        let read = within.devices(move |port| match port.iommu_mode() {
            Some(mode) => (mode.to_owned(), met(mode == iommu)),
            None => unread(by_host),
        });
        want("iommu", iommu.clone(), "iommu", read);
    }
    all
}

const fn met(yes: bool) -> Held {
    if yes { Held::Met } else { Held::Unmet }
}

fn equal<T: PartialEq>(seen: &T, wanted: &T) -> Held {
    met(seen == wanted)
}

fn unread(why: &str) -> Reading {
    (why.to_owned(), Held::Unread)
}

/// A value of the whole host.
fn host<'w>(of: impl Fn(&HostFacts) -> Reading + 'w) -> Reader<'w> {
    Box::new(move |name, facts| {
        let (seen, state) = of(facts);
        vec![whole(name, seen, state)]
    })
}

#[derive(Clone, Copy)]
struct Within<'w> {
    plan: &'w Plan,
    cluster: &'w Seen<'w>,
}

impl<'w> Within<'w> {
    fn ports(self, of: impl Fn(&Port<'_>) -> Reading + 'w) -> Reader<'w> {
        Box::new(move |name, facts| {
            each(name, ports_of_plan(self.plan, name, facts, self.cluster), |port| port.name(), &of)
        })
    }

    fn wires(self, of: impl Fn(&Port<'_>) -> Reading + 'w) -> Reader<'w> {
        Box::new(move |name, facts| {
            let ports = ports_of_plan(self.plan, name, facts, self.cluster).into_iter();
            each(name, ports.flat_map(Port::wires).collect(), |port| port.name(), &of)
        })
    }

    fn devices(self, of: impl Fn(&Port<'_>) -> Reading + 'w) -> Reader<'w> {
        Box::new(move |name, facts| each(name, self.first_ports(name, facts), device, &of))
    }

    /// One port of each device.
    fn first_ports<'f>(self, name: &'f str, facts: &'f HostFacts) -> Vec<Port<'f>> {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let ports = ports_of_plan(self.plan, name, facts, self.cluster).into_iter();
        ports.filter(|port| known.insert(&port.device.name)).collect()
    }

    /// The devices of a host that one entry of `firmware` is about. An entry that no device of the cluster matches is not met.
    fn firmware(self, name: &str, facts: &HostFacts, selector: &str, version: &String) -> Vec<Holding> {
        let wanted = &self.plan.preflight.wanted.firmware;
        let (of_entry, others): (Vec<_>, Vec<_>) =
            self.first_ports(name, facts).into_iter().partition(|port| selected(port, wanted) == Some(selector));
        if !of_entry.is_empty() || others.is_empty() {
            return each(name, of_entry, device, |port| match &port.device.firmware {
                Some(found) => (found.clone(), equal(found, version)),
                None => unread("not reported by the device"),
            });
        }
        let none_of_its_own = others.iter().all(|port| selected(port, wanted).is_none());
        let anywhere = self.cluster.facts.iter().any(|(name, facts)| {
            self.first_ports(name, facts).iter().any(|port| selected(port, wanted) == Some(selector))
        });
        if none_of_its_own || !anywhere {
            vec![whole(name, format!("no device here has the name, board or driver {selector}"), Held::Unread)]
        } else {
            Vec::new()
        }
    }
}

fn device(port: &Port<'_>) -> String {
    port.device.name.clone()
}

fn each(
    host: &str,
    ports: Vec<Port<'_>>,
    name: impl Fn(&Port<'_>) -> String,
    of: impl Fn(&Port<'_>) -> Reading,
) -> Vec<Holding> {
    if ports.is_empty() {
        return vec![whole(host, "no RDMA port".to_owned(), Held::Unmet)];
    }
    let one = |port: &Port<'_>| {
        let (seen, state) = of(port);
        Holding { device: Some(name(port)), ..whole(host, port.told(seen), state) }
    };
    ports.iter().map(one).collect()
}

/// Of a host without RDMA: the interfaces that the plan names for TCP, else all that carry traffic. The agent chooses among several only
/// when it connects, so a mix of wanted and other MTUs is inconclusive.
fn interfaces(host: &str, facts: &HostFacts, named: &[String], wanted: u32) -> Holding {
    let carries = |addresses: &[String], state: &Option<String>| {
        !addresses.is_empty() && state.as_deref().is_none_or(|state| state != "down")
    };
    let chosen = facts.interfaces.iter().filter(|one| match named {
        [] => one.name != "lo" && carries(&one.addresses, &one.state),
        _ => named.iter().any(|word| one.is(word)),
    });
    let seen: Vec<(&str, Option<u32>)> = chosen.map(|one| (one.name.as_str(), one.mtu)).collect();
    let words: Vec<String> = seen
        .iter()
        .map(|(name, mtu)| format!("{} ({name})", mtu.map_or_else(|| "not reported".to_owned(), |mtu| mtu.to_string())))
        .collect();
    let wrong = seen.iter().filter(|(_, mtu)| mtu.is_some_and(|mtu| mtu != wanted)).count();
    let right = seen.iter().filter(|(_, mtu)| *mtu == Some(wanted)).count();
    let state = match (seen.len(), right, wrong) {
        (0, ..) => return whole(host, "no RDMA port and no interface with an address".to_owned(), Held::Unmet),
        (all, right, _) if all == right => Held::Met,
        (all, _, wrong) if all == wrong => Held::Unmet,
        (_, _, 1..) if !named.is_empty() => Held::Unmet,
        _ => Held::Unread,
    };
    whole(host, words.join(", "), state)
}

fn listed(priorities: &[u8]) -> String {
    match priorities {
        [] => "none".to_owned(),
        list => list.iter().map(u8::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The key of a device in `firmware`: its name, else its board, else its driver.
fn selected<'p>(port: &Port<'p>, wanted: &'p BTreeMap<String, String>) -> Option<&'p str> {
    let names = [Some(&port.device.name), port.device.board.as_ref(), port.device.driver.as_ref()];
    names.into_iter().flatten().find_map(|name| wanted.get_key_value(name)).map(|(name, _)| name.as_str())
}
