use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/ports/*/pkeys",
    meaning: "ports without a common partition, or which are both limited members of it, cannot reach each other",
    source: "InfiniBand Architecture Specification, volume 1, section 10.9",
    spoils: Spoils::Everything,
    subject: Subject::InfiniBand,
    needs: &[Need::Port(|port| !port.port.partitions.is_empty(), "the partitions of its ports")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let ports = || scene.ports().filter(|port| port.is_infiniband() && !port.port.partitions.is_empty());
    let Some(usual) = Usual::of(None, ports().map(|port| port.port.partitions.clone())) else { return };
    found.extend(ports().filter(|port| port.port.partitions != usual.value).map(|port| {
        let own = &port.port.partitions;
        let what = format!("partitions {}, {}", own.join(", "), usual.words(|list| list.join(", ")));
        port.found(Warning, what, remedy::ALIGN_PARTITIONS).usual("partitions", own.clone(), &usual)
    }));
}
