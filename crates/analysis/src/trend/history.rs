use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::Hash,
    path::Path,
    sync::Arc,
};

use indexmap::{IndexMap, IndexSet};
use jiff::Timestamp;
use railgauge_model::{border::text::path_text, plan::model::Plan, schedule::Flow};
use railgauge_wire::{HostFacts, Metric, facts::port_name};
use sha2::{Digest, Sha256};

use super::{
    Groups, Part, Reported,
    calendar::nights,
    parts::{self, sign},
};
use crate::{
    history::{Fitted, Run, RunError, Subject, fitted, shape},
    journal::times::impossible,
    row::Reading,
    settings,
};

/// A watched quantity under one plan, on any hardware: a metric of a subject, or of a part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Watch {
    Subject { subject: usize, metric: Metric },
    Part { kind: String, metric: Metric, part: Part, settings: usize },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub watch: Watch,
    pub plan: usize,
    pub hardware: [usize; 2],
}

pub(super) type Devices = [Arc<str>; 2];

/// Software of a host by name. Shared, because it is equal on most nights.
pub(super) type Software = Arc<Vec<(String, String)>>;

/// The slots of a host. Shared, because they are equal on most nights.
type Slots = Arc<Vec<Fitted>>;

/// The known one that equals another.
fn shared<T: Eq + Hash>(known: &mut HashSet<Arc<T>>, one: T) -> Arc<T> {
    known.get(&one).cloned().unwrap_or_else(|| {
        let one = Arc::new(one);
        known.insert(one.clone());
        one
    })
}

#[derive(Debug)]
pub(crate) struct Past {
    pub directory: String,
    pub started: Timestamp,
    pub version: String,
    pub plan: usize,
    pub plan_hash: String,
    pub part: bool,
    /// Numbers of the planned subjects; `None` where it ended before planning.
    pub planned: Option<Vec<usize>>,
    pub valued: bool,
    pub corrupt: usize,
    pub software: BTreeMap<String, Software>,
    pub slots: BTreeMap<String, Slots>,
}

#[derive(Debug)]
pub(crate) struct PlanVersion {
    pub name: String,
    pub hosts: HashSet<String>,
    pub groups: BTreeMap<String, Vec<String>>,
    pub rotates: bool,
    pub part: bool,
    pub tests: BTreeMap<String, BTreeMap<String, String>>,
}

pub(crate) struct Order<'a> {
    pub past: &'a [Past],
    pub runs: Vec<usize>,
    pub days: Vec<i64>,
    pub place: Vec<usize>,
}

impl<'a> Order<'a> {
    pub(super) fn new(past: &'a [Past]) -> Self {
        let mut runs: Vec<usize> = (0..past.len()).collect();
        runs.sort_by_key(|&run| past[run].started);
        let days = nights(&runs.iter().map(|&run| past[run].started).collect::<Vec<_>>());
        let mut place = vec![0; runs.len()];
        runs.iter().enumerate().for_each(|(at, &run)| place[run] = at);
        Self { past, runs, days, place }
    }

    pub(super) fn at(&self, place: usize) -> &'a Past {
        &self.past[self.runs[place]]
    }

    pub(super) fn of(&self, run: u32) -> usize {
        self.place[run as usize]
    }
}

#[derive(Debug, Default)]
pub struct History {
    /// Subjects, with the number of the settings that affect their values: other settings make another subject.
    pub(super) subjects: IndexSet<(Subject, usize)>,
    pub(super) words: IndexSet<Arc<str>>,
    /// A subject of each, and by run the natural logarithm, negated where lower is better.
    pub(super) series: IndexMap<Key, (usize, Vec<(u32, f64)>)>,
    pub(super) lost: HashMap<(Watch, usize), Vec<u32>>,
    pub(super) said: HashMap<usize, PlanVersion>,
    pub(super) through: HashMap<usize, Vec<(u32, Devices)>>,
    pub(super) past: Vec<Past>,
    software: HashSet<Software>,
    slots: HashSet<Slots>,
    pub(super) groups: BTreeMap<String, Vec<String>>,
    pub(super) unreadable: Vec<(String, String)>,
    pub(super) torn: Vec<(usize, String)>,
    pub(super) refused: Vec<String>,
    /// The controller's clock: runs must not be later.
    pub(super) now: Option<Timestamp>,
    pub(super) misdated: bool,
    pub(super) reported: Vec<Reported>,
}

impl History {
    /// Collects runs before now by the controller's clock; notes and leaves out runs with impossible dates.
    pub fn until(now: Timestamp) -> Self {
        Self { now: Some(now), ..Self::default() }
    }

