use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/fw_ver, board_id",
    meaning: "firmware determines congestion control and limits of a NIC: identical cards may behave differently",
    source: "kernel Documentation/ABI/stable/sysfs-class-infiniband",
    spoils: Spoils::Everything,
    subject: Subject::Nic,
    needs: &[Need::Port(|port| port.device.firmware.is_some(), "the firmware of its devices")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let mut boards: BTreeMap<&str, Vec<Port<'_>>> = BTreeMap::new();
    for port in scene.devices() {
        boards.entry(port.device.board.as_deref().unwrap_or_default()).or_default().push(port);
    }
    for (board, ports) in boards {
        // Devices of one board are of one make: what the plan says of any is looked up for each.
        let others = Usual::of(None, ports.iter().filter_map(|port| port.device.firmware.clone()));
        for port in ports {
            let device = port.device;
            let names = [Some(device.name.as_str()), Some(board), device.driver.as_deref()];
            let wanted = names.into_iter().flatten().find_map(|name| scene.wanted().firmware.get(name));
            let usual = wanted.map(|version| Usual { value: version.clone(), wanted: true }).or_else(|| others.clone());
            let Some((version, usual)) = device.firmware.as_ref().zip(usual) else { continue };
            if *version != usual.value {
                let what = format!("firmware {version}, {}", usual.words(Clone::clone));
                let other = port.of_device(usual.severity(Warning), what, remedy::FLASH_FIRMWARE);
                found.push(other.usual("firmware", version.clone(), &usual));
            }
        }
    }
}
