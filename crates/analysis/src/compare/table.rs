//! The values of both sides by case, and the reasons for missing values.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use indexmap::IndexSet;
use jiff::Timestamp;
use railgauge_model::border::text::path_text;
use railgauge_stats::compare::Variant;
use railgauge_wire::{Metric, Op, WriteLatency};

use super::{
    Comparison, LeftOut, OneSided, RunSummary, Side, When,
    configuration::{Seen, configuration},
};
use crate::{
    history::{Run, Subject},
    row::Reading,
};

#[derive(Debug, Clone, Default)]
struct Has {
    /// Number of the run and natural logarithm.
    values: Vec<(usize, f64)>,
    refused: Vec<usize>,
}

/// Runs of one side, or blocks, that should have a value of a case and have none.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Lack {
    pub runs: usize,
    /// Runs that do not plan it, but should by the other side's share; none if plans rotate.
    pub unplanned: usize,
    /// Why the first value is missing.
    pub why: String,
}

/// The order of additions does not matter.
#[derive(Debug, Default)]
pub struct Table {
    subjects: IndexSet<Subject>,
    planned: Vec<[usize; 2]>,
    rotates: bool,
    cases: BTreeMap<(usize, Metric), [Has; 2]>,
    runs: [Vec<(Timestamp, RunSummary)>; 2],
    reasons: IndexSet<String>,
    carriers: BTreeMap<String, [BTreeSet<String>; 2]>,
    groups: BTreeMap<String, Vec<String>>,
    seen: [Option<(Seen, Seen)>; 2],
}

impl Table {
    pub fn add(&mut self, when: When, mut run: Run) {
        let side = when as usize;
        let hosts = run.hosts.len();
        self.see(side, Seen::take(&mut run));
        let subjects: Vec<usize> =
            Subject::take(&mut run).into_iter().map(|subject| self.subjects.insert_full(subject).0).collect();
        self.planned.resize(self.subjects.len(), [0, 0]);
        subjects.iter().for_each(|&subject| self.planned[subject][side] += 1);
        self.rotates |= run.plan.rotate.is_some();
        let number = self.runs[side].len();
        let mut summary = RunSummary {
            directory: path_text(&run.path),
            run_id: run.run_id,
            started: run.started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
            plan: run.plan.name,
            plan_hash: run.plan_hash,
            version: run.version,
            imported: run.imported,
            hosts,
            values: 0,
            left_out: 0,
            strays: 0,
        };
        let mut carried: BTreeSet<(usize, &str)> = BTreeSet::new();
        for Reading { case, metric, value, transport, .. } in &run.readings {
            // The reader of a run drops what was not planned.
            let Some(&subject) = usize::try_from(*case).ok().and_then(|case| subjects.get(case)) else { continue };
            let has = &mut self.cases.entry((subject, *metric)).or_default()[side];
            match value {
                Ok(value) => {
                    has.values.push((number, value.ln()));
                    carried.insert((subject, transport));
                    summary.values += 1;
                }
                Err(reason) => {
                    has.refused.push(self.reasons.insert_full(reason.to_string()).0);
                    summary.left_out += 1;
                }
            }
        }
        self.carry(side, &carried);
        self.groups.extend(run.plan.groups);
        self.runs[side].push((run.started, summary));
    }

    fn see(&mut self, side: usize, seen: Seen) {
        self.seen[side] = Some(match self.seen[side].take() {
            None => (seen.clone(), seen),
            Some((first, last)) if seen.started < first.started => (seen, last),
            Some((first, last)) if seen.started > last.started => (first, seen),
            Some(known) => known,
        });
    }

    fn carry(&mut self, side: usize, carried: &BTreeSet<(usize, &str)>) {
        let used: HashMap<usize, &str> = carried.iter().copied().collect();
        for (number, subject) in self.subjects.iter().enumerate() {
            if let Some(transport) = used.get(&number) {
                let sides = self.carriers.entry(subject.test.to_string()).or_default();
                sides[side].insert((*transport).to_owned());
            }
        }
    }

