//! Finds plans that are versions of one another: an edited plan continues the plan before it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Order, Past, PlanVersion, history::is_kept_in_parts};
use crate::settings;

/// Differences of two versions that are reported.
const TOLD: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// By plan: the first version of its line.
    first: HashMap<usize, usize>,
    edits: HashMap<usize, String>,
}

#[derive(Debug, Default)]
struct Plan {
    /// Positions in time of its first and last run.
    ends: (usize, usize),
    subjects: HashSet<usize>,
}

impl Lines {
    /// Finds the versions: the same plan on other hosts, or a part of it, is that plan. An edited plan continues the line of a plan of the
    /// same name that had ended when it started; of several the one with the most subjects in common.
    pub(super) fn new(order: &Order<'_>, said: &HashMap<usize, PlanVersion>) -> Self {
        let mut plans: HashMap<usize, Plan> = HashMap::new();
        let mut begun: Vec<usize> = Vec::new();
        for at in 0..order.days.len() {
            let Past { plan: number, planned, .. } = order.at(at);
            let plan = plans.entry(*number).or_insert_with(|| {
                begun.push(*number);
                Plan { ends: (at, at), ..Plan::default() }
            });
            plan.ends.1 = at;
            plan.subjects.extend(planned.iter().flatten());
        }
        let files = Files::new(order);
        // Versions that differ only in hosts are one plan.
        let mut first: HashMap<usize, usize> = HashMap::new();
        let mut versions: Vec<usize> = Vec::new();
        for &plan in &begun {
            let same = |known: &usize| {
                let both = said.get(known).zip(said.get(&plan));
                both.is_some_and(|(old, new)| {
                    is_same(old, new) && (old.part || new.part || files.are_one(*known, plan, said))
                })
            };
            let known = versions.iter().copied().find(same);
            first.insert(plan, known.unwrap_or(plan));
            match known {
                None => versions.push(plan),
                Some(known) => {
                    let Plan { ends, subjects } = plans.remove(&plan).unwrap_or_default();
                    let whole = plans.entry(known).or_default();
                    whole.ends.1 = whole.ends.1.max(ends.1);
                    whole.subjects.extend(subjects);
                }
            }
        }
        let name = |plan: usize| said.get(&plan).map(|said| said.name.as_str());
        let mut lines = Self::default();
        let mut followed: HashSet<usize> = HashSet::new();
        for (at, &plan) in versions.iter().enumerate() {
            let own = &plans[&plan];
            let shared = |before: usize| plans[&before].subjects.intersection(&own.subjects).count();
            let goes_on = |before: &usize| {
                plans[before].ends.1 < own.ends.0 && !followed.contains(before) && name(*before) == name(plan)
            };
            let before = versions[..at].iter().copied().filter(goes_on);
            let before = before.max_by_key(|before| (shared(*before), plans[before].ends.1));
            if let Some(before) = before {
                followed.insert(before);
                if let (Some(old), Some(new)) = (said.get(&before), said.get(&plan)) {
                    lines.edits.insert(plan, edit(old, new));
                }
            }
            let first = before.and_then(|before| lines.first.get(&before).copied()).unwrap_or(plan);
            lines.first.insert(plan, first);
        }
        for (plan, version) in first {
            let line = lines.of(version);
            lines.first.insert(plan, line);
        }
        lines
    }

    pub(super) fn of(&self, plan: usize) -> usize {
        self.first.get(&plan).copied().unwrap_or(plan)
    }

    /// `None` for the first version.
    pub(super) fn edit(&self, plan: usize) -> Option<&str> {
        self.edits.get(&plan).map(String::as_str)
    }
}

/// Versions of plans that measure other pairs each night: by declaration, or on other `drawn` hosts.
#[derive(Debug, Default)]
pub(super) struct Varying {
    pub rotating: HashSet<usize>,
    pub drawn: HashSet<usize>,
}

