use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "the device's driver, and whether a bus device is behind it",
    meaning: "the protocol is real, but the CPU determines the speed",
    source: "rdma-core Documentation/rxe.md",
    spoils: Spoils::Nothing,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.device.software || port.device.driver.is_some(), "the driver of its devices")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let emulated = scene.devices().filter(|port| port.device.software);
    found.extend(emulated.map(|port| port.of_device(Notice, "emulated in software", remedy::NONE_IF_MEANT)));
}
