//! What decides which side is the bad one.

use railgauge_model::plan::model::{Limit, Test};
use railgauge_stats::localise::{Findings, Pair, Port, Settled, Suspect};
use railgauge_wire::terms::{Better, Metric};

use super::{
    DecidedBy, Localisation,
    crossing::Crossing,
    names::Names,
    pick::{One, View},
    rates::Rates,
};

/// Share of a ceiling that counts as reaching it: it includes headers, but not acknowledgements and memory.
pub(super) const REACHES: f64 = 0.9;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Bounds {
    /// In the metric's unit, of the best links where they differ; `None` if that of any measured link is unknown.
    ceiling: Option<f64>,
    pub(super) rates: Rates,
    pub(super) crossing: Crossing,
    /// The plan's numeric limits, in the metric's unit.
    limits: Vec<f64>,
}

impl Bounds {
    pub(super) fn new(view: &View<'_>, names: &Names, test: &Test, least: f64) -> Self {
        let Some(One { row: first, .. }) = view.cases.first() else { return Self::default() };
        // A case without a value has no link, and thus no ceiling.
        let valued = view.cases.iter().filter(|one| one.log.is_some());
        let ceilings: Option<Vec<f64>> = valued.map(|one| one.row.ceiling.filter(|c| *c > 0.0)).collect();
        let ceiling = ceilings.as_ref().and_then(|ceilings| railgauge_stats::robust::median(ceilings).ok());
        let ceiling = ceiling.filter(|_| view.metric == Metric::Bandwidth);
        let link = |one: &One<'_>| {
            let pair = one.pair(names)?;
            Some((pair.from, pair.to, pair.value, one.row.ceiling?.ln()))
        };
        let rates = match ceiling {
            Some(_) => Rates::new(&view.cases.iter().filter_map(link).collect::<Vec<_>>(), least),
            None => Rates::default(),
        };
        // The reference for all is the level of the best.
        let ceiling = ceiling.map(|ceiling| rates.best().map_or(ceiling, f64::exp));
        let size = first.size_bytes;
        let of = test.expect.iter().filter(|one| {
            one.metric == view.metric
                && one.group.is_none()
                && one.rails.is_empty()
                && one.sizes.is_none_or(|(from, to)| (from..=to).contains(&size))
        });
        let limit = |limit: &Limit| match *limit {
            Limit::AtLeast(value) | Limit::AtMost(value) => Some(value),
            Limit::PercentOfCeiling(percent) => ceiling.map(|ceiling| ceiling * percent / 100.0),
            _ => None,
        };
        let limits = of.filter_map(|one| limit(&one.limit)).collect();
        let mut bounds = Self { ceiling, rates, crossing: Crossing::default(), limits };
        let pairs: Vec<Pair> = view
            .cases
            .iter()
            .filter_map(|one| one.pair(names))
            // The loss across rails is independent of an end's lower ceiling.
            .filter(|pair| ![pair.from, pair.to].into_iter().any(|port| bounds.rates.is_lesser(port)))
            .filter_map(|pair| Some(Pair { value: bounds.as_of_best(pair.from, pair.to, pair.value)?, ..pair }))
            .collect();
        bounds.crossing = Crossing::new(&pairs, &names.groups, least);
        bounds
    }

    /// Share of the ceiling that a value reaches, if clearly below it and no limit of the plan judges it.
    pub(super) fn short_of_ceiling(&self, value: f64) -> Option<f64> {
        let share = value / self.ceiling.filter(|_| self.limits.is_empty())?;
        (share < REACHES).then_some(share)
    }

    /// Logarithm of the value scaled to equal ends and pairs on one rail. `None` for a link that reaches its own lower
    /// ceiling and has no peers.
    pub(super) fn as_of_best(&self, from: Port, to: Port, value: f64) -> Option<f64> {
        Some(self.rates.as_of_best(from, to, value)? + self.crossing.of(from, to))
    }
}

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
