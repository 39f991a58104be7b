use railgauge_model::plan::Plan;
use railgauge_wire::{HostFacts, facts::GPUS};

use crate::{
    check::{CHECKS, Need, Subject},
    scene::{Port, Seen, ports_of_plan},
};

/// What a check reads and a host does not have or report; `None` if the check could read everything.
pub(super) fn blind(plan: &Plan, check: &str, host: &str, cluster: &Seen<'_>) -> Option<String> {
    let facts = *cluster.facts.get(host)?;
    let check = CHECKS.iter().find(|known| known.name == check)?;
    let ports: Vec<Port<'_>> = ports_of_plan(plan, host, facts, cluster);
    let untold = |what: &str| format!("the host does not report {what}");
    let looked = ports.iter().copied().filter(|port| looks_at(check.rule.subject, port));
    let seen: Vec<Port<'_>> = looked.flat_map(Port::wires).collect();
    let unread = check.rule.needs.iter().find_map(|need| match need {
        Need::Host(known, what) => (!known(facts)).then(|| untold(what)),
        Need::Port(known, what) => seen.iter().any(|port| !known(port)).then(|| untold(what)),
        Need::Gpu(known, what) => {
            hidden_gpus(facts).or_else(|| facts.gpus.iter().any(|gpu| !known(gpu)).then(|| untold(what)))
        }
        Need::Readable(name) => unreadable(facts, name),
        Need::Plan(lacks) => lacks(plan, host, facts),
        Need::Clock => (!cluster.clocks.contains_key(host)).then(|| untold("its time")),
    });
    let gpus = || {
        matches!(check.rule.subject, Subject::Gpu | Subject::GpuBesideNic).then(|| unreadable(facts, GPUS)).flatten()
    };
    unread.or_else(gpus).or_else(|| lacks_subject(check.rule.subject, facts, &ports))
}

/// GPUs that cannot be read where a driver reports some.
fn hidden_gpus(facts: &HostFacts) -> Option<String> {
    unreadable(facts, GPUS).filter(|_| ["nvidia", "amdgpu"].iter().any(|module| facts.modules.contains_key(*module)))
}

fn unreadable(facts: &HostFacts, name: &str) -> Option<String> {
    facts.unreadable.get(name).map(|why| format!("{name}: {why}"))
}

fn looks_at(subject: Subject, port: &Port<'_>) -> bool {
    match subject {
        Subject::Host | Subject::Port | Subject::Gpu => true,
        Subject::RocePort => port.is_roce(),
        Subject::Nic | Subject::NicOrGpu | Subject::GpuBesideNic => port.is_hardware(),
        Subject::RoceNic => port.is_hardware() && port.is_roce(),
        Subject::InfiniBand => port.is_infiniband(),
    }
}

/// What a host lacks, or may have without reporting it.
fn lacks_subject(subject: Subject, facts: &HostFacts, ports: &[Port<'_>]) -> Option<String> {
    let by_layer = matches!(subject, Subject::RocePort | Subject::RoceNic | Subject::InfiniBand);
    if by_layer && ports.iter().any(|port| port.port.link_layer.is_none()) {
        return Some("the host does not report the link layer of its ports".into());
    }
    let gpus = !facts.gpus.is_empty();
    let nic = ports.iter().any(Port::is_hardware);
    let (has, what) = match subject {
        Subject::Host => return None,
        Subject::Port => (!ports.is_empty(), "RDMA port"),
        Subject::RocePort => (ports.iter().any(|port| looks_at(subject, port)), "RoCE port"),
        Subject::Nic => (nic, "hardware RDMA device"),
        Subject::RoceNic => (ports.iter().any(|port| looks_at(subject, port)), "RoCE port of a hardware device"),
        Subject::InfiniBand => (ports.iter().any(|port| looks_at(subject, port)), "InfiniBand port"),
        Subject::Gpu => (gpus, "GPU"),
        Subject::NicOrGpu => (gpus || nic, "hardware RDMA device and no GPU"),
        Subject::GpuBesideNic => (gpus && nic, if gpus { "hardware RDMA device" } else { "GPU" }),
    };
    (!has).then(|| format!("the host has no {what} that the plan can use"))
}
