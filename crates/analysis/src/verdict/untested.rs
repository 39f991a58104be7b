//! What a run did not test. Every statement that no fault was found comes with this list: document, JUnit, terminal,
//! page, sign-off and `status` use the same one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use foldhash::{HashMap, HashSet};
use railgauge_model::plan::{
    headline, hostlist,
    model::{Expectation, Test},
};
use railgauge_wire::{Better, Bytes, Metric};
use serde::{Deserialize, Serialize};

use crate::{
    case::{CaseResult, NotRun, State},
    journal::Journal,
    localise::Localisation,
    outliers::{Link, OfTest, Outliers},
    together,
    words::{count, size},
};

/// Limit per entry: boundaries grow with the square of the groups.
const NAMES: usize = 1000;
const NAMED: usize = 8;
const SIZES: usize = 4;

/// The largest gaps in coverage come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    Hosts,
    Time,
    Cases,
    Peers,
    Boundaries,
    Sending,
    Receiving,
    Ends,
    Values,
    Limits,
    /// Ends whose bytes on the wire were not compared with the payload.
    Counters,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untested {
    pub kind: Lack,
    pub tests: Vec<String>,
    /// At most [`NAMES`]; none for cases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    pub count: usize,
}

impl fmt::Display for Untested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, tests, names, count: n } = self;
        let some = &names[..names.len().min(NAMED)];
        let more = n - some.len();
        let more = if more > 0 && !some.is_empty() { format!(" and {more} more") } else { String::new() };
        let list = || some.join(if some.iter().any(|name| name.contains(',')) { "; " } else { ", " }) + &more;
        let hosts = || hostlist::listed(names.iter().map(String::as_str));
        let tests = || tests.join(", ");
        match kind {
            Lack::Hosts => write!(f, "{} (no value in {})", hosts(), tests()),
            Lack::Time => write!(f, "{} of {} (the time of the plan was over)", count(*n, "case"), tests()),
            Lack::Cases => write!(f, "{} of {} (no value)", count(*n, "case"), tests()),
            Lack::Peers => {
                write!(
                    f,
                    "whether {} is slow (in {}: at least one more host of the same kind shows it)",
                    some.join(" or "),
                    tests()
                )
            }
            Lack::Boundaries => write!(f, "{} (no pair crossed)", list()),
            Lack::Sending => write!(f, "sending by {} (in {})", hosts(), tests()),
            Lack::Receiving => write!(f, "receiving by {} (in {})", hosts(), tests()),
            Lack::Ends => write!(f, "{} (no good pair in {})", list(), tests()),
            Lack::Values => write!(f, "the speed of {} (no limit, ceiling or peers)", list()),
            Lack::Limits => write!(f, "the speed of {} (no limit)", list()),
            Lack::Counters => write!(f, "bytes on the wire of {} (not counted in {})", list(), tests()),
        }
    }
}

impl Untested {
    pub fn is_of_parts(&self) -> bool {
        self.kind < Lack::Values
    }

    /// Whether a fault may hide there. Uncounted bytes hide none.
    pub fn may_hide_a_fault(&self) -> bool {
        self.kind != Lack::Counters
    }

    pub fn is_in(&self, test: &str) -> bool {
        self.tests.iter().any(|of| of == test)
    }
}

/// As the end of a sentence: `not tested: leaf1–leaf2 (no pair crossed)`; `None` if all was tested.
pub fn not_tested<'u>(list: impl Iterator<Item = &'u Untested>) -> Option<String> {
    let all: Vec<String> = list.map(Untested::to_string).collect();
    (!all.is_empty()).then(|| format!("not tested: {}", all.join("; ")))
}

