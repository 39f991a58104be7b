//! NICs on a PCIe link below what it could be.

use super::{Cluster, Finding, needs_rdma, used};
use crate::{plan::Plan, preflight::Severity};

/// A link that trained at a lower speed or with fewer lanes caps the NIC.
pub(super) fn check(plan: &Plan, cluster: &Cluster) -> Vec<Finding> {
    if !needs_rdma(plan) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (host, facts) in &cluster.facts {
        for (device, _) in used(plan, host, facts).filter(|(_, port)| port.number == 1) {
            let Some(((speed, width), (best_speed, best_width))) = device.pcie.zip(device.pcie_max) else { continue };
            if speed >= best_speed && width >= best_width {
                continue;
            }
            found.push(Finding {
                check: "pcie-link".into(),
                severity: Severity::Warning,
                hosts: vec![host.clone()],
                what: format!("{}: PCIe {speed} GT/s x{width}, it can do {best_speed} GT/s x{best_width}", device.name),
                meaning: "bandwidth may be capped by the slot and not by the fabric".into(),
                remedy: format!(
                    "reseat the card; `lspci -vv -s {}` shows LnkSta against LnkCap",
                    device.pci.as_deref().unwrap_or("ADDRESS")
                ),
                source: "kernel Documentation/ABI/testing/sysfs-bus-pci, current_link_speed and _width".into(),
            });
        }
    }
    found
}
