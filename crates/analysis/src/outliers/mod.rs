//! What stands out in a run. Only this module decides it for links, hosts and parts; banner, list of parts, tables,
//! matrices, legends and texts render its results, so that they cannot disagree.
//!
//! All distances are differences of natural logarithms from the centre, **negative where worse**, for latencies as for
//! bandwidths: only `links` sets the sign.

mod index;
mod links;
mod look;
mod parts;

use foldhash::HashMap;
use railgauge_model::{plan, schedule::Flow};
use railgauge_wire::{Better, Bytes, Metric};

use super::{
    journal::Journal,
    localise::{Localisation, TwoClusters},
    row::Row,
};
use crate::case::CaseResult;

pub use links::{Level, Link};
pub use look::{Grade, Look, STEPS};
pub use parts::{Evidence, Part};

#[derive(Debug, Clone)]
pub struct Outliers<'a> {
    pub tests: Vec<OfTest<'a>>,
    /// By state and then by effect, the worst first; each once for all tests.
    pub parts: Vec<Part<'a>>,
    pub clusters: Vec<(&'a Localisation, &'a TwoClusters)>,
    pub found: &'a [Localisation],
}

#[derive(Debug, Clone)]
pub struct OfTest<'a> {
    pub test: &'a str,
    pub metric: Metric,
    /// In the order of the cases.
    pub links: Vec<Link<'a>>,
    /// Positions of outliers in `links`, farthest from the centre first.
    pub worst: Vec<usize>,
    /// The cell shown large: that of this test's worst named part, otherwise that of the worst link, otherwise the
    /// largest size of a bandwidth or the smallest of a latency. `None` without cases.
    pub focus: Option<(String, Bytes)>,
    /// Positions in `links` of flows that stand out at any size, each at its worst, with the number of sizes.
    flows: Vec<(usize, usize)>,
}

/// `rows` are those of `results`; `found` is the result for parts.
pub fn outliers<'a>(
    journal: &'a Journal,
    results: &'a [CaseResult<'a>],
    rows: &'a [Row],
    found: &'a [Localisation],
) -> Outliers<'a> {
    let least = (journal.plan.localise.least_percent / 100.0).ln_1p();
    let parts = parts::parts(found, results);
    let of_test = |test: &'a plan::model::Test| {
        let metric = plan::headline(test.metric, test.op);
        let cases = results.iter().filter(|result| *result.case.test == *test.name).collect();
        let rows = rows.iter().filter(|row| *row.test == test.name && row.metric == metric).collect();
        let found = found.iter().find(|found| found.test == test.name);
        let index = index::Index::new(&parts, &test.name);
        let links = links::links(&links::Setting { metric, least, found, parts: &parts, index: &index }, cases, rows);
        OfTest::new(&test.name, metric, links, &index)
    };
    Outliers {
        tests: journal.plan.tests.iter().map(of_test).collect(),
        clusters: found.iter().filter_map(|found| Some((found, found.two_clusters.as_ref()?))).collect(),
        found,
        parts,
    }
}

impl<'a> OfTest<'a> {
    fn new(test: &'a str, metric: Metric, links: Vec<Link<'a>>, index: &index::Index<'_>) -> Self {
        let mut worst: Vec<usize> = (0..links.len()).filter(|&at| links[at].stands_out).collect();
        worst.sort_by(|&a, &b| links[a].depth().total_cmp(&links[b].depth()).then(a.cmp(&b)));
        let named = |link: &&Link<'_>| index.bad_of_case(link.result.case.id).is_some();
        let usual = || {
            let sizes = links.iter().map(|link| link.result.case.cell.size);
            // The largest memory size is beyond the caches.
            let is_large = metric.better() == Better::Higher || metric == Metric::MemoryLatency;
            let size = if is_large { sizes.max() } else { sizes.min() }?;
            links.iter().rev().find(|link| link.result.case.cell.size == size)
        };
        let first = links.iter().find(named).or(worst.first().map(|&at| &links[at])).or_else(usual);
        let focus = first.map(|link| link.cell.clone());
        let flows = flows(&links, &worst);
        Self { test, metric, links, worst, focus, flows }
    }

    /// Worst first.
    pub fn standing_out(&self) -> impl Iterator<Item = &Link<'a>> {
        self.worst.iter().map(|&at| &self.links[at])
    }

    /// Outliers at any size, each at its worst size, with the number of sizes; worst first.
    pub fn flows(&self) -> Vec<(&Link<'a>, usize)> {
        self.flows.iter().map(|&(at, sizes)| (&self.links[at], sizes)).collect()
    }
}

/// Positions of outliers, each flow once at its worst size, with the number of sizes.
fn flows(links: &[Link<'_>], worst: &[usize]) -> Vec<(usize, usize)> {
    let mut place: HashMap<&Flow, usize> = HashMap::default();
    let mut flows: Vec<(usize, usize)> = Vec::new();
    for &link in worst {
        let at = *place.entry(&links[link].result.case.flow).or_insert_with(|| {
            flows.push((link, 0));
            flows.len() - 1
        });
        flows[at].1 += 1;
    }
    flows
}

impl<'a> Outliers<'a> {
    pub fn part_of(&self, link: &Link<'_>) -> Option<&Part<'a>> {
        link.part.and_then(|at| self.parts.get(at))
    }

    /// Outliers outside of all named parts: test, link at its worst size, number of sizes. Worst first.
    pub fn beside(&self) -> Vec<(&OfTest<'a>, &Link<'a>, usize)> {
        let of_test = |test| OfTest::flows(test).into_iter().map(move |(link, sizes)| (test, link, sizes));
        let mut all: Vec<_> = self.tests.iter().flat_map(of_test).filter(|(_, link, _)| link.part.is_none()).collect();
        all.sort_by(|a, b| a.1.depth().total_cmp(&b.1.depth()));
        all
    }

    pub fn of(&self, test: &str) -> Option<&OfTest<'a>> {
        self.tests.iter().find(|of| of.test == test)
    }

    pub fn any(&self) -> bool {
        self.parts.iter().any(Part::is_bad) || !self.clusters.is_empty() || !self.beside().is_empty()
    }
}