/// The largest gaps in coverage first.
pub(super) fn untested(journal: &Journal, results: &[CaseResult<'_>], model: &Outliers<'_>) -> Vec<Untested> {
    let mut all = All::default();
    for test in &journal.plan.tests {
        let is_cut =
            |result: &&CaseResult<'_>| result.not_run == Some(NotRun::TimeOver) && *result.case.test == *test.name;
        all.add(&test.name, (Lack::Time, Vec::new(), results.iter().filter(is_cut).count()));
    }
    for found in model.found {
        let of = |kind, names: &[String]| (kind, names.to_vec(), names.len());
        all.add(&found.test, of(Lack::Hosts, &found.unmeasured));
        all.add(&found.test, (Lack::Cases, Vec::new(), found.missing));
        all.add(&found.test, of(Lack::Ends, &found.unjudged));
        let test = journal.plan.tests.iter().find(|test| test.name == found.test);
        let two = test.map(|test| &test.hosts).filter(|hosts| hosts.len() == 2 && found.counted == "pair");
        if let Some(hosts) = two {
            all.add(&found.test, of(Lack::Peers, hosts));
        }
    }
    one_way(model, &mut all);
    boundaries(journal, model, &mut all);
    for (test, of) in journal.plan.tests.iter().filter_map(|test| Some((test, model.of(&test.name)?))) {
        if test.at_once() {
            let missing = of.links.iter().filter(|link| link.value.is_none()).count();
            all.add(&test.name, (Lack::Cases, Vec::new(), missing));
        }
        let ends: BTreeSet<&String> = of.links.iter().flat_map(|link| &link.result.uncounted).collect();
        all.add(&test.name, (Lack::Counters, ends.iter().copied().cloned().collect(), ends.len()));
        if let Some((kind, name)) = without_limit(test, &has_all(journal), of) {
            all.join(&test.name, kind, name);
        }
    }
    all.0.sort_by_key(|one| one.kind);
    all.0
}

#[derive(Default)]
struct All(Vec<Untested>);

impl All {
    fn add(&mut self, test: &str, (kind, mut names, count): (Lack, Vec<String>, usize)) {
        if count == 0 {
            return;
        }
        names.truncate(NAMES);
        // Cases have no names, so those of two tests are never equal.
        let same = |one: &&mut Untested| {
            one.kind == kind && one.names == names && (!names.is_empty() || one.is_in(test) && one.count == count)
        };
        match self.0.iter_mut().find(same) {
            Some(known) if known.is_in(test) => {}
            Some(known) => known.tests.push(test.to_owned()),
            None => self.0.push(Untested { kind, tests: vec![test.to_owned()], names, count }),
        }
    }

    fn join(&mut self, test: &str, kind: Lack, name: String) {
        match self.0.iter_mut().find(|one| one.kind == kind) {
            Some(known) => {
                known.tests.push(test.to_owned());
                known.names.push(name);
                known.count += 1;
            }
            None => self.add(test, (kind, vec![name], 1)),
        }
    }
}

/// Hosts measured in one direction only. In a test without any host in both (neighbours, one to many) that is by
/// design: then only what no other test measured is missing.
fn one_way(model: &Outliers<'_>, all: &mut All) {
    type Ways<'m> = BTreeMap<&'m str, [bool; 2]>;
    let directed =
        |found: &&Localisation| found.counted == "pair" && found.directed && found.metric.better() == Better::Higher;
    let of_test = |found: &Localisation| -> Ways<'_> {
        let mut seen = Ways::new();
        for link in model.of(&found.test).into_iter().flat_map(|of| &of.links).filter(|link| link.value.is_some()) {
            let (source, sink) = together::ends(link.result.case);
            seen.entry(&source.host).or_default()[0] = true;
            seen.entry(&sink.host).or_default()[1] = true;
        }
        seen
    };
    let tests: Vec<(&str, Ways<'_>)> =
        model.found.iter().filter(directed).map(|found| (found.test.as_str(), of_test(found))).collect();
    let mut in_run = Ways::new();
    for (host, ways) in tests.iter().flat_map(|(_, seen)| seen) {
        let known = in_run.entry(host).or_default();
        (0..2).for_each(|way| known[way] |= ways[way]);
    }
    for (test, seen) in &tests {
        let meant = !seen.values().any(|ways| *ways == [true; 2]);
        for (way, kind) in [Lack::Sending, Lack::Receiving].into_iter().enumerate() {
            let lacks = |(host, ways): &(&&str, &[bool; 2])| !(ways[way] || meant && in_run[**host][way]);
            let hosts: Vec<String> = seen.iter().filter(lacks).map(|(host, _)| (*host).to_owned()).collect();
            let n = hosts.len();
            all.add(test, (kind, hosts, n));
        }
    }
}

/// Pairs of disjoint groups that no value crossed in any test.
fn boundaries(journal: &Journal, model: &Outliers<'_>, all: &mut All) {
    let groups: Vec<(&str, HashSet<&str>)> = journal
        .plan
        .groups
        .iter()
        .map(|(name, hosts)| (name.as_str(), hosts.iter().map(String::as_str).collect()))
        .collect();
    let mut of_host: HashMap<&str, Vec<usize>> = HashMap::default();
    for (at, (_, hosts)) in groups.iter().enumerate() {
        hosts.iter().for_each(|host| of_host.entry(host).or_default().push(at));
    }
    let (mut crossed, mut tests) = (HashSet::default(), BTreeSet::new());
    for of in &model.tests {
        for link in of.links.iter().filter(|link| link.result.case.flow.hosts().len() > 1) {
            tests.insert(of.test);
            let hosts = if link.value.is_some() { link.result.case.flow.hosts() } else { Vec::new() };
            let here: BTreeSet<usize> =
                hosts.iter().filter_map(|host| of_host.get(&***host)).flatten().copied().collect();
            crossed.extend(here.iter().flat_map(|a| here.range(a + 1..).map(|b| (*a, *b))));
        }
    }
    let open = |&(a, b): &(usize, usize)| !crossed.contains(&(a, b)) && groups[a].1.is_disjoint(&groups[b].1);
    let pairs = (0..groups.len()).flat_map(|a| (a + 1..groups.len()).map(move |b| (a, b))).filter(open);
    let names: Vec<String> = pairs.map(|(a, b)| format!("{}–{}", groups[a].0, groups[b].0)).collect();
    if !tests.is_empty() && !names.is_empty() {
        let (tests, n) = (tests.into_iter().map(str::to_owned).collect(), names.len());
        let names = names.into_iter().take(NAMES).collect();
        all.0.push(Untested { kind: Lack::Boundaries, tests, names, count: n });
    }
}

fn has_all(journal: &Journal) -> impl Fn(&String) -> bool + '_ {
    |group| {
        let hosts = journal.plan.groups.get(group);
        hosts.is_some_and(|hosts| journal.plan.hosts.iter().all(|host| hosts.contains(&host.name)))
    }
}

