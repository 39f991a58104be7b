//! Localisation down to the link, on small fabrics whose truth is known.

use proptest::prelude::*;
use railgauge_stats::{
    Refusal,
    fabric::{Fabric, Findings, Judgement, Link, Part, Ports, Probe, Setting, Test, confirm, locate, probes},
};

use crate::{
    tree::Tree,
    world::{DEAD, Fault, World},
};

const SETTING: Setting = Setting { least: 0.01, noise: 0.0 };

fn small() -> Tree {
    Tree::two_levels(8, 4, 4, false)
}

fn screen(world: &mut World<'_>, rounds: usize) -> Vec<Test> {
    let tree = world.tree;
    let schedule = tree.screen(rounds, |below| world.below(below));
    let test = |world: &mut World<'_>, flow: usize, (from, to): (u32, u32)| {
        let (routes, flow) = (tree.routes(from, to), flow as u32);
        let value = world.test(from, to, flow, &routes);
        Test { from, to, flow, routes, kind: 0, round: 0, value }
    };
    let all = schedule.iter().enumerate().flat_map(|(round, pairs)| pairs.iter().map(move |pair| (round, *pair)));
    all.map(|(round, pair)| test(world, round, pair)).collect()
}

fn next(tree: &Tree, tests: &[Test], findings: &Findings, round: u32) -> Vec<Probe> {
    let ports: Vec<u32> = (0..tree.ports).collect();
    let ports = Ports { ports: &ports, routes: &|from, to| tree.routes(from, to) };
    probes(&tree.fabric, tests, findings, &ports, &|_, _| 0, round)
}

/// Makes the probes of a round; `drift` is added to every result of it.
fn measure(world: &mut World<'_>, tests: &mut Vec<Test>, probes: Vec<Probe>, round: u32, drift: f64) {
    for Probe { from, to, flow, routes, kind, .. } in probes {
        let value = world.test(from, to, flow, &routes).map(|value| value + drift);
        tests.push(Test { from, to, flow, routes, kind, round, value });
    }
}

fn found(tree: &Tree, tests: &[Test]) -> Vec<Part> {
    locate(&tree.fabric, tests, &SETTING).unwrap().suspects.iter().map(|suspect| suspect.part).collect()
}

/// Results of a fabric without noise to speak of, with these links low.
fn results(tree: &Tree, rounds: usize, low: &[(u32, f64)]) -> Vec<Test> {
    let mut world = World::new(tree, Fault::None, 0.001, 0.0, 5);
    let mut tests = screen(&mut world, rounds);
    for test in &mut tests {
        let effect = low.iter().filter(|(link, _)| test.routes[0].contains(link)).map(|(_, effect)| *effect);
        let effect = effect.fold(0.0, f64::min);
        test.value = test.value.map(|value| value + effect);
    }
    tests
}

#[test]
fn a_cable_a_direction_and_a_dead_cable_are_named_with_what_they_take() {
    let tree = small();
    for (fault, effect) in [
        (Fault::Cables(1, -0.1), -0.1),
        (Fault::OneWay(-0.1), -0.1),
        (Fault::Nic(-0.3), -0.3),
        (Fault::Cables(1, DEAD), DEAD),
        (Fault::OneWay(DEAD), DEAD),
    ] {
        for seed in 0..20 {
            let mut world = World::new(&tree, fault, 0.01, 0.0, seed);
            let mut tests = screen(&mut world, 6);
            for round in 1..=3 {
                let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
                let next = next(&tree, &tests, &findings, round);
                measure(&mut world, &mut tests, next, round, 0.0);
            }
            let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
            let judgements = confirm(&tree.fabric, &tests, &findings, &SETTING);
            let is_confirmed = |judgement: &Judgement| matches!(judgement, Judgement::Confirmed { n: 3.., .. });
            let confirmed: Vec<_> =
                findings.suspects.iter().zip(&judgements).filter(|(_, judgement)| is_confirmed(judgement)).collect();
            let [(suspect, _)] = confirmed[..] else {
                panic!("{fault:?} {seed}: {:?} {judgements:?}", findings.suspects)
            };
            assert_eq!((suspect.part, &suspect.alternatives[..]), (world.truth[0], &[][..]), "{fault:?} {seed}");
            assert_eq!(suspect.dead, effect == DEAD);
            assert!(suspect.low >= 3 && suspect.good == 0, "{suspect:?}");
            if effect > DEAD {
                assert!((suspect.effect - effect).abs() < 0.02, "{suspect:?}");
                assert!(suspect.interval.low <= suspect.effect && suspect.effect <= suspect.interval.high);
            }
        }
    }
}

