//! Flow control per priority that is not as on the others.

use super::{Check, Found, Need, Port, Scene, Severity, Spoils, Subject, Usual, unread};
use crate::border::text::quoted;

pub(super) const CHECK: Check = Check {
    name: "pfc",
    reads: "DCB netlink (IEEE_8021QAZ_PFC)",
    meaning: "where one end pauses and the other does not, or nobody does, packets are lost under congestion and go-back-N makes bandwidth collapse",
    source: "IEEE 802.1Qbb; `dcb pfc show dev INTERFACE`, `mlnx_qos -i INTERFACE`",
    spoils: Spoils::Everything,
    subject: Subject::RoceNic,
    needs: &[Need::Port(
        |port| port.interface.is_some_and(|interface| interface.dcb.is_some()),
        "data centre bridging of its ports",
    )],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let ports = || scene.ports().filter(|port| port.is_roce() && port.is_hardware());
    let of = |port: &Port<'_>| port.interface?.dcb.as_ref().map(|dcb| dcb.pfc.clone());
    let wanted = scene.wanted().pfc_priority.clone();
    let usual = Usual::of(wanted, ports().filter_map(|port| of(&port)));
    let mut found = Vec::new();
    for port in ports() {
        let interface = quoted(port.interface.map_or("INTERFACE", |interface| &interface.name));
        match (of(&port), &usual) {
            (Some(on), Some(usual)) if on != usual.value => {
                let what = format!("PFC is on for {}, {}", shown(&on), usual.words(|list| shown(list)));
                let switches: Vec<String> =
                    (0..8).map(|p| format!("{p}:{}", if usual.value.contains(&p) { "on" } else { "off" })).collect();
                let remedy = format!("`dcb pfc set dev {interface} prio-pfc {}`", switches.join(" "));
                found.push(Found::host(usual.severity(Severity::Warning), port.host, what, remedy).device(port.name()));
            }
            (Some(on), _) if on.is_empty() && !has_pause(&port) => {
                let meaning = "RoCE on a lossy port depends on ECN alone; loss costs whole windows";
                let remedy =
                    "configure PFC or global pause at both ends of the link, or make sure that ECN keeps queues short";
                let what = "neither PFC nor pause frames are on";
                found.push(Found::host(Severity::Notice, port.host, what, remedy).device(port.name()).meaning(meaning));
            }
            (None, Some(usual)) if usual.wanted => {
                found.push(unread(port.host, "PFC", &shown(&usual.value)).device(port.name()));
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
