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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let wanted = scene.wanted().max_read_request;
    let best = wanted.unwrap_or(BEST);
    let (severity, who, by) = match wanted {
        Some(_) => (Failure, "the plan requires", WantedBy::Plan),
        None => (Notice, "recommended:", WantedBy::Check),
    };
    found.extend(scene.devices().filter(Port::is_hardware).filter_map(|port| {
        let bytes = port.device.function.max_read_request.filter(|bytes| *bytes < best)?;
        let what = format!("PCIe read requests are at most {bytes} B, {who} {best} B");
        let remedy = at_address(remedy::READ_REQUEST, port.device.pci.as_deref());
        let observed = Observation::seen("max_read_request", bytes).unit("B").wanted(best, by);
        Some(port.of_device(severity, what, remedy).observed(observed))
    }));
}
