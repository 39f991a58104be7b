use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use indexmap::IndexMap;
use railgauge_stats::changepoint::Night;
use railgauge_wire::Metric;

use super::{
    Collected, Ends, Groups, History, Key, Lines, Options, Order, Part, Past, Place, PlanVersion, Standing, Through,
    Trend, Watch,
    absent::Absent,
    breaks::{self, Joined},
    calendar::{self, date},
    dates, epochs,
    places::{self},
    presence::Presence,
    unread,
};
use crate::history::{Stays, Subject, Swap};

/// Later runs of the same night with a value that make up for one without.
const ANSWERS: usize = 3;

/// Turns without a value after which a pair of a rotating plan is missing even on nights of others. A single night may
/// fail, and turns are far apart.
const LOST_TURNS: usize = 2;

pub(crate) struct Everything {
    pub subjects: Vec<Subject>,
    pub series: Vec<Collected>,
    pub places: Vec<Place>,
    pub swaps: Vec<Swap>,
    pub through: Through,
    /// In order of time.
    pub days: Vec<i64>,
    pub groups: BTreeMap<String, Vec<String>>,
    /// Of every rotating plan, by its first version: those of its last one.
    pub groups_of: HashMap<usize, Groups>,
    /// Subjects and metrics that are measured now and never had a value, and the nights due.
    pub never: Vec<(usize, Metric, usize)>,
    /// The trend so far: all that follows from the runs without their values.
    pub trend: Trend,
}

