//! What a run shows about the switches and cables between its hosts, if the plan knows them.

mod flows;
mod further;
mod loaded;
mod suspects;
pub(crate) mod ways;

use railgauge_model::plan::model::{OnFabric, Pattern};
use serde::Serialize;

pub use further::further;
pub use loaded::{Loaded, NotLoaded};
pub use suspects::{OnLinks, SuspectLink};

use super::{journal::Journal, row::Row, rows};
use crate::case::CaseResult;
use flows::Measured;
use ways::Ways;

/// Share of its rate from which on a link counts as loaded, by default.
pub const LOADED_PERCENT: f64 = 80.0;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Switches {
    pub sources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    pub switches: usize,
    pub leaves: usize,
    pub switch_links: usize,
    pub nic_links: usize,
    pub routes_known: bool,
    pub unplaced: Vec<String>,
    pub loaded: Vec<Loaded>,
    pub links: Vec<OnLinks>,
}

/// `None` where the plan names no source. `more` are the results of further cases.
pub fn switches(
    journal: &Journal,
    (of_tests, of_rows): (&[CaseResult<'_>], &[Row]),
    more: &[CaseResult<'_>],
) -> Option<Switches> {
    let ways = Ways::of(journal)?;
    let tests = &journal.plan.tests;
    let more_rows = rows::rows(journal, more);
    let measured = Measured { tests: (of_tests, of_rows), further: (more, &more_rows) };
    let switch_links = ways.fabric.links.iter().filter(|link| link.is_between_switches()).count();
    let told = &journal.plan.topology.as_ref()?.told;
    let used = of_rows.iter().flat_map(|row| [(&*row.src_host, &*row.src_device), (&*row.dst_host, &*row.dst_device)]);
    let mut used: Vec<(&str, &str)> = used.filter(|(host, device)| !host.is_empty() && !device.is_empty()).collect();
    used.sort();
    used.dedup();
    let unplaced = used.into_iter().filter(|(host, device)| ways.nic(host, device).is_none());
    Some(Switches {
        sources: told.iter().map(|told| told.source.clone()).collect(),
        remarks: told.iter().flat_map(|told| &told.remarks).chain(&ways.fabric.remarks).cloned().collect(),
        switches: ways.fabric.switches.len(),
        leaves: ways.fabric.switches.iter().filter(|switch| switch.level == Some(1)).count(),
        switch_links,
        nic_links: ways.fabric.links.len() - switch_links,
        routes_known: !journal.routes.is_empty(),
        unplaced: unplaced.map(|(host, device)| format!("{host} {device}")).collect(),
        loaded: tests
            .iter()
            .filter_map(|test| {
                let percent = match test.pattern {
                    Pattern::Fabric(OnFabric::CoverLinks(percent)) => percent,
                    _ => LOADED_PERCENT,
                };
                loaded::loaded(&ways, &test.name, percent, of_tests, of_rows)
            })
            .collect(),
        links: tests.iter().filter_map(|test| Some(suspects::search(&ways, journal, test, &measured)?.0)).collect(),
    })
}
