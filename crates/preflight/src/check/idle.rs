use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/proc/loadavg, /proc/stat without the agent's own share, and byte counters, read twice within a fifth of a second",
    meaning: "other work shares cores, memory and links with the measurement",
    source: "kernel Documentation/filesystems/proc.rst",
    spoils: Spoils::Everything,
    subject: Subject::Host,
    needs: &[
        Need::Host(|facts| facts.load.busy.is_some() && facts.load.average.is_some(), "its load"),
        Need::Port(carries_known, "the traffic or the rate of its links"),
    ],
    find,
};

/// Share of a host that other programs may use without a finding.
const BUSY: f64 = 0.5;
/// Share of a port's rate that other programs may use without a finding: file systems and monitoring are below.
const CARRIED: f64 = 0.05;

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for (host, facts) in scene.hosts() {
        let threads = f64::from(facts.cpu.threads);
        let busy =
            facts.load.average.zip(facts.load.busy).filter(|(average, busy)| *average > threads * BUSY && *busy > BUSY);
        found.extend(busy.map(|(average, busy)| {
            let what = format!("load {average:.1} on {threads} processors, {:.0} % busy", 100.0 * busy);
            Found::host(Notice, host, what, remedy::WHAT_RUNS).seen("load", (10.0 * average).round() / 10.0)
        }));
    }
    for port in scene.ports() {
        let Some((traffic, rate)) = traffic(&port).zip(port.port.rate_gbps) else { continue };
        let share = traffic.received.max(traffic.sent).0 / rate.bits().0;
        if share > CARRIED {
            let what = format!("{:.0} % of its rate is in use before anything is measured", 100.0 * share);
            let in_use = port.found(Warning, what, remedy::WAIT_FOR_LINK);
            found.push(in_use.wants("traffic", (100.0 * share).round(), 100.0 * CARRIED).unit("%"));
        }
    }
}

/// Whether the load of a link is measurable. The rate of a software device is unknown.
fn carries_known(port: &Port<'_>) -> bool {
    port.device.software || (traffic(port).is_some() && port.port.rate_gbps.is_some())
}

fn traffic(port: &Port<'_>) -> Option<Traffic> {
    port.port.traffic.or(port.interface.and_then(|interface| interface.traffic))
}
