use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "ACS Control of every bridge between a NIC and the GPUs nearest to it (configuration space, root only)",
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

const REDIRECTING: [&str; 3] = ["request redirect", "completion redirect", "upstream forwarding"];

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for port in scene.devices().filter(|port| scene.needs_gpus() && !port.facts.gpus.is_empty()) {
        for bridge in between(&port) {
            let on = bridge.acs.as_deref().unwrap_or_default();
            if on.iter().any(|service| REDIRECTING.contains(&service.as_str())) {
                let (pci, on) = (&bridge.pci, on.join(", "));
                let what = format!("ACS redirects on the bridge {pci} between it and the GPUs ({on})");
                found.push(port.of_device(Warning, what, at_address(remedy::ACS_OFF, Some(pci))));
            }
        }
    }
}

/// The bridges on the way between a NIC and the GPUs nearest to it: those not above both. Where no GPU shares a bridge with it, the way
/// leads through both root ports; where the bridges above the GPUs are unknown, any of the NIC's may be on it.
fn between<'a>(port: &Port<'a>) -> Vec<&'a Bridge> {
    let own = &port.device.function.bridges;
    let shared = |gpu: &Gpu| own.iter().zip(&gpu.function.bridges).take_while(|(a, b)| a.pci == b.pci).count();
    let nearest = port.facts.gpus.iter().map(shared).max().unwrap_or(0);
    let gpus = port.facts.gpus.iter().filter(|gpu| nearest > 0 && shared(gpu) == nearest);
    let theirs = gpus.flat_map(|gpu| gpu.function.bridges.iter().skip(nearest));
    let all: BTreeMap<&str, &Bridge> =
        own.iter().skip(nearest).chain(theirs).map(|bridge| (bridge.pci.as_str(), bridge)).collect();
    all.into_values().collect()
}
