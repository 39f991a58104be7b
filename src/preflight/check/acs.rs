//! Access control between GPUs and NICs.

use railgauge_wire::remedy;

use super::{Found, Need, Rule, Scene, Severity, Spoils, Subject, at_address};

pub(super) const RULE: Rule = Rule {
    reads: "ACS Control of every bridge above a NIC (configuration space, root only)",
    meaning: "switches send traffic between GPU and NIC through the processor: GPUDirect loses most of its bandwidth",
    source: "PCI Express Base Specification, Access Control Services; NCCL user guide, troubleshooting, PCI Access Control Services",
    spoils: Spoils::GpuMemory,
    subject: Subject::GpuBesideNic,
    needs: &[Need::Port(
        |port| port.device.function.max_read_request.is_some() && !port.device.function.bridges.is_empty(),
        "PCIe settings of the bridges above its devices",
    )],
    find,
};

/// Services that turn traffic between devices upwards.
const REDIRECTING: [&str; 3] = ["request redirect", "completion redirect", "upstream forwarding"];

fn find(scene: &Scene<'_>) -> Vec<Found> {
    if !scene.needs_gpus() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for port in scene.devices().filter(|port| !port.facts.gpus.is_empty()) {
        for bridge in &port.device.function.bridges {
            let redirects = bridge.acs.iter().flatten().any(|service| REDIRECTING.contains(&service.as_str()));
            if redirects {
                let what = format!(
                    "ACS redirects on the bridge {} above it ({})",
                    bridge.pci,
                    bridge.acs.as_ref().map(|on| on.join(", ")).unwrap_or_default()
                );
                let remedy = at_address(remedy::ACS_OFF, Some(&bridge.pci));
                found.push(Found::host(Severity::Warning, port.host, what, remedy).device(&port.device.name));
            }
        }
    }
    found
}
