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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let pauses = || {
        let of = |port: Port<'_>| port.interface?.pause.map(|pause| (pause.receive, pause.send));
        scene.roce().filter_map(move |port| Some((port, of(port)?)))
    };
    let usual = Usual::of(None, pauses().map(|(_, pause)| pause));
    for (port, pause) in pauses() {
        if pause != (false, false) && port.dcb().is_some_and(|dcb| !dcb.pfc.is_empty()) {
            let what = format!("pause frames are {} although PFC is on", shown(&pause));
            found.push(port.found(Warning, what, of_interface(remedy::PAUSE_OFF, &port, &[])));
        } else if let Some(usual) = usual.as_ref().filter(|usual| usual.value != pause) {
            let what = format!("pause frames are {}, {}", shown(&pause), usual.words(|pause| shown(pause).to_owned()));
            let word = |on| if on { "on" } else { "off" };
            let values = [("rx", word(usual.value.0)), ("tx", word(usual.value.1))];
            found.push(port.found(Warning, what, of_interface(remedy::PAUSE_LIKE_OTHERS, &port, &values)));
        }
    }
}

const fn shown(pause: &(bool, bool)) -> &'static str {
    match pause {
        (true, true) => "obeyed and sent",
        (true, false) => "obeyed",
        (false, true) => "sent",
        (false, false) => "off",
    }
}
