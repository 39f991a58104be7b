//! Why a check that found nothing on a host has not seen that all is well there.

use railgauge_wire::facts::{HostFacts, Interface};

use crate::{
    plan::Plan,
    preflight::{
        CHECKS, Subject,
        scene::{Port, ports_of_plan},
    },
};

/// What a check looks at and a host does not have, or does not tell; `None` where the check could look.
pub(super) fn blind(plan: &Plan, check: &str, host: &str, facts: &HostFacts) -> Option<String> {
    let ports: Vec<Port<'_>> = ports_of_plan(plan, host, facts);
    let subject = CHECKS.iter().find(|known| known.name == check)?.subject;
    unread(check, facts, &ports).or_else(|| lacks_subject(subject, facts, &ports))
}

fn lacks_subject(subject: Subject, facts: &HostFacts, ports: &[Port<'_>]) -> Option<String> {
    let any = |wanted: &dyn Fn(&Port<'_>) -> bool| ports.iter().any(wanted);
    let gpus = !facts.gpus.is_empty();
    let nic = || any(&|port| port.is_hardware());
    let (has, what) = match subject {
        Subject::Host => return None,
        Subject::Port => (any(&|_| true), "RDMA port"),
        Subject::RocePort => (any(&|port| port.is_roce()), "RoCE port"),
        Subject::Nic => (nic(), "hardware RDMA device"),
        Subject::RoceNic => (any(&|port| port.is_hardware() && port.is_roce()), "RoCE port of a hardware device"),
        Subject::InfiniBand => (any(&|port| port.is_infiniband()), "InfiniBand port"),
        Subject::Gpu => (gpus, "GPU"),
        Subject::NicOrGpu => (gpus || nic(), "hardware RDMA device and no GPU"),
        Subject::GpuBesideNic => (gpus && nic(), if gpus { "hardware RDMA device" } else { "GPU" }),
    };
    (!has).then(|| format!("the host has no {what} that the plan can use"))
}

/// What a check needs of a host's facts and does not find there.
fn unread(check: &str, facts: &HostFacts, ports: &[Port<'_>]) -> Option<String> {
    let lacks = |missing: bool, what: &str| missing.then(|| format!("the host does not tell {what}"));
    let nics = || ports.iter().filter(|port| port.is_hardware());
    let of_interfaces = |known: &dyn Fn(&Interface) -> bool, what: &str| {
        lacks(nics().filter_map(|port| port.interface).any(|interface| !known(interface)), what)
    };
    let of_nics = |known: &dyn Fn(&Port<'_>) -> bool, what: &str| lacks(nics().any(|port| !known(port)), what);
    let unreadable = |key: &str| facts.unreadable.get(key).map(|why| format!("{key}: {why}"));
    match check {
        "governor" => lacks(facts.cpu.governor.is_none(), "its frequency governor"),
        "clock-source" => lacks(facts.clock_source.is_none(), "its clock source"),
        "idle" => lacks(facts.load.busy.is_none(), "its load"),
        "pfc" | "dscp-map" => of_interfaces(&|interface| interface.dcb.is_some(), "data centre bridging"),
        "qos-trust" => of_interfaces(&|interface| interface.trust.is_some(), "the trusted field"),
        "ecn" => of_interfaces(&|interface| interface.ecn.is_some(), "ECN of RoCE"),
        "pause-frames" => of_interfaces(&|interface| interface.pause.is_some(), "pause frames"),
        "mtu" => of_interfaces(&|interface| interface.mtu.is_some(), "MTUs"),
        "link-rate" => of_nics(&|port| port.port.rate_gbps.is_some(), "the rate of its links"),
        "port-state" => of_nics(&|port| port.port.state.is_some(), "the state of its ports"),
        "firmware" => of_nics(&|port| port.device.firmware.is_some(), "the firmware of its devices"),
        "pcie-errors" => of_nics(&|port| port.device.function.errors.is_some(), "errors of PCIe links"),
        "gpu-xid" => unreadable("xids").or_else(|| unreadable("gpus")),
        "acs" => unreadable("acs").or_else(|| unreadable("PCIe settings")),
        "max-read-request" => unreadable("PCIe settings"),
        name if name.starts_with("gpu") => unreadable("gpus"),
        _ => None,
    }
}
