//! Which parts are named, in which state: each once for all tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_model::schedule::Flow;

use crate::{
    case::CaseResult,
    localise::{Localisation, Named, Standing},
};

#[derive(Debug, Clone, Default)]
pub struct Part<'a> {
    pub name: &'a str,
    pub standing: Standing,
    pub waived: bool,
    /// In the order of the tests.
    pub evidence: Vec<Evidence<'a>>,
    /// A difference of logarithms, negative where worse: the largest of all tests.
    pub effect: f64,
    flows: BTreeMap<&'a str, BTreeSet<&'a Flow>>,
    cases: BTreeMap<&'a str, BTreeSet<u64>>,
}

#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub test: &'a Localisation,
    pub named: &'a Named,
}

impl Part<'_> {
    pub fn is_bad(&self) -> bool {
        self.standing != Standing::Cleared
    }

    /// In words: `suspect`, `confirmed, waived`.
    pub fn state(&self) -> String {
        let waived = if self.waived { ", waived" } else { "" };
        format!("{}{waived}", self.standing.words())
    }

    pub fn speaks(&self, test: &str, case: u64) -> bool {
        self.cases.get(test).is_some_and(|cases| cases.contains(&case))
    }

    /// Empty for a part that many hosts share.
    pub fn hosts(&self) -> &[String] {
        self.evidence.first().map_or(&[], |evidence| &evidence.named.hosts)
    }

    pub fn is_named_by(&self, test: &str) -> bool {
        self.cases.contains_key(test)
    }

    pub(super) fn is_path(&self) -> bool {
        self.evidence.iter().any(|evidence| evidence.named.kind == "path")
    }

    pub fn ends(&self) -> impl Iterator<Item = (&str, Option<u32>)> {
        let ends =
            self.evidence.iter().map(|evidence| evidence.named).filter(|named| matches!(named.kind, "host" | "nic"));
        ends.flat_map(|named| named.hosts.iter().map(|host| (host.as_ref(), named.rail)))
    }

    pub(super) fn flows_of(&self, test: &str) -> impl Iterator<Item = &Flow> {
        self.flows.get(test).into_iter().flatten().copied()
    }

    pub fn cases(&self, test: &str) -> impl Iterator<Item = u64> {
        self.cases.get(test).into_iter().flatten().copied()
    }
}

pub(super) fn parts<'a>(found: &'a [Localisation], results: &'a [CaseResult<'a>]) -> Vec<Part<'a>> {
    let mut order: Vec<Part<'a>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (test, named) in found.iter().flat_map(|test| test.suspects.iter().map(move |named| (test, named))) {
        let at = *known.entry(&named.name).or_insert_with(|| {
            let (name, standing, waived) = (&*named.name, named.standing, named.waived);
            order.push(Part { name, standing, waived, ..Part::default() });
            order.len() - 1
        });
        let part = &mut order[at];
        part.standing = part.standing.min(named.standing);
        part.evidence.push(Evidence { test, named });
        // For every metric, a named part is this much worse than its peers.
        let ratio = 1.0 + named.change_percent / 100.0;
        part.effect = part.effect.min(if ratio > 0.0 { -ratio.ln().abs() } else { f64::NEG_INFINITY });
        let of = |case: &u64| usize::try_from(*case).ok().and_then(|case| results.get(case));
        part.flows.entry(&test.test).or_default().extend(named.cases.iter().filter_map(of).map(|r| &r.case.flow));
        part.cases.entry(&test.test).or_default().extend(&named.cases);
    }
    order.sort_by(|a, b| a.standing.cmp(&b.standing).then(a.effect.total_cmp(&b.effect)));
    order
}
