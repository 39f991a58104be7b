//! Two tests of one run measured in turn: the first is before, the second after.

use std::collections::{BTreeMap, HashMap};

use railgauge_model::{
    plan::{metrics_of, model::Interleave},
    schedule::Flow,
};
use railgauge_stats::Refusal;
use railgauge_wire::Metric;
use serde::Serialize;

use super::{
    Comparison, Design, OneSided, Options, When,
    configuration::{Configuration, different},
    sentence::tell,
    table::{Collected, Lack, Pair, Refused, only, other_method},
};
use crate::{
    case::CaseResult,
    history::{METRICS, Subject},
    journal::Journal,
    rows::direction,
    settings, value,
};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interleaved {
    pub a: String,
    pub b: String,
    pub blocks: u32,
    pub comparison: Comparison,
}

/// In the order of the plan.
///
/// # Errors
/// A statistic refuses the input, which is a bug.
pub fn interleaved(journal: &Journal, results: &[CaseResult<'_>]) -> Result<Vec<Interleaved>, Refusal> {
    let of = |pair: &Interleave| {
        let comparison = tell(collect(journal, results, pair), &Options::default())?;
        Ok(Interleaved { a: pair.a.clone(), b: pair.b.clone(), blocks: pair.blocks, comparison })
    };
    journal.plan.interleave.iter().map(of).collect()
}

fn collect(journal: &Journal, results: &[CaseResult<'_>], pair: &Interleave) -> Collected {
    let [before, after] = [&pair.a, &pair.b].map(|name| by_place(results, name));
    let blocks = pair.blocks as usize;
    let (mut subjects, mut pairs) = (Vec::new(), Vec::new());
    let (mut one_sided, mut left_out) = (Vec::new(), Refused::default());
    for (place, a) in &before {
        let Some(b) = after.get(place) else { continue };
        let subject = Subject {
            test: format!("{} → {}", pair.a, pair.b).into(),
            bidirectional: a.test.bidirectional,
            at_once: false,
            flow: a.case.flow.clone(),
            write_latency: a.test.knobs.write_latency,
            cell: a.case.cell.clone(),
        };
        // Measured in turn, but different measurements: neither is a changed version of the other.
        let apart = a.test.knobs.write_latency != b.test.knobs.write_latency;
        let metrics = metrics_of(a.case.cell.metric, a.case.cell.op, None, None);
        for metric in metrics.into_iter().filter(|metric| METRICS.contains(metric)) {
            let sides = [(When::Before, a), (When::After, b)].map(|(side, result)| {
                let refused = refusal(result);
                if let Some(reason) = &refused {
                    left_out.add(side, reason, result.samples.len(), || subject.name(metric));
                }
                if refused.is_some() { BTreeMap::new() } else { halves(result, metric) }
            });
            // A block counts if both halves of it do.
            let whole: Vec<usize> = sides[0].keys().filter(|block| sides[1].contains_key(block)).copied().collect();
            if whole.is_empty() || apart {
                let reason = [a, b].into_iter().find_map(|result| refusal(result)).unwrap_or_else(|| {
                    let methods = || other_method(b.test.knobs.write_latency);
                    if apart { methods() } else { "no block is whole".to_owned() }
                });
                let only = only(sides.each_ref().map(|side| !side.is_empty()));
                one_sided.push(OneSided { name: subject.name(metric), only, reason });
                continue;
            }
            let lack = [(&sides[0], a), (&sides[1], b)].map(|(halves, result)| Lack {
                runs: blocks.saturating_sub(halves.len()),
                unplanned: 0,
                why: result.error().unwrap_or_default(),
            });
            let sides = sides.map(|side| whole.iter().map(|&block| (block, side[&block])).collect());
            pairs.push(Pair { subject: subjects.len(), metric, sides, lack });
        }
        subjects.push(subject);
    }
    let tests = [&pair.a, &pair.b].map(|name| journal.plan.tests.iter().find(|test| test.name == *name));
    let configuration = match tests {
        [Some(a), Some(b)] => {
            let mut tests = different(&pair.b, &settings::all(a), &settings::all(b));
            // Two tests always have two names.
            tests.retain(|setting| setting.key != "name");
            Configuration { tests, ..Configuration::default() }
        }
        _ => Configuration::default(),
    };
    let comparison = Comparison {
        design: Design::Blocks,
        alternating: true,
        configuration,
        carriers: carriers(&pair.b, &before, &after),
        one_sided,
        left_out: left_out.finish(),
        ..Comparison::default()
    };
    let (order, places, groups) = (Vec::new(), [Vec::new(), Vec::new()], journal.plan.groups.clone());
    Collected { runs: [blocks; 2], order, places, groups, subjects, pairs, comparison }
}

fn by_place<'r>(results: &'r [CaseResult<'r>], test: &str) -> BTreeMap<(Flow, usize), &'r CaseResult<'r>> {
    let mut seen: HashMap<&Flow, usize> = HashMap::new();
    let mut found = BTreeMap::new();
    for result in results.iter().filter(|result| result.test.name == test) {
        let place = seen.entry(&result.case.flow).or_default();
        found.insert((result.case.flow.clone(), *place), result);
        *place += 1;
    }
    found
}

fn refusal(result: &CaseResult<'_>) -> Option<String> {
    let trusted = result.state.is_trusted();
    (!trusted).then(|| result.error().unwrap_or_else(|| result.state.word().to_owned()))
}

/// Means of the logarithms of each block's two samples; blocks with fewer are left out.
fn halves(result: &CaseResult<'_>, metric: Metric) -> BTreeMap<usize, f64> {
    let mut logs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (repeat, sample) in &result.samples {
        let cell = &result.case.cell;
        let value = match cell.manner {
            Some(_) => value::of_group(metric, sample, cell, result.case.flow.ranks()),
            None => value::of(metric, sample, direction(result, *repeat, sample)),
        };
        if let Some(value) = value.ok().flatten().filter(|value| *value > 0.0) {
            logs.entry(*repeat as usize / 2).or_default().push(value.ln());
        }
    }
    let whole = logs.into_iter().filter(|(_, logs)| logs.len() == 2);
    whole.map(|(block, logs)| (block, f64::midpoint(logs[0], logs[1]))).collect()
}

/// What carried the bytes, where that differs.
fn carriers<K>(
    test: &str,
    before: &BTreeMap<K, &CaseResult<'_>>,
    after: &BTreeMap<K, &CaseResult<'_>>,
) -> Vec<(String, String, String)> {
    let words = |side: &BTreeMap<K, &CaseResult<'_>>| {
        let mut words: Vec<&str> = side.values().filter_map(|r| Some(r.link?.transport.word())).collect();
        words.sort_unstable();
        words.dedup();
        words.join(", ")
    };
    let (before, after) = (words(before), words(after));
    if before == after || before.is_empty() || after.is_empty() {
        return Vec::new();
    }
    vec![(test.to_owned(), before, after)]
}
