//! Rounds whose flows share NICs on purpose: which flows there are, and how many on each NIC.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use proptest::prelude::*;
use railgauge_wire::{Nanoseconds, Window};

use super::{hosts_only, numbers, plan, scheduled};
use crate::{
    plan::model::{AtOnce, Cut, Pattern, Rails, Victim},
    schedule::{LEAD, OVERHEAD, Time},
};

type Flows = Vec<(usize, u32, usize, u32)>;

fn rounds(pattern: AtOnce, rails: Rails, devices: &[usize], seed: u64) -> Vec<Flows> {
    numbers(&scheduled(&plan(Pattern::AtOnce(pattern), rails, devices, seed)))
}

type Loads = HashMap<(usize, u32), usize>;

fn loads(round: &Flows) -> (Loads, Loads) {
    let (mut out, mut into) = (HashMap::new(), HashMap::new());
    for &(from, from_rail, to, to_rail) in round {
        assert_ne!(from, to);
        *out.entry((from, from_rail)).or_default() += 1;
        *into.entry((to, to_rail)).or_default() += 1;
    }
    (out, into)
}

#[test]
fn a_reader_sees_what_runs_at_once() {
    let of =
        |pattern, hosts| hosts_only(&scheduled(&plan(Pattern::AtOnce(pattern), Rails::Aligned, &vec![1; hosts], 1)));
    assert_eq!(of(AtOnce::Incast(Some("h1".into())), 4), [[(0, 1), (2, 1), (3, 1)]]);
    assert_eq!(of(AtOnce::Outcast(Some("h1".into())), 3), [[(1, 0), (1, 2)]]);
    assert_eq!(of(AtOnce::Incast(None), 3), [[(1, 0), (2, 0)], [(0, 1), (2, 1)], [(0, 2), (1, 2)]]);
    assert_eq!(of(AtOnce::AllToAll, 3), [[(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)]]);
    assert_eq!(of(AtOnce::Ring, 3), [[(0, 1), (1, 2), (2, 0)]]);
    assert_eq!(of(AtOnce::Ring, 2), [[(0, 1), (1, 0)]]);
    let named = Victim { flow: Some(("h3".into(), "h1".into())), to: Some("h0".into()), draws: 1 };
    assert_eq!(of(AtOnce::Victim(named), 6), [vec![(3, 1)], vec![(3, 1), (2, 0), (4, 0), (5, 0)]]);
}

#[test]
fn a_victim_needs_five_hosts() {
    let drawn = AtOnce::Victim(Victim { flow: None, to: None, draws: 1 });
    let plan = plan(Pattern::AtOnce(drawn), Rails::Aligned, &[1; 4], 0);
    let refused = crate::schedule::schedule(&plan, &crate::schedule::Inventory::of_plan(&plan)).unwrap_err();
    assert!(refused.to_string().contains("needs 5"), "{refused}");
}

#[test]
fn groups_of_different_sizes_leave_hosts_idle_and_say_so() {
    let pattern = AtOnce::Bisection(Cut::Groups("a".into(), "b".into()));
    let mut plan = plan(Pattern::AtOnce(pattern), Rails::Aligned, &[1; 5], 0);
    plan.groups.insert("a".into(), vec!["h0".into(), "h1".into()]);
    plan.groups.insert("b".into(), vec!["h2".into(), "h3".into(), "h4".into()]);
    let schedule = scheduled(&plan);
    assert_eq!(hosts_only(&schedule), [[(0, 2), (2, 0), (1, 3), (3, 1)]]);
    assert!(schedule.notes[0].text.contains("the rest of the larger group is idle"), "{:?}", schedule.notes);
}

#[test]
fn the_way_to_a_common_start_takes_its_time() {
    let mut plan = plan(Pattern::AtOnce(AtOnce::Ring), Rails::Aligned, &[1; 3], 0);
    plan.tests[0].window = Window::Duration(Nanoseconds::from_secs(2));
    assert_eq!(Time::of_case(&plan.tests[0]).at_least, OVERHEAD + LEAD + Duration::from_secs(2));
}

