//! Measuring suspects again.

use railgauge_stats::localise::{self, Findings, Judgement, Pair, Setting, Way, judge};
use railgauge_wire::terms::Better;

use super::{LEAST, Localisation, Standing, names::Names};
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
        let setting = Setting { least: LEAST, directed: self.directed, ..Setting::default() };
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
                Judgement::Confirmed { effect, way, n, .. } => {
                    let only = match way {
                        Way::Both => "",
                        Way::Send => ", only when it sends",
                        Way::Receive => ", only when it receives",
                    };
                    (Standing::Confirmed, format!("confirmed by {n} further tests: {} %{only}", percent(effect)))
                }
                Judgement::Cleared { effect, n } => {
                    (Standing::Cleared, format!("{n} further tests do not confirm it: {} %", percent(effect)))
                }
                Judgement::Open { n } => (Standing::Open, format!("{n} further tests are too few to confirm it")),
            };
            let named = &mut self.suspects[at];
            named.standing = standing;
            named.reason = format!("{}; {words}", named.reason);
        }
    }
}
