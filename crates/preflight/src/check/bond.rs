use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/net/*/bonding, bonding_slave and master",
    meaning: "a hash decides which physical port a flow uses: two flows may share one port while the other is idle",
    source: "kernel Documentation/networking/bonding.rst",
    spoils: Spoils::Bandwidth,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.is_infiniband() || port.interface.is_some(), "the interfaces of its ports")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    found.extend(scene.ports().flat_map(|port| of_port(&port)));
}

fn of_port(port: &Port<'_>) -> Vec<Found> {
    let Some(interface) = port.interface else { return Vec::new() };
    let notice = |words| port.found(Notice, words, remedy::SEVERAL_QUEUE_PAIRS);
    match &interface.bond {
        None => Vec::new(),
        Some(Bond::Member(master)) => vec![notice(format!("its interface is a member of {master}"))],
        Some(Bond::Master(mode)) => {
            let name = &interface.name;
            let members: Vec<&str> = interface.members.iter().map(|member| member.name.as_str()).collect();
            let all = if members.is_empty() { String::new() } else { format!(": {}", members.join(", ")) };
            let mut found = vec![notice(format!("its interface is a bond ({mode}{all})"))];
            let carrying = interface.members.iter().filter(|member| member.carries()).count();
            found.extend(interface.idle_members().map(|member| {
                let state = match (member.is_up(), &member.link) {
                    (false, Some(link)) => link.as_str(),
                    _ => "not used by it",
                };
                let of = members.len();
                let what =
                    format!("{} of {name} ({mode}) is {state}: {carrying} of {of} members carry traffic", member.name);
                let remedy = remedy::PORT_UP.with([("interface", &*member.name)]);
                port.found(Warning, what, remedy).meaning(
                    "the bond has the bandwidth of the members that are left, and nothing takes over if they fail",
                )
            }));
            found
        }
    }
}
