use std::{collections::HashMap, sync::Arc};

use super::{
    Flow, Inventory, Port, ScheduleError,
    cover::{self, Cover, Switches, Wanted, Why},
    leaves::{self, Paired, Place},
};
use crate::{
    plan::{
        OnFabric, Rails, Test,
        count::{are, count},
    },
    topology::{Fabric, Route},
};

const NAMED: usize = 5;

/// The port, the index of its host among the test's hosts, and its place in the fabric.
type End = (Port, u32, Option<u32>);

/// The rounds of a test with such a pattern. In a round no NIC port is used twice.
pub(super) fn rounds(
    test: &Test,
    pattern: &OnFabric,
    inventory: &Inventory,
    hosts: &[Arc<str>],
    seed: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<Flow>>, ScheduleError> {
    let none = |why: &str| ScheduleError::NoPairs { test: test.name.clone(), why: why.to_owned() };
    let fabric = inventory.fabric().ok_or_else(|| none("nothing is known of the switches"))?;
    let ends = ends(test, inventory, hosts);
    let leaf = |place: Option<u32>| place.and_then(|nic| fabric.leaf(nic)).map(|(_, switch)| switch);
    let places: Vec<Place> = ends.iter().map(|(_, host, place)| Place { host: *host, leaf: leaf(*place) }).collect();
    let mut note = |text: String| notes.push(format!("test `{}`: {text}", test.name));
    let unplaced: Vec<String> =
        ends.iter().zip(&places).filter(|(_, place)| place.leaf.is_none()).map(|(end, _)| name(end)).collect();
    if unplaced.len() == ends.len() {
        let known: Vec<String> = fabric.nics.iter().filter_map(|nic| nic.host.clone()).collect();
        let known = if known.is_empty() { "no hosts by name".to_owned() } else { first(&known) };
        return Err(none(&format!("the topology knows none of the NIC ports that its hosts use; it has {known}")));
    }
    if !unplaced.is_empty() {
        note(format!(
            "the topology does not know {}, so no pair has them: {}",
            count(unplaced.len(), "NIC port"),
            first(&unplaced)
        ));
    }
    let pairs = match pattern {
        OnFabric::SameLeaf(rounds) => paired(leaves::same_leaf(&places, *rounds, seed), &ends, &mut note),
        OnFabric::CrossLeaf(rounds) => {
            let connected = connected(fabric, &ends, &places);
            let found = leaves::cross_leaf(&places, *rounds, seed, connected);
            match found.leaves_apart {
                0 => {}
                1 => note("1 pair of leaves is in no round".to_owned()),
                apart => note(format!("{apart} pairs of leaves are in no round")),
            }
            paired(found, &ends, &mut note)
        }
        OnFabric::CoverLinks(percent) => covered(test, *percent, fabric, &ends, seed, &mut note)?,
    };
    let flow =
        |(from, to): (u32, u32)| Some(Flow::pair(ends.get(from as usize)?.0.clone(), ends.get(to as usize)?.0.clone()));
    let rounds: Vec<Vec<Flow>> = pairs.into_iter().map(|round| round.into_iter().filter_map(flow).collect()).collect();
    if rounds.iter().all(Vec::is_empty) {
        Err(none(match pattern {
            OnFabric::CrossLeaf(_) => "no known link joins two leaves; ibnetdiscover, slurm or `cables` add such links",
            _ => "no two NIC ports of different hosts are below one leaf",
        }))
    } else {
        Ok(rounds)
    }
}

fn covered(
    test: &Test,
    percent: f64,
    fabric: &Fabric,
    ends: &[End],
    seed: u64,
    note: &mut impl FnMut(String),
) -> Result<Vec<Vec<(u32, u32)>>, ScheduleError> {
    let placed: Vec<(u32, Option<u32>)> = ends.iter().map(|(_, host, place)| (*host, *place)).collect();
    let switches = Switches::new(fabric, &placed);
    let wanted = Wanted { share: percent / 100.0, both_ways: test.bidirectional, seed };
    let found = cover::cover(&switches.network, wanted);
    if found.rounds.is_empty() {
        return Err(ScheduleError::NoPairs { test: test.name.clone(), why: uncovered(percent, &switches, &found) });
    }
    note(format!("links are loaded in {}", count(found.rounds.len(), "round")));
    let name = |link: &u32| switches.hops.get(*link as usize).map(|hop| fabric.hop_name(*hop));
    let lost = found.not_loaded.iter().filter_map(|(link, why)| Some(format!("{} ({})", name(link)?, words(*why))));
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        let those = if lost.len() == 1 { "direction of a link is" } else { "directions of links are" };
        note(format!("{} {those} not loaded: {}", lost.len(), first(&lost)));
    }
    uncounted(fabric, &switches).into_iter().for_each(note);
    Ok(found.rounds)
}

