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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let alone = scene
        .ports()
        .filter(|port| port.is_infiniband() && (port.port.subnet_manager == Some(0) || port.port.lid == Some(0)));
    let one = |port: Port<'_>| {
        let what = match port.port.subnet_manager {
            Some(0) => "no subnet manager found".to_owned(),
            _ => "the subnet manager has given it no address (LID 0)".to_owned(),
        };
        Found::host(Severity::Failure, port.host, what, remedy::SUBNET_MANAGER).device(port.name())
    };
    alone.map(one).collect()
}
