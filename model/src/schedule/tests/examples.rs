//! Schedules small enough to be read, and the cost of a large one.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use railgauge_wire::{Bytes, Op, Transport};

use super::{hosts_only, numbers, plan, scheduled};
use crate::{
    plan::{
        Plan,
        model::{Host, Pattern, Rails, Test},
    },
    schedule::{CaseIndex, Inventory, Schedule, ScheduleError, circle, draw, schedule},
};

fn golden() -> BTreeMap<usize, Vec<Vec<(usize, usize)>>> {
    serde_json::from_str(include_str!("../../../../tests/goldens/circle_schedules.json")).unwrap()
}

#[test]
fn the_circle_method_gives_the_golden_rounds() {
    assert!(golden().len() >= 6);
    for (players, rounds) in golden() {
        let ours: Vec<Vec<_>> =
            (0..circle::rounds(players)).map(|round| circle::round(players, round).collect()).collect();
        assert_eq!(ours, rounds, "{players} players");
    }
}

#[test]
fn a_tournament_is_the_golden_with_roles_changed_in_every_other_round() {
    for (players, mut rounds) in golden() {
        for round in rounds.iter_mut().skip(1).step_by(2) {
            round.iter_mut().for_each(|pair| *pair = (pair.1, pair.0));
        }
        let plan = plan(Pattern::Tournament, Rails::Aligned, &vec![1; players], 0);
        assert_eq!(hosts_only(&scheduled(&plan)), rounds, "{players} hosts");
    }
}

#[test]
fn the_seeded_draw_stays_what_it_is() {
    // Recorded from this code: a change means that old plans get other rounds.
    assert_eq!(draw::distinct(15, 6, 1), DRAWN_1);
    assert_eq!(draw::distinct(15, 6, 2), DRAWN_2);
}
const DRAWN_1: [usize; 6] = [12, 13, 11, 1, 3, 2];
const DRAWN_2: [usize; 6] = [8, 12, 7, 1, 11, 2];

#[test]
fn the_draw_is_fair() {
    let mut first = [0u32; 5];
    for seed in 0..5_000 {
        first[draw::distinct(5, 2, seed)[0]] += 1;
    }
    // Binomial with p = 0.2: 1000 ± 28; six standard deviations never happen by chance.
    assert!(first.iter().all(|&count| (830..=1170).contains(&count)), "{first:?}");
}

#[test]
fn ring_neighbours_and_stars() {
    let of = |pattern, hosts| hosts_only(&scheduled(&plan(pattern, Rails::Aligned, &vec![1; hosts], 0)));
    assert_eq!(of(Pattern::Ring, 4), [[(0, 1), (2, 3)], [(1, 2), (3, 0)]]);
    assert_eq!(of(Pattern::Ring, 5), [vec![(0, 1), (2, 3)], vec![(1, 2), (3, 4)], vec![(4, 0)]]);
    assert_eq!(of(Pattern::Ring, 2), [[(0, 1)], [(1, 0)]]);
    assert_eq!(of(Pattern::Neighbours, 5), [[(0, 1), (2, 3)]]);
    assert_eq!(of(Pattern::OneToMany("h1".into()), 4), [[(1, 0)], [(1, 2)], [(1, 3)]]);
    assert_eq!(of(Pattern::ManyToOne("h1".into()), 4), [[(0, 1)], [(2, 1)], [(3, 1)]]);
    let odd = scheduled(&plan(Pattern::Neighbours, Rails::Aligned, &[1; 5], 0));
    assert_eq!(odd.notes.len(), 1);
    assert!(odd.notes[0].text.contains("`h4`"), "{:?}", odd.notes);
}

#[test]
fn explicit_pairs_keep_their_order_and_are_run_once() {
    let pairs = [("h0", "h1"), ("h1", "h2"), ("h2", "h3"), ("h1", "h0"), ("h0", "h1")];
    let pairs = pairs.map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec();
    let schedule = scheduled(&plan(Pattern::Pairs(pairs), Rails::Aligned, &[1; 4], 0));
    assert_eq!(hosts_only(&schedule), [vec![(0, 1), (2, 3)], vec![(1, 2)], vec![(1, 0)]]);
    assert!(schedule.notes[0].text.contains("listed twice"), "{:?}", schedule.notes);
}

#[test]
fn between_groups_is_a_round_robin() {
    let mut plan = plan(Pattern::Between("a".into(), "b".into()), Rails::Aligned, &[1; 5], 0);
    plan.groups.insert("a".into(), vec!["h0".into(), "h1".into()]);
    plan.groups.insert("b".into(), vec!["h2".into(), "h3".into(), "h4".into()]);
    assert_eq!(hosts_only(&scheduled(&plan)), [[(0, 2), (1, 3)], [(0, 3), (1, 4)], [(0, 4), (1, 2)]]);
    // The same groups the other way round: the larger one leads.
    plan.tests[0].pattern = Pattern::Between("b".into(), "a".into());
    assert_eq!(hosts_only(&scheduled(&plan)), [[(2, 0), (3, 1)], [(2, 1), (4, 0)], [(3, 0), (4, 1)]]);
}

