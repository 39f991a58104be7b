//! The state of every component: a fold over the runs of a plan in the order of time. Everything that reports a state uses this.
//!
//! A component keeps its state until it is measured again. A fault ends only with a run that measured the component as good in the same
//! test, or where the plan no longer has that test, in others that measure the same. A state is kept for each test, and that of a component
//! is the gravest.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use railgauge_analysis::{
    trend,
    verdict::{ANSWERS, Component, Judged, LISTED, Measured},
};
use railgauge_model::plan::{
    hostlist,
    model::{Alert, Waiver},
};
use railgauge_report::index::{Cell, Grid, GridRow, Outcome};
use railgauge_wire::{Metric, natural};
use serde::Serialize;

use super::summary::{Summary, plan_of};

/// Most nights of a grid: as many as `trend` watches.
const NIGHTS: usize = 60;

railgauge_wire::words! {
    /// The gravest last.
    Condition { Good = "good", Unknown = "unknown", Undecided = "undecided", Faulty = "faulty", }
}

impl From<Judged> for Condition {
    fn from(judged: Judged) -> Self {
        match judged {
            Judged::Good => Self::Good,
            Judged::Undecided => Self::Undecided,
            Judged::Faulty => Self::Faulty,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    pub run_id: String,
    #[serde(serialize_with = "as_text")]
    pub at: Timestamp,
}

fn as_text<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

impl Said {
    /// `2026-11-29`.
    pub fn date(&self) -> String {
        self.at.strftime("%Y-%m-%d").to_string()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Known {
    /// `host`, `nic`, `rail`, `path`, …
    pub kind: String,
    /// `host gpu07`.
    pub name: String,
    pub hosts: Vec<String>,
    /// Rack and slot of its host, where the plan says them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub state: Condition,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Said>,
    pub measured: Said,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    pub tests: Vec<OfTest>,
    #[serde(skip)]
    pub faults: Vec<Said>,
    /// Whether it was faulty, and its last measurement, however old, was good.
    #[serde(skip)]
    pub repaired: bool,
    #[serde(skip)]
    nights: BTreeMap<i64, (usize, Option<Judged>)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfTest {
    pub test: String,
    /// [`measures`](railgauge_model::plan::model::Test::measures) of the test.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub measures: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    pub state: Condition,
    pub measured: Said,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct States {
    pub hosts: Vec<Known>,
    pub all: Vec<Known>,
    /// Waived by the newest plan, and not in the other lists.
    pub waived: Vec<Known>,
    pub alert: Alert,
}

/// The results so far of a component in a test. Runs are numbered in the order of time.
#[derive(Debug, Clone, Default)]
struct Track {
    /// Its last nights that showed it to be good or faulty, as many as count for an alert.
    nights: Vec<(i64, bool, usize)>,
    last: Option<(usize, Judged)>,
    since: usize,
    measured: usize,
    is_faulty: bool,
    was_faulty: bool,
    /// Whether a comparison with peers showed what is wrong: a limit may be too low for it.
    by_peers: bool,
    why: Vec<String>,
    device: Option<String>,
    metric: Option<Metric>,
    value: Option<f64>,
}

impl Track {
    /// Nights on which it was faulty, the last one among them, if those are too few for an alert.
    fn too_few(&self) -> Option<usize> {
        let is_suspected = !self.is_faulty && self.nights.last().is_some_and(|(_, faulty, _)| *faulty);
        is_suspected.then(|| self.nights.iter().filter(|(_, faulty, _)| *faulty).count())
    }

    /// Whether a result of a run, with or without a comparison with peers, says anything about this state.
    fn takes(&self, judged: Judged, peers: bool) -> bool {
        judged != Judged::Good || peers || !self.by_peers
    }

    fn add(&mut self, run: usize, night: i64, (judged, peers): (Judged, bool), why: &[String], alert: Alert) {
        self.by_peers = judged != Judged::Good && (peers || self.by_peers);
        let before = self.last.map(|(_, judged)| judged);
        self.last = Some((run, judged));
        self.measured = run;
        if judged != Judged::Undecided {
            // Of several runs of a night the last counts.
            self.nights.pop_if(|(last, ..)| *last == night);
            self.nights.push((night, judged == Judged::Faulty, run));
            let surplus = self.nights.len().saturating_sub(alert.of as usize);
            self.nights.drain(..surplus);
        }
        let is_suspected = self.nights.last().is_some_and(|(_, faulty, _)| *faulty);
        let enough = self.nights.iter().filter(|(_, faulty, _)| *faulty).count() >= alert.nights as usize;
        let was = std::mem::replace(&mut self.is_faulty, is_suspected && enough);
        self.was_faulty |= self.is_faulty;
        // A fault is dated from its first night, also while it is too young for an alert.
        let goes_on = was && self.is_faulty || before == Some(judged) || is_suspected && before == Some(Judged::Faulty);
        if !goes_on {
            self.since = run;
        }
        match (judged, self.is_faulty || is_suspected) {
            (Judged::Undecided, true) => {}
            _ => self.why = why.to_vec(),
        }
    }

    fn state(&self, age: SignedDuration, alert: Alert) -> Condition {
        let is_old = age > SignedDuration::try_from(alert.good_for).unwrap_or(SignedDuration::MAX);
        match self.last {
            _ if self.is_faulty => Condition::Faulty,
            None => Condition::Unknown,
            _ if is_old => Condition::Unknown,
            Some((_, Judged::Good)) => Condition::Good,
            Some(_) => Condition::Undecided,
        }
    }
}

/// A test, and what it measures: an edited plan may keep the name.
type Key<'r> = (&'r str, &'r str);

fn key(of: &Measured) -> Key<'_> {
    (&of.test, &of.measures)
}

struct Folded<'r> {
    of: &'r Component,
    tests: BTreeMap<Key<'r>, Track>,
    /// In a test that the plan no longer has.
    was_faulty: bool,
    nights: BTreeMap<i64, (usize, Option<Judged>)>,
}

impl States {
    pub fn of(runs: &[&Summary], now: Timestamp) -> Self {
        let plan = runs.iter().find_map(|run| plan_of(&run.directory));
        let (alert, waive) = plan.map(|plan| (plan.alert, plan.localise.waive)).unwrap_or_default();
        let runs = in_order(runs);
        let parts = parts(&runs);
        let nights = trend::nights(&parts.iter().map(|(at, ..)| *at).collect::<Vec<_>>());
        let mut fold = Fold { known: BTreeMap::new(), alert };
        for ((_, at, part), night) in parts.into_iter().zip(nights) {
            let Some(said) = &runs[at].said else { continue };
            let is_part = said.subset.as_ref().is_some_and(|subset| subset.hosts.is_some());
            fold.run((at, part), night, &said.components, is_part);
            if part == Half::Bad {
                continue;
            }
            if said.subset.as_ref().is_none_or(|subset| subset.tests.is_none()) {
                fold.retire(&said.components, is_part);
            }
        }
        let waives = |one: &Folded<'_>| {
            let [hosts, groups] =
                [&one.of.hosts, &one.of.groups].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
            waive.iter().any(|waiver: &Waiver| waiver.covers(&hosts, &groups, one.of.rail.as_slice()))
        };
        let (waived, counted): (Vec<_>, Vec<_>) = fold.known.into_values().partition(waives);
        let states = |of: Vec<Folded<'_>>| of.into_iter().map(|one| known(one, &runs, alert, now)).collect::<Vec<_>>();
        let (waived, mut all) = (states(waived), states(counted));
        all.sort_by_cached_key(|one| (one.kind.clone(), natural::key(&one.name)));
        let hosts = all.iter().filter(|one| one.kind == "host").map(|host| with_nics(host, &all)).collect();
        Self { hosts, all, waived, alert }
    }

    pub fn host(&self, name: &str) -> Option<&Known> {
        self.hosts.iter().find(|known| known.hosts == [name])
    }

    pub fn with(&self, state: Condition) -> impl Iterator<Item = &Known> {
        let others = self.all.iter().filter(|one| !matches!(&*one.kind, "host" | "nic"));
        self.hosts.iter().chain(others).filter(move |one| one.state == state)
    }

    pub(super) fn tests(&self) -> usize {
        let tests = self.all.iter().flat_map(|one| &one.tests).filter(|of| of.metric.is_some());
        tests.map(|of| &of.test).collect::<BTreeSet<_>>().len()
    }

    pub(super) fn grid(&self, plan: &str, runs: &[&Summary]) -> Grid {
        let mut days: BTreeSet<i64> = self.hosts.iter().flat_map(|host| host.nights.keys().copied()).collect();
        // A night without a result has a column too.
        let own = runs.iter().rev().filter(|run| run.row.outcome != Outcome::Imported).map(|run| run.began);
        days.extend(trend::nights(&own.collect::<Vec<_>>()));
        while days.len() > NIGHTS {
            days.pop_first();
        }
        let runs: Vec<&Summary> = in_order(runs);
        let cell = |host: &Known, day: i64| {
            let (run, judged) = host.nights.get(&day)?;
            let page = runs.get(*run).map(|run| run.row.page.clone()).unwrap_or_default();
            Some(Cell { state: judged.map_or(Condition::Unknown, Condition::from).word(), page })
        };
        let mut hosts: Vec<&Known> = self.hosts.iter().collect();
        hosts.sort_by_key(|host| std::cmp::Reverse(host.state));
        let row = |host: &Known| GridRow {
            host: host.hosts.concat(),
            state: host.state.word(),
            since: host.since.as_ref().map(Said::date).unwrap_or_default(),
            measured: host.measured.date(),
            why: host.why.join("; "),
            cells: days.iter().rev().map(|day| cell(host, *day)).collect(),
        };
        Grid {
            plan: plan.to_owned(),
            nights: days.iter().rev().map(|day| trend::date(*day)).collect(),
            hosts: hosts.into_iter().map(row).collect(),
        }
    }
}

fn in_order<'r>(runs: &[&'r Summary]) -> Vec<&'r Summary> {
    let says = |run: &&&Summary| run.said.as_ref().is_some_and(|said| !said.components.is_empty());
    runs.iter().rev().filter(says).copied().collect()
}

