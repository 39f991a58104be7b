//! Measuring suspects again.

use railgauge_stats::localise::{self, Findings, Judgement, Pair, Setting, judge};
use railgauge_wire::terms::Better;

use super::{
    Confirmation, Localisation, Standing,
    names::{self, Names},
};
use crate::{
    analysis::words::number,
    schedule::{Flow, Port},
};

/// One measurement that helps to settle a suspect.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Position of the suspect in [`Localisation::suspects`].
    pub suspect: usize,
    /// The two ends, the initiator first.
    pub flow: Flow,
    raw: localise::Probe,
}

/// The probes as flows; where the operation `pulls`, the receiving end of a pair is its initiator.
pub(super) fn probes(
    pairs: &[Pair],
    findings: &Findings,
    setting: &Setting<'_>,
    names: &Names,
    pulls: bool,
) -> Vec<Probe> {
    let port = |port: localise::Port| Port::new(names.host(port.host), port.rail);
    let flow = |probe: &localise::Probe| {
        let (from, to) = if pulls { (probe.to, probe.from) } else { (probe.from, probe.to) };
        Flow::pair(port(from), port(to))
    };
    let wanted = localise::probes(pairs, findings, setting);
    wanted.into_iter().map(|raw| Probe { suspect: raw.suspect, flow: flow(&raw), raw }).collect()
}

impl Localisation {
    /// Takes results of probes: position in [`Localisation::probes`] and the value in the metric's unit. Probes without a
    /// result are simply not among them. Every suspect's standing and reason say what came of it; the direction is added
    /// to the name where only one is bad.
    pub fn confirm(&mut self, results: &[(usize, f64)]) {
        let setting = Setting { least: self.least, directed: self.directed, ..Setting::default() };
        let higher = self.metric.better() == Better::Higher;
        for at in 0..self.suspects.len() {
            let own: Vec<(localise::Probe, f64)> = results
                .iter()
                .filter_map(|(probe, value)| Some((self.probes.get(*probe)?, *value)))
                .filter(|(probe, value)| probe.suspect == at && *value > 0.0 && value.is_finite())
                .map(|(probe, value)| (probe.raw, if higher { value.ln() } else { -value.ln() }))
                .collect();
            let judgement = judge(&self.raw[at], &own, &setting);
            let percent = |effect: f64| number(self.percent(effect).abs());
            let (standing, words) = match judgement {
                Judgement::Confirmed { effect, n, .. } => {
                    (Standing::Confirmed, format!("confirmed by {n} further tests: {} %", percent(effect)))
                }
                Judgement::Cleared { effect, n } => {
                    (Standing::Cleared, format!("{n} further tests do not confirm it: {} %", percent(effect)))
                }
                Judgement::Open { n } => (Standing::Open, format!("{n} further tests are too few to confirm it")),
            };
            let confirmation = match judgement {
                Judgement::Confirmed { effect, interval, n, .. } => {
                    Some(self.confirmation(effect, interval.map(|interval| (interval.low, interval.high)), n))
                }
                Judgement::Cleared { effect, n } => Some(self.confirmation(effect, None, n)),
                Judgement::Open { .. } => None,
            };
            let named = &mut self.suspects[at];
            // Both directions of an end were suspect, and one of them is good.
            if let (Judgement::Confirmed { way, .. }, true) = (judgement, self.raw[at].part.is_end()) {
                named.name += names::only(way);
            }
            named.standing = standing;
            named.confirmation = confirmation;
            named.reason = format!("{}; {words}", named.reason);
        }
    }

    fn confirmation(&self, effect: f64, interval: Option<(f64, f64)>, n: usize) -> Confirmation {
        Confirmation {
            change_percent: self.percent(effect),
            interval_percent: self.interval(interval),
            n,
            bad: n,
            controls: 0,
            controls_change_percent: 0.0,
        }
    }
}
