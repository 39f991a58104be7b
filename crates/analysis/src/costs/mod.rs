//! The cost of a test's settings: each value of `[test.configure]`, or each environment of a collective, against the
//! first one, repeat by repeat.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_model::{
    plan::model::Test,
    schedule::{Cell, Flow},
};
use railgauge_stats::robust::median;
use railgauge_wire::{Better, Bytes, Metric, TestMetric};
use serde::Serialize;

use super::{
    rows::by_repeat,
    together::{self, Loss, is_telling},
    words::{count, short, size},
};
use crate::case::CaseResult;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The first value, with which the others are compared.
    Reference,
    Costs,
    /// The interval lies below zero.
    Gains,
    NoDifference,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Mean cost in percent of the first value: the loss where more is better, the rise where less is.
    pub cost_percent: Option<f64>,
    /// 95 % for all such comparisons of the test and metric together.
    pub interval_percent: Option<(f64, f64)>,
    pub answer: Answer,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why_unknown: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueCost {
    pub test: String,
    pub value: String,
    pub reference: String,
    pub metric: Metric,
    pub unit: String,
    pub size_bytes: Bytes,
    /// Distinguishes it from others of the test: `4 queue pairs`; mostly empty.
    pub variant: String,
    pub links: usize,
    pub of: usize,
    pub median: Option<f64>,
    /// Least and most of the links' medians; for a single link, of its repeats.
    pub range: Option<(f64, f64)>,
    pub reference_median: Option<f64>,
    #[serde(flatten)]
    pub compared: Compared,
    pub carried_by: String,
    /// The first packet counter that shows an effect of the value, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<String>,
    pub flows: Vec<FlowCost>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowCost {
    /// The flow, or the scope of its sum: `gpu01:0 → gpu02:0`.
    pub flow: String,
    pub case: u64,
    pub reference_case: Option<u64>,
    pub median: Option<f64>,
    #[serde(flatten)]
    pub compared: Compared,
}

/// The settings to compare in a test, the reference first: values of `[test.configure]`, or environments of a
/// collective, by the variables that differ.
fn settings(test: &Test) -> Vec<String> {
    match &test.collective {
        Some(collective) if test.values().is_empty() && collective.env.len() > 1 => {
            collective.env.iter().map(|env| label(env, &collective.env)).collect()
        }
        _ => test.values().to_vec(),
    }
}

fn label(env: &BTreeMap<String, String>, all: &[BTreeMap<String, String>]) -> String {
    let differs = |name: &String| all.iter().any(|other| other.get(name) != all[0].get(name));
    let words = |(name, value): (&String, &String)| format!("{name}={value}");
    env.iter().filter(|(name, _)| differs(name)).map(words).collect::<Vec<_>>().join(" ")
}

fn setting(test: &Test, cell: &Cell) -> (String, Cell) {
    let mut other = Cell { applied: None, ..cell.clone() };
    if !test.values().is_empty() {
        return (cell.applied.as_deref().unwrap_or_default().to_owned(), other);
    }
    let env = other.manner.as_mut().map(|manner| std::mem::take(&mut manner.env)).unwrap_or_default();
    (label(&env, test.collective.as_ref().map_or(&[], |collective| &collective.env)), other)
}

/// In the order of the plan: test, metric, what is measured, value.
pub fn costs(tests: &[Test], results: &[CaseResult<'_>]) -> Vec<ValueCost> {
    let with_values = tests.iter().filter(|test| !settings(test).is_empty());
    let of = |test: &Test| {
        let own: Vec<&CaseResult<'_>> = results.iter().filter(|result| *result.case.test == *test.name).collect();
        of_test(test, &own)
    };
    with_values.flat_map(of).collect()
}

/// The headline's metric first.
fn metrics(test: &Test) -> &'static [Metric] {
    match (test.metric, test.op.is_collective()) {
        (TestMetric::Bandwidth, false) if test.at_once() => &[Metric::Bandwidth, Metric::TotalBandwidth],
        (TestMetric::Bandwidth, false) => &[Metric::Bandwidth, Metric::CpuTimePerGib],
        (TestMetric::Bandwidth, true) => &[Metric::Busbw],
        (TestMetric::Latency, _) if test.transport.is_within_host() => &[Metric::MemoryLatency],
        (TestMetric::Latency, _) => &[Metric::LatencyP50, Metric::LatencyP99, Metric::LatencyP999],
        (TestMetric::Compute, _) => &[Metric::Compute],
        (TestMetric::Step, _) => &[Metric::StepTime, Metric::StepExposed],
    }
}

type Repeats = BTreeMap<u32, f64>;

struct OfLink<'r> {
    result: &'r CaseResult<'r>,
    own: Repeats,
    reference: Option<(u64, Repeats)>,
}

struct Group<'r> {
    value: String,
    reference: String,
    links: Vec<OfLink<'r>>,
}

impl Group<'_> {
    fn is_reference(&self) -> bool {
        self.value == self.reference
    }
}