impl History {
    pub(super) fn finish(mut self, options: &Options) -> Everything {
        let past = std::mem::take(&mut self.past);
        let order = Order::new(&past);
        let lines = Lines::new(&order, &self.said);
        let (rotating, drawn) = varying(&order, &lines, &self.said);
        self.add_parts(&rotating, &past);
        let (subjects, settings): (Vec<Subject>, Vec<usize>) = self.subjects.into_iter().unzip();
        let mut words: Vec<_> = self.words.into_iter().collect();
        let mut presence = Presence::new(order.days.last().copied().unwrap_or_default());
        // The newest run of every plan that was to measure a subject, by position in time.
        let mut newest: HashMap<(usize, usize), usize> = HashMap::new();
        let mut latest: HashMap<usize, (usize, i64)> = HashMap::new();
        for (at, &day) in order.days.iter().enumerate() {
            let Past { plan, planned, .. } = order.at(at);
            let line = lines.of(*plan);
            // What a partial run leaves out is due as before.
            if order.at(at).part && !rotating.contains(plan) {
                continue;
            }
            presence.run(line, (*plan, self.said.get(plan)), day, planned.as_deref());
            latest.insert(line, (*plan, day));
            newest.extend(planned.iter().flatten().map(|&subject| ((line, subject), at)));
        }
        let joined = joined(self.series, &order, &lines);
        let swaps = swaps(&order);
        let through = Through::new(self.through, |run| order.of(run));
        let joined = breaks::broken(joined, &swaps, (&subjects, &through), &mut words);
        let mut lost: HashMap<(Watch, usize), HashSet<usize>> = HashMap::new();
        for ((watch, plan), runs) in self.lost {
            lost.entry((watch, lines.of(plan))).or_default().extend(runs.into_iter().map(|run| order.of(run)));
        }
        let known: Vec<(&Key, Vec<usize>)> =
            joined.iter().map(|one| (&one.key, one.points.iter().map(|(place, _)| *place).collect())).collect();
        let absent = Absent::new(&order, &lines, &rotating).of(&known, &lost);
        let mut series: Vec<Collected> = Vec::with_capacity(joined.len());
        // Plan and last version of each, and position of its last value.
        let mut ends: Vec<(usize, usize, usize)> = Vec::with_capacity(joined.len());
        for (Joined { key, about, points }, absent) in joined.iter().zip(absent) {
            let last = points.last().map_or(0, |(place, _)| *place);
            let (metric, part, subject) = match &key.watch {
                Watch::Subject { metric, subject } => (*metric, None, Some(*subject)),
                Watch::Part { metric, part, .. } => (*metric, Some(part.clone()), None),
            };
            let due = subject.and_then(|subject| newest.get(&(key.plan, subject))).copied();
            let version = order.at(due.unwrap_or(last).max(last)).plan;
            ends.push((key.plan, version, last));
            let (nights, unanswered) = of_nights(points, &absent, &order.days, options);
            series.push(Collected {
                subject: *about,
                part,
                metric,
                plan: words[version].to_string(),
                line: key.plan,
                rotating: rotating.contains(&version),
                standing: Standing::Retired,
                gone: Vec::new(),
                hardware: key.hardware.iter().map(|word| words[*word].to_string()).filter(|w| !w.is_empty()).collect(),
                devices: key.hardware,
                nights,
                unanswered,
                place: 0,
            });
        }
        let plans: Vec<(usize, usize)> = ends.iter().map(|(plan, version, _)| (*plan, *version)).collect();
        let accepted = options.epochs.iter().map(|(day, _)| *day).max().unwrap_or(i64::MIN);
        let groups_of = groups_of(&self.said, &lines, &latest, &rotating);
        let kinds = presence.kinds(&subjects, &settings);
        presence.judge(&mut series, &plans, &subjects, (&rotating, &drawn, &groups_of, &kinds), accepted);
        // A night has a value as soon as one of its runs has one: what the newest run lacks is missing too.
        for (one, (plan, _, last)) in series.iter_mut().zip(&ends) {
            let now = latest.get(plan).map(|(_, day)| *day);
            let newest = newest.get(&(*plan, one.subject)).filter(|newest| *newest > last);
            let lost = one.nights.iter().rev().take_while(|night| night.runs.is_empty()).count();
            // A pair of a rotating plan is due at its turn, and after several lost turns until it has a value.
            let due = || lost >= LOST_TURNS && presence.has_turns(*plan, one.subject, &kinds);
            let turn = |newest: &usize| !one.rotating || Some(order.days[*newest]) == now || due();
            if one.part.is_none() && one.standing == Standing::Present && newest.is_some_and(turn) {
                one.standing = Standing::Missing(1);
            }
            // Nights of other pairs' turns do not count.
            if one.rotating && one.part.is_none() && matches!(one.standing, Standing::Missing(_)) {
                one.standing = Standing::Missing(lost.max(1));
            }
            let of_now = !one.rotating || one.nights.last().map(|night| night.day) == now;
            if one.standing != Standing::Present || !of_now {
                one.unanswered = None;
            }
        }
        let measured: HashSet<(&Watch, usize)> = joined.iter().map(|one| (&one.key.watch, one.key.plan)).collect();
        let never = lost.iter().filter(|((watch, plan), _)| !measured.contains(&(watch, *plan)));
        let days: BTreeSet<i64> = order.days.iter().copied().collect();
        let rotates = |places: &HashSet<usize>| places.iter().any(|&place| rotating.contains(&order.at(place).plan));
        let nights_of = |places: &HashSet<usize>| {
            let own: BTreeSet<i64> = places.iter().map(|&place| order.days[place]).collect();
            let first = own.first().copied().unwrap_or(i64::MAX);
            if rotates(places) { own.len() } else { days.range(first..).count() }
        };
        let mut never: Vec<(usize, Metric, usize)> = never
            .filter_map(|((watch, plan), places)| {
                let Watch::Subject { subject, metric } = watch else { return None };
                let nights = nights_of(places);
                let due = presence.expected(*plan, *subject)
                    || rotates(places) && nights >= LOST_TURNS && presence.has_turns(*plan, *subject, &kinds);
                due.then_some((*subject, *metric, nights))
            })
            .collect();
        never.sort_unstable();
        retain_telling(&mut series);
        let places = places::places(&series, &subjects, &settings);
        for (number, place) in places.iter().enumerate() {
            place.members.iter().for_each(|&at| series[at].place = number);
        }
        let name = |past: &Past| self.said.get(&past.plan).map_or("", |said| said.name.as_str());
        let (disorder, doubtful) = dates::disorder(&order, name);
        let silent = past.iter().filter(|past| past.planned.is_some() && !past.valued);
        let corrupt = past.iter().filter(|past| past.corrupt > 0);
        let read: Vec<i64> =
            (0..order.days.len()).filter(|&at| order.at(at).planned.is_some()).map(|at| order.days[at]).collect();
        let mut nights = order.days.clone();
        nights.dedup();
        let trend = Trend {
            runs: (read.len(), read.iter().collect::<BTreeSet<_>>().len()),
            span: nights
                .first()
                .zip(nights.last())
                .map(|(first, last)| (date(*first), date(*last)))
                .unwrap_or_default(),
            torn: unread::is_last(&past, &self.torn),
            silent: silent.map(|past| past.directory.clone()).collect(),
            corrupt: corrupt.map(|past| (past.directory.clone(), past.corrupt)).collect(),
            lacking: unread::lacking(&past, &self.refused),
            reported: self.reported,
            idle: epochs::idle(&options.epochs, &nights),
            gaps: calendar::gaps(&nights).into_iter().map(date).collect(),
            disorder,
            undated: self.misdated || doubtful,
            epochs: epochs::epochs(&order, &lines, options),
            unreadable: self.unreadable,
            ..Trend::default()
        };
        Everything {
            subjects,
            series,
            places,
            swaps,
            through,
            days: order.days,
            groups: self.groups,
            groups_of,
            never,
            trend,
        }
    }
}

