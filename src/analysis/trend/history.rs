//! Collects runs, in any order, and makes series of nights of them.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
};

use jiff::Timestamp;
use railgauge_stats::changepoint::Night;
use railgauge_wire::{facts::HostFacts, terms::Metric};

use super::{
    Options,
    calendar::nights,
    epochs::{Epoch, Shelf, Software, Walk},
};
use crate::{
    analysis::{
        history::{Run, Subject},
        row::Reading,
    },
    schedule::Flow,
};

/// What one series is of: the same subject, plan and hardware.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    subject: usize,
    metric: Metric,
    plan: usize,
    hardware: [usize; 2],
}

/// One run without its values.
#[derive(Debug)]
struct Past {
    started: Timestamp,
    version: String,
    software: BTreeMap<String, Software>,
}

/// Collects runs.
#[derive(Debug, Default)]
pub struct History {
    subjects: HashMap<Subject, usize>,
    words: HashMap<Arc<str>, usize>,
    series: HashMap<Key, usize>,
    /// Number of the run and natural logarithm, series by series.
    points: Vec<Vec<(u32, f64)>>,
    past: Vec<Past>,
    shelf: Shelf,
    groups: BTreeMap<String, Vec<String>>,
    unreadable: Vec<(String, String)>,
}

/// A series with all its nights.
pub(super) struct Collected {
    pub subject: usize,
    pub metric: Metric,
    pub plan: String,
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
}

impl History {
    /// Notes a directory whose run cannot be read: it is left out and said.
    pub fn unreadable(&mut self, directory: &Path, why: &dyn std::fmt::Display) {
        self.unreadable.push((directory.display().to_string(), why.to_string()));
    }

    /// Adds a run.
    pub fn add(&mut self, mut run: Run) {
        // Four billion runs do not fit onto a disk.
        let number = u32::try_from(self.past.len()).unwrap_or(u32::MAX);
        let software = run.hosts.iter().map(|(host, facts)| (host.clone(), self.shelf.software(facts))).collect();
        self.past.push(Past { started: run.started, version: std::mem::take(&mut run.version), software });
        let plan = self.word(&run.plan_hash);
        let subjects = Subject::take(&mut run);
        let hardware: Vec<[usize; 2]> = self.hardware(&run, &subjects);
        let numbers: Vec<usize> = subjects
            .into_iter()
            .map(|subject| {
                let next = self.subjects.len();
                *self.subjects.entry(subject).or_insert(next)
            })
            .collect();
        for (reading, hardware) in run.readings.iter().zip(hardware) {
            let Ok(value) = &reading.value else { continue };
            // The reader of a run leaves out what was not planned.
            let Some(&subject) = usize::try_from(reading.case).ok().and_then(|case| numbers.get(case)) else {
                continue;
            };
            let next = self.points.len();
            let key = Key { subject, metric: reading.metric, plan, hardware };
            let series = *self.series.entry(key).or_insert(next);
            if series == next {
                self.points.push(Vec::new());
            }
            self.points[series].push((number, value.ln()));
        }
        self.groups.extend(run.plan.groups);
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

        let mut series: Vec<Collected> = Vec::with_capacity(keys.len());
        for (key, mut points) in keys.into_iter().zip(self.points) {
            points.sort_by_key(|(run, _)| place[*run as usize]);
            let mut nights: Vec<Night> = Vec::new();
            for (run, value) in points {
                let day = days[place[run as usize]];
                match nights.last_mut() {
                    Some(night) if night.day == day => night.runs.push(value),
                    _ => nights.push(Night { day, runs: vec![value], epoch: 0 }),
                }
            }
            let hardware = key.hardware.map(|word| words[word].to_string());
            series.push(Collected {
                subject: key.subject,
                metric: key.metric,
                plan: words[key.plan].to_string(),
                hardware: hardware.into_iter().filter(|word| !word.is_empty()).collect(),
                nights,
            });
        }

        let mut declared = options.epochs.clone();
        declared.sort();
        let mut declared = declared.into_iter().peekable();
        let mut walk = Walk::default();
        let mut next = vec![0; series.len()];
        for (&run, &day) in order.iter().zip(&days) {
            while let Some((day, what)) = declared.next_if(|(first, _)| *first <= day) {
                walk.declare(day, &what);
            }
            let past = &self.past[run];
            walk.run(day, &past.version, &past.software);
            for (series, next) in series.iter_mut().zip(&mut next) {
                let Some(night) = series.nights.get_mut(*next).filter(|night| night.day <= day) else { continue };
                let hosts = subjects[series.subject].flow.hosts();
                night.epoch = walk.epoch(hosts.into_iter().map(|host| &**host));
                *next += 1;
            }
        }
        let mut nights = days;
        nights.dedup();
        Everything {
            subjects,
            series,
            epochs: walk.finish(),
            nights,
            runs: order.len(),
            groups: self.groups,
            unreadable: self.unreadable,
        }
    }
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
