//! The switches, and which of their links were loaded.

use railgauge_analysis::{
    localise::Standing,
    switches::{Loaded, OnLinks, SuspectLink, Switches},
    verdict::{loading, searched},
    words::{between, change, number},
};
use railgauge_model::plan::count::count;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SwitchesView {
    /// Contents and sources, in sentences.
    pub sentence: String,
    /// Unusable parts of the sources, and ends that they do not have, a sentence each.
    pub remarks: Vec<String>,
    pub suspects: Vec<SuspectView>,
    pub searched: Vec<String>,
    pub tests: Vec<LoadedView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuspectView {
    pub name: String,
    pub standing: &'static str,
    #[serde(skip)]
    pub certain: bool,
    #[serde(skip)]
    pub open: bool,
    pub class: &'static str,
    pub test: String,
    pub change: String,
    pub flows: String,
    pub words: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadedView {
    pub test: String,
    pub sentence: String,
    pub not_loaded: Vec<[String; 2]>,
}

pub(super) fn switches(found: &Switches) -> SwitchesView {
    let Switches { switches, leaves, switch_links, nic_links, sources, remarks, routes_known, unplaced, loaded, links } =
        found;
    let is_open = loaded.iter().any(|loaded| loaded.open_flows > 0);
    let routes = match (switch_links, routes_known, is_open) {
        (0, ..) => " Nothing is known of links between switches.",
        (_, true, _) => " Forwarding tables show the path of each flow, unless the fabric routes adaptively.",
        (_, false, true) => " Which of several equal paths a flow takes is not known.",
        (_, false, false) => "",
    };

    let sentence = format!(
        "{}, {} with hosts; {} between switches, {} to NIC ports. Reported by {}.{routes}",
        count(*switches, "switch"),
        leaves,
        count(*switch_links, "link"),
        nic_links,
        sources.join(", ")
    );
    let mut remarks = remarks.clone();
    if !unplaced.is_empty() {
        remarks.push(format!("Not in the topology, so their links are not checked: {}", unplaced.join(", ")));
    }
    let suspects = links.iter().flat_map(|on| on.suspects.iter().map(|suspect| one(&on.test, suspect))).collect();
    let searched = links.iter().filter(|on| on.of > 0).map(search).collect();
    SwitchesView {
        sentence,
        remarks,
        suspects,
        searched,
        tests: loaded.iter().filter(|loaded| loaded.of > 0).map(test).collect(),
    }
}

fn one(test: &str, suspect: &SuspectLink) -> SuspectView {
    let mut difference = change(suspect.change_percent);
    if let Some(interval) = suspect.interval_percent {
        difference += &format!(" ({})", between(interval));
    }
    let flows = format!("{} through it low, {} good", count(suspect.low, "flow"), suspect.good);
    let mut words = format!("{difference}: {flows}");
    if let Some((percent, n)) = suspect.again_percent {
        words += &format!("; measured again by {}: {}", count(n, "flow"), change(percent));
    }
    let class = match suspect.standing {
        Standing::Confirmed => "fail",
        Standing::Cleared => "pass",
        _ => "inconclusive",
    };
    let name = one_of(&suspect.name, &suspect.alternatives);
    let standing = suspect.standing.words();
    SuspectView {
        name,
        standing,
        certain: suspect.standing == Standing::Confirmed,
        open: suspect.standing == Standing::Open,
        class,
        test: test.to_owned(),
        change: difference,
        flows,
        words,
    }
}

/// With alternatives `one of A, B`.
pub(super) fn one_of(name: &str, alternatives: &[String]) -> String {
    match alternatives {
        [] => name.to_owned(),
        others => format!("one of {name}, {}", others.join(", ")),
    }
}

/// Outliers between switches that were not found good later and are not waived: each once for all tests, confirmed ones first.
pub(super) fn open(links: &[OnLinks]) -> Vec<SuspectView> {
    let counting = links.iter().filter(|on| !on.waived);
    let all = counting.flat_map(|on| on.standing().map(move |suspect| one(&on.test, suspect)));
    let (certain, open): (Vec<_>, Vec<_>) = all.partition(|view| view.certain);
    let mut views: Vec<SuspectView> = Vec::new();
    for view in certain.into_iter().chain(open) {
        if !views.iter().any(|known| known.name == view.name) {
            views.push(view);
        }
    }
    views
}

fn search(on: &OnLinks) -> String {
    match on.not_searched.as_str() {
        "" => format!("{}: {}", on.test, searched(on)),
        why => format!("{}: links were not searched: {why}", on.test),
    }
}

fn test(found: &Loaded) -> LoadedView {
    let reached = |percent: Option<f64>| match percent {
        Some(percent) if percent > 0.0 => format!("{} %", number(percent)),
        Some(_) => "no flow with a known path".to_owned(),
        None => "rate not known".to_owned(),
    };
    let not_loaded = found.not_loaded.iter().map(|link| [link.link.clone(), reached(link.reached_percent)]).collect();
    LoadedView { test: found.test.clone(), sentence: format!("{}.", loading(found)), not_loaded }
}
