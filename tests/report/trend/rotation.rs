//! Plans that rotate: other pairs each night, and what is told of the parts behind them.

use std::sync::LazyLock;

use railgauge_analysis::{
    history::Run,
    row::Untrusted,
    trend::{Options, State, Trend, Watched, day},
};
use railgauge_model::plan::model::Pattern;

use super::nights::{night, run, template, watch};
use crate::support::{Dice, Scenario};

/// Most nights of a test.
const NIGHTS: u32 = 45;

/// The runs of all nights: four leaves of four hosts, three random pairs a host each night.
static TURNS: LazyLock<Vec<Run>> = LazyLock::new(|| {
    let made = |night: u32| {
        let rotate = Some(u64::from(night));
        let mut of =
            below_leaves(Scenario { rotate, pattern: Some(Pattern::Random(3)), ..Scenario::healthy(16, 1) }, 4);
        of.plan_hash = format!("file {night}");
        of
    };
    (0..NIGHTS).map(made).collect()
});

/// A run of one test, so many hosts below each leaf.
fn below_leaves(scenario: Scenario, each: u32) -> Run {
    let mut of = template(&Scenario { sizes: vec![1 << 20], repeats: 1, ..scenario });
    let cases = of.cases.clone();
    of.readings.retain(|reading| &*cases[usize::try_from(reading.case).unwrap()].test == "write-bw");
    of.plan.groups.clear();
    for host in &of.plan.hosts {
        let leaf = format!("leaf{}", number(&host.name) / each);
        of.plan.groups.entry(leaf).or_default().push(host.name.clone());
    }
    of
}

fn number(host: &str) -> u32 {
    host.trim_start_matches("gpu").parse::<u32>().unwrap() - 1
}

/// So many nights; what a pair carries, in parts of 390 Gb/s.
fn leaves(seed: u64, nights: u32, carried: impl Fn(u32, [u32; 2]) -> Option<f64>) -> Vec<Run> {
    let mut dice = Dice(seed);
    let made = |(night, of): (u32, &Run)| {
        run(of, night, 0, &mut dice, |at| {
            let flow = &of.cases[usize::try_from(of.readings[at].case).unwrap()].flow;
            carried(night, [number(&flow.from.host), number(&flow.to.host)]).map(|share| 390.0 * share)
        })
    };
    (0..nights).zip(TURNS.iter()).map(made).collect()
}

fn leaf(host: u32) -> u32 {
    host / 4
}

/// What pairs carry of which this one is true, from a night on.
fn since(first: u32, share: f64, bad: impl Fn([u32; 2]) -> bool) -> impl Fn(u32, [u32; 2]) -> Option<f64> {
    move |night, ends| Some(if night >= first && bad(ends) { share } else { 1.0 })
}

/// Name, first night and percent of every change that is still so.
fn told(found: &Trend) -> Vec<(&str, &str, f64)> {
    let open = found.changes.iter().filter(|change| change.state == State::Open);
    open.map(|change| (change.name.rsplit(", ").next().unwrap(), change.since.as_str(), change.effects[0].1)).collect()
}

/// Pairs whose turn comes now and then, hosts behind a slow uplink, and partners of a slow host are no changes of their own.
#[test]
fn one_slow_part_is_one_line_with_its_night() {
    for (first, nights) in [(9, 13), (9, 29), (20, 40)] {
        let host = watch(leaves(7, nights, since(first, 0.8, |ends| ends.contains(&5))), &Options::default());
        let up = |[a, b]: [u32; 2]| leaf(a) != leaf(b) && (leaf(a) == 1 || leaf(b) == 1);
        let uplink = watch(leaves(7, nights, since(first, 0.8, up)), &Options::default());
        for (name, found) in [("host gpu006", host), ("links out of group leaf1", uplink)] {
            let told = told(&found);
            assert_eq!((found.exit_code, told.len()), (1, 1), "{first} of {nights}: {told:?}");
            assert_eq!((told[0].0, told[0].1), (name, night(i64::from(first)).as_str()), "{nights}");
            assert!((told[0].2 + 20.0).abs() < 1.0, "{told:?}");
            assert_eq!((found.suspicious, found.repeats, found.missing.len()), (0, 0, 0), "{}", found.sentence);
            let behind = found.series.iter().filter(|series| series.behind.as_deref() == Some(name)).count();
            assert!(behind > 0 || nights < first + 5, "{first} of {nights}: no turn of a pair again");
        }
        let healthy = watch(leaves(7, nights, |_, _| Some(1.0)), &Options::default());
        assert_eq!((healthy.exit_code, healthy.changes.len()), (0, 0), "{}", healthy.sentence);
    }
}