#[test]
fn intervals_hold_what_the_cable_takes() {
    let tree = small();
    let holds = |seed: &u64| {
        let tests = screen(&mut World::new(&tree, Fault::Cables(1, -0.1), 0.01, 0.0, *seed), 6);
        let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
        findings.suspects.iter().all(|suspect| suspect.interval.holds(-0.1))
    };
    let held = (1000..1300).filter(holds).count();
    // 95 % of 300 less four standard deviations of that number.
    assert!(held >= 270, "{held} of 300");
}

#[test]
fn healthy_fabrics_have_no_suspect_beyond_the_stated_rate() {
    let tree = small();
    let suspected = (0..1000)
        .filter(|&seed| !found(&tree, &screen(&mut World::new(&tree, Fault::None, 0.01, 0.0, seed), 4)).is_empty());
    // One of a hundred, and three standard deviations of the number in a thousand.
    assert!(suspected.count() <= 20);
}

#[test]
fn links_that_every_test_passes_together_are_named_together_until_a_test_tells_them_apart() {
    let tree = small();
    // The way down to port 9 and the link from its spine to its leaf: from other leaves both are passed or none.
    let (down, above) = (tree.routes(0, 9)[0][3], tree.routes(0, 9)[0][2]);
    let mut tests = results(&tree, 6, &[(above, -0.1)]);
    let within: Vec<Test> = tests.iter().filter(|test| test.routes[0].len() == 2).cloned().collect();
    tests.retain(|test| test.routes[0].len() > 2);
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    let [suspect] = &findings.suspects[..] else { panic!("{:?}", findings.suspects) };
    let mut parts = suspect.alternatives.clone();
    parts.push(suspect.part);
    assert!(parts.contains(&Part::Link(above)) && parts.contains(&Part::Link(down)), "{parts:?}");
    tests.extend(within);
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    assert_eq!((findings.suspects[0].part, &findings.suspects[0].alternatives[..]), (Part::Link(above), &[][..]));
}

#[test]
fn one_low_test_of_links_passed_once_makes_them_suspects_and_a_stray_beside_good_ones_does_not() {
    let tree = small();
    let mut once = results(&tree, 2, &[]);
    once.retain(|test| test.routes[0].len() > 2);
    once[7].value = Some(-0.2);
    let findings = locate(&tree.fabric, &once, &SETTING).unwrap();
    let [suspect] = &findings.suspects[..] else { panic!("{:?}", findings.suspects) };
    for &link in &once[7].routes[0] {
        assert!(suspect.part == Part::Link(link) || suspect.alternatives.contains(&Part::Link(link)), "{link}");
    }
    let mut often = results(&tree, 6, &[]);
    often[7].value = Some(-0.2);
    let findings = locate(&tree.fabric, &often, &SETTING).unwrap();
    assert_eq!((&findings.suspects[..], &findings.unexplained[..]), (&[][..], &[7][..]));
}

#[test]
fn links_that_no_test_passed_are_neither_good_nor_bad() {
    let tree = small();
    let tests: Vec<Test> = results(&tree, 6, &[]).into_iter().filter(|test| test.routes[0].len() == 2).collect();
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    let between: Vec<u32> = (2 * tree.ports..tree.fabric.links().len() as u32).collect();
    assert_eq!(findings.untested(), between);
    assert!(between.iter().all(|&link| !findings.shown_good[link as usize]));
    assert!((0..2 * tree.ports).all(|link| findings.shown_good[link as usize]));
}

