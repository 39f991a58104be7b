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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let wanted = scene.wanted().link_rate_gbps;
    let rates = || scene.ports().filter_map(|port| Some((port, port.port.rate_gbps?)));
    let usual = Usual::of(wanted, rates().map(|(_, rate)| rate));
    let Some(usual) = usual else { return Vec::new() };
    let mut found = Vec::new();
    for port in scene.ports() {
        let say = |what, severity| Found::host(severity, port.host, what, remedy::LOOK_AT_CABLE).device(port.name());
        match port.port.rate_gbps {
            Some(rate) if rate < usual.value => {
                let other = format!("the link runs at {rate} Gb/s, {}", usual.words(|rate| format!("{rate} Gb/s")));
                let observed = Observation::with_usual("link_rate", rate, &usual).unit("Gb/s");
                // A rail of storage or of another network is as slow everywhere.
                if !usual.wanted && fellows(&port, rates()) == Some(rate) {
                    let what = format!("{other} and this one the same on every host");
                    found.push(say(what, Severity::Notice).observed(observed));
                } else {
                    found.push(say(other, usual.severity(Severity::Warning)).observed(observed));
                }
            }
            _ => {}
        }
    }
    found
}