/// A host is bad for two weeks and well again: its pairs are well with it, but for one that stays as it was.
#[test]
fn a_pair_ends_with_its_part_where_its_own_values_do() {
    let bad = |night: u32, ends: [u32; 2]| ends.contains(&5) && (12..26).contains(&night);
    for nights in [30, 33, 37, NIGHTS] {
        let healed = leaves(7, nights, |night, ends| Some(if bad(night, ends) { 0.5 } else { 1.0 }));
        let healed = watch(healed, &Options::default());
        let pairs: Vec<_> = told(&healed).into_iter().filter(|(name, ..)| name.contains('→')).collect();
        assert!(pairs.is_empty(), "{nights}: {pairs:?}");
    }
    // One whose turn came since.
    let turns = |ends: [u32; 2]| {
        let of = TURNS.iter().enumerate().filter(|(_, of)| {
            let flows = of.cases.iter().filter(|case| &*case.test == "write-bw").map(|case| &case.flow);
            let name = |host: u32| format!("gpu{:03}", host + 1);
            let mut pairs = flows.map(|flow| [flow.from.host.to_string(), flow.to.host.to_string()]);
            pairs.any(|pair| ends.iter().all(|&end| pair.contains(&name(end))))
        });
        of.map(|(night, _)| night as u32).collect::<Vec<_>>()
    };
    let lasting = (0..16).filter(|&host| host != 5).find(|&host| {
        let of = turns([host, 5]);
        of.iter().any(|&night| night < 12)
            && of.iter().filter(|night| (12..26).contains(*night)).count() > 1
            && of.iter().filter(|night| **night >= 26).count() > 1
    });
    let pair = [lasting.expect("a pair with turns before, during and after"), 5];
    let stays = |night: u32, ends: [u32; 2]| night >= 12 && pair.iter().all(|end| ends.contains(end));
    let carried = |night, ends| Some(if bad(night, ends) || stays(night, ends) { 0.5 } else { 1.0 });
    let found = watch(leaves(7, NIGHTS, carried), &Options::default());
    assert_ne!(found.exit_code, 0, "{}", found.sentence);
}

#[test]
fn a_whole_group_or_everything_is_told_as_that() {
    let group =
        watch(leaves(8, 40, since(25, 0.7, |ends| ends.iter().any(|&host| leaf(host) == 2))), &Options::default());
    assert_eq!(told(&group)[0].0, "group leaf2", "{:?}", told(&group));
    let all = watch(leaves(8, 40, since(25, 0.7, |_| true)), &Options::default());
    assert_eq!(told(&all)[0].0, "every link", "{:?}", told(&all));
}

/// What is worse than the part in front of it has something of its own.
#[test]
fn a_host_that_is_worse_than_its_uplink_is_told_beside_it() {
    let up = |[a, b]: [u32; 2]| leaf(a) != leaf(b) && (leaf(a) == 1 || leaf(b) == 1);
    let carried = |night: u32, ends: [u32; 2]| {
        Some(if night < 25 {
            1.0
        } else if ends.contains(&6) {
            0.4
        } else if up(ends) {
            0.8
        } else {
            1.0
        })
    };
    let found = watch(leaves(9, 45, carried), &Options::default());
    let told = told(&found);
    let names: std::collections::BTreeSet<&str> = told.iter().map(|one| one.0).collect();
    assert_eq!(names, ["host gpu007", "links out of group leaf1"].into(), "{told:?}");
}