/// Versions of plans that measure other pairs each night, by declaration or by running on other hosts: one file on
/// several sets of hosts, or parts of it more often than the whole. And those that run on other hosts.
fn varying(order: &Order<'_>, lines: &Lines, said: &HashMap<usize, PlanVersion>) -> (HashSet<usize>, HashSet<usize>) {
    #[derive(Default)]
    struct Line<'a> {
        versions: HashSet<usize>,
        of_file: HashMap<&'a str, &'a HashSet<String>>,
        parts: usize,
        wholes: usize,
        drawn: bool,
    }
    let mut all: HashMap<usize, Line<'_>> = HashMap::new();
    for past in order.past {
        let line = all.entry(lines.of(past.plan)).or_default();
        line.versions.insert(past.plan);
        let Some(said) = said.get(&past.plan) else { continue };
        if past.part {
            line.parts += 1;
        } else {
            line.wholes += 1;
            line.drawn |= *line.of_file.entry(&past.plan_hash).or_insert(&said.hosts) != &said.hosts;
        }
    }
    let (mut rotating, mut drawn) = (HashSet::new(), HashSet::new());
    for line in all.into_values() {
        let other_hosts = line.drawn || line.parts > line.wholes;
        let rotates = |version: &&usize| said.get(version).is_some_and(|said| said.rotates);
        rotating.extend(line.versions.iter().filter(|version| other_hosts || rotates(version)));
        drawn.extend(line.versions.iter().filter(|_| other_hosts));
    }
    (rotating, drawn)
}

/// Groups of every rotating plan, by its first version: those of all its hosts.
fn groups_of(
    said: &HashMap<usize, PlanVersion>,
    lines: &Lines,
    latest: &HashMap<usize, (usize, i64)>,
    rotating: &HashSet<usize>,
) -> HashMap<usize, Groups> {
    let of_line = |(line, (last, _)): (&usize, &(usize, i64))| {
        let all = said
            .iter()
            .filter(|(version, _)| lines.of(**version) == *line && is_on_other_hosts(said, **version, *last));
        let (mut groups, mut hosts) = (BTreeMap::<String, BTreeSet<&String>>::new(), BTreeSet::new());
        for (_, one) in all {
            hosts.extend(one.hosts.iter().map(String::as_str));
            one.groups.iter().for_each(|(name, of)| groups.entry(name.clone()).or_default().extend(of));
        }
        let groups = groups.into_iter().map(|(name, of)| (name, of.into_iter().cloned().collect())).collect();
        (*line, Groups::new(&groups, hosts.iter().copied()))
    };
    latest.iter().filter(|(_, (last, _))| rotating.contains(last)).map(of_line).collect()
}