fn of_test(test: &Test, results: &[&CaseResult<'_>]) -> Vec<ValueCost> {
    let mut all = Vec::new();
    for &metric in metrics(test) {
        let groups = groups(test, results, metric);
        // This transport lacks the metric, or the windows are too short for it.
        if groups.iter().flat_map(|group| &group.links).all(|link| link.own.is_empty()) && metric != metrics(test)[0] {
            continue;
        }
        let judged = || groups.iter().filter(|group| !group.is_reference());
        let looks = (judged().count(), judged().map(|group| group.links.len()).sum());
        all.extend(groups.iter().filter_map(|group| cost(test, group, metric, looks)));
    }
    all
}

/// Cell by cell in the test's order, and value by value in each cell.
fn groups<'r>(test: &'r Test, results: &[&'r CaseResult<'r>], metric: Metric) -> Vec<Group<'r>> {
    let numbers = |result: &CaseResult<'_>| -> Repeats {
        let is_number = |(_, value): &(u32, f64)| *value > 0.0 && value.is_finite();
        let is_trusted = match test.at_once() {
            true => is_telling(result),
            // A flow alone cannot fill a port: a first value with packet loss is not a reference.
            false => result.state.is_trusted() && !result.loses(),
        };
        if is_trusted { by_repeat(result, metric).filter(is_number).collect() } else { Repeats::new() }
    };
    let mut cells: Vec<Vec<(String, &CaseResult<'_>)>> = Vec::new();
    let mut places: HashMap<Cell, usize> = HashMap::new();
    for result in results.iter().copied().filter(|result| together::has_row(result, metric)) {
        let (setting, cell) = setting(test, &result.case.cell);
        let place = *places.entry(cell).or_insert(cells.len());
        if place == cells.len() {
            cells.push(Vec::new());
        }
        cells[place].push((setting, result));
    }
    let settings = settings(test);
    let first = settings.first().cloned().unwrap_or_default();
    let mut groups = Vec::new();
    for members in &cells {
        let at =
            |value: &str| members.iter().filter(|(setting, _)| setting == value).map(|(_, result)| *result).collect();
        let of_first: Vec<&CaseResult<'_>> = at(&first);
        let reference: BTreeMap<(u32, &Flow), (u64, Repeats)> = of_first
            .iter()
            .map(|result| ((result.case.round, &result.case.flow), (result.case.id, numbers(result))))
            .collect();
        for value in &settings {
            let link = |result: &'r CaseResult<'r>| OfLink {
                result,
                own: numbers(result),
                reference: reference.get(&(result.case.round, &result.case.flow)).cloned(),
            };
            let own: Vec<&CaseResult<'_>> = at(value);
            let links: Vec<OfLink<'r>> = own.into_iter().map(link).collect();
            if !links.is_empty() {
                groups.push(Group { value: value.clone(), reference: first.clone(), links });
            }
        }
    }
    groups
}

fn percent(metric: Metric, own: f64, reference: f64) -> f64 {
    match metric.better() {
        Better::Higher => 100.0 * (1.0 - own / reference),
        Better::Lower => 100.0 * (own / reference - 1.0),
    }
}

impl OfLink<'_> {
    fn costs(&self, metric: Metric) -> Repeats {
        let reference = self.reference.as_ref().map(|(_, repeats)| repeats);
        let both = self.own.iter().filter_map(|(repeat, own)| Some((*repeat, *own, *reference?.get(repeat)?)));
        both.map(|(repeat, own, reference)| (repeat, percent(metric, own, reference))).collect()
    }

    fn median(&self) -> Option<f64> {
        median(&self.own.values().copied().collect::<Vec<_>>()).ok()
    }

    fn why(&self, both: usize) -> String {
        if !is_telling(self.result) {
            return self.result.error().unwrap_or_else(|| self.result.state.word().to_owned());
        }
        if self.reference.as_ref().is_none_or(|(_, repeats)| repeats.is_empty()) {
            return "no trusted number at the first value".to_owned();
        }
        too_few(both)
    }
}

fn too_few(both: usize) -> String {
    format!("{} with both figures, and three are needed to separate a cost from noise", count(both, "repeat"))
}

/// `looks` comparisons in all; `why` says why nothing is known.
fn compared(costs: &[f64], looks: usize, is_reference: bool, why: impl FnOnce() -> String) -> Compared {
    let loss = if is_reference { None } else { Loss::of_repeats(costs, looks) };
    let answer = match loss.map(|loss| loss.interval) {
        None if is_reference => Answer::Reference,
        None => Answer::Unknown,
        Some((low, _)) if low > 0.0 => Answer::Costs,
        Some((_, high)) if high < 0.0 => Answer::Gains,
        Some(_) => Answer::NoDifference,
    };
    Compared {
        cost_percent: loss.map(|loss| loss.percent),
        interval_percent: loss.map(|loss| loss.interval),
        answer,
        why_unknown: if answer == Answer::Unknown { why() } else { String::new() },
    }
}

