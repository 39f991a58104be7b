//! Finds the bad part of a cluster from a test's pairs, with [`railgauge_stats::localise`].
//!
//! Each test is searched in several views (`pick`), each with its own [`Localisation`]: the usual view is first, the
//! others hold only what none before them named. Only trusted values count. A suspect is not yet a verdict: [`further`]
//! names pairs to measure again, after which every suspect is confirmed or cleared.

mod clusters;
mod conditions;
mod crossing;
mod decide;
mod further;
mod groups;
mod lanes;
mod levels;
mod losses;
mod meanwhile;
mod merged;
mod names;
mod node;
mod noisy;
mod over_time;
mod pick;
mod probe;
mod rates;
mod remedies;
mod told;
mod waived;
mod words;

use std::{collections::BTreeMap, sync::Arc};

use foldhash::HashMap;
use railgauge_model::{plan::model::Test, schedule::Cell};
use railgauge_stats::{
    Refusal,
    localise::{self, Evidence, Findings, Judgement, Level, Pair, Setting, Suspect},
};
use railgauge_wire::{
    terms::{Better, Metric},
    unit::Bytes,
};
use serde::Serialize;

use super::{
    journal::Journal,
    results,
    row::Row,
    words::{be, brief, count, number, worse},
};
use crate::case::CaseResult;
use names::Names;
use pick::{One, View};

