use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "ethtool (ETHTOOL_GPAUSEPARAM)",
    meaning: "a paused port stops every class of traffic, and one that ignores pauses overruns its switch",
    source: "IEEE 802.3 annex 31B; `ethtool -a INTERFACE`",
    spoils: Spoils::Everything,
    subject: Subject::RoceNic,
    needs: &[Need::Port(|port| port.interface.is_some_and(|interface| interface.pause.is_some()), "pause frames")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let ports = || scene.wires().filter(|port| port.is_roce() && port.is_hardware());
    let of = |port: &Port<'_>| port.interface?.pause.map(|pause| (pause.receive, pause.send));
    let usual = Usual::of(None, ports().filter_map(|port| of(&port)));
    let mut found = Vec::new();
    for port in ports() {
        let Some(pause) = of(&port) else { continue };
        let pfc = port.interface.and_then(|interface| interface.dcb.as_ref()).is_some_and(|dcb| !dcb.pfc.is_empty());
        if pfc && pause != (false, false) {
            let what = format!("pause frames are {} although PFC is on", shown(&pause));
            let remedy = of_interface(remedy::PAUSE_OFF, &port, &[]);
            found.push(port.found(Severity::Warning, what, remedy));
        } else if let Some(usual) = usual.as_ref().filter(|usual| usual.value != pause) {
            let what = format!("pause frames are {}, {}", shown(&pause), usual.words(|pause| shown(pause).to_owned()));
            let word = |on| if on { "on" } else { "off" };
            let remedy = of_interface(
                remedy::PAUSE_LIKE_OTHERS,
                &port,
                &[("rx", word(usual.value.0)), ("tx", word(usual.value.1))],
            );
            found.push(port.found(Severity::Warning, what, remedy));
        }
    }
    found
}

const fn shown(pause: &(bool, bool)) -> &'static str {
    match pause {
        (true, true) => "obeyed and sent",
        (true, false) => "obeyed",
        (false, true) => "sent",
        (false, false) => "off",
    }
}