    pub(super) fn finish(self) -> Collected {
        let subjects: Vec<Subject> = self.subjects.into_iter().collect();
        let reasons = self.reasons;
        let mut left_out = Refused::default();
        let (mut pairs, mut one_sided) = (Vec::new(), Vec::new());
        let mut methods: HashMap<Subject, Vec<Option<WriteLatency>>> = HashMap::new();
        for subject in subjects.iter().filter(|subject| subject.times_writes()) {
            methods.entry(subject.in_any_way()).or_default().push(subject.write_latency);
        }
        // Another timing method for the same writes.
        let method = |subject: &Subject| {
            let known = subject.times_writes().then(|| methods.get(&subject.in_any_way())).flatten()?;
            known.iter().find(|method| **method != subject.write_latency).copied()
        };
        // Lazy, because most comparisons do not need it.
        let ops = LazyCell::new(|| {
            let mut ops: HashMap<Subject, Vec<(usize, Op)>> = HashMap::new();
            for (subject, planned) in subjects.iter().zip(&self.planned) {
                let sides = (0..2).filter(|&side| planned[side] > 0);
                ops.entry(subject.in_any_op()).or_default().extend(sides.map(|side| (side, subject.cell.op)));
            }
            ops
        });
        let all = self.runs.each_ref().map(Vec::len);
        let unplanned = |planned: [usize; 2], side: usize| {
            let other = 1 - side;
            // The same share of this side's runs as of the other's, rounded down.
            let expected = planned[other] * all[side] / all[other].max(1);
            if self.rotates { 0 } else { expected.saturating_sub(planned[side]) }
        };
        for ((number, metric), sides) in self.cases {
            let subject = &subjects[number];
            for (when, has) in When::ALL.iter().copied().zip(&sides) {
                for &reason in &has.refused {
                    left_out.add(when, &reasons[reason], 1, || subject.name(metric));
                }
            }
            let has = sides.each_ref().map(|has| !has.values.is_empty());
            if has == [true, true] {
                let lack = [0, 1].map(|side: usize| Lack {
                    runs: self.planned[number][side].saturating_sub(sides[side].values.len()),
                    unplanned: unplanned(self.planned[number], side),
                    why: sides[side].refused.first().map_or_else(String::new, |&reason| reasons[reason].clone()),
                });
                pairs.push(Pair { subject: number, metric, sides: sides.map(|has| has.values), lack });
                continue;
            }
            let only = only(has);
            let why = |when: When| match sides[when as usize].refused.first() {
                Some(&reason) => reasons[reason].clone(),
                None if self.planned[number][when as usize] > 0 => "no value".to_owned(),
                None => match method(subject) {
                    Some(method) => other_method(method),
                    None => other_op(&ops, subject, when).unwrap_or_else(|| "no run of that side plans it".to_owned()),
                },
            };
            let reason = match only {
                Some(When::Before) => why(When::After),
                Some(When::After) => why(When::Before),
                None if why(When::Before) == why(When::After) => why(When::After),
                None => format!("before: {}; after: {}", why(When::Before), why(When::After)),
            };
            one_sided.push(OneSided { name: subject.name(metric), only, reason });
        }
        let times = self.runs.each_ref().map(|runs| runs.iter().map(|(time, _)| *time).collect::<Vec<_>>());
        let (order, places) = order(&self.runs);
        let [before, after] = self.runs.map(|mut runs| {
            runs.sort_by(|(time, run), (other, another)| (time, &run.run_id).cmp(&(other, &another.run_id)));
            Side { runs: runs.into_iter().map(|(_, summary)| summary).collect() }
        });
        let carriers = self.carriers.into_iter().filter(|(_, [a, b])| !a.is_empty() && !b.is_empty() && a != b);
        let words = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(", ");
        let comparison = Comparison {
            alternating: alternating(&times),
            configuration: configuration(&self.seen),
            carriers: carriers.map(|(test, [a, b])| (test, words(a), words(b))).collect(),
            one_sided,
            left_out: left_out.finish(),
            before,
            after,
            ..Comparison::default()
        };
        Collected { runs: all, order, places, groups: self.groups, subjects, pairs, comparison }
    }
}

/// The side with values; `None` if neither has any, or both have values of different kinds.
pub(super) const fn only(has: [bool; 2]) -> Option<When> {
    match has {
        [true, false] => Some(When::Before),
        [false, true] => Some(When::After),
        _ => None,
    }
}

/// Values that were left out, by side and reason.
#[derive(Default)]
pub(super) struct Refused(BTreeMap<(When, String), LeftOut>);

