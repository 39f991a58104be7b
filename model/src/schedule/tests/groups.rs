//! Collectives: groups, ranks, cells.

use std::collections::HashSet;

use railgauge_wire::{Datatype, Reduction};

use super::*;
use crate::{
    plan::model::{Collective, Grouping},
    schedule::Cell,
};

fn collective(hosts: usize, grouping: Grouping, ranks_per_host: u32) -> Plan {
    let mut plan = plan(Pattern::Tournament, Rails::Aligned, &vec![1; hosts], 1);
    let test = &mut plan.tests[0];
    (test.op, test.transport, test.memory) = (Op::AllReduce, Transport::Nccl, PerEnd::same(Memory::Cuda));
    let env = |value: &str| BTreeMap::from([("NCCL_ALGO".to_owned(), value.to_owned())]);
    test.collective = Some(Collective {
        grouping,
        ranks_per_host,
        datatypes: vec![Datatype::F32, Datatype::F16],
        reductions: vec![Reduction::Sum],
        algorithms: vec![None],
        in_place: false,
        graph: false,
        env: vec![env("Ring"), env("Tree")],
        library: None,
        carried_by: None,
        training: None,
        traffic: None,
        alone: 0,
    });
    plan
}

#[test]
fn all_hosts_are_one_group_with_ranks_in_order() {
    let schedule = schedule(&collective(3, Grouping::All, 2), &Inventory::default()).unwrap();
    assert_eq!(schedule.rounds.len(), 1);
    let flow = &schedule.rounds[0].flows[0];
    assert_eq!((flow.ranks(), flow.hosts().len()), (6, 3));
    assert!(flow.members.windows(2).all(|two| two[0] < two[1]));
    assert_eq!((&flow.from, &flow.to), (&flow.members[0], &flow.members[5]));
}

#[test]
fn every_pair_is_measured_once_and_no_host_twice_in_a_round() {
    let schedule = schedule(&collective(5, Grouping::Pairs, 1), &Inventory::default()).unwrap();
    let mut seen = HashSet::new();
    for round in &schedule.rounds {
        let hosts: Vec<_> = round.flows.iter().flat_map(|flow| flow.hosts()).collect();
        assert_eq!(hosts.iter().collect::<HashSet<_>>().len(), hosts.len());
        round.flows.iter().for_each(|flow| assert!(seen.insert(flow.members.clone())));
    }
    assert_eq!(seen.len(), 10);
}

#[test]
fn halves_run_at_the_same_time() {
    let schedule = schedule(&collective(4, Grouping::Halves, 2), &Inventory::default()).unwrap();
    assert_eq!((schedule.rounds.len(), schedule.rounds[0].flows.len()), (1, 2));
}

#[test]
fn cells_of_an_environment_stand_together() {
    let plan = collective(2, Grouping::All, 1);
    let schedule = schedule(&plan, &Inventory::default()).unwrap();
    let cells = &schedule.cells[0];
    assert_eq!(cells.len(), plan.tests[0].sizes.len() * 4);
    let env = |cell: &Cell| cell.manner.as_ref().unwrap().env["NCCL_ALGO"].clone();
    let changes = cells.windows(2).filter(|two| env(&two[0]) != env(&two[1])).count();
    assert_eq!(changes, 1);
}

#[test]
fn one_rank_is_no_group() {
    assert!(schedule(&collective(1, Grouping::All, 1), &Inventory::default()).is_err());
}
