//! The search of every test in its views, and what it finds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use railgauge_stats::{
    Refusal,
    localise::{self, Evidence, Findings, Level, Pair, Setting, Suspect},
};
use railgauge_wire::Better;

use super::{
    Crossing, Good, Localisation, Named, Names, One, Screen, TooNoisy, View, Which, conditions, groups, losses,
    meanwhile, merged, node, over_time,
    pick::{self},
    probe, rates, unmeasured, waived,
};
use crate::{
    case::CaseResult,
    journal::Journal,
    results,
    row::Row,
    rows,
    words::{be, brief, count, number, worse},
};

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
    let more_rows = rows::rows_without_ceilings(journal, &more);
    probe::settle(&mut all, &more, &more_rows);
    all.iter_mut().for_each(Localisation::leave_out);
    let mut all = merged::merged(all, results);
    let (first, again) = ((results, rows), (&more[..], &more_rows[..]));
    let tests = || journal.plan.tests.iter();
    all.extend(tests().filter_map(|test| node::found(journal, test, first, again)));
    all.iter_mut().for_each(|found| found.waive(journal));
    let unexplained = tests().filter(|test| !groups::is_explained(journal, &all, test));
    let mut groups: Vec<Localisation> =
        unexplained.filter_map(|test| groups::found(journal, test, first, again)).collect();
    groups.iter_mut().for_each(|found| found.waive(journal));
    all.extend(groups);
    meanwhile::note(&mut all, results, &more);
    all
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
    found.bounds = rates::Bounds::new(view, &names, first.result.test, found.least);
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

    fn named(&self, suspect: &Suspect, findings: &Findings, names: &Names, cases: &[u64], measured: &[Pair]) -> Named {
        let Evidence { pairs, n, low, partners } = &suspect.evidence;
        let part = names.part(&suspect.part);
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
            part.hosts.clone()
        } else {
            reach.into_iter().map(|host| names.host(host).to_owned()).collect()
        };
        let method = "median of its pairs against good pairs, worst part first (docs/methods.md)";
        Named {
            reach,
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
            alternatives: suspect.alternatives.iter().map(|part| names.part(part)).collect(),
            bad_share: suspect.share,
            ..Named::new(part, method)
        }
    }

    pub(super) fn tell_crossing(&mut self, crossing: &Crossing, cases: &[u64], pairs: &[Pair]) {
        let mut levels: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (case, pair) in cases.iter().zip(pairs) {
            let below = crossing.of(pair.from, pair.to);
            let Some(level) = self.level_of.of(*case).filter(|_| below > 0.0) else { continue };
            let next = self.good.len();
            let own = *levels.entry((level, crossing.kind(pair.from, pair.to))).or_insert(next);
            let usual = self.good[level].clone();
            self.level_of.change(*case, own);
            if own == next {
                let change = self.percent(-below);
                let (which, centre) = (usual.which.on_rails(true), usual.centre * (1.0 + change / 100.0));
                self.good.push(Good { which, centre, ..usual });
                self.across_rails_percent.push(change);
            }
        }
        let usual: BTreeSet<usize> = levels.into_keys().map(|(level, _)| level).collect();
        for level in usual {
            let which = &mut self.good[level].which;
            *which = which.on_rails(false);
        }
    }

    /// For too few hosts to know a level: notes which pairs are alike; `farther` says whether latencies between groups are higher.
    pub(super) fn tell_kinds(&mut self, cases: &[u64], pairs: &[Pair], farther: bool) {
        let crossing = &self.bounds.crossing;
        let farther = |pair: &Pair| farther && crossing.kind(pair.from, pair.to) == 1;
        let kind = |pair: &Pair| usize::from(farther(pair)) + 2 * usize::from(crossing.of(pair.from, pair.to) > 0.0);
        self.level_of = cases.iter().copied().zip(pairs.iter().map(kind)).collect();
        let mut below: Vec<f64> = pairs.iter().map(|pair| crossing.of(pair.from, pair.to)).collect();
        below.retain(|below| *below > 0.0);
        below.sort_unstable_by(f64::total_cmp);
        below.dedup();
        self.across_rails_percent = below.into_iter().map(|below| self.percent(-below)).collect();
    }

    /// The kind of pairs with the most scatter, if one at half the rate would not stand out. Single pairs are the
    /// smallest named parts, and a larger part shows more easily.
    pub(super) fn hidden_by_noise(&self, findings: &Findings) -> Option<TooNoisy> {
        let used = self.good.iter().zip(&findings.seen_from).enumerate();
        let used = used.filter(|(at, _)| findings.level_of.contains(at));
        let (_, (good, seen_from)) = used.max_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b))?;
        TooNoisy::of(good, *seen_from, self.metric.better())
    }
}
