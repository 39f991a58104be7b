use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "DCB netlink (IEEE_8021QAZ_PFC)",
    meaning: "unless both ends pause, packets are lost under congestion and go-back-N makes bandwidth collapse",
    source: "IEEE 802.1Qbb; `dcb pfc show dev INTERFACE`, `mlnx_qos -i INTERFACE`",
    spoils: Spoils::Everything,
    subject: Subject::RoceNic,
    needs: &[DCB],
    find,
};

const SWITCHES: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let priorities = || scene.roce().filter_map(|port| Some((port, &port.dcb()?.pfc)));
    let usual = Usual::of(scene.wanted().pfc_priority.clone(), priorities().map(|(_, on)| on.clone()));
    for (port, on) in priorities() {
        match &usual {
            Some(usual) if *on != usual.value => {
                let what = format!("PFC is on for {}, {}", shown(on), usual.words(|list| shown(list)));
                let switch = |p: u8| format!("{p}:{}", if usual.value.contains(&p) { "on" } else { "off" });
                let switches: Vec<String> = (0..8).map(switch).collect();
                let values: Vec<_> = SWITCHES.into_iter().zip(switches.iter().map(String::as_str)).collect();
                let remedy = of_interface(remedy::PFC_LIKE_OTHERS, &port, &values);
                let other = port.found(usual.severity(Warning), what, remedy);
                found.push(other.usual("pfc_priority", on.clone(), usual));
            }
            _ if on.is_empty() && !has_pause(&port) => {
                let lossy = port.found(Notice, "neither PFC nor pause frames are on", remedy::FLOW_CONTROL);
                found.push(lossy.meaning("RoCE on a lossy port depends on ECN alone; loss costs whole windows"));
            }
            _ => {}
        }
    }
}

fn has_pause(port: &Port<'_>) -> bool {
    port.interface.and_then(|interface| interface.pause).is_some_and(|pause| pause.receive || pause.send)
}

fn shown(priorities: &[u8]) -> String {
    match priorities {
        [] => "no priority".into(),
        list => format!("priority {}", list.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")),
    }
}
