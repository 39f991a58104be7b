//! Turns a plan and the number of rails of every host into rounds in which no NIC is used twice, unless the pattern shares NICs on purpose.
//! Pure and seeded.
//!
//! ```text
//! Test ─ pattern ─▶ rounds of host pairs ─ rails ─▶ rounds of flows ─ cases ─▶ numbered cases, one at a time
//! ```
//!
//! | module | does |
//! | --- | --- |
//! | `model` | what a schedule is made of |
//! | `pattern` | which hosts send to which, as rounds of host pairs |
//! | `circle` | the circle method: every pair once |
//! | `colour` | pairs in a given order, spread over rounds |
//! | `draw` | the seeded choice of rounds |
//! | [`cover`] | rounds that load every link between switches, port by port |
//! | [`leaves`] | rounds of pairs below one leaf switch, and below different ones |
//! | `at_once` | rounds whose flows share NICs on purpose |
//! | `on_fabric` | pairs chosen by the places of their ends in the fabric |
//! | `node` | flows within hosts |
//! | `group` | groups of hosts and their ranks, for collectives |
//! | [`devices`] | the devices of a host that are its rails |
//! | `rails` | the rails of hosts, and which rails of a pair communicate |
//! | `turns` | the order in which a repeat measures the values of a test |
//! | `cases` | the numbering of cases |
//! | `effort` | the time and the bytes a test costs |
//!
//! `docs/patterns.md` describes all of it for users.

mod at_once;
mod cases;
mod circle;
mod colour;
pub mod cover;
pub mod devices;
mod draw;
mod effort;
mod error;
mod group;
pub mod leaves;
mod model;
mod node;
mod on_fabric;
mod pattern;
mod rails;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;

pub use cases::CaseIndex;
pub use effort::{AFTER, BEFORE, Cost, LEAD, OVERHEAD, PerByte, Seen, Time, Volume};
pub use error::ScheduleError;
pub use group::{alone, blocks};
pub use model::{Cell, Flow, Note, Port, Round, Schedule};
pub use rails::Inventory;
pub use turns::turns;

use crate::plan::{Pattern, Plan, Rails, Test, limits};

/// Everything a run of `plan` will do, in order. The same plan, seed and rails give the same schedule.
///
/// Unusable hosts, and rails that a host does not have, are scheduled like any other: their measurements become failed cases that name the
/// host.
///
/// # Errors
/// A test names an unknown host or group, pairs a host with itself, leaves no pairs, makes more measurements than a run may have, or is a
/// collective. A checked plan has none of the first three.
pub fn schedule(plan: &Plan, inventory: &Inventory) -> Result<Schedule, ScheduleError> {
    let names: Vec<Arc<str>> = plan.hosts.iter().map(|host| Arc::from(host.name.as_str())).collect();
    let directory = pattern::Directory::new(plan);
    let mut schedule = Schedule::default();
    let mut amount = 0_u128;
    for (index, test) in plan.tests.iter().enumerate() {
        let each = limits::cells(test).saturating_mul(test.repeats.into());
        // The size of a test is bounded before anything is made: first by the plan alone, then with the rails of its hosts.
        bounded(inventory, test, amount.saturating_add(limits::least(&plan.groups, test)))?;
        let bound = |flows: u128| {
            amount = amount.saturating_add(flows.saturating_mul(each));
            bounded(inventory, test, amount)
        };
        let mut notes = Vec::new();
        let rounds = rounds(plan, test, inventory, &directory, &names, &mut notes, bound)?;
        schedule.rounds.extend((0..).zip(rounds).map(|(number, flows)| Round { test: index, number, flows }));
        schedule.cells.push(model::cells(test));
        schedule.notes.extend(notes.into_iter().map(|text| Note { test: index, text }));
    }
    Ok(schedule)
}

fn bounded(inventory: &Inventory, test: &Test, amount: u128) -> Result<(), ScheduleError> {
    if amount <= u128::from(limits::MEASUREMENTS) {
        return Ok(());
    }
    let widest = inventory.widest(test).filter(|(_, rails)| *rails > 1 && !matches!(test.rails, Rails::Only(_)));
    let widest = widest.map(|(host, n)| format!("; `{host}` has {n} ports, the most")).unwrap_or_default();
    Err(ScheduleError::TooMany { test: test.name.clone(), amount, most: limits::MEASUREMENTS, widest })
}

/// The flows of a test. Their number passes `bound` before they are made, where it is known.
fn rounds(
    plan: &Plan,
    test: &Test,
    inventory: &Inventory,
    directory: &pattern::Directory<'_>,
    names: &[Arc<str>],
    notes: &mut Vec<String>,
    mut bound: impl FnMut(u128) -> Result<(), ScheduleError>,
) -> Result<Vec<Vec<Flow>>, ScheduleError> {
    let members = || directory.members(test).into_iter().filter_map(|host| names.get(host as usize).cloned());
    let counted = |rounds: &[Vec<Flow>]| rounds.iter().map(Vec::len).sum::<usize>() as u128;
    if let Some(collective) = &test.collective {
        let rounds = group::rounds(test, collective, directory, names)?;
        return bound(counted(&rounds)).map(|()| rounds);
    }
    if test.op.is_collective() {
        return Err(ScheduleError::Collective { test: test.name.clone(), op: test.op });
    }
    if test.transport.is_within_host() {
        let members: Vec<Arc<str>> = members().collect();
        let parts = |host: &str| inventory.get(host, test.transport).unwrap_or(1);
        bound(members.iter().map(|host| node::flows(test, parts(host))).sum())?;
        return Ok(node::rounds(test, &members, parts, plan.launch.via.way().is_one_machine));
    }
    if let Pattern::Fabric(pattern) = &test.pattern {
        let members: Vec<Arc<str>> = members().collect();
        let seed = pattern::Draw::of(plan).seed(1);
        // What the hosts are is known only when they are up, and the other tests are measured regardless.
        let rounds = match on_fabric::rounds(test, pattern, inventory, &members, seed, notes) {
            Err(ScheduleError::NoPairs { test, why }) => {
                notes.push(format!("test `{test}` has no pairs, and nothing of it is measured: {why}"));
                Vec::new()
            }
            rounds => rounds?,
        };
        return bound(counted(&rounds)).map(|()| rounds);
    }
    let pairs = pattern::rounds(test, directory, pattern::Draw::of(plan), notes)?;
    let counts = inventory.counts(plan, test.transport);
    rails::note_differences(test, directory, &counts, names, notes);
    bound(rails::flows(&pairs, &test.rails, &counts))?;
    let rounds = rails::spread(&pairs, &test.rails, &counts, names);
    if rounds.is_empty() {
        let why = "its list of rails is empty".to_owned();
        return Err(ScheduleError::NoPairs { test: test.name.clone(), why });
    }
    let rounds = inventory.at_distance(rounds, test);
    if let (true, Some(distance)) = (rounds.is_empty(), test.gpu_distance) {
        notes.push(format!("test {}: no two ends have GPUs that are {distance} from their NICs", test.name));
    }
    Ok(rounds)
}