/// `looks` is the number of groups and links judged in this metric.
fn cost(test: &Test, group: &Group<'_>, metric: Metric, looks: (usize, usize)) -> Option<ValueCost> {
    let (first, is_reference) = (group.links.first()?, group.is_reference());
    let costs: Vec<Repeats> = group.links.iter().map(|link| link.costs(metric)).collect();
    let counted: Vec<&Repeats> = costs.iter().filter(|repeats| !repeats.is_empty()).collect();
    // Means over different links would not be comparable.
    let common = counted.iter().map(|repeats| repeats.keys().copied().collect::<BTreeSet<u32>>());
    let common = common.reduce(|a, b| a.intersection(&b).copied().collect()).unwrap_or_default();
    let mean = |repeat: &u32| counted.iter().map(|repeats| repeats[repeat]).sum::<f64>() / counted.len() as f64;
    let of_repeats: Vec<f64> = common.iter().map(mean).collect();
    let why = || if counted.is_empty() { first.why(0) } else { too_few(of_repeats.len()) };
    let medians: Vec<f64> = group.links.iter().filter_map(OfLink::median).collect();
    let spread: Vec<f64> = match group.links.as_slice() {
        [only] => only.own.values().copied().collect(),
        _ => medians.clone(),
    };
    let range = spread.iter().copied().reduce(f64::min).zip(spread.iter().copied().reduce(f64::max));
    let references = group.links.iter().filter_map(|link| {
        let (_, repeats) = link.reference.as_ref()?;
        median(&repeats.values().copied().collect::<Vec<_>>()).ok()
    });
    let flow = |(link, repeats): (&OfLink<'_>, &Repeats)| {
        let of_repeats: Vec<f64> = repeats.values().copied().collect();
        FlowCost {
            flow: together::name(link.result, metric),
            case: link.result.case.id,
            reference_case: link.reference.as_ref().map(|(case, _)| *case),
            median: link.median(),
            compared: compared(&of_repeats, looks.1, is_reference, || link.why(of_repeats.len())),
        }
    };
    let carriers: BTreeSet<&str> =
        group.links.iter().filter_map(|link| Some(link.result.link?.transport.word())).collect();
    Some(ValueCost {
        test: test.name.clone(),
        value: group.value.clone(),
        reference: group.reference.clone(),
        metric,
        unit: metric.unit().to_owned(),
        size_bytes: first.result.case.cell.size,
        variant: if test.values().is_empty() {
            first.result.variant_in_any_environment()
        } else {
            first.result.variant_at_any_value()
        },
        links: counted.len(),
        of: group.links.len(),
        median: median(&medians).ok(),
        range,
        reference_median: median(&references.collect::<Vec<_>>()).ok(),
        compared: compared(&of_repeats, looks.0, is_reference, why),
        carried_by: carriers.into_iter().collect::<Vec<_>>().join(", "),
        packets: group.links.iter().find_map(|link| Some(link.result.loss()?.1.to_string())),
        flows: group.links.iter().zip(&costs).map(flow).collect(),
    })
}

impl ValueCost {
    pub fn words(&self) -> String {
        let Self { value, reference, unit, compared, .. } = self;
        let metric = self.metric.word().replace('_', " ");
        let place = [size(self.size_bytes), self.variant.clone()].into_iter().filter(|words| !words.is_empty());
        let some = if self.links == self.of { String::new() } else { format!("{} of ", self.links) };
        let place = format!("{} over {some}{}", place.collect::<Vec<_>>().join(", "), count(self.of, "link"));
        let figures = match (self.median, self.reference_median) {
            (Some(own), Some(first)) => {
                format!(": {} {unit}, and {} {unit} at {reference}", short(own), short(first))
            }
            _ => String::new(),
        };
        let packets = self.packets.as_ref().map_or_else(String::new, |packets| format!("; {packets}"));
        let (sign, what) = if compared.answer == Answer::Gains { (-1.0, "gains") } else { (1.0, "costs") };
        let cost = short(sign * compared.cost_percent.unwrap_or_default());
        let interval = compared.interval_percent.map_or_else(String::new, |(low, high)| {
            let (low, high) = if sign < 0.0 { (-high, -low) } else { (low, high) };
            format!(" ({} to {} %)", short(low), short(high))
        });
        match compared.answer {
            Answer::Costs | Answer::Gains => {
                format!("{value} {what} {cost} %{interval} in {metric} at {place}{figures}{packets}")
            }
            Answer::NoDifference => {
                format!("{value} makes no difference in {metric} at {place}: {cost} %{interval}{figures}{packets}")
            }
            Answer::Reference => format!("{value} is what the others are compared with at {place}"),
            Answer::Unknown => {
                let why = &compared.why_unknown;
                format!("what {value} costs in {metric} at {place} is not known: {why}{figures}{packets}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
