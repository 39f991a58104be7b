use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::plan::{
    Plan,
    model::{Host, Wanted},
};
use railgauge_wire::facts::{GPUS, HostFacts, MODULES};

use super::{Held, Holding, Reader, Requirement};
use crate::{
    Seen,
    check::iommu_mode,
    scene::{Port, ports_of_plan},
};

/// Tolerance for rates that were printed and parsed: 0.01 %.
const RATE_TOLERANCE: f64 = 1e-4;

pub(super) fn wishes<'w>(plan: &'w Plan, cluster: &'w Seen<'w>) -> Vec<Requirement<'w>> {
    let Wanted {
        mtu,
        link_rate_gbps,
        rdma_ports,
        gpus,
        pfc_priority,
        trust,
        max_read_request,
        firmware,
        modules,
        kernel,
        gpu_driver,
        governor,
        iommu,
    } = &plan.preflight.wanted;
    let hosts: BTreeMap<&str, &Host> = plan.hosts.iter().map(|host| (host.name.as_str(), host)).collect();
    let mut all: Vec<Requirement<'_>> = Vec::new();
    let mut want = |key: &str, wanted: String, check, read: Reader<'w>| {
        all.push(Requirement { key: key.to_owned(), wanted, check, read });
    };
    if let Some(wanted) = *mtu {
        let named = hosts.clone();
        let tcp = move |name: &str| named.get(name).map(|host| host.tcp.clone()).unwrap_or_default();
        let read = move |name: &str, facts: &HostFacts| {
            if facts.rdma.is_empty() {
                return vec![interfaces(name, facts, &tcp(name), wanted)];
            }
            of_wires((plan, cluster), name, facts, |port| match port.interface.map(|interface| interface.mtu) {
                Some(Some(mtu)) => (mtu.to_string(), equal(&mtu, &wanted)),
                Some(None) => unread("not reported by the interface"),
                None => unread("no interface behind the port"),
            })
        };
        want("mtu", wanted.to_string(), "mtu", Box::new(read));
    }
    if let Some(wanted) = *link_rate_gbps {
        let of = move |port: &Port<'_>| match port.port.rate_gbps {
            Some(rate) => (format!("{rate} Gb/s"), met(rate.0 >= wanted.0 * (1.0 - RATE_TOLERANCE))),
            None => unread("not reported by the port"),
        };
        let read = move |name: &str, facts: &HostFacts| of_ports((plan, cluster), name, facts, of);
        want("link_rate", format!("{wanted} Gb/s"), "link-rate", Box::new(read));
    }
    if let Some(wanted) = *rdma_ports {
        let read = move |name: &str, facts: &HostFacts| {
            let count = ports_of_plan(plan, name, facts, cluster).len();
            vec![whole(name, count.to_string(), equal(&count, &wanted))]
        };
        want("rdma_ports", wanted.to_string(), "device-count", Box::new(read));
    }
    if let Some(wanted) = *gpus {
        let read = move |name: &str, facts: &HostFacts| {
            let why = facts.unreadable.get(GPUS).map(|why| format!(" ({why})")).unwrap_or_default();
            vec![whole(name, format!("{}{why}", facts.gpus.len()), equal(&facts.gpus.len(), &wanted))]
        };
        want("gpus", wanted.to_string(), "gpu-count", Box::new(read));
    }
    if let Some(wanted) = pfc_priority {
        let of = move |port: &Port<'_>| match port.interface.and_then(|interface| interface.dcb.as_ref()) {
            Some(dcb) => (listed(&dcb.pfc), equal(&dcb.pfc, wanted)),
            None if port.is_roce() => unread("not reported by the driver"),
            None => unread("not a RoCE port"),
        };
        let read = move |name: &str, facts: &HostFacts| of_wires((plan, cluster), name, facts, of);
        want("pfc_priority", listed(wanted), "pfc", Box::new(read));
    }
    if let Some(wanted) = trust {
        let of = move |port: &Port<'_>| match port.interface.and_then(|interface| interface.trust.as_ref()) {
            Some(field) => (field.clone(), equal(field, wanted)),
            None if port.is_roce() => unread("not reported by the driver"),
            None => unread("not a RoCE port"),
        };
        let read = move |name: &str, facts: &HostFacts| of_wires((plan, cluster), name, facts, of);
        want("trust", wanted.clone(), "qos-trust", Box::new(read));
    }
    if let Some(wanted) = *max_read_request {
        let of = move |port: &Port<'_>| match port.device.function.max_read_request {
            Some(bytes) => (format!("{bytes} B"), met(bytes >= wanted)),
            None => unread("only root can read it, and an emulated device has none"),
        };
        let read = move |name: &str, facts: &HostFacts| of_devices((plan, cluster), name, facts, of);
        want("max_read_request", format!("{wanted} B"), "max-read-request", Box::new(read));
    }
    for (selector, version) in firmware {
        let read = move |name: &str, facts: &HostFacts| firmware_of(plan, cluster, name, facts, selector, version);
        want(&format!("firmware.{selector}"), version.clone(), "firmware", Box::new(read));
    }
    for (module, version) in modules {
        let read = move |name: &str, facts: &HostFacts| {
            let found = facts.modules.get(module);
            let (seen, held) = match found.map(String::as_str) {
                None if !MODULES.contains(&module.as_str()) => {
                    ("agents do not look for this module".to_owned(), Held::Unread)
                }
                None => ("not loaded".to_owned(), Held::Unmet),
                Some(seen) if version == "*" => (if seen.is_empty() { "loaded" } else { seen }.to_owned(), Held::Met),
                Some("") => ("loaded, version not reported".to_owned(), Held::Unread),
                Some(seen) => (seen.to_owned(), met(seen == version)),
            };
            vec![whole(name, seen, held)]
        };
        want(&format!("modules.{module}"), version.clone(), "versions", Box::new(read));
    }
    if let Some(wanted) = kernel {
        let read = move |name: &str, facts: &HostFacts| {
            vec![if facts.kernel.is_empty() {
                nothing(name, "not reported by the host")
            } else {
                whole(name, facts.kernel.clone(), equal(&facts.kernel, wanted))
            }]
        };
        want("kernel", wanted.clone(), "versions", Box::new(read));
    }
    if let Some(wanted) = gpu_driver {
        let read = move |name: &str, facts: &HostFacts| vec![driver(name, facts, wanted)];
        want("gpu_driver", wanted.clone(), "gpu-driver", Box::new(read));
    }
    if let Some(wanted) = governor {
        let read = move |name: &str, facts: &HostFacts| {
            vec![match &facts.cpu.governor {
                Some(seen) => whole(name, seen.clone(), equal(seen, wanted)),
                None => nothing(name, "not reported by the host"),
            }]
        };
        want("governor", wanted.clone(), "governor", Box::new(read));
    }
    if let Some(wanted) = iommu {
        let of = move |port: &Port<'_>| match iommu_mode(port) {
            Some(mode) => (mode.to_owned(), met(mode == wanted)),
            None => unread("not reported by the host"),
        };
        let read = move |name: &str, facts: &HostFacts| of_devices((plan, cluster), name, facts, of);
        want("iommu", wanted.clone(), "iommu", Box::new(read));
    }
    all
}