    /// Notes and leaves out a directory whose run cannot be read. Runs arrive in the order of their names, so the last
    /// night is unknown if the last run cannot be read.
    pub fn unreadable(&mut self, directory: &Path, why: &RunError) {
        let name = path_text(directory);
        // Still a night of the plan, on which everything is missing.
        if let RunError::Unplanned { run, .. } = why
            && self.is_dated(run)
        {
            let plan = self.plan(run);
            self.past(run, plan, None);
        }
        match why {
            // A copy with a name like the original's is in the place of a night of its own.
            RunError::Copy { original, .. } if shape(&name) == shape(&path_text(original)) => {
                self.torn.push((self.past.len(), name.clone()));
            }
            // Imported runs are not nights, and none is missing for them.
            RunError::Copy { .. } | RunError::Unplanned { .. } | RunError::Imported { .. } => {}
            _ => {
                self.torn.push((self.past.len(), name.clone()));
                self.refused.push(name.clone());
            }
        }
        self.unreadable.push((name, why.to_string()));
    }

    fn is_dated(&mut self, run: &Run) -> bool {
        let Some(why) = self.now.and_then(|now| refused(run.started, now)) else { return true };
        let name = path_text(&run.path);
        self.refused.push(name.clone());
        self.unreadable.push((name, why));
        self.misdated = true;
        false
    }

    fn plan(&mut self, run: &Run) -> usize {
        let said = said(&run.plan);
        let mut hosts: Vec<&String> = said.hosts.iter().collect();
        hosts.sort_unstable();
        // The file of a rotating plan may have another seed each night.
        let file = (!said.rotates).then_some(&run.plan_hash);
        let text = format!("{:?}", (file, &said.name, &said.tests, said.rotates, said.part, &said.groups, hosts));
        let plan = self.word(&hex::encode(Sha256::digest(&text)));
        self.said.entry(plan).or_insert(said);
        plan
    }

    fn past(&mut self, run: &Run, plan: usize, planned: Option<Vec<usize>>) {
        let (mut software, mut slots) = (BTreeMap::new(), BTreeMap::new());
        for (host, facts) in &run.hosts {
            software.insert(host.clone(), shared(&mut self.software, railgauge_preflight::software(facts)));
            slots.insert(host.clone(), shared(&mut self.slots, fitted(facts)));
        }
        let corrupt = run.readings.iter().filter(|reading| reading.wrong > 0).map(|reading| reading.case);
        self.past.push(Past {
            directory: path_text(&run.path),
            started: run.started,
            version: run.version.clone(),
            plan,
            plan_hash: run.plan_hash.clone(),
            part: run.plan.subset.is_some(),
            valued: planned.is_some() && run.readings.iter().any(|reading| reading.value.is_ok()),
            planned,
            corrupt: corrupt.collect::<HashSet<u64>>().len(),
            software,
            slots,
        });
    }

    pub fn add(&mut self, mut run: Run) {
        if !self.is_dated(&run) {
            return;
        }
        // Four billion runs do not fit onto a disk.
        let number = u32::try_from(self.past.len()).unwrap_or(u32::MAX);
        let plan = self.plan(&run);
        let settings = self.settings(&run.plan);
        let subjects = Subject::take(&mut run);
        let numbers: Vec<usize> = subjects
            .into_iter()
            .map(|subject| {
                let settings = settings.get(&*subject.test).copied().unwrap_or_default();
                self.subjects.insert_full((subject, settings)).0
            })
            .collect();
        let mut last: Option<(&Reading, [usize; 2])> = None;
        for reading in &run.readings {
            // The reader of a run drops what was not planned.
            let Some(&subject) = usize::try_from(reading.case).ok().and_then(|case| numbers.get(case)) else {
                continue;
            };
            // Readings of one case follow each other.
            let same = last.filter(|(one, _)| (one.case, &one.devices) == (reading.case, &reading.devices));
            let hardware =
                same.map_or_else(|| self.hardware(&run, subject, &reading.devices), |(_, hardware)| hardware);
            last = Some((reading, hardware));
            let through = self.through.entry(subject).or_default();
            if through.last().is_none_or(|(_, last)| *last != reading.devices) {
                through.push((number, reading.devices.clone()));
            }
            let metric = reading.metric;
            let value = reading.value.as_ref().ok().map(|value| sign(metric) * value.ln());
            self.point(Watch::Subject { subject, metric }, (plan, hardware), subject, (number, value));
        }
        self.past(&run, plan, Some(numbers));
        self.groups.extend(run.plan.groups);
    }