#[test]
fn a_switch_is_named_if_its_cables_are_low_one_by_one_and_not_for_two_of_them() {
    let tree = small();
    for &switch in &tree.switches {
        let links = tree.fabric.links_of(&Part::Device(switch));
        let low: Vec<(u32, f64)> = links.iter().map(|&link| (link, -0.1)).collect();
        assert_eq!(found(&tree, &results(&tree, 6, &low)), [Part::Device(switch)]);
        let two: Vec<(u32, f64)> = low.into_iter().step_by(2).filter(|(link, _)| link % 2 == 0).take(2).collect();
        let mut parts = found(&tree, &results(&tree, 6, &two));
        parts.sort();
        assert_eq!(parts, two.iter().map(|(link, _)| Part::Link(*link)).collect::<Vec<_>>());
    }
}

#[test]
fn a_dead_switch_is_one_name_and_is_said_to_be_dead() {
    let tree = small();
    for seed in 0..20 {
        let mut world = World::new(&tree, Fault::Switch(DEAD), 0.01, 0.0, seed);
        let tests = screen(&mut world, 6);
        let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
        let lowest = &findings.suspects[0];
        assert_eq!((lowest.part, lowest.dead), (world.truth[0], true), "{seed}");
        assert!(findings.suspects[1..].iter().all(|suspect| !suspect.dead), "{seed}: {:?}", findings.suspects);
    }
}

#[test]
fn two_bad_cables_of_one_path_are_both_found() {
    let tree = small();
    // The way up of port 3 and the way from its leaf that it takes to port 21.
    let route = &tree.routes(3, 21)[0];
    let mut parts = found(&tree, &results(&tree, 6, &[(route[0], -0.1), (route[1], -0.3)]));
    parts.sort();
    assert_eq!(parts, [Part::Link(route[0]), Part::Link(route[1])]);
}

#[test]
fn the_better_cluster_is_good_where_most_paths_are_low() {
    // Two spines of which one is slow and hosts on many leaves: half of all paths, and with a bad leaf more.
    let tree = Tree::two_levels(8, 4, 2, false);
    let (spine, leaf) = (tree.switches[8], tree.switches[2]);
    let links = |device: u32| tree.fabric.links_of(&Part::Device(device));
    let low: Vec<(u32, f64)> = links(spine).into_iter().chain(links(leaf)).map(|link| (link, -0.2)).collect();
    let tests = results(&tree, 6, &low);
    let below = tests.iter().filter(|test| test.value.unwrap() < -0.1).count();
    assert!(2 * below > tests.len(), "{below} of {}", tests.len());
    let mut parts = found(&tree, &tests);
    parts.sort();
    assert_eq!(parts, [Part::Device(leaf), Part::Device(spine)]);
}

#[test]
fn kinds_that_differ_by_nature_are_not_held_against_each_other() {
    let tree = small();
    let mut tests = results(&tree, 6, &[]);
    for test in &mut tests {
        if test.routes[0].len() > 2 {
            test.kind = 1;
            test.value = test.value.map(|value| value - 0.5);
        }
    }
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    assert_eq!((findings.suspects.len(), findings.levels.len()), (0, 2));
    assert!((findings.levels[&0].centre - findings.levels[&1].centre - 0.5).abs() < 0.01);
}

#[test]
fn a_round_of_probes_has_no_conflict_and_tests_every_link_in_doubt_beside_good_ones() {
    for hashed in [false, true] {
        let tree = Tree::two_levels(8, 4, 4, hashed);
        for seed in 0..20 {
            let tests = screen(&mut World::new(&tree, Fault::Cables(2, -0.1), 0.01, 0.0, seed), 6);
            let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
            assert!(!findings.suspects.is_empty());
            let round = next(&tree, &tests, &findings, 1);
            let once = |ends: Vec<u32>| {
                let mut sorted = ends.clone();
                sorted.sort_unstable();
                sorted.dedup();
                sorted.len() == ends.len()
            };
            assert!(once(round.iter().map(|probe| probe.from).collect()));
            assert!(once(round.iter().map(|probe| probe.to).collect()));
            assert!(hashed || once(round.iter().flat_map(|probe| probe.routes[0].clone()).collect()));
            let doubtful: Vec<u32> = findings
                .suspects
                .iter()
                .flat_map(|suspect| [suspect.part].into_iter().chain(suspect.alternatives.clone()))
                .flat_map(|part| tree.fabric.links_of(&part))
                .collect();
            let controls = round.iter().filter(|probe| probe.suspect.is_none());
            assert!(controls.clone().count() >= 3);
            for control in controls {
                assert!(control.routes.iter().flatten().all(|link| !doubtful.contains(link)), "{control:?}");
            }
            for (number, suspect) in findings.suspects.iter().enumerate() {
                let links = tree.fabric.links_of(&suspect.part);
                let own = round.iter().filter(|probe| probe.suspect == Some(number));
                let passes = |probe: &&Probe| probe.routes.iter().flatten().any(|link| links.contains(link));
                assert!(own.filter(passes).count() >= 1, "{suspect:?}");
            }
        }
    }
}