pub use crossing::AcrossRails;
pub use further::further;
pub use groups::GroupsUnlike;
pub use levels::LevelOf;
pub use names::only;
pub use noisy::TooNoisy;
pub use over_time::OverTime;
pub(crate) use pick::Scatter;
pub use pick::{Repeats, Searched};
pub use probe::Probe;
pub use railgauge_stats::localise::Way;
pub use rates::{CarryLess, Lesser};
pub use told::{
    Alike, Cluster, Confirmation, DecidedBy, Further, Good, Lane, Named, OpenReason, PartName, Standing, TOGETHER,
    TwoClusters, Which,
};
pub(crate) use waived::waives_flow;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Localisation {
    pub test: String,
    /// `pair`, `group` for a collective, or `part` within hosts.
    pub counted: &'static str,
    pub metric: Metric,
    #[serde(skip_serializing_if = "Repeats::is_median")]
    pub repeats: Repeats,
    /// Whether its view is not the usual one; then it has only what stands out there.
    #[serde(skip)]
    pub is_extra: bool,
    pub unit: String,
    pub size_bytes: Bytes,
    pub pairs: usize,
    /// Without a trusted value: not judged.
    pub missing: usize,
    /// Hosts without a trusted value of any pair or group: nothing is known about them.
    #[serde(skip)]
    pub unmeasured: Vec<String>,
    pub good: Vec<Good>,
    /// Worst first.
    pub suspects: Vec<Named>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Further>,
    pub two_clusters: Option<TwoClusters>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<Alike>,
    /// How many hosts (within hosts: parts) have a value and how many are needed, if they are too few to distinguish a part.
    #[serde(skip)]
    pub too_few: Option<[usize; 2]>,
    /// Pairs that scatter too much for a bad one to stand out: their presence rules out the statement that nothing is bad.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_noisy: Option<TooNoisy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
    /// Why no part explains what is wrong in a collective: then nothing can be called good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<String>,
    /// Neither good nor bad, because no good pair shows them to be good: `gpu07 rail 3`.
    #[serde(skip)]
    pub unjudged: Vec<String>,
    /// For every judged case, the position in `good` of what it was compared with, or its kind if there was none.
    #[serde(skip)]
    pub level_of: LevelOf,
    pub remarks: Vec<String>,
    #[serde(skip)]
    pub probes: Vec<Probe>,
    #[serde(skip)]
    pub cell: Option<Cell>,
    #[serde(skip)]
    raw: Vec<Suspect>,
    #[serde(skip)]
    screen: Option<Arc<Screen>>,
    /// Share of the ceiling that good pairs reach, if below 90 % and no limit of the plan judges it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_of_ceiling: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lossy: Vec<PartName>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lesser: Vec<Lesser>,
    /// How much worse pairs across rails are than pairs on one rail, in percent of the metric, where all are alike:
    /// within groups, between them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub across_rails_percent: Vec<f64>,
    #[serde(skip)]
    judgements: Vec<Judgement>,
    #[serde(skip)]
    bounds: decide::Bounds,
    #[serde(skip)]
    conditions: conditions::Conditions,
    /// With too few hosts to confirm anything: the value between both kinds, in the metric's unit.
    #[serde(skip)]
    low_below: f64,
    #[serde(skip)]
    confirms: bool,
    /// Whether a pair's value covers one direction only.
    #[serde(skip)]
    pub(crate) directed: bool,
    /// Smallest effect that gets a name, as a difference of logarithms.
    #[serde(skip)]
    least: f64,
    /// Standard deviation of good pairs, as a difference of logarithms; 0 if unknown.
    #[serde(skip)]
    noise: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct Screen {
    findings: Findings,
    names: Names,
    reasons: Vec<String>,
}

/// Searches every test of pairs, in the order of the plan, and settles suspects by the journal's further cases; then every collective that
/// is slow or fails, unless a confirmed part of the pairs explains it. Skips flows at once, whose values depend on each other.
pub fn localise(journal: &Journal, results: &[CaseResult<'_>], rows: &[Row]) -> Vec<Localisation> {
    let mut by_test: BTreeMap<&str, Vec<(&CaseResult<'_>, &Row)>> = BTreeMap::new();
    for row in rows {
        let result = usize::try_from(row.case).ok().and_then(|case| results.get(case));
        // A plan's varied value changes pairs for reasons of its own, so only the first is searched.
        let counts = |result: &&CaseResult<'_>| {
            result.test.collective.is_none() && result.part.is_none() && result.case.cell.is_reference(result.test)
        };
        if let Some(result) = result.filter(counts) {
            by_test.entry(&result.test.name).or_default().push((result, row));
        }
    }
    let tests = journal.plan.tests.iter();
    let mut all: Vec<Localisation> =
        tests.filter_map(|test| by_test.get(test.name.as_str())).flat_map(|rows| of_test(journal, rows)).collect();
    let more = results::further(journal);
    let more_rows = super::rows::rows_without_ceilings(journal, &more);
    further::settle(&mut all, &more, &more_rows);
    all.iter_mut().for_each(Localisation::leave_out);
    let mut all = merged::merged(all, results);
    all.iter_mut().for_each(|found| found.waive(journal));
    all.extend(node::all(journal, results, rows, &more));
    let tests = journal.plan.tests.iter().filter(|test| !groups::is_explained(journal, &all, test));
    let mut groups: Vec<Localisation> =
        tests.filter_map(|test| groups::found(journal, test, (results, rows), (&more, &more_rows))).collect();
    groups.iter_mut().for_each(|found| found.waive(journal));
    all.extend(groups);
    meanwhile::note(&mut all, results, &more);
    all
}

/// Hosts of the test without a value in any case, by name: all failed, or none was planned.
fn unmeasured<'c>(test: &Test, cases: impl Iterator<Item = (&'c CaseResult<'c>, bool)>) -> Vec<String> {
    let mut hosts: HashMap<&str, bool> = test.hosts.iter().map(|host| (host.as_str(), false)).collect();
    for (result, has_value) in cases {
        let flow = &result.case.flow;
        for port in [&flow.from, &flow.to].into_iter().chain(&flow.members) {
            *hosts.entry(&port.host).or_default() |= has_value;
        }
    }
    let mut without: Vec<String> =
        hosts.into_iter().filter(|(_, has_value)| !has_value).map(|(host, _)| host.to_owned()).collect();
    without.sort_unstable();
    without
}

fn of_test(journal: &Journal, rows: &[(&CaseResult<'_>, &Row)]) -> Vec<Localisation> {
    let views = pick::views(rows);
    let Some((usual, others)) = views.split_first() else { return Vec::new() };
    let Some(usual) = of_view(journal, usual, false) else { return Vec::new() };
    // Where the level of good pairs is unknown, other views show the same.
    let known = usual.two_clusters.is_none();
    let others = others.iter().filter(|_| known && !usual.good.is_empty());
    let others: Vec<Localisation> = others.filter_map(|view| of_view(journal, view, true)).collect();
    [usual].into_iter().chain(others).collect()
}

/// `None` for an extra view in which nothing stands out.
fn of_view(journal: &Journal, view: &View<'_>, is_extra: bool) -> Option<Localisation> {
    let names = Names::new(journal, &view.cases);
    let first = view.cases.first()?;
    let mut found = Localisation::of(journal, first.result, first.row, "pair");
    (found.metric, found.unit, found.repeats) = (view.metric, view.metric.unit().to_owned(), view.repeats);
    found.is_extra = is_extra;
    found.bounds = decide::Bounds::new(view, &names, first.result.test, found.least);
    found.conditions = conditions::Conditions::new(journal);
    let pair = |one: &One<'_>| {
        let pair = one.pair(&names)?;
        Some(Pair { value: found.bounds.as_of_best(pair.from, pair.to, pair.value)?, ..pair })
    };
    let (mut pairs, cases): (Vec<Pair>, Vec<&One<'_>>) =
        view.cases.iter().filter_map(|one| Some((pair(one)?, one))).unzip();
    let over_time = over_time::set_aside(view, &names, &mut pairs, &cases);
    if is_extra && !view.is_unusual(&pairs, &names.groups, view.least(found.least)) {
        return None;
    }
    let of_plan = |one: &&One<'_>| !waived::waives_flow(&journal.plan, &one.result.case.flow);
    let few = || view.cases.iter().filter(of_plan).filter_map(|one| Some((one.row.case, pair(one)?))).collect();
    let few: Vec<(u64, Pair)> = if is_extra { Vec::new() } else { few() };
    (found.pairs, found.over_time) = (pairs.len(), over_time);
    let setting = Setting {
        groups: &names.groups,
        least: found.least,
        noise: view.noise().max(found.bounds.rates.scatter),
        directed: found.directed,
        // More switches add latency; they do not reduce bandwidth.
        two_levels: found.metric.better() == Better::Lower,
    };
    let ids: Vec<u64> = cases.iter().map(|one| one.row.case).collect();
    let findings = localise::localise(&pairs, &setting);
    if is_extra {
        let mut findings = findings.ok().filter(|findings| view.counts(findings, &pairs, view.least(found.least)))?;
        view.say_share(&mut findings, &cases);
        found.tell(findings, &names, &ids, &pairs, &setting);
        found.only_suspects();
        return Some(found);
    }
    found.tell_what_was_measured(view, &names, journal);
    found.lossy = losses::lossy(view, &names, &setting);
    match findings {
        Ok(findings) => found.tell(findings, &names, &ids, &pairs, &setting),
        Err(refusal) => {
            if let Refusal::TooFew { need, got: got @ 1.. } = refusal {
                found.too_few = Some([got, need]);
                let farther = found.tell_few(&few, view.scatter(), &names);
                found.tell_kinds(&ids, &pairs, farther);
            }
            found.remarks.push(format!("a fault cannot be located{}", refused(&refusal)));
        }
    }
    Some(found)
}

fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::TooFew { got: 0, .. } => ": no pair has a value that may be trusted".to_owned(),
        Refusal::TooFew { need, got } => format!(" among {}, {need} are needed", count(*got, "host")),
        refusal => format!(": {refusal}"),
    }
}

impl Localisation {
    fn of(journal: &Journal, first: &CaseResult<'_>, row: &Row, counted: &'static str) -> Self {
        Self {
            test: row.test.to_string(),
            counted,
            metric: row.metric,
            repeats: Repeats::default(),
            is_extra: false,
            unit: row.unit().to_owned(),
            size_bytes: row.size_bytes,
            pairs: 0,
            missing: 0,
            unmeasured: Vec::new(),
            good: Vec::new(),
            suspects: Vec::new(),
            controls: Vec::new(),
            two_clusters: None,
            alike: Vec::new(),
            too_few: None,
            too_noisy: None,
            over_time: None,
            unexplained: None,
            level_of: LevelOf::default(),
            unjudged: Vec::new(),
            remarks: Vec::new(),
            probes: Vec::new(),
            cell: Some(Cell::clone(&first.case.cell)),
            raw: Vec::new(),
            screen: None,
            short_of_ceiling: None,
            lossy: Vec::new(),
            lesser: Vec::new(),
            across_rails_percent: Vec::new(),
            judgements: Vec::new(),
            low_below: 0.0,
            bounds: decide::Bounds::default(),
            conditions: conditions::Conditions::default(),
            confirms: journal.plan.localise.confirm,
            directed: !first.test.bidirectional,
            noise: 0.0,
            least: (journal.plan.localise.least_percent / 100.0).ln_1p(),
        }
    }

    fn tell_what_was_measured(&mut self, view: &View<'_>, names: &Names, journal: &Journal) {
        let Some(test) = view.cases.first().map(|first| first.result.test) else { return };
        self.remarks.extend(names.remark.iter().cloned());
        self.lesser = self.bounds.rates.lesser(names, &journal.plan);
        self.missing = view.cases.iter().filter(|one| one.log.is_none()).count();
        self.unmeasured = unmeasured(test, view.cases.iter().map(|one| (one.result, one.log.is_some())));
    }

    fn tell(&mut self, findings: Findings, names: &Names, cases: &[u64], pairs: &[Pair], setting: &Setting<'_>) {
        let which = |at: usize| match (findings.levels.len(), at) {
            (1, _) => Which::ALL,
            (_, at) => Which::Pairs { between_groups: Some(at > 0), across_rails: None },
        };
        let good = |(at, level): (usize, &Level)| Good {
            which: which(at),
            centre: self.metric_value(level.centre),
            spread_percent: 100.0 * level.scale.exp_m1(),
            n: level.n,
        };
        self.good = findings.levels.iter().enumerate().map(good).collect();
        self.level_of = cases.iter().copied().zip(findings.level_of.iter().copied()).collect();
        let crossing = self.bounds.crossing.clone();
        self.tell_crossing(&crossing, cases, pairs);
        self.suspects =
            findings.suspects.iter().map(|suspect| self.named(suspect, &findings, names, cases, pairs)).collect();
        if let Some(two) = &findings.two_clusters {
            self.tell_clusters(two, cases);
        }
        // With two clusters it is unknown which one the good pairs are in.
        let good = self.good.first().filter(|_| self.two_clusters.is_none());
        self.short_of_ceiling = good.and_then(|good| self.bounds.short_of_ceiling(good.centre));
        self.too_noisy = self.hidden_by_noise(&findings);
        self.unjudged = findings.unjudged.iter().map(|&port| names.end(port)).collect();
        self.probes =
            probe::probes(pairs, &findings, setting, names, self.cell.as_ref().is_some_and(|cell| cell.op.pulls()));
        self.raw.clone_from(&findings.suspects);
        self.noise = findings.levels.iter().map(|level| level.scale).fold(0.0, f64::max);
        let reasons = self.suspects.iter().map(|suspect| suspect.reason.clone()).collect();
        self.screen = Some(Arc::new(Screen { findings, names: names.clone(), reasons }));
    }

    /// `None` for others than pairs, which have one view.
    pub fn searched(&self) -> Option<Searched> {
        let Self { metric, repeats, size_bytes, .. } = *self;
        (self.counted == "pair").then_some(Searched { metric, repeats, size_bytes })
    }

    /// In the metric's unit, from the scale of the judgement, on which higher is better.
    fn metric_value(&self, log: f64) -> f64 {
        value(self.metric.better(), log)
    }

    /// In percent of the metric, from a difference on that scale.
    fn percent(&self, log: f64) -> f64 {
        percent(self.metric.better(), log)
    }

    /// In percent of the metric, the smaller end first.
    fn interval(&self, log: Option<(f64, f64)>) -> Option<(f64, f64)> {
        log.map(|(low, high)| (self.percent(low), self.percent(high))).map(|(a, b)| (a.min(b), a.max(b)))
    }

    fn named(&self, suspect: &Suspect, findings: &Findings, names: &Names, cases: &[u64], measured: &[Pair]) -> Named {
        let Evidence { pairs, n, low, partners } = &suspect.evidence;
        let names::Words { kind, name, hosts, groups, rail, way } = names.part(&suspect.part);
        let needed = if suspect.part.is_link() { findings.link_cut } else { findings.cut };
        let change = self.percent(suspect.effect);
        let level = self.level_of.of(cases[pairs[0]]).map_or(0, |level| level.min(self.good.len() - 1));
        let level = &self.good[level];
        let good = format!("{} {}", number(level.centre), self.unit);
        let apart =
            format!("{} (good pairs reach {good})", worse(suspect.effect, self.metric.better() == Better::Higher));
        // Ends are suspects for another reason: how many low pairs meet there.
        let enough = (suspect.z.abs() >= needed).then(|| {
            format!("; it differs by {} standard errors, {} are needed", brief(suspect.z.abs()), brief(needed))
        });
        let enough = enough.unwrap_or_default();
        let are = be(*low);
        let unknown = |end: &usize| findings.suspects[*end].part.is_end() && findings.suspects[*end].share == Some(1.0);
        let reason = if suspect.part.is_end() {
            let (pairs, partners) = (count(*n, "pair"), count(*partners, "host"));
            format!("{low} of {pairs} with {partners} {are} bad, typically {apart}{enough}")
        } else if suspect.part.is_link() && suspect.under.iter().any(unknown) {
            format!("it is {apart}, and an end of it has no good pair{enough}")
        } else if suspect.part.is_link() {
            format!("it is {apart}, more than either of its ends explains{enough}")
        } else {
            let pairs = count(*n, "pair");
            format!("{low} of {pairs} through it {are} bad, typically {apart}, and it is all that they share{enough}")
        };
        let mut reach: Vec<u32> = match &suspect.part {
            part if part.is_end() => Vec::new(),
            _ => pairs.iter().flat_map(|&at| [measured[at].from.host, measured[at].to.host]).collect(),
        };
        reach.sort_unstable();
        reach.dedup();
        let reach = if reach.is_empty() {
            hosts.clone()
        } else {
            reach.into_iter().map(|host| names.host(host).to_owned()).collect()
        };
        let method = "median of its pairs against good pairs, worst part first (docs/methods.md)";
        Named {
            reach,
            groups,
            rail,
            way,
            change_percent: change,
            interval_percent: self.interval(suspect.interval.map(|interval| (interval.low, interval.high))),
            n: *n,
            bad: *low,
            partners: *partners,
            standard_errors: suspect.z.abs(),
            needed,
            reason,
            cases: pairs.iter().map(|&pair| cases[pair]).collect(),
            decided_by: self.decided(suspect, None, findings),
            alternatives: suspect.alternatives.iter().map(|part| names.named(part)).collect(),
            bad_share: suspect.share,
            ..Named::new(kind, name, hosts, method)
        }
    }
}

/// In the metric's unit, from the scale of the judgement, on which higher is better.
fn value(better: Better, log: f64) -> f64 {
    if better == Better::Higher { log.exp() } else { (-log).exp() }
}

/// In percent of the metric, from a difference on that scale.
fn percent(better: Better, log: f64) -> f64 {
    100.0 * if better == Better::Higher { log.exp_m1() } else { (-log).exp_m1() }
}
