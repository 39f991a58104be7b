use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use railgauge_analysis::{history, trend};
use railgauge_report::index::{Index, Outcome, link};

use super::{
    judged::{Judged, NightError},
    states::States,
    summary::{Summary, summaries},
};

#[derive(Debug)]
pub struct Nights {
    pub plan: String,
    runs: Vec<Arc<Summary>>,
    pub states: States,
}

impl Nights {
    /// The runs of `word`: a run directory, a directory of run directories, or a pattern; optionally of one plan.
    ///
    /// # Errors
    /// No such run exists, or there are runs of several plans and none is named.
    pub fn of(word: &str, plan: Option<&str>, now: Timestamp) -> Result<Self, NightError> {
        let (runs, plans) = read(word, plan, now)?;
        if plan.is_none() && plans.len() > 1 {
            return Err(NightError::SeveralPlans { word: word.to_owned(), plans: plans.into_iter().collect() });
        }
        Self::new(runs.into_iter().map(Arc::new).collect(), now)
    }

    fn new(mut runs: Vec<Arc<Summary>>, now: Timestamp) -> Result<Self, NightError> {
        // Imported runs are not ours. If there are only these, reading reports it.
        let is_ours = |run: &Arc<Summary>| run.row.outcome != Outcome::Imported;
        if !runs.iter().any(is_ours) {
            Judged::read(&runs[0].directory)?;
        }
        runs.retain(is_ours);
        let states = States::of(&runs.iter().map(|run| &**run).collect::<Vec<_>>(), now);
        let plan = runs.iter().map(|run| &run.row.plan).find(|plan| !plan.is_empty()).cloned().unwrap_or_default();
        Ok(Self { plan, runs, states })
    }

    pub fn newest(&self) -> &Summary {
        let mut runs = self.runs.iter().map(|run| &**run);
        runs.find(|run| run.row.outcome != Outcome::Running).unwrap_or(&self.runs[0])
    }

    /// Earlier runs whose records are lost, newest first: what they measured changes no state.
    pub(super) fn lost(&self) -> impl Iterator<Item = &Summary> {
        let newest = &self.newest().directory;
        let is_lost = |run: &&Summary| matches!(run.row.outcome, Outcome::Unreadable | Outcome::Damaged);
        self.runs.iter().map(|run| &**run).filter(is_lost).filter(move |run| run.directory != *newest)
    }

    /// The newest run of the whole plan, if a newer one is of a part: it covers the rest of the plan, until it is too old.
    pub(super) fn whole(&self, max_age: SignedDuration, now: Timestamp) -> Option<&Summary> {
        let newest = self.newest();
        let over = |run: &&Summary| run.row.outcome != Outcome::Running && !run.row.is_part;
        let whole = self.runs.iter().map(|run| &**run).find(over).filter(|_| newest.row.is_part)?;
        (now.duration_since(whole.ended) <= max_age).then_some(whole)
    }

    /// The last run of each night that is of the whole plan and has a verdict, newest first; if the newest run is of a part, also parts.
    pub(super) fn judged(&self) -> impl Iterator<Item = &Summary> {
        let is_part = self.newest().row.is_part;
        let over = [Outcome::Pass, Outcome::Fail, Outcome::Inconclusive];
        let counts = |run: &&Summary| over.contains(&run.row.outcome) && (is_part || !run.row.is_part);
        let runs: Vec<&Summary> = self.runs.iter().rev().map(|run| &**run).filter(counts).collect();
        let nights = trend::nights(&runs.iter().map(|run| run.began).collect::<Vec<_>>());
        nights.into_iter().zip(runs).collect::<BTreeMap<_, _>>().into_values().rev()
    }

    pub(super) fn run(&self, run_id: &str) -> Option<&Summary> {
        self.runs.iter().map(|run| &**run).find(|run| run.row.run_id == run_id)
    }
}

pub(super) fn read(
    word: &str,
    plan: Option<&str>,
    now: Timestamp,
) -> Result<(Vec<Summary>, BTreeSet<String>), NightError> {
    let mut runs = summaries(&history::run_directories(word).map_err(NightError::NoRuns)?, now);
    // Unreadable runs have no known plan.
    let plans: BTreeSet<String> = runs.iter().map(|run| run.row.plan.clone()).filter(|plan| !plan.is_empty()).collect();
    runs.retain(|run| plan.is_none_or(|plan| may_be_of(run, plan)));
    if !runs.is_empty() {
        return Ok((runs, plans));
    }
    let word = word.to_owned();
    Err(match plan {
        Some(plan) if !plans.is_empty() => {
            NightError::NoPlan { word, plan: plan.to_owned(), plans: plans.into_iter().collect() }
        }
        _ => NightError::NoRuns(history::NoRuns::NoRun { word }),
    })
}

/// Whether a run is of a plan; one with an unreadable plan may be of any.
fn may_be_of(run: &Summary, plan: &str) -> bool {
    run.row.plan.is_empty() || run.row.plan == plan
}

/// Those of each plan that can be read.
pub(super) fn of_each_plan(word: &str, now: Timestamp) -> Vec<Nights> {
    let Ok((runs, mut plans)) = read(word, None, now) else { return Vec::new() };
    if plans.is_empty() {
        plans.insert(String::new());
    }
    let runs: Vec<Arc<Summary>> = runs.into_iter().map(Arc::new).collect();
    let of_plan = |plan: String| Nights::new(runs.iter().filter(|run| may_be_of(run, &plan)).cloned().collect(), now);
    plans.into_iter().filter_map(|plan| of_plan(plan).ok()).collect()
}

/// The index of the runs in `word`, optionally of one plan; `page` is the directory of the page that links to them.
pub fn index(word: &str, plan: Option<&str>, page: Option<&Path>, now: Timestamp) -> Result<Index, NightError> {
    let (mut runs, plans) = read(word, plan, now)?;
    for run in &mut runs {
        run.row.page = page.and_then(|page| link(&run.directory, page)).unwrap_or_default();
    }
    let of_plan = |plan: &String| {
        let own: Vec<&Summary> = runs.iter().filter(|run| run.row.plan == *plan).collect();
        States::of(&own, now).grid(plan, &own)
    };
    let grids = plans.iter().filter(|name| plan.is_none_or(|plan| plan == *name)).map(of_plan);
    let grids = grids.filter(|grid| !grid.hosts.is_empty()).collect();
    let made = now.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    Ok(Index::of(word, made, runs.into_iter().map(|run| run.row).collect(), grids))
}
