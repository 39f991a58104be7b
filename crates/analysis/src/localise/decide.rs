//! What decides which side is the bad one.

use railgauge_stats::localise::{Findings, Settled, Suspect};
use railgauge_wire::Better;

use super::{DecidedBy, Localisation, rates::REACHES};

impl Localisation {
    pub(super) fn decided(
        &self,
        suspect: &Suspect,
        settled: Option<&Settled>,
        findings: &Findings,
    ) -> Option<DecidedBy> {
        if settled.is_some_and(|settled| settled.told_apart) {
            return Some(DecidedBy::FurtherMeasurement);
        }
        if suspect.peers && !findings.premise {
            return Some(DecidedBy::Peers);
        }
        let level = findings.levels[findings.level_of[suspect.evidence.pairs[0]].min(findings.levels.len() - 1)];
        let good = self.metric_value(level.centre);
        let bad = self.metric_value(level.centre + suspect.effect);
        let reaches = |ceiling: f64| good >= REACHES * ceiling && bad < REACHES * ceiling;
        if self.bounds.ceiling.is_some_and(reaches) {
            return Some(DecidedBy::Ceiling);
        }
        let between = |limit: &f64| match self.metric.better() {
            Better::Higher => bad < *limit && *limit <= good,
            Better::Lower => good <= *limit && *limit < bad,
        };
        if self.bounds.limits.iter().any(between) {
            return Some(DecidedBy::Floor);
        }
        suspect.peers.then_some(DecidedBy::Peers)
    }
}