impl Refused {
    pub(super) fn add(&mut self, side: When, reason: &str, values: usize, example: impl FnOnce() -> String) {
        let first = || LeftOut { side, reason: reason.to_owned(), values: 0, example: example() };
        self.0.entry((side, reason.to_owned())).or_insert_with(first).values += values;
    }

    /// The most frequent reason first.
    pub(super) fn finish(self) -> Vec<LeftOut> {
        let mut all: Vec<LeftOut> = self.0.into_values().collect();
        all.sort_by_key(|out| std::cmp::Reverse(out.values));
        all
    }
}

impl Lack {
    pub(super) const fn values(&self) -> usize {
        self.runs + self.unplanned
    }
}

pub(super) struct Pair {
    pub subject: usize,
    pub metric: Metric,
    /// Number of the run in its side, or of the block, and natural logarithm of the value.
    pub sides: [Vec<(usize, f64)>; 2],
    pub lack: [Lack; 2],
}

pub(super) struct Collected {
    pub runs: [usize; 2],
    /// In the order of the runs; empty for blocks.
    pub order: Vec<Variant>,
    /// Positions of each side's runs in that order.
    pub places: [Vec<usize>; 2],
    pub groups: BTreeMap<String, Vec<String>>,
    pub subjects: Vec<Subject>,
    pub pairs: Vec<Pair>,
    /// The comparison so far: all that follows without a judgement.
    pub comparison: Comparison,
}

impl Collected {
    /// In the order of the runs; `None` where a run has none.
    pub(super) fn in_order(&self, pair: &Pair) -> Vec<Option<f64>> {
        let mut values = vec![None; self.order.len()];
        for (side, places) in pair.sides.iter().zip(&self.places) {
            side.iter().for_each(|(run, value)| values[places[*run]] = Some(*value));
        }
        values
    }

    /// The side of a run by its position in that order, and its number within the side.
    pub(super) fn run_at(&self, place: usize) -> (When, usize) {
        let side = self.order[place];
        let number = self.order[..place].iter().filter(|one| **one == side).count();
        (if side == Variant::A { When::Before } else { When::After }, number)
    }
}

/// Whether a side moves the same bytes between the same ends by another operation. `ops` are the sides and operations of subjects.
fn other_op(ops: &HashMap<Subject, Vec<(usize, Op)>>, subject: &Subject, when: When) -> Option<String> {
    let is_other = |&&(side, op): &&(usize, Op)| side == when as usize && op != subject.cell.op;
    let (_, op) = ops.get(&subject.in_any_op())?.iter().find(is_other)?;
    Some(format!("that side plans it with `op = \"{op}\"`, which is not comparable"))
}

/// Why writes with different timing methods are not compared; `method` is the other side's.
pub(super) fn other_method(method: Option<WriteLatency>) -> String {
    match method {
        Some(WriteLatency::Poll) => "that side polls the last byte in memory, which is not comparable",
        Some(WriteLatency::Immediate) => "that side writes with immediate data, which is not comparable",
        None => "that side does not say whether it polled memory or used immediate data, which are not comparable",
    }
    .to_owned()
}

/// In order of time, with each side's positions. Runs that started at once are ordered by name, so that swapped sides give the same result.
fn order(runs: &[Vec<(Timestamp, RunSummary)>; 2]) -> (Vec<Variant>, [Vec<usize>; 2]) {
    let of = |side: usize| {
        runs[side].iter().enumerate().map(move |(run, (time, summary))| (*time, &summary.run_id[..], side, run))
    };
    let mut all: Vec<(Timestamp, &str, usize, usize)> = of(0).chain(of(1)).collect();
    all.sort_unstable();
    let mut places = runs.each_ref().map(|runs| vec![0; runs.len()]);
    all.iter().enumerate().for_each(|(place, &(_, _, side, run))| places[side][run] = place);
    (all.iter().map(|&(_, _, side, _)| if side == 0 { Variant::A } else { Variant::B }).collect(), places)
}

fn alternating([before, after]: &[Vec<Timestamp>; 2]) -> bool {
    let span = |times: &[Timestamp]| times.iter().min().copied().zip(times.iter().max().copied());
    let overlap = span(before).zip(span(after));
    overlap.is_some_and(|((first, last), (start, end))| start < last && first < end)
}
