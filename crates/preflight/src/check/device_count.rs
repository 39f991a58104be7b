use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband",
    meaning: "cases on rails that a host does not have fail",
    source: "kernel Documentation/ABI/stable/sysfs-class-infiniband",
    spoils: Spoils::Everything,
    subject: Subject::Host,
    needs: &[],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    if !scene.needs_rdma() {
        return;
    }
    let mut counts: BTreeMap<&str, usize> = scene.hosts().map(|(host, _)| (host, 0)).collect();
    for port in scene.ports() {
        *counts.entry(port.host).or_default() += 1;
    }
    let usual = Usual::of(scene.wanted().rdma_ports, counts.values().copied());
    found.extend(counts.into_iter().filter_map(|(host, count)| match count {
        0 => Some(Found::host(Failure, host, "no usable RDMA device", remedy::FIND_DEVICES).seen("rdma_ports", count)),
        _ => counted(host, count, "RDMA ports", usual.as_ref(), remedy::FIND_DEVICES, "rdma_ports"),
    }));
}