const fn met(yes: bool) -> Held {
    if yes { Held::Met } else { Held::Unmet }
}

fn equal<T: PartialEq>(seen: &T, wanted: &T) -> Held {
    met(seen == wanted)
}

fn unread(why: &str) -> (String, Held) {
    (why.to_owned(), Held::Unread)
}

fn whole(host: &str, seen: String, state: Held) -> Holding {
    Holding { host: host.to_owned(), device: None, seen, state, silent: false }
}

fn nothing(host: &str, why: &str) -> Holding {
    whole(host, why.to_owned(), Held::Unread)
}

fn without(host: &str) -> Vec<Holding> {
    vec![whole(host, "no RDMA port".to_owned(), Held::Unmet)]
}

type Within<'a> = (&'a Plan, &'a Seen<'a>);

fn of_ports(
    within: Within<'_>,
    host: &str,
    facts: &HostFacts,
    of: impl Fn(&Port<'_>) -> (String, Held),
) -> Vec<Holding> {
    of_each(within, host, facts, |port| vec![port], of)
}

fn of_wires(
    within: Within<'_>,
    host: &str,
    facts: &HostFacts,
    of: impl Fn(&Port<'_>) -> (String, Held),
) -> Vec<Holding> {
    of_each(within, host, facts, Port::wires, of)
}

fn of_each<'a>(
    (plan, cluster): Within<'_>,
    host: &'a str,
    facts: &'a HostFacts,
    parts: impl Fn(Port<'a>) -> Vec<Port<'a>>,
    of: impl Fn(&Port<'_>) -> (String, Held),
) -> Vec<Holding> {
    let one = |port: Port<'_>| {
        let (seen, state) = of(&port);
        let seen = port.told(seen);
        Holding { host: host.to_owned(), device: Some(port.name()), seen, state, silent: false }
    };
    let ports = ports_of_plan(plan, host, facts, cluster).into_iter();
    let all: Vec<Holding> = ports.flat_map(parts).map(one).collect();
    if all.is_empty() { without(host) } else { all }
}

fn of_devices(
    (plan, cluster): Within<'_>,
    host: &str,
    facts: &HostFacts,
    of: impl Fn(&Port<'_>) -> (String, Held),
) -> Vec<Holding> {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let ports = ports_of_plan(plan, host, facts, cluster);
    let one = |port: &Port<'_>| {
        let (seen, state) = of(port);
        Holding { host: host.to_owned(), device: Some(port.device.name.clone()), seen, state, silent: false }
    };
    let all: Vec<Holding> = ports.iter().filter(|port| known.insert(&port.device.name)).map(one).collect();
    if all.is_empty() { without(host) } else { all }
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

fn driver(host: &str, facts: &HostFacts, wanted: &String) -> Holding {
    let seen: BTreeSet<&String> = facts.gpus.iter().filter_map(|gpu| gpu.driver.as_ref()).collect();
    match (seen.into_iter().next(), facts.unreadable.get("gpus")) {
        (Some(version), _) => whole(host, version.clone(), equal(version, wanted)),
        (None, Some(why)) => nothing(host, why),
        (None, None) if facts.gpus.is_empty() => whole(host, "no GPU".to_owned(), Held::Unmet),
        (None, None) => nothing(host, "not reported by the driver"),
    }
}

/// The key of a device in `firmware`: its name, else its board, else its driver.
fn selected<'p>(port: &Port<'p>, wanted: &'p BTreeMap<String, String>) -> Option<&'p str> {
    let names = [Some(&port.device.name), port.device.board.as_ref(), port.device.driver.as_ref()];
    names.into_iter().flatten().find_map(|name| wanted.get_key_value(name)).map(|(name, _)| name.as_str())
}

/// The devices of a host that one entry of `firmware` is about. An entry that no device of the cluster matches is not met.
fn firmware_of(
    plan: &Plan,
    cluster: &Seen<'_>,
    host: &str,
    facts: &HostFacts,
    selector: &str,
    version: &String,
) -> Vec<Holding> {
    let wanted = &plan.preflight.wanted.firmware;
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let ports = ports_of_plan(plan, host, facts, cluster);
    let first: Vec<&Port<'_>> = ports.iter().filter(|port| known.insert(&port.device.name)).collect();
    let of_entry = first.iter().filter(|port| selected(port, wanted) == Some(selector));
    let one = |port: &&Port<'_>| {
        let (seen, state) = match &port.device.firmware {
            Some(found) => (found.clone(), equal(found, version)),
            None => unread("not reported by the device"),
        };
        Holding { host: host.to_owned(), device: Some(port.device.name.clone()), seen, state, silent: false }
    };
    let found: Vec<Holding> = of_entry.map(one).collect();
    if !found.is_empty() {
        return found;
    }
    if first.is_empty() {
        return without(host);
    }
    let none_of_its_own = first.iter().all(|port| selected(port, wanted).is_none());
    let anywhere = cluster.facts.iter().any(|(name, facts)| {
        ports_of_plan(plan, name, facts, cluster).iter().any(|port| selected(port, wanted) == Some(selector))
    });
    if none_of_its_own || !anywhere {
        vec![nothing(host, &format!("no device here has the name, board or driver {selector}"))]
    } else {
        Vec::new()
    }
}
