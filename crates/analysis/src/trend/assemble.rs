use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use indexmap::IndexMap;
use railgauge_stats::changepoint::Night;
use railgauge_wire::Metric;

use super::{
    Collected, Ends, Groups, History, Key, Lines, Options, Order, Part, Past, Place, PlanVersion, Standing, Through,
    Trend, Watch,
    breaks::{self, Joined},
    calendar::{self, date},
    epochs,
    lines::Varying,
    places,
    presence::{Absent, LOST_TURNS, Planned, Presence},
    runs,
};
use crate::history::{Stays, Subject, Swap};

/// Later runs of the same night with a value that make up for one without.
const ANSWERS: usize = 3;

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
        let varying = Varying::new(&order, &lines, &self.said);
        self.add_parts(&varying.rotating, &past);
        let trend = self.of_runs(&order, &lines, options);
        let (subjects, settings): (Vec<Subject>, Vec<usize>) = self.subjects.into_iter().unzip();
        let mut words: Vec<_> = self.words.into_iter().collect();
        // What a partial run leaves out is due as before.
        let counts = |&at: &usize| !order.at(at).part || varying.rotating.contains(&order.at(at).plan);
        let counted: Vec<usize> = (0..order.days.len()).filter(counts).collect();
        let planned = |&at: &usize| {
            let Past { plan, planned, .. } = order.at(at);
            let (line, said) = (lines.of(*plan), self.said.get(plan));
            Planned { line, version: *plan, said, day: order.days[at], planned: planned.as_deref() }
        };
        let last = order.days.last().copied().unwrap_or_default();
        let presence = Presence::new((&subjects, &settings), last, counted.iter().map(planned));
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
        let absent = Absent::new(&order, &lines, &varying.rotating).of(&known, &lost);
        let newest = counted.iter().flat_map(|&at| {
            let line = lines.of(order.at(at).plan);
            order.at(at).planned.iter().flatten().map(move |&subject| ((line, subject), at))
        });
        let collect = Collect { order: &order, varying: &varying, words: &words, newest: newest.collect(), options };
        let mut series: Vec<Collected> =
            joined.iter().zip(absent).map(|(one, absent)| collect.series(one, &absent)).collect();
        let groups_of = groups_of(&self.said, &lines, &presence, &varying.rotating);
        let accepted = options.epochs.iter().map(|(day, _)| *day).max().unwrap_or(i64::MIN);
        presence.judge(&mut series, &varying, &groups_of, (&order.days, accepted));
        let measured: HashSet<(&Watch, usize)> = joined.iter().map(|one| (&one.key.watch, one.key.plan)).collect();
        let never = lost.iter().filter(|((watch, plan), _)| !measured.contains(&(watch, *plan)));
        let mut never: Vec<_> = never
            .filter_map(|((watch, plan), places)| never_valued((watch, *plan), places, &order, &varying, &presence))
            .collect();
        never.sort_unstable();
        retain_telling(&mut series);
        let places = places::places(&series, &subjects, &settings);
        for (number, place) in places.iter().enumerate() {
            place.members.iter().for_each(|&at| series[at].place = number);
        }
        let (days, groups) = (order.days, self.groups);
        Everything { subjects, series, places, swaps, through, days, groups, groups_of, never, trend }
    }

    /// What follows from the runs without their values.
    fn of_runs(&mut self, order: &Order<'_>, lines: &Lines, options: &Options) -> Trend {
        let past = order.past;
        let name = |past: &Past| self.said.get(&past.plan).map_or("", |said| said.name.as_str());
        let (disorder, doubtful) = runs::disorder(order, name);
        let silent = past.iter().filter(|past| past.planned.is_some() && !past.valued);
        let corrupt = past.iter().filter(|past| past.corrupt > 0);
        let read: Vec<i64> =
            (0..order.days.len()).filter(|&at| order.at(at).planned.is_some()).map(|at| order.days[at]).collect();
        let mut nights = order.days.clone();
        nights.dedup();
        let ends = nights.first().zip(nights.last());
        Trend {
            runs: (read.len(), read.iter().collect::<BTreeSet<_>>().len()),
            span: ends.map(|(first, last)| (date(*first), date(*last))).unwrap_or_default(),
            torn: runs::is_last(past, &self.torn),
            silent: silent.map(|past| past.directory.clone()).collect(),
            corrupt: corrupt.map(|past| (past.directory.clone(), past.corrupt)).collect(),
            lacking: runs::lacking(past, &self.refused),
            reported: std::mem::take(&mut self.reported),
            idle: epochs::idle(&options.epochs, &nights),
            gaps: calendar::gaps(&nights).into_iter().map(date).collect(),
            disorder,
            undated: self.misdated || doubtful,
            epochs: epochs::epochs(order, lines, options),
            unreadable: std::mem::take(&mut self.unreadable),
            ..Trend::default()
        }
    }
}