/// What of a run counts at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    Whole,
    Good,
    Bad,
}

/// Runs in the order of time. Of a run that was resumed after a later one began, it is unknown which part was measured when: what is good
/// counts at its start, and the rest at its end.
fn parts(runs: &[&Summary]) -> Vec<(Timestamp, usize, Half)> {
    let of = |(at, run): (usize, &&Summary)| match runs.get(at + 1) {
        Some(later) if run.ended > later.began => vec![(run.began, at, Half::Good), (run.ended, at, Half::Bad)],
        _ => vec![(run.began, at, Half::Whole)],
    };
    let mut parts: Vec<_> = runs.iter().enumerate().flat_map(of).collect();
    parts.sort_unstable();
    parts
}

struct Fold<'r> {
    known: BTreeMap<(&'r str, &'r str), Folded<'r>>,
    alert: Alert,
}

impl<'r> Fold<'r> {
    fn run(&mut self, (run, half): (usize, Half), night: i64, measured: &'r [Measured], is_part: bool) {
        let alert = self.alert;
        let counts = |judged: Judged| half == Half::Whole || (half == Half::Good) == (judged == Judged::Good);
        for of in measured {
            let is_shown = |one: &&Component| half != Half::Bad || one.state.is_some_and(counts);
            for one in of.components.iter().filter(is_shown) {
                let part = (&*one.kind, &*one.name);
                let known = self.known.entry(part).or_insert_with(|| Folded {
                    of: one,
                    tests: BTreeMap::new(),
                    was_faulty: false,
                    nights: BTreeMap::new(),
                });
                known.of = one;
                let track = known.tests.entry(key(of)).or_default();
                track.measured = run;
                if one.value.is_some() {
                    (track.value, track.metric) = (one.value, of.metric);
                }
                track.metric = track.metric.or(of.metric);
                track.device = one.device.clone().or(track.device.take());
                let state = one.state.filter(|judged| counts(*judged) && track.takes(*judged, of.peers));
                if let Some(judged) = state {
                    track.add(run, night, (judged, of.peers), &one.why, alert);
                }
                // That a host answered is not a measurement.
                let shown = state.filter(|state| of.test != ANSWERS || *state != Judged::Good);
                if of.test != ANSWERS || shown.is_some() {
                    let cell = known.nights.entry(night).or_insert((run, None));
                    *cell = if cell.0 == run { (run, cell.1.max(shown)) } else { (run, shown) };
                }
            }
            for known in self.known.values_mut() {
                let Some(track) = known.tests.get_mut(&key(of)) else { continue };
                let is_good = track.measured != run && is_good_in(known.of, of, is_part);
                if is_good && counts(Judged::Good) && track.takes(Judged::Good, of.peers) {
                    track.add(run, night, (Judged::Good, of.peers), &[], alert);
                }
            }
        }
    }

