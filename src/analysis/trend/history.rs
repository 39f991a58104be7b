//! Collects runs, in any order, and makes series of nights of them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use jiff::Timestamp;
use railgauge_stats::changepoint::Night;
use railgauge_wire::{facts::HostFacts, terms::Metric};
use sha2::{Digest, Sha256};

use super::{
    Options,
    calendar::nights,
    epochs::{Epoch, Shelf, Software, Walk},
    parts::{self, Part, sign},
    presence::{Presence, Standing},
};
use crate::{
    analysis::{
        history::{Run, RunError, Subject},
        row::Reading,
    },
    schedule::Flow,
};

/// What one series is of: the same subject, plan and hardware; or a part under the same plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Subject { subject: usize, metric: Metric, plan: usize, hardware: [usize; 2] },
    Part { kind: String, metric: Metric, plan: usize, part: Part },
}

/// One run without its values.
#[derive(Debug)]
struct Past {
    started: Timestamp,
    version: String,
    plan: usize,
    /// Numbers of the subjects that were planned; `None` where it ended before anything was.
    planned: Option<Vec<usize>>,
    software: BTreeMap<String, Software>,
}

/// Collects runs.
#[derive(Debug, Default)]
pub struct History {
    subjects: HashMap<Subject, usize>,
    words: HashMap<Arc<str>, usize>,
    series: HashMap<Key, usize>,
    /// A subject that every series is about, or an example of those a part is in.
    about: Vec<usize>,
    /// Number of the run and natural logarithm, series by series; logarithms of what should be low with the other sign.
    points: Vec<Vec<(u32, f64)>>,
    /// Subjects, metrics and plans of cases without a value, with the first run of them.
    empty: HashMap<(usize, Metric, usize), usize>,
    /// Plans that measure other pairs each night.
    rotating: HashSet<usize>,
    /// Whether the last of the directories could not be read.
    torn: bool,
    past: Vec<Past>,
    shelf: Shelf,
    groups: BTreeMap<String, Vec<String>>,
    unreadable: Vec<(String, String)>,
}

/// A series with all its nights.
pub(super) struct Collected {
    /// What it is about, or an example of what the part is in.
    pub subject: usize,
    pub part: Option<Part>,
    pub metric: Metric,
    pub plan: String,
    /// Whether its plan measures other pairs each night.
    pub rotating: bool,
    /// Whether it has the values it should have.
    pub standing: Standing,
    pub hardware: Vec<String>,
    pub nights: Vec<Night>,
}

/// Everything there is.
pub(super) struct Everything {
    pub subjects: Vec<Subject>,
    pub series: Vec<Collected>,
    pub epochs: Vec<Epoch>,
    /// Nights with a run, in order.
    pub nights: Vec<i64>,
    pub runs: usize,
    pub groups: BTreeMap<String, Vec<String>>,
    pub unreadable: Vec<(String, String)>,
    pub torn: bool,
    /// Subjects and metrics that are measured now and never had a value, and the first night of that.
    pub never: Vec<(usize, Metric, i64)>,
}

impl History {
    /// Notes a directory whose run cannot be read: it is left out and said. Runs are given in the order of their names, so
    /// the last night is unknown if the last of them cannot be read.
    pub fn unreadable(&mut self, directory: &Path, why: &RunError) {
        self.unreadable.push((directory.display().to_string(), why.to_string()));
        match why {
            RunError::Copy { .. } => {}
            // A night of the plan all the same, on which everything is missing.
            RunError::Unplanned { run, .. } => {
                let plan = self.plan(run);
                self.past(run, plan, None);
            }
            _ => self.torn = true,
        }
    }

    /// The number of a run's plan.
    fn plan(&mut self, run: &Run) -> usize {
        let plan = self.word(&identity_of_plan(run));
        if run.plan.rotate.is_some() {
            self.rotating.insert(plan);
        }
        plan
    }

    fn past(&mut self, run: &Run, plan: usize, planned: Option<Vec<usize>>) {
        let software = run.hosts.iter().map(|(host, facts)| (host.clone(), self.shelf.software(facts))).collect();
        self.past.push(Past { started: run.started, version: run.version.clone(), plan, planned, software });
        self.torn = false;
    }