#[test]
fn nothing_suspect_needs_no_probes() {
    let tree = small();
    let tests = results(&tree, 6, &[]);
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    assert_eq!(next(&tree, &tests, &findings, 1), []);
}

#[test]
fn what_was_low_by_chance_is_cleared_and_a_drift_of_all_confirms_nothing() {
    let tree = small();
    let mut tests = results(&tree, 6, &[]);
    // Every test of one link low, as a flap during the screen makes them.
    let link = tree.routes(0, 9)[0][1];
    tests.iter_mut().filter(|test| test.routes[0].contains(&link)).for_each(|test| test.value = Some(-0.1));
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    assert_eq!(findings.suspects.len(), 1);
    let mut world = World::new(&tree, Fault::None, 0.001, 0.0, 9);
    for round in 1..=3 {
        let next = next(&tree, &tests, &findings, round);
        measure(&mut world, &mut tests, next, round, -0.1);
    }
    let judgement = confirm(&tree.fabric, &tests, &findings, &SETTING)[0];
    assert!(matches!(judgement, Judgement::Cleared { n: 3.., .. }), "{judgement:?}");
}

#[test]
fn rounds_without_controls_settle_nothing_and_further_rounds_take_no_controls_away() {
    let tree = small();
    let mut world = World::new(&tree, Fault::OneWay(-0.1), 0.01, 0.0, 4);
    let mut tests = screen(&mut world, 6);
    for round in 1..=9 {
        let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
        let next = next(&tree, &tests, &findings, round);
        measure(&mut world, &mut tests, next, round, 0.0);
    }
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    let link = tree.fabric.links_of(&world.truth[0])[0];
    let judgement = confirm(&tree.fabric, &tests, &findings, &SETTING)[0];
    assert!(matches!(judgement, Judgement::Confirmed { n: 9, .. }), "{judgement:?}");
    // Whatever went on in the other rounds, nothing shows that it was the link.
    tests.retain(|test| test.round <= 1 || test.routes[0].contains(&link));
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    assert_eq!(confirm(&tree.fabric, &tests, &findings, &SETTING)[0], Judgement::Open { n: 1 });
}

#[test]
fn without_probes_nothing_is_confirmed() {
    let tree = small();
    let tests = results(&tree, 6, &[(40, -0.1)]);
    let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
    assert_eq!(confirm(&tree.fabric, &tests, &findings, &SETTING), [Judgement::Open { n: 0 }]);
}