#[test]
fn different_numbers_of_rails() {
    let aligned = scheduled(&plan(Pattern::Neighbours, Rails::Aligned, &[3, 2], 0));
    assert_eq!(numbers(&aligned), [[(0, 0, 1, 0), (0, 1, 1, 1)]]);
    assert!(aligned.notes[0].text.contains("3 on `h0`; 2 on `h1`"), "{:?}", aligned.notes);

    let crossed = scheduled(&plan(Pattern::Neighbours, Rails::Crossed, &[3, 2], 0));
    let want: [&[(usize, u32, usize, u32)]; 3] =
        [&[(0, 0, 1, 0), (0, 1, 1, 1)], &[(0, 0, 1, 1), (0, 2, 1, 0)], &[(0, 1, 1, 0), (0, 2, 1, 1)]];
    assert_eq!(numbers(&crossed), want);

    let each = scheduled(&plan(Pattern::Neighbours, Rails::Each, &[3, 2], 0));
    assert_eq!(numbers(&each), [[(0, 0, 1, 0)], [(0, 1, 1, 1)]]);

    // A rail that is asked for by number stays, so that its case fails by name.
    let only = scheduled(&plan(Pattern::Neighbours, Rails::Only(vec![1, 2, 1]), &[3, 2], 0));
    assert_eq!(numbers(&only), [[(0, 1, 1, 1), (0, 2, 1, 2)]]);
    assert!(only.notes[0].text.contains("rail 2 is asked for, and `h1` has rails 0 to 1"), "{:?}", only.notes);
}

#[test]
fn a_host_of_unknown_rails_takes_its_peers() {
    let aligned = scheduled(&plan(Pattern::Neighbours, Rails::Aligned, &[2, 0, 0, 0], 0));
    assert_eq!(numbers(&aligned), [[(0, 0, 1, 0), (0, 1, 1, 1), (2, 0, 3, 0)]]);
    // Rails of verbs say nothing about TCP.
    let mut tcp = plan(Pattern::Neighbours, Rails::Aligned, &[2, 2], 0);
    tcp.tests[0].transport = Transport::Tcp;
    assert_eq!(numbers(&scheduled(&tcp)), [[(0, 0, 1, 0)]]);
    tcp.hosts.iter_mut().for_each(|host| host.tcp = vec!["eth0".into(), "eth1".into()]);
    assert_eq!(numbers(&scheduled(&tcp)), [[(0, 0, 1, 0), (0, 1, 1, 1)]]);
}

#[test]
fn in_a_run_a_missing_nic_is_a_case_and_a_listed_device_is_final() {
    let mut plan = plan(Pattern::Tournament, Rails::Aligned, &[1, 0, 0, 0], 0);
    // h0 lists one device, h1 offers two, h2 lost one of its two, h3 did not answer.
    let found = |host: &Host, _| [Some(5), Some(2), Some(1), None][host.name[1..].parse::<usize>().unwrap()];
    let inventory = Inventory::of_run(&plan, found);
    let rails = |host: &str| inventory.get(host, Transport::Verbs);
    assert_eq!(["h0", "h1", "h2", "h3"].map(rails), [Some(1), Some(2), Some(2), Some(2)]);
    let schedule = schedule(&plan, &inventory).unwrap();
    assert_eq!(schedule.rounds.iter().map(|round| round.flows.len()).sum::<usize>(), 3 + 3 * 2);
    plan.hosts.clear();
    assert_eq!(Inventory::of_run(&plan, |_, _| None), Inventory::default());
}

#[test]
fn what_cannot_be_scheduled_says_why() {
    let error = |pattern, hosts| {
        let plan = plan(pattern, Rails::Aligned, &vec![1; hosts], 0);
        schedule(&plan, &Inventory::default()).unwrap_err()
    };
    let pair = |from: &str, to: &str| Pattern::Pairs(vec![(from.into(), to.into())]);
    assert!(matches!(error(Pattern::Tournament, 1), ScheduleError::NoPairs { .. }));
    assert!(matches!(error(Pattern::Tournament, 0), ScheduleError::NoPairs { .. }));
    assert!(matches!(error(Pattern::Random(0), 4), ScheduleError::NoPairs { .. }));
    assert!(matches!(error(Pattern::Pairs(vec![]), 4), ScheduleError::NoPairs { .. }));
    assert!(matches!(error(pair("h0", "h0"), 4), ScheduleError::SelfPair { .. }));
    assert!(matches!(error(pair("h0", "nobody"), 4), ScheduleError::UnknownHost { .. }));
    assert!(matches!(error(Pattern::OneToMany("nobody".into()), 4), ScheduleError::UnknownHost { .. }));
    assert!(matches!(error(Pattern::Between("a".into(), "b".into()), 4), ScheduleError::UnknownGroup { .. }));
    let mut collective = plan(Pattern::Tournament, Rails::Aligned, &[1; 4], 0);
    collective.tests[0].op = Op::AllReduce;
    assert!(matches!(schedule(&collective, &Inventory::default()), Err(ScheduleError::Collective { .. })));
    let no_rails = plan(Pattern::Tournament, Rails::Only(vec![]), &[1; 4], 0);
    assert!(matches!(schedule(&no_rails, &Inventory::default()), Err(ScheduleError::NoPairs { .. })));
}