/// Whether a version is the last one, perhaps on other hosts: a group that an edit removed is gone.
fn is_on_other_hosts(said: &HashMap<usize, PlanVersion>, version: usize, last: usize) -> bool {
    let (one, other) = (&said[&version], &said[&last]);
    version == last || one.hosts != other.hosts && one.tests == other.tests
}

fn joined(series: IndexMap<Key, (usize, Vec<(u32, f64)>)>, order: &Order<'_>, lines: &Lines) -> Vec<Joined> {
    let mut joined: IndexMap<Key, Joined> = IndexMap::new();
    for (key, (about, points)) in series {
        let key = Key { plan: lines.of(key.plan), ..key };
        let one = joined.entry(key.clone()).or_insert_with(|| Joined { key, about, points: Vec::new() });
        one.points.extend(points.into_iter().map(|(run, value)| (order.of(run), value)));
    }
    let mut joined: Vec<Joined> = joined.into_values().collect();
    joined.iter_mut().for_each(|one| one.points.sort_by_key(|(place, _)| *place));
    joined
}

fn of_nights(
    points: &[(usize, f64)],
    absent: &[usize],
    days: &[i64],
    options: &Options,
) -> (Vec<Night>, Option<(usize, usize)>) {
    let mut runs: Vec<(usize, Option<f64>)> = points.iter().map(|&(place, value)| (place, Some(value))).collect();
    runs.extend(absent.iter().map(|&place| (place, None)));
    runs.sort_by_key(|(place, _)| *place);
    let mut nights: Vec<Night> = Vec::new();
    // Values since the last run of the night without one.
    let mut answers = 0;
    for (place, value) in runs {
        let day = days[place];
        if nights.last().is_none_or(|night| night.day != day) {
            let epoch = options.epochs.iter().filter(|(first, _)| *first <= day).count() as u64;
            nights.push(Night { day, runs: Vec::new(), lost: 0, epoch });
        }
        let Some(night) = nights.last_mut() else { continue };
        if let Some(value) = value {
            night.runs.push(value);
            answers += 1;
        } else {
            night.lost += 1;
            answers = 0;
        }
    }
    let open = nights.last().filter(|night| night.lost > 0 && answers < ANSWERS);
    let open = open.map(|night| (night.lost, night.lost + night.runs.len()));
    (nights, open)
}

/// Drops redundant parts: a host with one NIC equals that NIC; a single rail or group equals everything.
fn retain_telling(series: &mut Vec<Collected>) {
    let mut rails: HashMap<(&str, Ends), HashSet<u32>> = HashMap::new();
    for one in series.iter() {
        if let Some(Part::Nic(host, ends, rail)) = &one.part {
            rails.entry((host, *ends)).or_default().insert(*rail);
        }
    }
    let mut of_all: HashMap<Ends, HashSet<u32>> = HashMap::new();
    rails.iter().for_each(|((_, ends), rails)| of_all.entry(*ends).or_default().extend(rails));
    let single: HashSet<(String, Ends)> = rails
        .into_iter()
        .filter(|(_, rails)| rails.len() == 1)
        .map(|((host, ends), _)| (host.to_owned(), ends))
        .collect();
    let leave = |one: &Collected| matches!(one.part, Some(Part::Out(_) | Part::Between(..)));
    let grouped = series.iter().any(leave);
    series.retain(|one| match &one.part {
        Some(Part::Within(_)) => grouped,
        Some(Part::Rail(ends, _)) => of_all.get(ends).is_some_and(|all| all.len() > 1),
        Some(Part::Nic(host, ends, _)) => !single.contains(&(host.clone(), *ends)),
        _ => true,
    });
}

fn swaps(order: &Order<'_>) -> Vec<Swap> {
    let mut stays = Stays::default();
    for place in 0..order.runs.len() {
        for (host, slots) in &order.at(place).slots {
            stays.run(place, host, slots);
        }
    }
    stays.swaps()
}
