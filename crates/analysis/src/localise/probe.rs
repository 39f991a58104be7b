use railgauge_model::schedule::{Flow, Port};
use railgauge_stats::localise::{
    self, Doubt, Findings, Judgement, MOST_BATCHES, Pair, Part, Role, Setting, Settled, Suspect,
};
use railgauge_wire::Better;

use super::{Confirmation, Further, Localisation, Names, OpenReason, Probe, Screen, Standing};
use crate::{
    case::CaseResult,
    row::Row,
    words::{change, count},
};

/// If the operation `pulls`, the receiving end of a pair is its initiator.
pub(super) fn probes(
    pairs: &[Pair],
    findings: &Findings,
    setting: &Setting<'_>,
    names: &Names,
    pulls: bool,
) -> Vec<Probe> {
    let one = |raw: localise::Probe| Probe {
        suspect: raw.suspect,
        flow: flow((raw.from, raw.to), names, pulls),
        control: raw.role == Role::Control,
        raw: Some(raw),
    };
    localise::probes(pairs, findings, setting).into_iter().map(one).collect()
}

/// From the end that sends the bytes to the receiver.
pub(super) fn flow((from, to): (localise::Port, localise::Port), names: &Names, pulls: bool) -> Flow {
    let port = |port: localise::Port| Port::new(names.host(port.host), port.rail);
    let (from, to) = if pulls { (to, from) } else { (from, to) };
    Flow::pair(port(from), port(to))
}

impl Localisation {
    /// Adds results of probes: position in [`Localisation::probes`] and value in the metric's unit; probes without a
    /// result are left out. Updates every suspect's standing and reason, and adds the direction to the name if only one
    /// is bad. Returns the suspects that more of the same probes may settle.
    pub(super) fn confirm(&mut self, results: &[(usize, f64)]) -> Vec<bool> {
        let Some(screen) = self.screen.clone() else { return self.confirm_few(results) };
        let setting = Setting {
            groups: &screen.names.groups,
            least: self.least,
            directed: self.directed,
            noise: 0.0,
            two_levels: false,
        };
        let higher = self.metric.better() == Better::Higher;
        let log = |raw: localise::Probe, value: f64| {
            let value = if higher { value.ln() } else { -value.ln() };
            Some((raw, self.bounds.as_of_best(raw.from, raw.to, value)?))
        };
        let all: Vec<(localise::Probe, f64)> = results
            .iter()
            .filter(|(_, value)| *value > 0.0 && value.is_finite())
            .filter_map(|(probe, value)| log(self.probes.get(*probe)?.raw?, *value))
            .collect();
        let mut judgements = Vec::new();
        for at in 0..self.suspects.len() {
            let own = all.iter().filter(|(probe, _)| probe.role == Role::Control || probe.suspect == at).copied();
            let suspect = &screen.findings.suspects[at];
            let settled = localise::settle(suspect, &own.collect::<Vec<_>>(), &setting);
            judgements.push(settled.judgement);
            self.settle(at, suspect, &settled, &screen);
        }
        self.doubt_ends(&judgements, &screen);
        self.unjudged = screen.unjudged(&judgements);
        let more = judgements.iter().map(Judgement::wants_more).collect();
        self.judgements = judgements;
        more
    }

    /// Leaves ways open with an end that was never good, neither in the test nor in further cases: it may be the end.
    fn doubt_ends(&mut self, judgements: &[Judgement], screen: &Screen) {
        let suspects = &screen.findings.suspects;
        for (at, suspect) in suspects.iter().enumerate().filter(|(_, suspect)| suspect.part.is_link()) {
            let unknown = |end: &&usize| {
                let of = &suspects[**end];
                of.part.is_end() && of.share == Some(1.0) && matches!(judgements[**end], Judgement::Open { .. })
            };
            let named = &mut self.suspects[at];
            let sure = named.standing.is_certain();
            if sure && let Some(&end) = suspect.under.iter().find(unknown) {
                (named.standing, named.open) = open(OpenReason::EndUnknown);
                let alternative = screen.names.part(&suspects[end].part);
                let words = OpenReason::EndUnknown.words();
                named.reason = format!("{}; open, {words}: it may be {}", named.reason, alternative.name);
                named.alternatives.push(alternative);
            }
        }
    }

