//! The runs of one plan, the newest first, and the states that follow from all of them.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use railgauge_model::border::text::path_text;

use super::{
    index::plans,
    judged::{Judged, NightError},
    state::{Standing, State},
    states::{Known, Said, States},
    summary::{Summary, summaries},
};
use crate::{
    analysis::{
        history,
        trend::{self, Reported},
        verdict::Status,
    },
    report::index::Outcome,
};

/// The runs of a plan.
#[derive(Debug)]
pub struct Nights {
    runs: Vec<Summary>,
    /// The states of components after all of them.
    pub states: States,
}

impl Nights {
    /// The runs that `word` stands for: a run directory, a directory of run directories, or a pattern. Of several plans the one that
    /// is named.
    ///
    /// # Errors
    /// There is no run, none of that plan, or there are runs of several plans and none is named.
    pub fn of(word: &str, plan: Option<&str>, now: Timestamp) -> Result<Self, NightError> {
        let directories = history::run_directories(word).map_err(NightError::NoRuns)?;
        let mut runs = summaries(&directories);
        // What another tool measured is not a run of ours. Where there is nothing else, reading it says so.
        let is_ours = |run: &Summary| run.row.outcome != Outcome::Imported;
        if let (false, Some(first)) = (runs.iter().any(is_ours), runs.first()) {
            Judged::read(&first.directory)?;
        }
        runs.retain(is_ours);
        let plans = plans(&runs);
        match plan {
            // A run whose plan cannot be read may be of any.
            Some(plan) => runs.retain(|run| run.row.plan.is_empty() || run.row.plan == plan),
            None if plans.len() > 1 => {
                return Err(NightError::SeveralPlans { word: word.to_owned(), plans: plans.into_iter().collect() });
            }
            None => {}
        }
        if runs.is_empty() {
            return Err(none_of(word, plan, plans));
        }
        let states = States::of(&runs.iter().collect::<Vec<_>>(), now);
        Ok(Self { runs, states })
    }

    /// The newest run that is not still measuring; where all of them are, the newest.
    pub fn newest(&self) -> &Summary {
        let mut runs = self.runs.iter();
        // There is one at least.
        runs.find(|run| run.row.outcome != Outcome::Running).unwrap_or(&self.runs[0])
    }

    /// The newest run of the whole plan, where a newer one is of a part: it says what the part leaves open, until it is too old.
    pub(super) fn whole(&self, max_age: SignedDuration, now: Timestamp) -> Option<&Summary> {
        let newest = self.newest();
        let over = |run: &&Summary| run.row.outcome != Outcome::Running && !run.row.is_part;
        let whole = self.runs.iter().find(over).filter(|_| newest.row.is_part)?;
        (now.duration_since(whole.ended) <= max_age).then_some(whole)
    }

    /// The last runs of the whole plan that came to a verdict on so many nights; where there is none, of a part.
    pub(super) fn judged(&self) -> impl Iterator<Item = &Summary> {
        let is_part = self.newest().row.is_part;
        let over = [Outcome::Pass, Outcome::Fail, Outcome::Inconclusive];
        self.runs.iter().filter(move |run| over.contains(&run.row.outcome) && (is_part || !run.row.is_part))
    }

    /// The run of this identity.
    pub(super) fn run(&self, run_id: &str) -> Option<&Summary> {
        self.runs.iter().find(|run| run.row.run_id == run_id)
    }
}

/// The states after the runs that `word` stands for, of each of their plans, at any age.
pub fn reported(word: &str, now: Timestamp) -> Vec<Reported> {
    let directories = history::run_directories(word).unwrap_or_default();
    let all = plans(&summaries(&directories));
    let of_plan = |plan: Option<&str>| {
        let nights = Nights::of(word, plan, now).ok()?;
        let standing = Standing::of(&nights, SignedDuration::MAX, now);
        let status = match standing.state {
            State::Ok => Status::Pass,
            State::Critical => Status::Fail,
            State::Warning | State::Unknown => Status::Inconclusive,
        };
        let component = |one: &Known| trend::Component {
            name: one.name.clone(),
            state: one.state.word(),
            since: one.since.as_ref().map(Said::date).unwrap_or_default(),
            measured: one.measured.date(),
        };
        let hosts = nights.states.hosts.iter();
        let others = standing.components.iter().filter(|one| one.kind != "host");
        Some(Reported {
            directory: path_text(&nights.newest().directory).to_string(),
            status,
            sentence: standing.text.clone(),
            components: hosts.chain(others).map(component).collect(),
        })
    };
    if all.is_empty() {
        return of_plan(None).into_iter().collect();
    }
    all.iter().filter_map(|plan| of_plan(Some(plan))).collect()
}

/// There is no run: none of the plan that is named, where there are others.
pub(super) fn none_of(word: &str, plan: Option<&str>, plans: BTreeSet<String>) -> NightError {
    let word = word.to_owned();
    match plan {
        Some(plan) if !plans.is_empty() => {
            NightError::NoPlan { word, plan: plan.to_owned(), plans: plans.into_iter().collect() }
        }
        _ => NightError::NoRuns(history::NoRuns::NoRun { word }),
    }
}
