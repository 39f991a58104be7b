//! Distance of every case from the centre of its peers.
//!
//! Peers are the cases of a test with the same size, variant and ceiling (NICs of one rate), over all rails, as in
//! [`localise`](mod@crate::localise); if pairs within and between groups reach different levels there, each kind has its own
//! centre at every size. The cell searched for parts has the centre and spread of that search; other cells use the same estimator
//! ([`railgauge_stats::robust::Level`]) over links that belong to no named part. A case stands out if it is worse than the centre by more
//! than the cut for single values ([`railgauge_stats::robust::outlier_cut`]) times the spread, and by more than the plan's least effect:
//! the rule for paths.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use railgauge_model::schedule::Flow;
use railgauge_stats::robust::{self, outlier_cut};
use railgauge_wire::{Better, Bytes, Metric};

use super::{index::Index, look::Look, parts::Part};
use crate::{
    case::{CaseResult, State},
    localise::{self, Localisation},
    row::Row,
    words::{change, size},
};

/// Links needed for a centre: of two, either may be the odd one.
const FEWEST: usize = 3;
/// Number of values below which the spread is at least the least effect, as in localise: a few values are often close together by chance.
const FEW: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    pub centre: f64,
    /// Standard deviation of good links, as a difference of logarithms.
    pub scale: f64,
    /// As a difference of logarithms.
    pub threshold: f64,
}

#[derive(Debug, Clone)]
pub struct Link<'a> {
    pub result: &'a CaseResult<'a>,
    pub row: Option<&'a Row>,
    pub cell: (String, Bytes),
    /// `None` if not trusted.
    pub value: Option<f64>,
    /// `None` with fewer than three values.
    pub level: Option<Level>,
    pub deviation: Option<f64>,
    pub stands_out: bool,
    /// Position of its part, the gravest if there are several.
    pub part: Option<usize>,
    pub look: Look,
}

impl Link<'_> {
    /// The deviation, 0 without one, by which outliers are ordered.
    pub fn depth(&self) -> f64 {
        self.deviation.unwrap_or(0.0)
    }

    /// Deviation in percent of the centre; `None` without a value or peers.
    pub fn change_percent(&self) -> Option<f64> {
        self.value.zip(self.level).map(|(value, level)| 100.0 * (value / level.centre - 1.0))
    }

    /// Size and deviation: `64 KiB, −50.3 %`.
    pub fn words(&self) -> String {
        let by = self.change_percent().map_or_else(String::new, |percent| format!(", {}", change(percent)));
        format!("{}{by}", size(self.cell.1))
    }
}

pub(super) struct Setting<'s, 'a> {
    pub(super) metric: Metric,
    pub(super) least: f64,
    pub(super) found: Option<&'a Localisation>,
    pub(super) parts: &'s [Part<'a>],
    pub(super) index: &'s Index<'s>,
}

type LevelKey = (String, Bytes, usize, i64);

/// Smaller differences of ceilings are one class: NICs of one rate.
const SAME_CEILING: f64 = 0.02;

/// The class of a case's ceiling: links of another rate are not peers. One class if unknown.
fn class(link: &Link<'_>) -> i64 {
    let ceiling = link.row.and_then(|row| row.ceiling).filter(|ceiling| *ceiling > 0.0);
    ceiling.map_or(0, |ceiling| (ceiling.ln() / SAME_CEILING).round() as i64)
}

pub(super) fn links<'a>(
    setting: &Setting<'_, 'a>,
    results: Vec<&'a CaseResult<'a>>,
    mut rows: Vec<&'a Row>,
) -> Vec<Link<'a>> {
    let sign = if setting.metric.better() == Better::Higher { 1.0 } else { -1.0 };
    // Already in the order of the cases.
    rows.sort_by_key(|row| row.case);
    let mut next = 0;
    let mut row = |case: u64| {
        // Cases are consecutive, and so are their rows.
        if rows.get(next).is_none_or(|row| row.case != case) {
            next = rows.partition_point(|row| row.case < case);
        }
        let found = rows.get(next).copied().filter(|row| row.case == case);
        next += usize::from(found.is_some());
        found
    };
    let strata = strata(setting.found, &results);
    let value = |result: &CaseResult<'_>, row: Option<&Row>| {
        let trusted = result.state.is_trusted();
        let value = row.filter(|_| trusted).and_then(|row| row.value);
        value.filter(|value| *value > 0.0 && value.is_finite())
    };
    let mut links: Vec<Link<'a>> = results
        .into_iter()
        .map(|result| (result, row(result.case.id)))
        .map(|(result, row)| Link {
            result,
            row,
            cell: (result.variant(), result.case.cell.size),
            value: value(result, row),
            level: None,
            deviation: None,
            stands_out: false,
            part: setting.index.of_link(&result.case.flow),
            look: Look::Missing,
        })
        .collect();
    let stratum = |link: &Link<'_>| strata.get(&link.result.case.flow).copied().unwrap_or(0);
    // A flow alone, the same with others, and those of the incast are not peers: its loss describes it.
    let peers = links.first().is_some_and(|link| !link.result.test.has_victim());
    let levels = if peers { levels(setting, &links, &stratum, sign) } else { HashMap::default() };
    for link in &mut links {
        let level = levels.get(&(link.cell.0.clone(), link.cell.1, stratum(link), class(link))).copied();
        link.level = level;
        link.deviation = link.value.zip(level).map(|(value, level)| sign * (value / level.centre).ln());
        let apart = link.deviation.zip(level).map(|(deviation, level)| (deviation, level.threshold));
        let named = setting.index.bad_of_case(link.result.case.id).and_then(|at| setting.parts.get(at));
        let in_bad = setting
            .found
            .and_then(|found| found.two_clusters.as_ref())
            .is_some_and(|clusters| clusters.bad.cases.contains(&link.result.case.id));
        link.look = look(link.result.state, link.value, apart, named.is_some() || in_bad);
        link.stands_out =
            link.look.stands_out() || (link.look == Look::Named && named.is_some_and(|part| part.is_path()));
    }
    links
}

