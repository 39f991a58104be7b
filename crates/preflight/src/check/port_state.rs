use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/ports/*/state and phys_state",
    meaning: "nothing can be measured on this rail",
    source: "kernel Documentation/ABI/stable/sysfs-class-infiniband",
    spoils: Spoils::Everything,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.port.state.is_some(), "the state of its ports")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    let used = scene.ports().map(|port| (port, true));
    for (port, used) in used.chain(scene.unused().map(|port| (port, false))) {
        let Some(state) = port.port.state.as_deref().filter(|state| *state != "ACTIVE") else { continue };
        let physical = port.port.physical.as_deref().map(|p| format!(", physically {p}")).unwrap_or_default();
        if !used {
            let what = format!("the port is {state}{physical}, as on most hosts: no test uses it");
            let found_here = Found::host(Severity::Notice, port.host, what, remedy::NONE_IF_MEANT).device(port.name());
            found.push(found_here.meaning("nothing, if it is not meant to be used: the plan names no `devices`, and the run takes those that are active"));
            continue;
        }
        let remedy = match port.interface {
            Some(_) => of_interface(remedy::PORT_UP, &port, &[]),
            None => remedy::PORT_UP_INFINIBAND.into(),
        };
        found.push(
            Found::host(Severity::Failure, port.host, format!("the port is {state}{physical}"), remedy)
                .device(port.name())
                .observed(Observation::seen("state", state).wanted("ACTIVE", WantedBy::Check)),
        );
    }
    found
}
