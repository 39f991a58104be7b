//! How far every link is from the centre of the others of its size, variant and rail.
//!
//! Centre and scale are those of the shortest half of the logarithms ([`railgauge_stats::robust::shorth`]), which
//! nearly half of the links may be bad without moving. A difference of logarithms is a ratio, so the same measure
//! serves 2 Gb/s and 400 Gb/s, bandwidth and latency.

use std::collections::BTreeMap;

use railgauge_stats::robust::shorth;
use railgauge_wire::terms::Better;

use super::{Data, headline};
use crate::{
    analysis::results::{CaseResult, State},
    report::chart::matrix::{Grade, Look},
};

/// Links under which no centre is computed: of two nobody can say which is the odd one.
const AT_LEAST: usize = 3;

/// Smallest step of the colour scale: differences under 2 % are not worth a colour.
const SMALLEST_STEP: f64 = 0.02;

/// Width of a step in robust standard deviations: a step at which one good link in seven is still the usual colour's
/// neighbour, and four steps at which chance has no part.
const STEP_SIGMAS: f64 = 1.5;

/// Steps after which a link stands out.
pub(super) const STANDS_OUT: f64 = 2.0;

/// One link at one size.
pub(super) struct Link<'a> {
    pub(super) result: &'a CaseResult<'a>,
    /// Its value, if it may be trusted.
    pub(super) value: Option<f64>,
    /// Centre of the links it is compared with, in the metric's unit.
    pub(super) centre: Option<f64>,
    /// Logarithm of value over centre, negative where worse.
    pub(super) deviation: Option<f64>,
    /// One step of the colour scale, the same for all rails of a size.
    pub(super) step: f64,
    /// Variant and size.
    pub(super) cell: (u32, u64),
}

impl Link<'_> {
    /// Steps from the centre, negative where worse.
    pub(super) fn steps(&self) -> Option<f64> {
        self.deviation.map(|deviation| deviation / self.step)
    }

    /// How it looks in a matrix.
    pub(super) fn look(&self) -> Look {
        match (self.result.state, self.steps()) {
            (State::Wrong | State::Impossible | State::Contaminated | State::Unverified, _) => Look::Doubtful,
            (State::Failed | State::NotRun | State::NoValue, _) => Look::Missing,
            (_, None) if self.value.is_none() => Look::Missing,
            (_, None) => Look::Usual,
            (_, Some(steps)) if steps > 1.0 => Look::Better,
            (_, Some(steps)) => match -steps {
                s if s < 1.0 => Look::Usual,
                s if s < 2.0 => Look::Worse(Grade::Little),
                s if s < 4.0 => Look::Worse(Grade::Clear),
                s if s < 8.0 => Look::Worse(Grade::Much),
                _ => Look::Worse(Grade::Far),
            },
        }
    }
}

/// Every case of a test as a link at a size, in the order of the cases.
pub(super) fn links<'a>(data: &'a Data<'a>) -> Vec<Link<'a>> {
    let sign = if headline(data.test).better() == Better::Higher { 1.0 } else { -1.0 };
    let value = |result: &CaseResult<'_>| {
        let trusted = matches!(result.state, State::Measured | State::Short);
        data.values.get(&result.case.id).filter(|_| trusted).and_then(|row| row.value).filter(|value| *value > 0.0)
    };
    let mut groups: BTreeMap<(u32, u64, u32), Vec<f64>> = BTreeMap::new();
    for result in &data.results {
        let logarithms = groups.entry((data.variant(result), result.case.cell.size, rail(result))).or_default();
        logarithms.extend(value(result).map(f64::ln));
    }
    let centres: BTreeMap<(u32, u64, u32), (f64, f64)> = groups
        .into_iter()
        .filter(|(_, logarithms)| logarithms.len() >= AT_LEAST)
        .filter_map(|(key, logarithms)| {
            let found = shorth(&logarithms).ok()?;
            Some((key, (found.centre, found.scale)))
        })
        .collect();
    let mut steps: BTreeMap<(u32, u64), f64> = BTreeMap::new();
    for ((variant, size, _), (_, scale)) in &centres {
        let step = steps.entry((*variant, *size)).or_insert(SMALLEST_STEP);
        *step = step.max(STEP_SIGMAS * scale);
    }
    data.results
        .iter()
        .map(|&result| {
            let cell = (data.variant(result), result.case.cell.size);
            let centre = centres.get(&(cell.0, cell.1, rail(result))).map(|(centre, _)| *centre);
            let value = value(result);
            Link {
                result,
                value,
                centre: centre.map(f64::exp),
                deviation: value.zip(centre).map(|(value, centre)| sign * (value.ln() - centre)),
                step: steps.get(&cell).copied().unwrap_or(SMALLEST_STEP),
                cell,
            }
        })
        .collect()
}

/// The rail of a pair; the ranks of a group have numbers and no rails.
fn rail(result: &CaseResult<'_>) -> u32 {
    if result.case.flow.members.is_empty() { result.case.flow.from.rail } else { 0 }
}

/// The link with the worst median deviation among those of one variant.
pub(super) fn worst<'l, 'a>(links: &'l [Link<'a>], variant: u32) -> Option<&'l Link<'a>> {
    let mut flows: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for link in links.iter().filter(|link| link.cell.0 == variant) {
        flows.entry(&link.result.case.flow).or_default().extend(link.deviation);
    }
    let medians = flows.into_iter().filter_map(|(flow, all)| Some((flow, railgauge_stats::robust::median(&all).ok()?)));
    let (flow, _) = medians.min_by(|a, b| a.1.total_cmp(&b.1))?;
    links.iter().find(|link| link.result.case.flow == *flow)
}