    /// Adds a run.
    pub fn add(&mut self, mut run: Run) {
        // Four billion runs do not fit onto a disk.
        let number = u32::try_from(self.past.len()).unwrap_or(u32::MAX);
        let plan = self.plan(&run);
        let subjects = Subject::take(&mut run);
        let hardware: Vec<[usize; 2]> = self.hardware(&run, &subjects);
        let pairs = if self.rotating.contains(&plan) { subjects.clone() } else { Vec::new() };
        let numbers: Vec<usize> = subjects
            .into_iter()
            .map(|subject| {
                let next = self.subjects.len();
                *self.subjects.entry(subject).or_insert(next)
            })
            .collect();
        let mut night = parts::Night::default();
        for (reading, hardware) in run.readings.iter().zip(hardware) {
            // The reader of a run leaves out what was not planned.
            let Some(&subject) = usize::try_from(reading.case).ok().and_then(|case| numbers.get(case)) else {
                continue;
            };
            let metric = reading.metric;
            let Ok(value) = &reading.value else {
                self.empty.entry((subject, metric, plan)).or_insert(number as usize);
                continue;
            };
            let value = sign(metric) * value.ln();
            if let Some(known) = usize::try_from(reading.case).ok().and_then(|case| pairs.get(case)) {
                night.add(subject, known, metric, value);
            }
            self.point(Key::Subject { subject, metric, plan, hardware }, subject, (number, value));
        }
        for ((kind, metric, part), subject, value) in night.values() {
            self.point(Key::Part { kind, metric, plan, part }, subject, (number, value));
        }
        self.past(&run, plan, Some(numbers));
        self.groups.extend(run.plan.groups);
    }

    fn point(&mut self, key: Key, about: usize, point: (u32, f64)) {
        let next = self.points.len();
        let series = *self.series.entry(key).or_insert(next);
        if series == next {
            self.points.push(Vec::new());
            self.about.push(about);
        }
        self.points[series].push(point);
    }

    /// The hardware behind every reading. A pair has its two devices; what a collective uses is the library's choice, so
    /// a group is known by its hosts alone.
    fn hardware(&mut self, run: &Run, subjects: &[Subject]) -> Vec<[usize; 2]> {
        let mut known: HashMap<(Arc<str>, Arc<str>), usize> = HashMap::new();
        let none = self.word("");
        let mut of = |host: &Arc<str>, device: &Arc<str>| {
            if let Some(&word) = known.get(&(host.clone(), device.clone())) {
                return word;
            }
            let word = self.word(&identity(run.hosts.get(&**host), device));
            known.insert((host.clone(), device.clone()), word);
            word
        };
        let flow =
            |reading: &Reading| -> Option<&Flow> { Some(&subjects.get(usize::try_from(reading.case).ok()?)?.flow) };
        let mut both = |reading: &Reading| match flow(reading) {
            Some(flow) if flow.members.is_empty() => {
                let [from, to] = &reading.devices;
                [of(&flow.from.host, from), of(&flow.to.host, to)]
            }
            _ => [none, none],
        };
        run.readings.iter().map(&mut both).collect()
    }

    fn word(&mut self, word: &str) -> usize {
        if let Some(&known) = self.words.get(word) {
            return known;
        }
        let next = self.words.len();
        self.words.insert(word.into(), next);
        next
    }

