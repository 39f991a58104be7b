//! What decides which side is the sick one, and what links of unlike ceilings are held against.

use std::collections::HashMap;

use railgauge_stats::localise::{Findings, Port, Settled, Suspect};
use railgauge_wire::terms::{Better, Metric};

use super::{DecidedBy, Localisation, names::Names, pick::Picked};
use crate::plan::model::{Limit, Test};

/// Share of a ceiling that counts as reaching it: headers are counted in it, acknowledgements and memory are not.
const REACHES: f64 = 0.9;

/// The ceilings of a test's links, and what its plan demands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Bounds {
    /// Median ceiling in the metric's unit; `None` where that of any link is not known.
    ceiling: Option<f64>,
    /// For links whose ceilings differ: what each end can do at best, as a difference of logarithms from the median.
    own: HashMap<Port, f64>,
    /// Limits that the plan sets by number, in the metric's unit.
    limits: Vec<f64>,
}

impl Bounds {
    pub(super) fn new(picked: &Picked<'_>, names: &Names, test: &Test, least: f64) -> Self {
        let Some((_, first)) = picked.first() else { return Self::default() };
        let ceilings: Option<Vec<f64>> = picked.iter().map(|(_, row)| row.ceiling.filter(|c| *c > 0.0)).collect();
        let ceiling = ceilings.as_ref().and_then(|ceilings| railgauge_stats::robust::median(ceilings).ok());
        let ceiling = ceiling.filter(|_| first.metric == Metric::Bandwidth);
        let mut own: HashMap<Port, f64> = HashMap::new();
        if let Some(ceiling) = ceiling {
            for (result, row) in picked {
                let log = row.ceiling.map_or(0.0, |own| (own / ceiling).ln());
                for port in [&result.case.flow.from, &result.case.flow.to].into_iter().filter_map(|p| names.port(p)) {
                    // A link is as good as its worse end: the best of an end's links is its own.
                    own.entry(port).and_modify(|best| *best = best.max(log)).or_insert(log);
                }
            }
        }
        if own.values().all(|log| log.abs() < least) {
            own.clear();
        }
        let size = first.size_bytes;
        let of = test.expect.iter().filter(|one| {
            one.metric == first.metric
                && one.group.is_none()
                && one.rails.is_empty()
                && one.sizes.is_none_or(|(from, to)| (from..=to).contains(&size))
        });
        let limit = |limit: &Limit| match *limit {
            Limit::AtLeast(value) | Limit::AtMost(value) => Some(value),
            Limit::PercentOfCeiling(percent) => ceiling.map(|ceiling| ceiling * percent / 100.0),
            _ => None,
        };
        Self { ceiling, own, limits: of.filter_map(|one| limit(&one.limit)).collect() }
    }

    /// The share of the ceiling that a value reaches, if that is not nearly all and no limit of the plan says whether it is enough.
    pub(super) fn short_of_ceiling(&self, value: f64) -> Option<f64> {
        let share = value / self.ceiling.filter(|_| self.limits.is_empty())?;
        (share < REACHES).then_some(share)
    }

    /// By how much a link's ceiling differs from the median one, as a difference of logarithms.
    pub(super) fn offset(&self, from: Port, to: Port) -> f64 {
        let of = |port: Port| self.own.get(&port).copied().unwrap_or(0.0);
        of(from).min(of(to))
    }
}

impl Localisation {
    /// What decides that a suspect is the bad side.
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
