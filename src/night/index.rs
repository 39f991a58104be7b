//! An index of a directory of runs: the result of each, newest first, and the state of every host by night.

use std::path::Path;

use jiff::Timestamp;
use railgauge_report::index::{Index, link};

use super::{judged::NightError, nights::read, states::States, summary::Summary};

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