/// From the values of a series to its nights.
struct Collect<'a> {
    order: &'a Order<'a>,
    varying: &'a Varying,
    words: &'a [Arc<str>],
    /// The newest run of every plan that was to measure a subject, by position in time.
    newest: HashMap<(usize, usize), usize>,
    options: &'a Options,
}

impl Collect<'_> {
    fn series(&self, Joined { key, about, points }: &Joined, absent: &[usize]) -> Collected {
        let last = points.last().map_or(0, |(place, _)| *place);
        let (metric, part, newest) = match &key.watch {
            Watch::Subject { metric, subject } => (*metric, None, self.newest.get(&(key.plan, *subject)).copied()),
            Watch::Part { metric, part, .. } => (*metric, Some(part.clone()), None),
        };
        let version = self.order.at(newest.unwrap_or(last).max(last)).plan;
        let (nights, unanswered) = of_nights(points, absent, &self.order.days, self.options);
        let hardware = key.hardware.iter().map(|word| self.words[*word].to_string());
        Collected {
            subject: *about,
            part,
            metric,
            plan: self.words[version].to_string(),
            line: key.plan,
            version,
            last,
            newest,
            rotating: self.varying.rotating.contains(&version),
            standing: Standing::Retired,
            gone: Vec::new(),
            hardware: hardware.filter(|word| !word.is_empty()).collect(),
            devices: key.hardware,
            nights,
            unanswered,
            place: 0,
        }
    }
}

/// Subject, metric, and nights due of what never had a value although runs at these positions in time should have one.
fn never_valued(
    (watch, plan): (&Watch, usize),
    places: &HashSet<usize>,
    order: &Order<'_>,
    varying: &Varying,
    presence: &Presence<'_>,
) -> Option<(usize, Metric, usize)> {
    let Watch::Subject { subject, metric } = *watch else { return None };
    let own: BTreeSet<i64> = places.iter().map(|&place| order.days[place]).collect();
    let first = own.first().copied().unwrap_or(i64::MAX);
    let rotates = places.iter().any(|&place| varying.rotating.contains(&order.at(place).plan));
    let since = order.days.iter().filter(|day| **day >= first).collect::<BTreeSet<_>>().len();
    let nights = if rotates { own.len() } else { since };
    let due = presence.expected(plan, subject) || rotates && nights >= LOST_TURNS && presence.has_turns(plan, subject);
    due.then_some((subject, metric, nights))
}

/// Groups of every rotating plan, by its first version: those of all its hosts.
fn groups_of(
    said: &HashMap<usize, PlanVersion>,
    lines: &Lines,
    presence: &Presence<'_>,
    rotating: &HashSet<usize>,
) -> HashMap<usize, Groups> {
    let of_line = |(line, last): (usize, usize)| {
        let all =
            said.iter().filter(|(version, _)| lines.of(**version) == line && is_on_other_hosts(said, **version, last));
        let (mut groups, mut hosts) = (BTreeMap::<String, BTreeSet<&String>>::new(), BTreeSet::new());
        for (_, one) in all {
            hosts.extend(one.hosts.iter().map(String::as_str));
            one.groups.iter().for_each(|(name, of)| groups.entry(name.clone()).or_default().extend(of));
        }
        let groups = groups.into_iter().map(|(name, of)| (name, of.into_iter().cloned().collect())).collect();
        (line, Groups::new(&groups, hosts.iter().copied()))
    };
    presence.lines().filter(|(_, last)| rotating.contains(last)).map(of_line).collect()
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
