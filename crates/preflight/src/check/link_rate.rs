use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/ports/*/rate; the interface's speed for drivers that lose it, and of the members of a bond",
    meaning: "the link trained with fewer lanes or at a lower speed, which limits bandwidth on this rail",
    source: "kernel Documentation/ABI/stable/sysfs-class-infiniband",
    spoils: Spoils::Bandwidth,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.device.software || port.port.rate_gbps.is_some(), "the rate of its links")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let rates = || scene.ports().filter_map(|port| Some((port, port.port.rate_gbps?)));
    let Some(usual) = Usual::of(scene.wanted().link_rate_gbps, rates().map(|(_, rate)| rate)) else { return };
    for (port, rate) in rates().filter(|(_, rate)| *rate < usual.value) {
        let what = format!("the link runs at {rate} Gb/s, {}", usual.words(|rate| format!("{rate} Gb/s")));
        let (severity, what) = departure(&usual, fellows(&port, rates()) == Some(rate), what);
        let slow = port.found(severity, what, remedy::LOOK_AT_CABLE);
        found.push(slow.usual("link_rate", rate, &usual).unit("Gb/s"));
    }
}
