//! An edited plan goes on where the plan before it ended: which plans are versions of one another.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::history::{Past, PlanVersion};
use crate::analysis::settings;

/// Differences of two versions that are told.
const TOLD: usize = 3;

/// The versions of every plan.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The first version of each plan's line.
    first: HashMap<usize, usize>,
    /// What was edited between a version and the one before it, in words.
    edits: HashMap<usize, String>,
}

/// A plan as its runs show it.
#[derive(Debug, Default)]
struct Plan {
    /// Places in time of its first and of its last run.
    ends: (usize, usize),
    /// What it was to measure, in all of its runs.
    subjects: HashSet<usize>,
}

impl Lines {
    /// Finds the versions: a plan goes on with the line of a plan of the same name that was not run any more when it began; of
    /// several with the one whose subjects it measures most. `order` are the runs in the order of time.
    pub(super) fn new(past: &[Past], order: &[usize], said: &HashMap<usize, PlanVersion>) -> Self {
        let mut plans: HashMap<usize, Plan> = HashMap::new();
        let mut begun: Vec<usize> = Vec::new();
        for (at, &run) in order.iter().enumerate() {
            let Past { plan: number, planned, .. } = &past[run];
            let plan = plans.entry(*number).or_insert_with(|| {
                begun.push(*number);
                Plan { ends: (at, at), ..Plan::default() }
            });
            plan.ends.1 = at;
            plan.subjects.extend(planned.iter().flatten());
        }
        let name = |plan: usize| said.get(&plan).map(|said| said.name.as_str());
        let mut lines = Self::default();
        let mut followed: HashSet<usize> = HashSet::new();
        for (at, &plan) in begun.iter().enumerate() {
            let own = &plans[&plan];
            let shared = |before: usize| plans[&before].subjects.intersection(&own.subjects).count();
            let goes_on = |before: &usize| {
                plans[before].ends.1 < own.ends.0 && !followed.contains(before) && name(*before) == name(plan)
            };
            let before = begun[..at].iter().copied().filter(goes_on);
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
        lines
    }

    /// The first version of a plan.
    pub(super) fn of(&self, plan: usize) -> usize {
        self.first.get(&plan).copied().unwrap_or(plan)
    }

    /// What was edited when this version began; `None` for the first one.
    pub(super) fn edit(&self, plan: usize) -> Option<&str> {
        self.edits.get(&plan).map(String::as_str)
    }
}

/// What two versions of a plan differ in.
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
