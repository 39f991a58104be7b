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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let ports = || scene.wires().filter(|port| port.is_roce() && port.is_hardware());
    let of = |port: &Port<'_>| port.interface?.trust.clone();
    let usual = Usual::of(scene.wanted().trust.clone(), ports().filter_map(|port| of(&port)));
    let mut found = Vec::new();
    for port in ports() {
        let mapped =
            port.interface.and_then(|i| i.dcb.as_ref()).is_some_and(|dcb| !dcb.pfc.is_empty() && !dcb.dscp.is_empty());
        match (of(&port), &usual) {
            (Some(trust), Some(usual)) if trust != usual.value => {
                let what = format!("packets are classified by {trust}, {}", usual.words(Clone::clone));
                let remedy = of_interface(remedy::TRUST, &port, &[("trust", &usual.value)]);
                let observed = Observation::with_usual("trust", trust.clone(), usual);
                found.push(port.found(usual.severity(Severity::Warning), what, remedy).observed(observed));
            }
            (Some(trust), _) if trust == "pcp" && mapped => {
                let what = "packets are classified by pcp although DSCPs are mapped to priorities with PFC";
                let remedy = of_interface(remedy::TRUST, &port, &[("trust", "dscp")]);
                found.push(port.found(Severity::Warning, what, remedy));
            }
            _ => {}
        }
    }
    found
}