/// Metrics of a test without a limit, and whether their values are at least compared with a ceiling or with peers.
fn without_limit(test: &Test, has_all: &dyn Fn(&String) -> bool, of: &OfTest<'_>) -> Option<(Lack, String)> {
    if of.links.iter().all(|link| link.result.state == State::NotRun) {
        return None;
    }
    let limits: Vec<&Expectation> = test.expect.iter().filter(|wanted| is_main(wanted.metric)).collect();
    let at = |size: &Bytes| {
        let size = *size;
        let is_of = move |wanted: &&&Expectation| wanted.sizes.is_none_or(|(from, to)| (from..=to).contains(&size));
        limits.iter().filter(is_of)
    };
    let rails: BTreeSet<u32> = of.links.iter().map(|link| link.result.case.flow.from.rail).collect();
    let everywhere = |size: &Bytes| {
        let limits = || at(size).filter(|wanted| wanted.group.as_ref().is_none_or(has_all));
        let named: BTreeSet<u32> = limits().flat_map(|wanted| wanted.rails.iter().copied()).collect();
        limits().any(|wanted| wanted.rails.is_empty()) || rails.is_subset(&named) && !named.is_empty()
    };
    let open: Vec<Bytes> = test.sizes.iter().filter(|size| at(size).next().is_none()).copied().collect();
    let outside: Vec<Bytes> = test.sizes.iter().filter(|size| !everywhere(size)).copied().collect();
    let name = &test.name;
    let (sizes, name) = match () {
        () if test.expect.is_empty() => (&test.sizes, name.clone()),
        () if limits.is_empty() || !open.is_empty() && open.len() == test.sizes.len() => {
            (&test.sizes, format!("{} of {name}", headline(test.metric, test.op).name()))
        }
        () if !open.is_empty() => (&open, format!("{name} at {}", list(&open))),
        () if outside.is_empty() => return None,
        () => {
            let at = list(&outside);
            (&outside, format!("{name} at {at} outside of the groups and rails that its limits name"))
        }
    };
    let is_compared = |link: &Link<'_>| link.level.is_some() || link.row.is_some_and(|row| row.ceiling.is_some());
    let mut values = of.links.iter().filter(|link| link.value.is_some() && sizes.contains(&link.cell.1));
    Some((if values.all(is_compared) { Lack::Limits } else { Lack::Values }, name))
}

fn list(sizes: &[Bytes]) -> String {
    let more = sizes.len().saturating_sub(SIZES);
    let more = if more > 0 { format!(" and {}", count(more, "more size")) } else { String::new() };
    format!("{}{more}", sizes.iter().take(SIZES).map(|one| size(*one)).collect::<Vec<_>>().join(", "))
}

/// Whether its limit decides if a test is good: the purpose of the test, or a metric that cannot be good without it.
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