proptest! {
    #[test]
    fn every_nic_has_as_many_flows_as_the_pattern_says(hosts in 2..20usize, rails in 1..4usize, draws in 1..4u32, seed: u64) {
        let devices = vec![rails; hosts];
        let of = |pattern| rounds(pattern, Rails::Aligned, &devices, seed);
        let ports = hosts * rails;

        let incast = of(AtOnce::Incast(None));
        prop_assert_eq!(incast.len(), hosts);
        for (round, host) in incast.iter().zip(0..) {
            let (out, into) = loads(round);
            prop_assert!(into.len() == rails && into.iter().all(|(port, n)| port.0 == host && *n == hosts - 1));
            prop_assert!(out.len() == ports - rails && out.values().all(|n| *n == 1));
        }
        for (round, host) in of(AtOnce::Outcast(None)).iter().zip(0..) {
            let (out, into) = loads(round);
            prop_assert!(out.len() == rails && out.iter().all(|(port, n)| port.0 == host && *n == hosts - 1));
            prop_assert!(into.len() == ports - rails && into.values().all(|n| *n == 1));
        }

        let all = of(AtOnce::AllToAll);
        prop_assert_eq!(all.len(), 1);
        prop_assert_eq!(all[0].iter().collect::<HashSet<_>>().len(), rails * hosts * (hosts - 1));
        let (out, into) = loads(&all[0]);
        prop_assert!(out.len() == ports && out.values().chain(into.values()).all(|n| *n == hosts - 1));

        let permutations = of(AtOnce::Permutation(draws));
        prop_assert_eq!(permutations.len(), draws as usize);
        for round in permutations.iter().chain(&of(AtOnce::Ring)) {
            let (out, into) = loads(round);
            prop_assert!(out.len() == ports && into.len() == ports && round.len() == ports);
        }

        for round in of(AtOnce::Bisection(Cut::Drawn(draws))) {
            prop_assert_eq!(round.len(), rails * (hosts / 2 * 2));
            let (out, into) = loads(&round);
            prop_assert!(out.len() == round.len() && into.len() == round.len());
            let flows: HashSet<_> = round.iter().copied().collect();
            prop_assert!(round.iter().all(|&(a, i, b, j)| flows.contains(&(b, j, a, i))), "both directions");
        }
        prop_assert_eq!(of(AtOnce::Permutation(draws)), permutations, "the same every time");
    }

    #[test]
    fn a_victim_shares_no_port_with_the_incast(
        hosts in 5..20usize, rails in 1..4usize, draws in 1..4u32, seed: u64, flow: bool, to: bool
    ) {
        let flow = flow.then(|| ("h1".to_owned(), "h2".to_owned()));
        let to = to.then(|| "h4".to_owned());
        let pattern = AtOnce::Victim(Victim { flow: flow.clone(), to: to.clone(), draws });
        let rounds = rounds(pattern, Rails::Aligned, &vec![rails; hosts], seed);
        prop_assert_eq!(rounds.len(), 2 * draws as usize);
        for pair in rounds.chunks(2) {
            let (alone, beside) = (&pair[0], &pair[1]);
            prop_assert_eq!(alone.len(), rails);
            let (from, into) = (alone[0].0, alone[0].2);
            prop_assert!(flow.is_none() || (from, into) == (1, 2));
            let incast: Flows = beside.iter().copied().filter(|flow| !alone.contains(flow)).collect();
            prop_assert_eq!(beside.len(), alone.len() + incast.len());
            prop_assert_eq!(incast.len(), rails * (hosts - 3));
            let one = incast[0].2;
            prop_assert!(to.is_none() || one == 4);
            prop_assert!(incast.iter().all(|flow| flow.2 == one && ![from, into].contains(&flow.0)));
            prop_assert!(![from, into].contains(&one));
        }
    }

    #[test]
    fn draws_differ(seed: u64) {
        let devices = vec![1; 32];
        let drawn = rounds(AtOnce::Permutation(2), Rails::Aligned, &devices, seed);
        prop_assert_ne!(&drawn[0], &drawn[1]);
    }
}