impl Varying {
    /// On other hosts is one file on several sets of hosts, or a plan with parts of it more often than the whole.
    pub(super) fn new(order: &Order<'_>, lines: &Lines, said: &HashMap<usize, PlanVersion>) -> Self {
        let mut hosts: HashMap<(usize, &str), &HashSet<String>> = HashMap::new();
        // Of every line, how many more runs are of a part than of the whole, and whether one file ran on several sets of hosts.
        let mut all: HashMap<usize, (isize, bool)> = HashMap::new();
        for past in order.past {
            let line = lines.of(past.plan);
            let (parts, drawn) = all.entry(line).or_default();
            let Some(said) = said.get(&past.plan) else { continue };
            *parts += if past.part { 1 } else { -1 };
            *drawn |= !past.part && *hosts.entry((line, &past.plan_hash)).or_insert(&said.hosts) != &said.hosts;
        }
        let mut varying = Self::default();
        for past in order.past {
            let (parts, drawn) = all[&lines.of(past.plan)];
            if drawn || parts > 0 {
                varying.drawn.insert(past.plan);
            } else if !said.get(&past.plan).is_some_and(|said| said.rotates) {
                continue;
            }
            varying.rotating.insert(past.plan);
        }
        varying
    }
}

struct Files<'a> {
    of: HashMap<usize, &'a str>,
    nights: HashMap<&'a str, BTreeSet<i64>>,
}

impl<'a> Files<'a> {
    fn new(order: &Order<'a>) -> Self {
        let mut files = Self { of: HashMap::new(), nights: HashMap::new() };
        for (at, day) in order.days.iter().enumerate() {
            let Past { plan, plan_hash, .. } = order.at(at);
            files.of.insert(*plan, plan_hash);
            files.nights.entry(plan_hash).or_default().insert(*day);
        }
        files
    }

    /// Whether two versions are of one file, perhaps edited: not if both run on the same nights, or on two clusters.
    fn are_one(&self, one: usize, other: usize, said: &HashMap<usize, PlanVersion>) -> bool {
        let [a, b] = [one, other].map(|plan| self.of[&plan]);
        let nights = [a, b].map(|file| &self.nights[file]);
        let (both, fewer) = (nights[0].intersection(nights[1]).count(), nights[0].len().min(nights[1].len()));
        let side_by_side = fewer > 1 && 2 * both >= fewer;
        a == b || !side_by_side && !said[&one].hosts.is_disjoint(&said[&other].hosts)
    }
}

/// Whether two versions differ only in hosts, or one is a part of the other.
fn is_same(old: &PlanVersion, new: &PlanVersion) -> bool {
    let has = |whole: &PlanVersion, part: &PlanVersion| {
        let in_whole = |(name, test): (&String, &BTreeMap<String, String>)| {
            whole.tests.get(name).is_some_and(|known| known == test || part.part && in_a_part(known) == *test)
        };
        (part.part || part.tests.len() == whole.tests.len()) && part.tests.iter().all(in_whole)
    };
    old.name == new.name && (has(old, new) || has(new, old))
}

fn in_a_part(test: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let kept = test.iter().filter(|(key, _)| is_kept_in_parts(key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn edit(old: &PlanVersion, new: &PlanVersion) -> String {
    let tests: BTreeSet<&String> = old.tests.keys().chain(new.tests.keys()).collect();
    let difference = |name: &&String| match (old.tests.get(*name), new.tests.get(*name)) {
        (Some(old), Some(new)) => settings::difference(old, new).map(|words| format!("{name} {words}")),
        (None, _) => Some(format!("{name} is new")),
        (_, None) => Some(format!("{name} is gone")),
    };
    let all: Vec<String> = tests.iter().filter_map(difference).collect();
    let mut words = all[..all.len().min(TOLD)].join(", ");
    if all.is_empty() {
        "no setting of a test".clone_into(&mut words);
    } else if all.len() > TOLD {
        words += &format!(" and {} more", all.len() - TOLD);
    }
    format!("plan {} edited: {words}", new.name)
}
