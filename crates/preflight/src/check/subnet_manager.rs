use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/ports/*/lid and sm_lid",
    meaning: "the port has no address on the fabric and cannot reach other hosts",
    source: "InfiniBand Architecture Specification, volume 1, chapter 14; kernel Documentation/ABI/stable/sysfs-class-infiniband",
    spoils: Spoils::Everything,
    subject: Subject::InfiniBand,
    needs: &[Need::Port(
        |port| port.port.subnet_manager.is_some() && port.port.lid.is_some(),
        "the addresses of its ports",
    )],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for port in scene.ports().filter(Port::is_infiniband) {
        let what = match (port.port.subnet_manager, port.port.lid) {
            (Some(0), _) => "no subnet manager found",
            (_, Some(0)) => "the subnet manager has given it no address (LID 0)",
            _ => continue,
        };
        found.push(port.found(Failure, what, remedy::SUBNET_MANAGER));
    }
}