/// What one host reports of itself multiplies into the cases of all its pairs.
#[test]
fn a_run_has_so_many_measurements_and_no_more() {
    let mut plan = plan(Pattern::Tournament, Rails::Crossed, &[0; 4], 0);
    let with = |plan: &Plan, ports| {
        let inventory = Inventory::of_run(plan, |host, transport| {
            let found = if host.name == "h2" { ports } else { 2 };
            Some(if transport == Transport::Verbs { found } else { 0 })
        });
        schedule(plan, &inventory).map_err(|error| error.to_string())
    };
    // 6 pairs, 6 cells.
    assert_eq!(with(&plan, 32).unwrap().case_count(), 6 * 6 * 32 * 32);
    for ports in [600, 100_000, u32::MAX] {
        let error = with(&plan, ports).unwrap_err();
        let amount = 36 * u128::from(ports) * u128::from(ports);
        let all = ["test `t`".to_owned(), amount.to_string(), "10000000".to_owned(), format!("`h2` has {ports}")];
        assert!(all.iter().all(|words| error.contains(words)), "{error}");
    }
    // Repeats count, and so do the tests before it.
    plan.tests[0].repeats = 200;
    assert!(with(&plan, 32).is_ok() && with(&plan, 64).is_err());
    let second = Test { name: "second".into(), ..plan.tests[0].clone() };
    plan.tests.push(second);
    assert!(with(&plan, 32).unwrap_err().contains("test `second`"));
    // A plan that was not read, as that of a journal, may say anything.
    plan.tests[0].sizes = (1..300_000).map(Bytes).collect();
    plan.tests[0].qps = (1..3_000).collect();
    assert!(with(&plan, 1).unwrap_err().contains("test `t`"));
}

#[test]
fn cases_are_numbered_round_by_round_cell_by_cell() {
    let schedule = scheduled(&plan(Pattern::Tournament, Rails::Aligned, &[2; 4], 0));
    let cells = &schedule.cells[0];
    assert_eq!(cells.len(), 6);
    assert_eq!(
        (cells[0].qps, cells[0].size, cells[2].size, cells[3].qps, cells[3].size),
        (1, Bytes(64), Bytes(65536), 4, Bytes(64))
    );
    let cases: Vec<CaseIndex> = schedule.cases().collect();
    assert_eq!(cases.len() as u64, schedule.case_count());
    assert_eq!(cases.len(), 3 * 6 * 4);
    assert!(cases.iter().zip(0..).all(|(case, id)| case.id == id));
    assert_eq!(cases[24 + 5], CaseIndex { id: 29, round: 1, cell: 1, flow: 1 });
    let (round, flow, cell) = schedule.resolve(cases[29]).unwrap();
    assert_eq!((round.number, flow, cell), (1, &schedule.rounds[1].flows[1], &cells[1]));
    assert_eq!(schedule.resolve(CaseIndex { id: 0, round: 9, cell: 0, flow: 0 }), None);
}

#[test]
fn a_schedule_reads_back_with_host_names_in_plain_text() {
    let schedule = scheduled(&plan(Pattern::Ring, Rails::Aligned, &[1; 3], 0));
    let text = serde_json::to_string(&schedule).unwrap();
    assert!(text.contains(r#"{"host":"h0","rail":0}"#), "{text}");
    assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule);
}

#[test]
fn a_thousand_hosts_are_scheduled_in_a_tenth_of_a_second() {
    let plan = plan(Pattern::Random(6), Rails::Aligned, &vec![8; 1024], 7);
    // The best of five: the bar is about this code, not about what else the machine does.
    let times = (0..5).map(|_| {
        let start = Instant::now();
        let schedule = scheduled(&plan);
        let time = start.elapsed();
        assert_eq!(schedule.rounds.iter().map(|round| round.flows.len()).sum::<usize>(), 6 * 512 * 8);
        time
    });
    let best = times.min().unwrap();
    println!("1,024 hosts, 8 rails, 6 rounds: {best:?}");
    assert!(best < Duration::from_millis(100), "{best:?}");
}