fn look(state: State, value: Option<f64>, apart: Option<(f64, f64)>, named: bool) -> Look {
    match (state, value, apart) {
        (State::Wrong | State::Impossible | State::Contaminated | State::Unverified, ..) => Look::Doubtful,
        (State::Failed | State::NotRun | State::NoValue, ..) => Look::Missing,
        (_, None, _) => Look::Missing,
        (.., Some((deviation, threshold))) => Look::of(deviation, threshold, named),
        (.., None) if named => Look::Named,
        (.., None) => Look::Usual,
    }
}

fn levels(
    setting: &Setting<'_, '_>,
    links: &[Link<'_>],
    stratum: &dyn Fn(&Link<'_>) -> usize,
    sign: f64,
) -> HashMap<LevelKey, Level> {
    let looks = links.iter().filter(|link| link.value.is_some()).count();
    let mut cells: BTreeMap<LevelKey, Vec<&Link<'_>>> = BTreeMap::new();
    for link in links.iter().filter(|link| link.value.is_some()) {
        let cell = (link.cell.0.clone(), link.cell.1, stratum(link), class(link));
        cells.entry(cell).or_default().push(link);
    }
    let mut classes: BTreeMap<(&str, Bytes), BTreeSet<i64>> = BTreeMap::new();
    for (variant, size, _, class) in cells.keys() {
        classes.entry((variant, *size)).or_default().insert(*class);
    }
    let mixed: BTreeSet<(String, Bytes)> = classes
        .into_iter()
        .filter(|(_, classes)| classes.len() > 1)
        .map(|((variant, size), _)| (variant.to_owned(), size))
        .collect();
    let level = |(key, links): (LevelKey, Vec<&Link<'_>>)| {
        // The search covered the median rate.
        let alike = !mixed.contains(&(key.0.clone(), key.1));
        let (level, noise) = match told(setting, &key, &links).filter(|_| alike) {
            Some(level) => (level, 0.0),
            None => estimated(setting, &links, sign)?,
        };
        let known = noise > 0.0 && level.scale <= noise;
        let cut = outlier_cut(looks, (!known).then_some(level.n));
        let threshold = (cut * level.scale).max(setting.least).max(f64::MIN_POSITIVE);
        Some((key, Level { centre: (sign * level.centre).exp(), scale: level.scale, threshold }))
    };
    cells.into_iter().filter_map(level).collect()
}

/// From the search for parts, on the scale on which higher is better.
fn told(setting: &Setting<'_, '_>, key: &LevelKey, links: &[&Link<'_>]) -> Option<robust::Level> {
    let found = setting.found.filter(|found| found.metric == setting.metric && found.size_bytes == key.1)?;
    let looked_at = |link: &&Link<'_>| found.level_of.of(link.result.case.id).is_some();
    let good = found.good.get(key.2).filter(|_| links.iter().any(looked_at))?;
    let sign = if setting.metric.better() == Better::Higher { 1.0 } else { -1.0 };
    let scale = (good.spread_percent / 100.0).ln_1p();
    (good.centre > 0.0).then(|| robust::Level { centre: sign * good.centre.ln(), scale, n: good.n })
}

fn estimated(setting: &Setting<'_, '_>, links: &[&Link<'_>], sign: f64) -> Option<(robust::Level, f64)> {
    let free = |link: &&Link<'_>| link.part.and_then(|at| setting.parts.get(at)).is_none_or(|part| !part.is_bad());
    let logs = |links: &mut dyn Iterator<Item = &Link<'_>>| -> Vec<f64> {
        links.filter_map(|link| link.value).map(|value| sign * value.ln()).collect()
    };
    let mut values = logs(&mut links.iter().copied().filter(free));
    if values.len() < FEWEST {
        values = logs(&mut links.iter().copied());
    }
    if values.len() < FEWEST {
        return None;
    }
    let noise = localise::Scatter::noise(localise::Scatter::of(setting.metric, links.iter().map(|link| link.result)));
    let floor = if values.len() < FEW { noise.max(setting.least) } else { noise };
    robust::Level::of(&values, floor).ok().map(|level| (level, noise))
}

/// The localisation's level of each link; empty where all share one.
fn strata<'a>(found: Option<&Localisation>, results: &[&'a CaseResult<'a>]) -> HashMap<&'a Flow, usize> {
    let Some(found) = found.filter(|found| found.good.len() != 1) else { return HashMap::default() };
    let of = |result: &&'a CaseResult<'a>| Some((&result.case.flow, found.level_of.of(result.case.id)?));
    results.iter().filter_map(of).collect()
}