#[test]
fn hashed_routes_leave_the_ways_up_of_one_leaf_and_repeats_of_low_flows_confirm_them() {
    let tree = Tree::two_levels(8, 8, 4, true);
    for seed in 0..10 {
        let mut world = World::new(&tree, Fault::Cables(1, -0.1), 0.01, 0.0, seed);
        let mut tests = screen(&mut world, 6);
        for round in 1..=3 {
            let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
            let next = next(&tree, &tests, &findings, round);
            measure(&mut world, &mut tests, next, round, 0.0);
        }
        let findings = locate(&tree.fabric, &tests, &SETTING).unwrap();
        let judgements = confirm(&tree.fabric, &tests, &findings, &SETTING);
        let [suspect] = &findings.suspects[..] else { panic!("{seed}: {:?}", findings.suspects) };
        assert!(matches!(judgements[0], Judgement::Confirmed { .. }), "{seed}: {:?} {suspect:?}", judgements[0]);
        let all: Vec<Part> = [suspect.part].into_iter().chain(suspect.alternatives.clone()).collect();
        assert!(all.contains(&world.truth[0]), "{seed}: {:?} not in {all:?}", world.truth[0]);
        assert!(suspect.cables(&tree.fabric).len() <= 4, "{seed}: {all:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let tree = small();
    let good = results(&tree, 2, &[]);
    let refused = |change: &dyn Fn(&mut Vec<Test>)| {
        let mut tests = good.clone();
        change(&mut tests);
        locate(&tree.fabric, &tests, &SETTING).unwrap_err()
    };
    assert_eq!(refused(&|tests| tests[3].value = Some(f64::NAN)), Refusal::NotFinite { at: 3 });
    assert_eq!(refused(&|tests| tests.truncate(7)), Refusal::TooFew { need: 8, got: 7 });
    assert!(matches!(refused(&|tests| tests[3].routes = vec![]), Refusal::Parameter(_)));
    assert!(matches!(refused(&|tests| tests[3].routes[0] = vec![u32::MAX]), Refusal::Parameter(_)));
    let least = Setting { least: -1.0, noise: 0.0 };
    assert!(matches!(locate(&tree.fabric, &good, &least), Err(Refusal::Parameter(_))));
    let alone = Link { from: 0, to: 1, reverse: Some(0) };
    assert!(matches!(Fabric::new(vec![alone]), Err(Refusal::Parameter(_))));
}

fn fault(number: usize) -> Fault {
    [
        Fault::None,
        Fault::Cables(1, -0.1),
        Fault::Cables(2, -0.1),
        Fault::OneWay(-0.05),
        Fault::Switch(-0.1),
        Fault::Nic(DEAD),
    ][number]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn order_of_tests_and_scale_of_values_do_not_matter(seed in 0u64..1000, number in 0usize..6, by in -20i32..20) {
        let tree = small();
        let mut tests = screen(&mut World::new(&tree, fault(number), 0.01, 0.0, seed), 4);
        let before = found(&tree, &tests);
        tests.reverse();
        let third = tests.len() / 3;
        tests.rotate_left(third);
        tests.iter_mut().for_each(|test| test.value = test.value.map(|value| value + f64::from(by)));
        prop_assert_eq!(found(&tree, &tests), before);
    }

    #[test]
    fn names_of_links_do_not_matter(seed in 0u64..1000, number in 0usize..6) {
        let tree = small();
        let tests = screen(&mut World::new(&tree, fault(number), 0.01, 0.0, seed), 4);
        let links = tree.fabric.links();
        let n = links.len() as u32;
        // Backwards, and so are both directions of each cable.
        let other = |link: u32| n - 1 - link;
        let mirrored: Vec<Link> = links.iter().rev().map(|link| Link { reverse: link.reverse.map(other), ..*link }).collect();
        let mirrored = Fabric::new(mirrored).unwrap();
        let renamed: Vec<Test> = tests.iter().map(|test| Test {
            routes: test.routes.iter().map(|route| route.iter().map(|&link| other(link)).collect()).collect(),
            ..test.clone()
        }).collect();
        let name = |part: Part| match part {
            Part::Link(link) => Part::Link(other(link)),
            Part::Cable(a, b) => Part::Cable(other(b), other(a)),
            Part::Device(device) => Part::Device(device),
        };
        // Of parts that are not told apart any may be the first: all of them together are the same.
        let sets = |findings: Findings, name: &dyn Fn(Part) -> Part| {
            let set = |suspect: &railgauge_stats::fabric::Suspect| {
                let mut all: Vec<Part> =
                    [suspect.part].into_iter().chain(suspect.alternatives.clone()).map(name).collect();
                all.sort();
                all
            };
            let mut sets: Vec<Vec<Part>> = findings.suspects.iter().map(set).collect();
            sets.sort();
            sets
        };
        let before = sets(locate(&tree.fabric, &tests, &SETTING).unwrap(), &name);
        let after = sets(locate(&mirrored, &renamed, &SETTING).unwrap(), &|part| part);
        prop_assert_eq!(before, after);
    }
}