/// Nights on which it was not the turn of a pair say nothing of it.
#[test]
fn nights_without_a_value_are_those_of_its_turns() {
    let mut runs = leaves(10, 30, |_, _| Some(1.0));
    let name = |run: &Run, at: usize| run.cases[usize::try_from(run.readings[at].case).unwrap()].flow.name();
    let pair = name(&runs[29], 0);
    runs[29].readings[0].value = Err(Untrusted::NoValue);
    let found = watch(runs, &Options::default());
    let missing: Vec<(&str, usize)> = found.missing.iter().map(|one| (one.link.as_str(), one.nights)).collect();
    assert_eq!(missing, [(pair.as_str(), 1)], "{}", found.sentence);
}

/// Uplinks of the second group.
/// Of the two hosts below a leaf a night may measure one: what was wrong with one of them is no noise of the links out of that leaf.
#[test]
fn a_fault_of_a_host_is_no_noise_of_its_group() {
    let mut dice = Dice(7);
    let made = |night: u32| {
        let drawn = (0..12).filter(|host| !(host + night as usize).is_multiple_of(3)).collect();
        let of = below_leaves(Scenario { drawn, pattern: Some(Pattern::Random(4)), ..Scenario::healthy(8, 1) }, 2);
        run(&of, night, 0, &mut dice, |at| {
            let flow = &of.cases[usize::try_from(of.readings[at].case).unwrap()].flow;
            let is_slow = (9..15).contains(&night) && flow.hosts().iter().any(|host| number(host) == 4);
            Some(if is_slow { 195.0 } else { 390.0 })
        })
    };
    let found = watch((0..16).map(made), &Options::default());
    let noisy = found.series.iter().filter(|series| series.state == Watched::TooNoisy);
    let noisy: Vec<&str> = noisy.map(|series| series.link.as_str()).collect();
    assert!(noisy.is_empty(), "{noisy:?}");
}

fn uplink([a, b]: [u32; 2]) -> bool {
    leaf(a) != leaf(b) && (leaf(a) == 1 || leaf(b) == 1)
}

/// What went away, was accepted, began at another time or comes and goes, explains nothing that lasts.
#[test]
fn a_host_is_not_hidden_by_what_was_once_wrong_with_its_uplinks() {
    type Carried = fn(u32, [u32; 2]) -> f64;
    let cases: [(&str, Carried, Option<&str>); 5] = [
        (
            "accepted",
            |night, ends| {
                if night >= 32 && ends.contains(&6) {
                    0.5
                } else if night >= 12 && uplink(ends) {
                    0.6
                } else {
                    1.0
                }
            },
            Some("2026-12-11"),
        ),
        (
            "over before",
            |night, ends| {
                if night >= 30 && ends.contains(&6) || (12..26).contains(&night) && uplink(ends) { 0.8 } else { 1.0 }
            },
            None,
        ),
        (
            "over since",
            |night, ends| {
                if night >= 20 && ends.contains(&6) || (12..30).contains(&night) && uplink(ends) { 0.8 } else { 1.0 }
            },
            None,
        ),
        (
            "on some nights",
            |night, ends| {
                if night >= 25 && ends.contains(&6) || night >= 15 && night.is_multiple_of(3) && uplink(ends) {
                    0.8
                } else {
                    1.0
                }
            },
            None,
        ),
        (
            "worse than both steps",
            |night, ends| {
                if night >= 30 && ends.contains(&6) {
                    0.5
                } else if night >= 15 && uplink(ends) {
                    0.8
                } else {
                    1.0
                }
            },
            None,
        ),
    ];
    for (what, carried, epoch) in cases {
        let mut options = Options::default();
        options.epochs.extend(epoch.map(|at| (day(at).unwrap(), "new level".to_owned())));
        let found = watch(leaves(11, NIGHTS, |night, ends| Some(carried(night, ends))), &options);
        let told = told(&found);
        assert_eq!(found.exit_code, 1, "{what}: {}", found.sentence);
        // Hosts behind what was accepted are low now and then for ever: their links tell which it is.
        let is = |name: &str| if epoch.is_some() { name.contains("gpu007") } else { name == "host gpu007" };
        assert!(told.iter().any(|one| is(one.0)), "{what}: {told:?}");
    }
}

