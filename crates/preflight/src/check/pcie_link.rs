use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/bus/pci/devices/*/current_link_speed and _width, of the NIC and every bridge above it",
    meaning: "the slot, not the fabric, may limit bandwidth",
    source: "kernel Documentation/ABI/testing/sysfs-bus-pci",
    spoils: Spoils::Bandwidth,
    subject: Subject::Nic,
    needs: &[Need::Port(has_links, "the PCIe links of its devices and of the bridges above")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for port in scene.devices() {
        let device = port.device;
        let say = |what, address: Option<&str>, now: (f64, u32), best: (f64, u32)| {
            let slow = port.of_device(Warning, what, at_address(remedy::RESEAT_CARD, address));
            // What differs: the speed, or else the width.
            if now.0 < best.0 {
                slow.wants("pcie_speed", now.0, best.0).unit("GT/s")
            } else {
                slow.wants("pcie_width", now.1, best.1).unit("lanes")
            }
        };
        if let Some((now, best)) =
            device.pcie.zip(device.pcie_max).filter(|(now, best)| now.0 < best.0 || now.1 < best.1)
        {
            let what = format!("PCIe {}, but it supports {}", shown(now), shown(best));
            found.push(say(what, device.pci.as_deref(), now, best));
        }
        // The link right above is the device's own, seen from the other end.
        let above = device.function.bridges.iter().rev().skip(1);
        for (bridge, link, own) in above.filter_map(|bridge| Some((bridge, bridge.link?, device.pcie?))) {
            if capacity(link) < capacity(own) {
                let what =
                    format!("the bridge {} above it runs at {}, the device at {}", bridge.pci, shown(link), shown(own));
                found.push(say(what, Some(&bridge.pci), link, own));
            }
        }
    }
}

/// GT/s times lanes: comparable between links of one generation's coding, and close enough between two.
fn capacity((speed, width): (f64, u32)) -> f64 {
    speed * f64::from(width)
}

fn shown((speed, width): (f64, u32)) -> String {
    format!("{speed} GT/s x{width}")
}

fn has_links(port: &Port<'_>) -> bool {
    let Some(above) = port.device.function.bridges.split_last().map(|(_, above)| above) else { return false };
    port.device.pcie.is_some() && port.device.pcie_max.is_some() && above.iter().all(|bridge| bridge.link.is_some())
}