/// Directions of links that flows pass but that count as loaded for no demand: it is known beforehand that `links_covered` cannot be met.
fn uncounted(fabric: &Fabric, switches: &Switches) -> Vec<String> {
    let links = || switches.hops.iter().map(|hop| fabric.hop(*hop).0);
    let places = links().filter(|link| link.is_place()).count();
    let without_rate = links().filter(|link| !link.is_place() && link.rate_gbps.is_none()).count();
    let those = |n: usize| if n == 1 { "direction of a link" } else { "directions of links" };
    let mut notes = Vec::new();
    if places > 0 {
        notes.push(format!(
            "{places} {} without a known port: each may be several cables, and counts as not loaded; ibnetdiscover, or \
             `cables` with both ports, list single ones",
            those(places)
        ));
    }
    if without_rate > 0 {
        notes.push(format!(
            "{without_rate} {} whose rate is not known: they count as not loaded; `link_rate` of [topology] sets it",
            those(without_rate)
        ));
    }
    notes
}

fn uncovered(percent: f64, switches: &Switches, found: &Cover) -> String {
    if switches.is_hashed {
        return "which of several equal paths flows take is not known; `lfts` of [topology] adds that".to_owned();
    }
    let slow = |(_, why): &(u32, Why)| matches!(why, Why::TooSlow { .. }).then(|| words(*why));
    match found.not_loaded.iter().find_map(slow) {
        Some(why) => format!("no link can be loaded to {percent} % of its rate: {why}"),
        None => {
            "no pair of its hosts has a known way over a link between switches; ibnetdiscover, or `cables` with both \
                 ports, add such links"
                .to_owned()
        }
    }
}

fn ends(test: &Test, inventory: &Inventory, hosts: &[Arc<str>]) -> Vec<End> {
    let of_host = |(number, host): (u32, &Arc<str>)| {
        let places = inventory.places(host, test.transport);
        let rails = inventory.get(host, test.transport).unwrap_or(places.len() as u32).max(1);
        let wanted = move |rail: &u32| match &test.rails {
            Rails::Only(only) => only.contains(rail),
            Rails::Aligned | Rails::Crossed | Rails::Each => true,
        };
        let host = Arc::clone(host);
        let end = move |rail: u32| {
            (Port { host: Arc::clone(&host), rail }, number, places.get(rail as usize).copied().flatten())
        };
        (0..rails).filter(wanted).map(end).collect::<Vec<End>>()
    };
    (0..).zip(hosts).flat_map(of_host).collect()
}

fn paired(found: Paired, ends: &[End], note: &mut impl FnMut(String)) -> Vec<Vec<(u32, u32)>> {
    let alone: Vec<String> = found.alone.iter().filter_map(|end| ends.get(*end as usize)).map(name).collect();
    if !alone.is_empty() {
        note(format!("{} without a partner: {}", are(alone.len(), "NIC port"), first(&alone)));
    }
    found.rounds
}

/// Whether two leaves have a way to each other, from any NIC port of each.
fn connected<'f>(fabric: &'f Fabric, ends: &[End], places: &[Place]) -> impl Fn(u32, u32) -> bool + 'f {
    let mut one: HashMap<u32, u32> = HashMap::new();
    for ((.., place), at) in ends.iter().zip(places) {
        if let (Some(nic), Some(leaf)) = (place, at.leaf) {
            one.entry(leaf).or_insert(*nic);
        }
    }
    move |a, b| match (one.get(&a), one.get(&b)) {
        (Some(from), Some(to)) => !matches!(fabric.route(*from, *to), Route::Unknown(_)),
        _ => false,
    }
}

fn name((port, ..): &End) -> String {
    format!("{} rail {}", port.host, port.rail)
}

fn first(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn words(why: Why) -> String {
    match why {
        Why::NoPair => "no pair passes it".to_owned(),
        Why::TooSlow { most } => format!("all flows over it carry {most:.0} Gb/s together"),
        Why::NotFound => "no round was found that does".to_owned(),
    }
}
