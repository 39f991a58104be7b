use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "DCB netlink (IEEE_8021QAZ_PFC)",
    meaning: "unless both ends pause, packets are lost under congestion and go-back-N makes bandwidth collapse",
    source: "IEEE 802.1Qbb; `dcb pfc show dev INTERFACE`, `mlnx_qos -i INTERFACE`",
    spoils: Spoils::Everything,
    subject: Subject::RoceNic,
    needs: &[Need::Port(
        |port| port.interface.is_some_and(|interface| interface.dcb.is_some()),
        "data centre bridging of its ports",
    )],
    find,
};

const SWITCHES: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let ports = || scene.wires().filter(|port| port.is_roce() && port.is_hardware());
    let of = |port: &Port<'_>| port.interface?.dcb.as_ref().map(|dcb| dcb.pfc.clone());
    let wanted = scene.wanted().pfc_priority.clone();
    let usual = Usual::of(wanted, ports().filter_map(|port| of(&port)));
    let mut found = Vec::new();
    for port in ports() {
        match (of(&port), &usual) {
            (Some(on), Some(usual)) if on != usual.value => {
                let what = format!("PFC is on for {}, {}", shown(&on), usual.words(|list| shown(list)));
                let observed = Observation::with_usual("pfc_priority", on.clone(), usual);
                let on = |p: u8| format!("{p}:{}", if usual.value.contains(&p) { "on" } else { "off" });
                let switches: Vec<String> = (0..8).map(on).collect();
                let values: Vec<_> = SWITCHES.into_iter().zip(switches.iter().map(String::as_str)).collect();
                let remedy = of_interface(remedy::PFC_LIKE_OTHERS, &port, &values);
                found.push(port.found(usual.severity(Severity::Warning), what, remedy).observed(observed));
            }
            (Some(on), _) if on.is_empty() && !has_pause(&port) => {
                let meaning = "RoCE on a lossy port depends on ECN alone; loss costs whole windows";
                let remedy = remedy::FLOW_CONTROL;
                let what = "neither PFC nor pause frames are on";
                found.push(port.found(Severity::Notice, what, remedy).meaning(meaning));
            }
            _ => {}
        }
    }
    found
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
