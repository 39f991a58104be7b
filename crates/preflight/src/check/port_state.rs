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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let used = scene.ports().map(|port| (port, true));
    for (port, used) in used.chain(scene.unused().map(|port| (port, false))) {
        let Some(state) = port.port.state.as_deref().filter(|state| *state != "ACTIVE") else { continue };
        let physical = port.port.physical.as_deref().map(|p| format!(", physically {p}")).unwrap_or_default();
        let what = format!("the port is {state}{physical}");
        if !used {
            let down = port.found(Notice, format!("{what}, as on most hosts: no test uses it"), remedy::NONE_IF_MEANT);
            found.push(down.meaning("nothing, if it is not meant to be used: the plan names no `devices`, and the run takes those that are active"));
            continue;
        }
        let remedy = match port.interface {
            Some(_) => of_interface(remedy::PORT_UP, &port, &[]),
            None => remedy::PORT_UP_INFINIBAND.into(),
        };
        found.push(port.found(Failure, what, remedy).wants("state", state, "ACTIVE"));
    }
}
