//! Ports that sort packets by a field that RoCE v2 does not set.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/net/*/qos/trust (MLNX_OFED)",
    meaning: "routed RoCE carries its class in DSCP: a port that trusts PCP puts the packets into the default class, without flow control",
    source: "`mlnx_qos -i INTERFACE --trust dscp`",
    spoils: Spoils::Everything,
    subject: Subject::RoceNic,
    needs: &[Need::Port(
        |port| port.interface.is_some_and(|interface| interface.trust.is_some()),
        "the field it trusts",
    )],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let fields = || scene.roce().filter_map(|port| Some((port, port.interface?.trust.as_ref()?)));
    let usual = Usual::of(scene.wanted().trust.clone(), fields().map(|(_, trust)| trust.clone()));
    for (port, trust) in fields() {
        let is_mapped = port.dcb().is_some_and(|dcb| !dcb.pfc.is_empty() && !dcb.dscp.is_empty());
        match &usual {
            Some(usual) if *trust != usual.value => {
                let what = format!("packets are classified by {trust}, {}", usual.words(Clone::clone));
                let remedy = of_interface(remedy::TRUST, &port, &[("trust", &usual.value)]);
                let other = port.found(usual.severity(Warning), what, remedy);
                found.push(other.usual("trust", trust.clone(), usual));
            }
            _ if trust == "pcp" && is_mapped => {
                let what = "packets are classified by pcp although DSCPs are mapped to priorities with PFC";
                found.push(port.found(Warning, what, of_interface(remedy::TRUST, &port, &[("trust", "dscp")])));
            }
            _ => {}
        }
    }
}
