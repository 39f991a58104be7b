//! `railgauge run PLAN --dry-run`: what a run would do, without touching a host.

mod preview;
#[cfg(test)]
mod tests;
mod text;

use std::{io::Write, path::Path};

use anyhow::Context;
use railgauge_model::schedule::{self, Inventory};
use railgauge_wire::GigabitsPerSecond;

use self::preview::Preview;
use crate::cli::{Common, Exit, Misuse, print, selection::Selection};

/// Shows the schedule of a plan.
///
/// # Errors
/// The plan cannot be scheduled, or stdout cannot be written.
pub(super) fn run(
    plan: &Path,
    selection: &Selection,
    link_rate: Option<GigabitsPerSecond>,
    json: bool,
    common: &Common,
) -> anyhow::Result<Exit> {
    let Some(loaded) = selection.load(plan, common)? else { return Ok(Exit::Wrong) };
    let inventory = Inventory::of_plan(&loaded.plan);
    let schedule = schedule::schedule(&loaded.plan, &inventory).map_err(|error| Misuse(error.to_string()))?;
    let preview = Preview::new(&loaded.plan, &inventory, &schedule, link_rate);
    if json {
        write_json(&preview)?;
    } else {
        print(&text::text(&preview, common.verbose))?;
    }
    Ok(Exit::Passed)
}

/// Written as it is made: a full tournament of a thousand hosts is hundreds of megabytes.
fn write_json(preview: &Preview<'_>) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let written = serde_json::to_writer(&mut out, preview).map_err(std::io::Error::from);
    match written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

pub(super) fn rate(text: &str) -> Result<GigabitsPerSecond, String> {
    match text.parse().map(GigabitsPerSecond) {
        Ok(rate) if rate.is_rate() => Ok(rate),
        _ => Err("give a link rate in Gb/s above 0, such as 100".to_owned()),
    }
}
