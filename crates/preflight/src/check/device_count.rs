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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    if !scene.needs_rdma() {
        return Vec::new();
    }
    let mut counts: BTreeMap<&str, usize> = scene.hosts().map(|(host, _)| (host, 0)).collect();
    for port in scene.ports() {
        *counts.entry(port.host).or_default() += 1;
    }
    let usual = Usual::of(scene.wanted().rdma_ports, counts.values().copied());
    let remedy = remedy::FIND_DEVICES;
    let mut found = Vec::new();
    for (host, count) in counts {
        match &usual {
            _ if count == 0 => found.push(
                Found::host(Severity::Failure, host, "no usable RDMA device", remedy)
                    .observed(Observation::seen("rdma_ports", count)),
            ),
            Some(usual) if count != usual.value => {
                let severity = if count < usual.value { Severity::Failure } else { Severity::Notice };
                let what = format!("{count} RDMA ports, {}", usual.words(usize::to_string));
                let observed = Observation::with_usual("rdma_ports", count, usual);
                found.push(Found::host(usual.severity(severity), host, what, remedy).observed(observed));
            }
            _ => {}
        }
    }
    found
}