/// Thirty healthy nights in which noise raised no alert: of so many young series one has one in every few seeds (0.1 a series-year
/// at most).
fn healthy() -> Vec<Run> {
    let mut seeds = (12..20).map(|seed| leaves(seed, 30, |_, _| Some(1.0)));
    seeds.find(|runs| watch(runs.clone(), &Options::default()).exit_code == 0).expect("one without an alert")
}

/// A pair that failed on its turn is missing until others had theirs: not longer.
#[test]
fn a_pair_that_failed_is_not_missing_on_nights_of_others() {
    let mut runs = healthy();
    runs[28].readings[0].value = Err(Untrusted::NoValue);
    let found = watch(runs, &Options::default());
    assert_eq!((found.missing.len(), found.unanswered, found.exit_code), (0, 0, 0), "{}", found.sentence);
}

/// One that has lost several turns is, until one of its turns has a value: whether it had values before or never.
#[test]
fn a_pair_that_failed_turn_after_turn_is_missing_on_nights_of_others() {
    let of = healthy();
    let pair = |run: &Run, at: usize| run.cases[usize::try_from(run.readings[at].case).unwrap()].flow.name();
    let turns = |name: &str| -> Vec<usize> {
        let has = |night: &usize| (0..of[*night].readings.len()).any(|at| pair(&of[*night], at) == name);
        (0..of.len()).filter(has).collect()
    };
    let others: Vec<String> = (0..of[28].readings.len()).map(|at| pair(&of[28], at)).collect();
    let name = others.iter().find(|name| turns(name).len() > 4 && !turns(name).contains(&29)).unwrap().clone();
    let turns = turns(&name);
    let missing = |failed: &[usize]| {
        let mut runs = of.clone();
        for &night in failed {
            let at = (0..runs[night].readings.len()).find(|&at| pair(&runs[night], at) == name).unwrap();
            runs[night].readings[at].value = Err(Untrusted::NoValue);
        }
        let found = watch(runs, &Options::default());
        let missing: Vec<(String, usize)> = found.missing.iter().map(|one| (one.link.clone(), one.nights)).collect();
        (missing, found.exit_code)
    };
    let (last, all) = (turns.len() - 2, turns.len());
    assert_eq!(missing(&turns[last..]), (vec![(name.clone(), 2)], 3));
    assert_eq!(missing(&turns), (vec![(name.clone(), all)], 3));
    assert_eq!(missing(&turns[..last]), (Vec::new(), 0), "a turn with a value ends it");
}

/// What an edit of the plan took away has no turns any more: a test, its settings, a group.
#[test]
fn what_a_plan_measures_no_more_is_not_missing() {
    let missing = |edit: &dyn Fn(&mut Run)| {
        let mut runs = leaves(12, 30, |_, _| Some(1.0));
        // Two nights on which nothing of one host had a value.
        for run in &mut runs[18..20] {
            let cases = run.cases.clone();
            let of = |case: u64| &cases[usize::try_from(case).unwrap()].flow;
            let lost = run.readings.iter_mut().filter(|reading| *of(reading.case).from.host == *"gpu007");
            lost.for_each(|reading| reading.value = Err(Untrusted::NoValue));
        }
        runs[20..].iter_mut().for_each(edit);
        let found = watch(runs, &Options::default());
        found.missing.iter().map(|one| one.link.clone()).collect::<Vec<_>>()
    };
    let renamed = missing(&|run| {
        run.plan.tests.iter_mut().filter(|test| test.name == "write-bw").for_each(|test| test.name = "bw".into());
        run.cases.iter_mut().filter(|case| &*case.test == "write-bw").for_each(|case| case.test = "bw".into());
    });
    assert_eq!(renamed, [""; 0], "a renamed test");
    let regrouped = missing(&|run| {
        let members = run.plan.groups.remove("leaf1").unwrap();
        run.plan.groups.insert("rack1".into(), members);
    });
    assert!(!regrouped.iter().any(|name| name.contains("leaf1")), "{regrouped:?}");
}