    /// Nights, epochs and series.
    pub(super) fn finish(self, options: &Options) -> Everything {
        let subjects = sorted(self.subjects);
        let words = sorted(self.words);
        let keys = sorted(self.series);
        let mut order: Vec<usize> = (0..self.past.len()).collect();
        order.sort_by_key(|&run| self.past[run].started);
        let days = nights(&order.iter().map(|&run| self.past[run].started).collect::<Vec<_>>());
        // Place in time of every run, and its night.
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &run)| place[run] = at);

        let mut presence = Presence::new(days.last().copied().unwrap_or_default());
        for (&run, &day) in order.iter().zip(&days) {
            let Past { plan, planned, .. } = &self.past[run];
            presence.run(*plan, day, planned.as_deref());
        }
        // The newest run of every plan that was to measure a subject, by its place in time.
        let mut newest: HashMap<(usize, usize), usize> = HashMap::new();
        for (at, &run) in order.iter().enumerate() {
            let Past { plan, planned, .. } = &self.past[run];
            newest.extend(planned.iter().flatten().map(|&subject| ((*plan, subject), at)));
        }
        let mut last: Vec<usize> = Vec::with_capacity(keys.len());
        let epochs = epochs(&self.past, &order, &days, options);
        let mut series: Vec<Collected> = Vec::with_capacity(keys.len());
        let mut plans: Vec<usize> = Vec::with_capacity(keys.len());
        for ((key, mut points), about) in keys.iter().zip(self.points).zip(self.about) {
            points.sort_by_key(|(run, _)| place[*run as usize]);
            last.push(points.last().map_or(0, |(run, _)| place[*run as usize]));
            let mut nights: Vec<Night> = Vec::new();
            for (run, value) in points {
                let day = days[place[run as usize]];
                match nights.last_mut() {
                    Some(night) if night.day == day => night.runs.push(value),
                    _ => nights.push(Night {
                        day,
                        runs: vec![value],
                        lost: 0,
                        epoch: epochs.1.get(&day).copied().unwrap_or(0),
                    }),
                }
            }
            let (metric, plan, part, hardware) = match key {
                Key::Subject { metric, plan, hardware, .. } => (*metric, *plan, None, &hardware[..]),
                Key::Part { metric, plan, part, .. } => (*metric, *plan, Some(part.clone()), &[][..]),
            };
            let hardware = hardware.iter().map(|word| words[*word].to_string());
            plans.push(plan);
            series.push(Collected {
                subject: about,
                part,
                metric,
                plan: words[plan].to_string(),
                rotating: self.rotating.contains(&plan),
                standing: Standing::Retired,
                hardware: hardware.filter(|word| !word.is_empty()).collect(),
                nights,
            });
        }
        presence.judge(&mut series, &plans, &subjects);
        // A night has a value as soon as one of its runs has: what the newest run that was to measure it lacks is missing too.
        for ((one, plan), last) in series.iter_mut().zip(&plans).zip(last) {
            let due = newest.get(&(*plan, one.subject)).is_some_and(|newest| *newest > last);
            if one.part.is_none() && one.standing == Standing::Present && due {
                one.standing = Standing::Missing(1);
            }
        }
        let measured: HashSet<(usize, Metric, usize)> = series
            .iter()
            .zip(&plans)
            .filter(|(s, _)| s.part.is_none())
            .map(|(s, plan)| (s.subject, s.metric, *plan))
            .collect();
        let lacking = self.empty.iter().filter(|(key, _)| !measured.contains(key) && presence.expected(key.2, key.0));
        let mut never: Vec<(usize, Metric, i64)> =
            lacking.map(|(key, run)| (key.0, key.1, days[place[*run]])).collect();
        never.sort_unstable();
        // A host of one NIC is that NIC, and one rail is everything.
        let rails = |host: Option<&str>| {
            let of = |part: &Part| match part {
                Part::Nic(name, rail) if host.is_none_or(|host| host == name) => Some(*rail),
                _ => None,
            };
            series.iter().filter_map(|one| of(one.part.as_ref()?)).collect::<HashSet<_>>().len()
        };
        let several = rails(None) > 1;
        let hosts: HashSet<String> = series
            .iter()
            .filter_map(|one| match &one.part {
                Some(Part::Nic(host, _)) => Some(host.clone()),
                _ => None,
            })
            .collect();
        let single: HashSet<String> = hosts.into_iter().filter(|host| rails(Some(host)) == 1).collect();
        series.retain(|one| match &one.part {
            Some(Part::Rail(_)) => several,
            Some(Part::Nic(host, _)) => !single.contains(host),
            _ => true,
        });
        let mut nights = days;
        nights.dedup();
        Everything {
            subjects,
            series,
            epochs: epochs.0,
            nights,
            runs: order.len(),
            groups: self.groups,
            unreadable: self.unreadable,
            torn: self.torn,
            never,
        }
    }
}

/// What was changed on purpose, and the declared epoch of every day with a run.
fn epochs(past: &[Past], order: &[usize], days: &[i64], options: &Options) -> (Vec<Epoch>, BTreeMap<i64, u64>) {
    let mut declared = options.epochs.clone();
    declared.sort();
    let mut declared = declared.into_iter().peekable();
    let mut walk = Walk::default();
    let mut of_day = BTreeMap::new();
    for (&run, &day) in order.iter().zip(days) {
        while let Some((day, what)) = declared.next_if(|(first, _)| *first <= day) {
            walk.declare(day, &what);
        }
        walk.run(day, &past[run].version, &past[run].software);
        of_day.insert(day, walk.epoch());
    }
    (walk.finish(), of_day)
}

/// What makes two plans one: the file, or for a plan that rotates everything it says but the seed and the turn.
fn identity_of_plan(run: &Run) -> String {
    if run.plan.rotate.is_none() {
        return run.plan_hash.clone();
    }
    let mut plan = run.plan.clone();
    (plan.seed, plan.rotate) = (0, Some(0));
    // A plan that was read from a journal can be written again; if not, the file tells it from others.
    let text = serde_json::to_vec(&plan).unwrap_or_else(|_| run.plan_hash.clone().into_bytes());
    Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the number of each thing is, turned round.
fn sorted<T>(numbers: HashMap<T, usize>) -> Vec<T> {
    let mut list: Vec<(T, usize)> = numbers.into_iter().collect();
    list.sort_unstable_by_key(|(_, number)| *number);
    list.into_iter().map(|(thing, _)| thing).collect()
}

/// What tells a device from the one that took its place: its GUID or, where that is not known, its board; empty for a
/// network interface, of which no such thing is recorded.
fn identity(host: Option<&HostFacts>, device: &str) -> String {
    let name = device.split(':').next().unwrap_or(device);
    let found = host.and_then(|host| host.rdma.iter().find(|known| known.name == name));
    found.and_then(|device| device.guid.clone().or_else(|| device.board.clone())).unwrap_or_default()
}