    /// Drops tests that the plan of a run no longer has, of components that it measured as good in all others that measure the same.
    fn retire(&mut self, measured: &[Measured], is_part: bool) {
        let tests: BTreeSet<Key<'_>> = measured.iter().map(key).collect();
        self.known.retain(|(kind, name), known| {
            let Folded { of: one, tests: tracks, was_faulty, .. } = known;
            let in_test = |of: &Measured| match of.components.iter().find(|one| one.kind == *kind && one.name == *name)
            {
                Some(known) => known.state,
                None => is_good_in(one, of, is_part).then_some(Judged::Good),
            };
            let is_good = |measures: &str, track: &Track| {
                let same = |of: &&Measured| of.metric.is_some() && (measures.is_empty() || of.measures == measures);
                let takes = |of: &&Measured| track.takes(Judged::Good, of.peers);
                measured.iter().filter(same).filter(takes).filter_map(in_test).max() == Some(Judged::Good)
            };
            tracks.retain(|key, track| {
                let stays = tests.contains(key) || !is_good(key.1, track);
                *was_faulty |= !stays && track.was_faulty;
                stays
            });
            !tracks.is_empty()
        });
    }
}

/// Whether a run that does not name a component measured it as good: links through it are good. One link does not load what many share: the
/// whole test has to pass, and where the run is of a part, half of them have to be good.
fn is_good_in(one: &Component, of: &Measured, is_part: bool) -> bool {
    let is_good = |(from, to): &&(String, String)| {
        let good = of.links.get(from).and_then(|hosts| hostlist::expand(hosts).ok()).unwrap_or_default();
        hostlist::expand(to).is_ok_and(|hosts| hosts.iter().all(|host| good.contains(host)))
    };
    let is_path = one.kind == "path";
    let needed = if is_part && !is_path { one.links.len().div_ceil(2).max(1) } else { 1 };
    let is_measured = || one.links.iter().filter(is_good).take(needed).count() == needed;
    !LISTED.contains(&&*one.kind) && (is_path || of.passed) && is_measured()
}

