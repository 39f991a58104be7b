use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "Device Control in PCI configuration space (root only)",
    meaning: "a NIC reads over PCIe what it sends: with small requests it cannot fill the link",
    source: "PCI Express Base Specification, Device Control; NVIDIA, \"Understanding PCIe Configuration for Maximum Performance\"",
    spoils: Spoils::Bandwidth,
    subject: Subject::Nic,
    needs: &[Need::Port(|port| port.device.function.max_read_request.is_some(), "PCIe settings of its devices")],
    find,
};

/// From vendors' tuning guides for fast NICs, in bytes.
const BEST: u32 = 4096;

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let wanted = scene.wanted().max_read_request;
    let best = wanted.unwrap_or(BEST);
    let mut found = Vec::new();
    for port in scene.devices().filter(Port::is_hardware) {
        let device = port.device;
        match device.function.max_read_request {
            Some(bytes) if bytes < best => {
                let (severity, who) = if wanted.is_some() {
                    (Severity::Failure, "the plan requires")
                } else {
                    (Severity::Notice, "recommended:")
                };
                let remedy = at_address(remedy::READ_REQUEST, device.pci.as_deref());
                let what = format!("PCIe read requests are at most {bytes} B, {who} {best} B");
                let by = if wanted.is_some() { WantedBy::Plan } else { WantedBy::Check };
                let observed = Observation::seen("max_read_request", bytes).unit("B").wanted(best, by);
                found.push(Found::host(severity, port.host, what, remedy).device(&device.name).observed(observed));
            }
            _ => {}
        }
    }
    found
}