    pub(super) fn add_parts(&mut self, rotating: &HashSet<usize>, past: &[Past]) {
        let none = self.word("");
        let mut nights: BTreeMap<u32, parts::Night> = BTreeMap::new();
        let mut add = |run: u32, subject: usize, metric: Metric, value: Option<f64>| {
            let plan = past[run as usize].plan;
            let night = nights.entry(run).or_insert_with(|| {
                parts::Night::new(self.said.get(&plan).map_or_else(Groups::default, |said| said.groups()))
            });
            night.add(subject, &self.subjects[subject].0, metric, value);
        };
        for (key, (_, points)) in self.series.iter().filter(|(key, _)| rotating.contains(&key.plan)) {
            let Watch::Subject { subject, metric } = key.watch else { continue };
            points.iter().for_each(|(run, value)| add(*run, subject, metric, Some(*value)));
        }
        for ((watch, _), runs) in self.lost.iter().filter(|((_, plan), _)| rotating.contains(plan)) {
            let Watch::Subject { subject, metric } = *watch else { continue };
            runs.iter().for_each(|run| add(*run, subject, metric, None));
        }
        for (run, night) in nights {
            let plan = past[run as usize].plan;
            for ((kind, metric, part), subject, value) in night.values() {
                let part = Watch::Part { kind, metric, part, settings: self.subjects[subject].1 };
                self.point(part, (plan, [none; 2]), subject, (run, value));
            }
        }
    }

    fn point(
        &mut self,
        watch: Watch,
        (plan, hardware): (usize, [usize; 2]),
        about: usize,
        (run, value): (u32, Option<f64>),
    ) {
        let Some(value) = value else {
            self.lost.entry((watch, plan)).or_default().push(run);
            return;
        };
        let key = Key { watch, plan, hardware };
        self.series.entry(key).or_insert_with(|| (about, Vec::new())).1.push((run, value));
    }

    fn settings(&mut self, plan: &Plan) -> HashMap<String, usize> {
        let number = |test: &railgauge_model::plan::model::Test| {
            // A map of strings always serialises.
            let text = serde_json::to_string(&settings::bearing(test)).unwrap_or_default();
            (test.name.clone(), self.word(&text))
        };
        plan.tests.iter().map(number).collect()
    }

    /// The hardware behind a reading: two devices for a pair. A collective's library chooses its devices, so a group has
    /// only its hosts.
    fn hardware(&mut self, run: &Run, subject: usize, devices: &Devices) -> [usize; 2] {
        let Flow { from, to, members, .. } = &self.subjects[subject].0.flow;
        let identity = |host: &str, device: &str| identity(run.hosts.get(host).filter(|_| members.is_empty()), device);
        let both = [identity(&from.host, &devices[0]), identity(&to.host, &devices[1])];
        both.map(|word| self.word(&word))
    }

    fn word(&mut self, word: &str) -> usize {
        self.words.get_index_of(word).unwrap_or_else(|| self.words.insert_full(word.into()).0)
    }
}

impl PlanVersion {
    pub(super) fn groups(&self) -> Groups {
        Groups::new(&self.groups, self.hosts.iter().map(String::as_str))
    }
}

fn said(plan: &Plan) -> PlanVersion {
    let tests = plan.tests.iter().map(|test| {
        let mut settings = settings::all(test);
        settings.retain(|key, _| key != "hosts" && (plan.subset.is_none() || is_kept_in_parts(key)));
        (test.name.clone(), settings)
    });
    let hosts = plan.hosts.iter().map(|host| host.name.to_string()).collect();
    let (rotates, part) = (plan.rotate.is_some(), plan.subset.is_some());
    PlanVersion { name: plan.name.clone(), hosts, groups: plan.groups.clone(), rotates, part, tests: tests.collect() }
}

/// Distinguishes a device from its replacement: its GUID or, if unknown, its board; empty for a network interface, which has neither.
fn identity(host: Option<&HostFacts>, device: &str) -> String {
    let (name, _) = port_name(device);
    let found = host.and_then(|host| host.rdma.iter().find(|known| known.name == name));
    found.and_then(|device| device.guid.clone().or_else(|| device.board.clone())).unwrap_or_default()
}

/// Why a run with this start is left out, with the next step; `None` if the start is possible.
pub(super) fn refused(started: Timestamp, now: Timestamp) -> Option<String> {
    let when = impossible(started, now)?;
    Some(format!(
        "this run says it began {when}: one of the clocks was wrong, so that its night is unknown; set the clock, move this \
         directory elsewhere and measure again"
    ))
}

/// Whether a part of a plan keeps a setting of the whole: how often and between how many pairs it measures depends on what is left.
pub(super) fn is_kept_in_parts(key: &str) -> bool {
    !matches!(key.split('.').next(), Some("repeats" | "pattern"))
}