fn known(folded: Folded<'_>, runs: &[&Summary], alert: Alert, now: Timestamp) -> Known {
    let Folded { of, tests, was_faulty, nights } = folded;
    let said = |run: usize| Said { run_id: runs[run].row.run_id.clone(), at: runs[run].began };
    let age = |track: &Track| track.last.map_or(SignedDuration::ZERO, |(run, _)| now.duration_since(runs[run].began));
    let state = |track: &Track| track.state(age(track), alert);
    // An answer, or a correct configuration, does not show that it is good.
    let counts =
        |track: &&Track| track.metric.is_some() || !matches!(state(track), Condition::Good | Condition::Unknown);
    let worst = tests.values().filter(counts).map(&state).filter(|s| *s != Condition::Unknown).max();
    let condition = worst.unwrap_or(Condition::Unknown);
    let these = || tests.values().filter(counts).filter(|track| state(track) == condition);
    let since = match condition {
        Condition::Unknown => None,
        Condition::Good => these().map(|track| track.since).max().map(said),
        _ => these().map(|track| track.since).min().map(said),
    };
    let mut seen = BTreeSet::new();
    let all = these().filter(|_| condition > Condition::Unknown).flat_map(|track| &track.why);
    let mut why: Vec<String> = all.filter(|why| seen.insert(why.as_str())).cloned().collect();
    if let Some(nights) = these().filter_map(Track::too_few).max() {
        why.push(format!("faulty on {nights} of the {} nights that an alert needs", alert.nights));
    }
    let is_measurement = |(test, track): &(&Key<'_>, &Track)| test.0 != ANSWERS && counts(track);
    let measured = tests.iter().filter(is_measurement).map(|(_, track)| track.measured).max();
    let measured = measured.or_else(|| tests.values().map(|track| track.measured).max()).unwrap_or_default();
    let of_test = |((test, measures), track): (&Key<'_>, &Track)| OfTest {
        test: (*test).to_owned(),
        measures: (*measures).to_owned(),
        device: track.device.clone(),
        metric: track.metric,
        value: track.value,
        state: state(track),
        measured: said(track.measured),
    };
    let hosts = of.hosts.clone();
    let places = || runs.iter().rev().filter_map(|run| run.said.as_ref());
    let place = match hosts.as_slice() {
        [host] => places().find_map(|said| said.places.get(host)).cloned(),
        _ => None,
    };
    Known {
        kind: of.kind.clone(),
        name: of.name.clone(),
        hosts,
        place,
        state: condition,
        since,
        measured: said(measured),
        why,
        faults: these()
            .flat_map(|of| &of.nights)
            .filter(|(_, faulty, _)| *faulty)
            .map(|(.., run)| said(*run))
            .collect(),
        repaired: (was_faulty || tests.values().any(|track| track.was_faulty))
            && tests.values().filter(counts).all(|track| matches!(track.last, Some((_, Judged::Good)) | None)),
        tests: tests.iter().map(of_test).collect(),
        nights,
    }
}

/// A host with the state of its NICs: a faulty NIC takes its host out of service.
fn with_nics(host: &Known, all: &[Known]) -> Known {
    let mut whole = host.clone();
    for nic in all.iter().filter(|one| one.kind == "nic" && one.hosts == host.hosts) {
        if nic.state > whole.state && nic.state > Condition::Unknown {
            let Known { state, since, why, faults, .. } = nic.clone();
            (whole.state, whole.since, whole.why, whole.faults) = (state, since, why, faults);
        }
        whole.repaired |= nic.repaired;
        for (night, cell) in &nic.nights {
            let known = whole.nights.entry(*night).or_insert(*cell);
            if known.0 == cell.0 {
                known.1 = known.1.max(cell.1);
            }
        }
    }
    whole.repaired &= whole.state <= Condition::Unknown;
    whole
}
