use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/ports/*/counters: link_downed (8 bits), port_xmit_discards, symbol_error (16 bits), …",
    meaning: "what happens to this link during the run cannot be seen in these counters: they stay at their largest value",
    source: "InfiniBand Architecture Specification, volume 1, 16.1.3.5 (PortCounters); kernel drivers/infiniband/core/sysfs.c",
    spoils: Spoils::Nothing,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.port.state.is_some(), "the state of its ports")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    found.extend(scene.ports().filter(|port| !port.port.saturated.is_empty()).map(|port| {
        let are = if port.port.saturated.len() == 1 { "has" } else { "have" };
        let what = format!("{} {are} reached the largest value", port.port.saturated.join(", "));
        let number = port.port.number.to_string();
        let remedy = remedy::RESET_COUNTERS.with([("device", port.device.name.as_str()), ("port", &number)]);
        port.found(Notice, what, remedy)
    }));
}
