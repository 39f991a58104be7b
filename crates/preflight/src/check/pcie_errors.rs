use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/bus/pci/devices/*/aer_dev_correctable, _nonfatal, _fatal",
    meaning: "every corrected error is a replay; many of them cost bandwidth, and an uncorrected one may take the device down",
    source: "kernel Documentation/PCI/pcieaer-howto.rst",
    spoils: Spoils::Everything,
    subject: Subject::NicOrGpu,
    needs: &[
        Need::Port(|port| port.device.function.errors.is_some(), "errors of its PCIe links"),
        Need::Gpu(|gpu| gpu.function.errors.is_some(), "errors of the PCIe links of its GPUs"),
    ],
    find,
};

/// Corrected errors since boot without a finding: links have some while they train.
const MANY: u64 = 100;

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let nics = scene.devices().map(|port| (port.host, port.device.name.clone(), port.device.function.errors));
    let gpus = scene.gpus().map(|card| (card.host, card.name(), card.gpu.function.errors));
    for (host, name, errors) in nics.chain(gpus) {
        let Some(errors) = errors else { continue };
        let severity = match errors {
            PciErrors { nonfatal: 0, fatal: 0, corrected: 0..=MANY } => continue,
            PciErrors { nonfatal: 0, fatal: 0, .. } => Notice,
            _ => Warning,
        };
        let PciErrors { corrected, nonfatal, fatal } = errors;
        let what = format!("PCIe errors since boot: {corrected} corrected, {nonfatal} uncorrected, {fatal} fatal");
        found.push(Found::host(severity, host, what, remedy::RESEAT_FOR_ERRORS).device(name));
    }
}
