//! Tests, or sizes and pairs of them, of whose main values nothing is demanded: a pass says nothing of them.

use std::collections::BTreeSet;

use railgauge_model::plan::{
    headline,
    model::{Expectation, Test},
};
use railgauge_wire::{terms::Metric, unit::Bytes};
use serde::Serialize;

use super::{Kind, Status, Verdict, Verdicts};
use crate::analysis::{
    journal::Journal,
    words::{count, size},
};

/// Tests that are named.
const NAMED: usize = 8;
/// Tests that are named in few words.
const FEW: usize = 3;
/// Sizes of a test that are named.
const SIZES: usize = 4;

/// Of which values of a test the plan demands nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoLimit {
    /// Name of the test.
    pub test: String,
    /// Of what, with the test's name: `bw`, `bw at 4 KiB`, `bandwidth of bw`.
    pub of: String,
    /// Whether it is of some of its sizes.
    #[serde(skip)]
    of_sizes: bool,
}

/// Of which values the plan demands nothing; empty where it has limits for all. Tests that never ran have no values.
pub(super) fn unlimited(journal: &Journal, verdicts: &[Verdict]) -> Vec<NoLimit> {
    let has_run = |test: &&Test| {
        let of_test = |one: &&Verdict| one.kind == Kind::EveryCase && one.test == test.name;
        verdicts.iter().find(of_test).is_some_and(|one| one.status != Status::NotRun)
    };
    let found = journal.plan.tests.iter().filter(has_run).filter_map(|test| Lacking::of(journal, test));
    let told = |one: Lacking<'_>| NoLimit {
        test: one.test.name.clone(),
        of: one.told(),
        of_sizes: matches!(one.what, What::Sizes(_) | What::Elsewhere(_)),
    };
    found.map(told).collect()
}

impl Verdicts {
    /// In a sentence, of which values the plan demands nothing; `None` where it has limits for all.
    pub fn unlimited(&self) -> Option<String> {
        let listed = listed(&self.no_limit, NAMED)?;
        let whose = match self.no_limit.as_slice() {
            all if all.iter().any(|one| one.of_sizes) => "these",
            [_] => "its",
            _ => "their",
        };
        // Whether they have any is said elsewhere.
        Some(format!("The plan sets no limit for {listed}: {whose} values are not judged."))
    }

    /// The same in few words, to be added to the sentence of a pass: `no limit covers bw at 4 KiB`, `no limit is set`.
    pub fn uncovered(&self) -> Option<String> {
        let listed = listed(&self.no_limit, FEW)?;
        let demands = [Kind::Expectation, Kind::Preflight, Kind::Soak];
        match self.verdicts.iter().any(|verdict| demands.contains(&verdict.kind)) {
            true => Some(format!("no limit covers {listed}")),
            false => Some("no limit is set: no value is judged".to_owned()),
        }
    }
}

fn listed(found: &[NoLimit], named: usize) -> Option<String> {
    // Sizes have commas between them.
    let (comma, and) = if found.iter().any(|one| one.of_sizes) { ("; ", "; and") } else { (", ", " and") };
    let shown = found.iter().take(named).map(|one| one.of.as_str()).collect::<Vec<_>>().join(comma);
    match found.len() {
        0 => None,
        all if all <= named => Some(shown),
        all => Some(format!("{shown}{and} {}", count(all - named, "more test"))),
    }
}

/// A test, and for what of it there is no limit.
struct Lacking<'p> {
    test: &'p Test,
    what: What,
}

enum What {
    /// Any of its values.
    All,
    /// What it was written to measure; there are limits for something beside that.
    Main,
    /// These sizes.
    Sizes(Vec<Bytes>),
    /// At these sizes, pairs that are not of the groups and rails that its limits name.
    Elsewhere(Vec<Bytes>),
}

impl<'p> Lacking<'p> {
    fn of(journal: &Journal, test: &'p Test) -> Option<Self> {
        let limits: Vec<&Expectation> = test.expect.iter().filter(|wanted| is_main(wanted.metric)).collect();
        let at = |size: &Bytes| {
            let size = *size;
            let is_of = move |wanted: &&&Expectation| wanted.sizes.is_none_or(|(from, to)| (from..=to).contains(&size));
            limits.iter().filter(is_of)
        };
        let without = |covers: &dyn Fn(&Bytes) -> bool| -> Vec<Bytes> {
            test.sizes.iter().filter(|size| !covers(size)).copied().collect()
        };
        let open = without(&|size| at(size).next().is_some());
        let cases = || journal.cases.iter().filter(|case| *case.test == *test.name);
        let rails: BTreeSet<u32> = cases().map(|case| case.flow.from.rail).collect();
        let has_all = |group: &String| {
            let hosts = journal.plan.groups.get(group);
            hosts.is_some_and(|hosts| journal.plan.hosts.iter().all(|host| hosts.contains(&host.name)))
        };
        let everywhere = |size: &Bytes| {
            let limits = || at(size).filter(|wanted| wanted.group.as_ref().is_none_or(has_all));
            let named: BTreeSet<u32> = limits().flat_map(|wanted| wanted.rails.iter().copied()).collect();
            limits().any(|wanted| wanted.rails.is_empty()) || rails.is_subset(&named) && !named.is_empty()
        };
        let what = match () {
            () if test.expect.is_empty() => What::All,
            () if limits.is_empty() => What::Main,
            () if !open.is_empty() && open.len() == test.sizes.len() => What::Main,
            () if !open.is_empty() => What::Sizes(open),
            () => What::Elsewhere(Some(without(&everywhere)).filter(|sizes| !sizes.is_empty())?),
        };
        Some(Self { test, what })
    }

    fn told(&self) -> String {
        let name = &self.test.name;
        let metric = headline(self.test.metric, self.test.op).name();
        match &self.what {
            What::All => name.clone(),
            What::Main => format!("{metric} of {name}"),
            What::Sizes(sizes) => format!("{name} at {}", list(sizes)),
            What::Elsewhere(sizes) => {
                format!("{name} at {} outside of the groups and rails that its limits name", list(sizes))
            }
        }
    }
}

fn list(sizes: &[Bytes]) -> String {
    let more = sizes.len().saturating_sub(SIZES);
    let more = if more > 0 { format!(" and {}", count(more, "more size")) } else { String::new() };
    format!("{}{more}", sizes.iter().take(SIZES).map(|one| size(*one)).collect::<Vec<_>>().join(", "))
}

/// Whether a limit for it says whether a test is good: what a test was written to measure, or what cannot be good where that is bad.
const fn is_main(metric: Metric) -> bool {
    !matches!(
        metric,
        Metric::CpuTimePerGib
            | Metric::CpuTimePerGibRemote
            | Metric::BesideBandwidth
            | Metric::LatencyMin
            | Metric::LatencyStdev
            | Metric::StepAlone
    )
}