    fn settle(&mut self, at: usize, suspect: &Suspect, settled: &Settled, screen: &Screen) {
        let decided = self.decided(suspect, Some(settled), &screen.findings);
        let hosts = self.suspects[at].reach.clone();
        let further = &self.suspects[at].further;
        let (all, with_value) = (further.len(), further.iter().filter(|one| one.value.is_some()).count());
        let wanted = self.probes.iter().filter(|probe| probe.suspect == at && !probe.control).count();
        let lacks_values = with_value < all || all < wanted;
        let bounded = |far: bool| {
            let undecided = decided.is_none().then_some(OpenReason::Undecided);
            self.conditions.against(hosts.iter().map(String::as_str), far).or(undecided)
        };
        let (standing, open) = match settled.judgement {
            Judgement::Confirmed { far, .. } => bounded(far).map_or((Standing::Confirmed, None), open),
            Judgement::Intermittent { far, .. } => bounded(far).map_or((Standing::Intermittent, None), open),
            Judgement::Ways { .. } => open(OpenReason::Ways),
            Judgement::Cleared { .. } => (Standing::Cleared, None),
            Judgement::Open { doubt, .. } => open(reason(doubt, lacks_values)),
        };
        let (effect, interval, n, share) = match settled.judgement {
            Judgement::Confirmed { effect, interval, n, .. } => (Some(effect), interval, n, None),
            Judgement::Ways { effect, n, .. } => (Some(effect), None, n, None),
            Judgement::Intermittent { effect, share, n, .. } => (Some(effect), None, n, Some(share)),
            Judgement::Cleared { effect, n } => (Some(effect), None, n, None),
            Judgement::Open { n, .. } => (None, None, n, None),
        };
        let confirmation = effect.map(|effect| Confirmation {
            change_percent: self.percent(effect),
            interval_percent: self.interval(interval.map(|interval| (interval.low, interval.high))),
            n,
            bad: settled.bad,
            controls: settled.controls,
            controls_change_percent: self.percent(settled.moved),
        });
        let by = effect.map(|effect| change(self.percent(effect))).unwrap_or_default();
        let tests = count(n, "further test");
        // Lists those without a value too, so that a count of the others is not misleading.
        let of_all = count(all, "further test");
        let of_all = if with_value < all { format!("{with_value} of {of_all} with a value") } else { of_all };
        let words = match (standing, open) {
            (Standing::Confirmed, _) => format!("confirmed by {tests}: {by}"),
            (Standing::Intermittent, _) => format!("bad in {} of {tests}, then {by}", settled.bad),
            (Standing::Cleared, _) => format!("shown to be good by {tests}: {by}"),
            (_, Some(open)) => format!("undecided after {of_all}: {}", open.words()),
            _ => String::new(),
        };
        let named = &mut self.suspects[at];
        if settled.part != suspect.part {
            named.part = screen.names.part(&settled.part);
        }
        named.alternatives = settled.alternatives.iter().map(|part| screen.names.part(part)).collect();
        (named.standing, named.open, named.decided_by) = (standing, open, decided);
        named.bad_share = share;
        named.confirmation = confirmation;
        named.reason = format!("{}; {words}", screen.reasons[at]);
    }
}

const fn open(reason: OpenReason) -> (Standing, Option<OpenReason>) {
    (Standing::Open, Some(reason))
}

impl Screen {
    fn unjudged(&self, judgements: &[Judgement]) -> Vec<String> {
        let is_settled = |port: &localise::Port| {
            self.findings.suspects.iter().zip(judgements).any(|(suspect, judgement)| {
                let here = match suspect.part {
                    Part::Host(host, _) => host == port.host,
                    Part::Nic(nic, _) => nic == *port,
                    _ => false,
                };
                here && !matches!(judgement, Judgement::Open { .. })
            })
        };
        let left = self.findings.unjudged.iter().filter(|port| !is_settled(port));
        left.map(|&port| self.names.end(port)).collect()
    }
}

/// `lacks_values`: further cases have none, so that other cases may settle more.
const fn reason(doubt: Doubt, lacks_values: bool) -> OpenReason {
    match doubt {
        Doubt::TooFew | Doubt::AllOfFew if lacks_values => OpenReason::TooFew,
        Doubt::TooFew | Doubt::AllOfFew => OpenReason::TooFewToTell,
        Doubt::NoControls => OpenReason::NoControls,
        Doubt::Unsteady => OpenReason::ControlsUnsteady,
        Doubt::Mixed => OpenReason::Mixed,
        Doubt::Unclear => OpenReason::Unclear,
        Doubt::UnderLoad => OpenReason::UnderLoad,
        Doubt::Contested => OpenReason::Undecided,
    }
}

/// Sets the standing of every suspect of `all` from the journal's further cases and their rows.
pub(super) fn settle(all: &mut [Localisation], further: &[CaseResult<'_>], values: &[Row]) {
    for found in all {
        // Each further case answers one probe, since some probes measure the same flow several times.
        let own = |result: &&CaseResult<'_>| {
            *result.case.test == *found.test && found.cell.as_ref() == Some(&*result.case.cell)
        };
        let mut open: Vec<&CaseResult<'_>> = further.iter().filter(own).collect();
        if open.is_empty() {
            continue;
        }
        let mut answers = Vec::new();
        let first = found.probes.clone();
        let mut wanted: Vec<bool> = vec![true; found.suspects.len()];
        // What the same probes may still settle is measured again, a few times.
        for batch in 0..MOST_BATCHES {
            let start = found.probes.len();
            let batch_of = first.iter().filter(|probe| wanted[probe.suspect]).cloned();
            let from = if batch == 0 {
                0
            } else {
                found.probes.extend(batch_of);
                start
            };
            let mut missing = false;
            for place in from..found.probes.len() {
                let probe = found.probes[place].clone();
                let Some(at) = open.iter().position(|result| result.case.flow == probe.flow) else {
                    missing = true;
                    continue;
                };
                let result = open.remove(at);
                let row = values.iter().find(|row| row.case == result.case.id && row.metric == found.metric);
                let value = row.and_then(|row| row.value).filter(|_| result.state.is_trusted());
                answers.extend(value.map(|value| (place, value)));
                let to = if probe.control { &mut found.controls } else { &mut found.suspects[probe.suspect].further };
                to.push(Further::of(result, value));
            }
            wanted = found.confirm(&answers);
            if missing || !wanted.contains(&true) {
                break;
            }
        }
        found.tell_lanes(further, values);
    }
}
