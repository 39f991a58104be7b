//! Comparisons of runs of which some are bad, lost or in another state, and of exchanged sides: what is not known is not
//! equivalent.

use railgauge_analysis::{
    compare::{Comparison, Counts, Obstacle, Options, When, Word},
    status::Status,
};
use railgauge_report as report;
use railgauge_wire::terms::Metric;

use crate::compare::{Place, compare_runs, dots, own, read, runs, small, turns};

/// Ten runs a side in turn.
fn in_turn(hosts: usize) -> [Vec<(usize, railgauge_analysis::history::Run)>; 2] {
    let (before, after) = turns(&small(hosts));
    [read(&before), read(&after)]
}

/// Whatever counts as equivalent has its interval inside the margin: cases, rows, the headline, the verdict, the page.
fn assert_equivalent_is_within(found: &Comparison) {
    for case in &found.cases {
        let group = &found.groups[case.group];
        if case.verdict == Word::Equivalent {
            for (low, high) in [case.change.interval, case.mean_interval].map(Option::unwrap) {
                assert!(group.margin_low_percent < low && high < group.margin_percent, "{}", case.reason);
            }
        }
    }
    let within = |(low, high): (f64, f64), margin: (f64, f64)| margin.0 < low && high < margin.1;
    for group in found.groups.iter().filter(|group| group.verdict == Word::Equivalent) {
        let margin = (group.margin_low_percent, group.margin_percent);
        assert!(within(group.change.unwrap().interval.unwrap(), margin), "{group:?}");
        assert_eq!(group.counts.equivalent, group.counts.all());
    }
    let place = tempfile::tempdir().unwrap();
    let view = report::compare::write(found, &place.path().join("compare.html")).unwrap();
    let drawn = dots(&view, "f-main");
    assert!(drawn <= found.groups.iter().filter(|group| group.verdict == Word::Equivalent).count());
    if found.status == Status::Pass && found.counts.improved == 0 {
        assert_eq!(view.word, "equivalent");
        assert!(found.groups.iter().all(|group| group.verdict == Word::Equivalent));
        let interval = found.headline.unwrap().interval.unwrap();
        assert!(within(interval, found.headline_margin.unwrap()), "{}", found.sentence);
    }
    assert_eq!(found.exit_code, found.status.exit_code());
}

#[test]
fn a_bad_run_or_two_of_ten_are_told_and_nothing_of_theirs_is_equivalent() {
    let sides = in_turn(3);
    for margin in [None, Some(3.0), Some(20.0)] {
        let options = Options { margin_percent: margin };
        let good = compare_runs(&sides, options, |place, _| 0.002 * own(5, place, 0.0));
        assert_equivalent_is_within(&good);
        if margin.is_some() {
            assert_eq!((good.status, good.exit_code), (Status::Pass, 0), "{}", good.sentence);
        }
        for (side, bad) in [(1, &[4][..]), (1, &[4, 7]), (0, &[2])] {
            let by = |place: &Place<'_>, at: usize| {
                let lost = if place.side == side && bad.contains(&at) { -0.7 } else { 0.0 };
                0.002 * own(5, place, 0.0) + lost
            };
            let found = compare_runs(&sides, options, by);
            assert_equivalent_is_within(&found);
            assert_eq!((found.counts.equivalent, found.exit_code), (0, 3), "{margin:?}: {}", found.sentence);
            for case in &found.cases {
                assert_eq!((case.verdict, case.need), (Word::Undecided, None), "{}", case.reason);
                // Within a margin of the noise some are open for other reasons too.
                assert!(margin.is_none() || case.obstacle == Some(Obstacle::Strays), "{}", case.reason);
                let far = case.strays.iter().filter(|stray| (-55.0..-45.0).contains(&stray.percent)).count();
                assert_eq!(far, bad.len(), "{:?}", case.strays);
                assert!(margin.is_none() || case.strays.len() == far, "{:?}", case.strays);
                let lies = if bad.len() == 1 { "1 of 10 runs" } else { "2 of 10 runs" };
                assert!(margin.is_none() || case.reason.contains(lies), "{}", case.reason);
                assert!(case.reason.contains("far off"), "{}", case.reason);
            }
            // The runs are named, on the page too.
            let of = [&found.before, &found.after][side];
            let strays: Vec<usize> = (0..10).filter(|&run| of.runs[run].strays > 0).collect();
            assert!(bad.iter().all(|run| strays.contains(run)) && (margin.is_none() || strays == bad), "{strays:?}");
            assert_eq!(of.runs[bad[0]].strays, found.cases.len());
            let view = report::compare::view(&found).unwrap();
            assert!(bad.iter().all(|&run| view.remarks[0].contains(&of.runs[run].run_id)), "{:?}", view.remarks);
            assert!(found.sentence.contains("single runs lie far from the others"), "{}", found.sentence);
        }
    }
}

#[test]
fn runs_of_two_states_are_equivalent_only_within_a_margin_that_holds_both() {
    let sides = in_turn(3);
    for (seed, share) in [(1, 0.5), (2, 0.3), (3, 0.2), (4, 0.1)] {
        for margin in [None, Some(1.0), Some(3.0), Some(8.0)] {
            let by = |place: &Place<'_>, _: usize| {
                // The state of a run is everybody's, as where a path or a clock has two.
                let coin =
                    own(seed, &Place { case: 0, metric: &Metric::Bandwidth, link: String::new(), ..*place }, 0.0);
                let slow = coin < [0.0, -0.52, -0.84, -1.28][seed as usize - 1];
                0.002 * own(9, place, 0.0) - if slow { 0.08 } else { 0.0 }
            };
            let found = compare_runs(&sides, Options { margin_percent: margin }, by);
            assert_equivalent_is_within(&found);
            let narrow = found.groups.iter().all(|group| group.margin_percent < 2.5);
            assert!(!narrow || found.counts.equivalent == 0, "{share}: {}", found.sentence);
        }
    }
}

#[test]
fn a_value_that_is_missing_after_is_no_pass_and_is_named() {
    let sides = in_turn(3);
    let options = Options { margin_percent: Some(5.0) };
    let lost = |side: usize, runs: &'static [usize]| {
        compare_runs(&sides, options, |place, at| {
            if place.side == side && runs.contains(&at) && place.case == 0 { f64::NAN } else { 0.0 }
        })
    };
    for runs in [&[9][..], &[1, 2, 3]] {
        let found = lost(1, runs);
        assert_eq!((found.status, found.exit_code), (Status::Inconclusive, 3), "{}", found.sentence);
        let lacking: Vec<_> = found.cases.iter().filter(|case| case.missing != (0, 0)).collect();
        assert!(!lacking.is_empty());
        for case in &lacking {
            assert_eq!(case.missing, (0, runs.len()));
            assert_eq!((case.verdict, case.obstacle), (Word::Undecided, Some(Obstacle::Missing)), "{}", case.reason);
            let of = format!(
                "{} of 10 runs after {} no value (made up: timed out)",
                runs.len(),
                if runs.len() == 1 { "has" } else { "have" }
            );
            assert!(case.reason.contains(&of), "{}", case.reason);
        }
        let cases = if lacking.len() == 1 { "1 case has".to_owned() } else { format!("{} cases have", lacking.len()) };
        assert!(found.sentence.contains(&format!("{cases} no value in some of the runs after.")), "{}", found.sentence);
        assert!(found.left_out.iter().any(|out| out.side == When::After && out.reason.contains("timed out")));
        assert_equivalent_is_within(&found);
    }
    // What was missing before is told; the other runs judge.
    let found = lost(0, &[3]);
    assert_eq!((found.status, found.exit_code), (Status::Pass, 0), "{}", found.sentence);
    let told = found.cases.iter().filter(|case| case.missing == (1, 0));
    assert!(told.clone().count() > 0);
    assert!(told.clone().all(|case| case.reason.contains("1 of 10 runs before has no value")));
    // Too few are left.
    let found = lost(0, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(found.exit_code, 3, "{}", found.sentence);
    // What is worse stays worse.
    let found = compare_runs(&sides, options, |place, at| match (place.side, at) {
        (1, 0) => f64::NAN,
        (1, _) if *place.metric == Metric::Bandwidth => -0.3,
        _ => 0.0,
    });
    assert_eq!(found.exit_code, 1, "{}", found.sentence);
}

#[test]
fn a_case_that_most_runs_after_do_not_plan_is_not_equivalent() {
    let (before, after) = turns(&small(3));
    let (_, fewer) = turns(&small(2));
    let mixed: Vec<_> = after.into_iter().take(4).chain(fewer.into_iter().skip(4)).collect();
    let compared = |sides: &[Vec<_>; 2]| {
        compare_runs(sides, Options { margin_percent: Some(5.0) }, |place, _| 0.002 * own(5, place, 0.0))
    };
    let found = compared(&[read(&before), read(&mixed)]);
    assert_eq!(found.exit_code, 3, "{}", found.sentence);
    let lacking: Vec<_> = found.cases.iter().filter(|case| case.n.1 == 4).collect();
    assert!(!lacking.is_empty());
    for case in lacking {
        assert_eq!((case.verdict, case.obstacle), (Word::Undecided, Some(Obstacle::Missing)), "{}", case.reason);
        assert_eq!(case.missing.1, 6);
        assert!(case.reason.contains("6 of 10 runs after do not plan it"), "{}", case.reason);
    }
    assert_equivalent_is_within(&found);
    // Where as large a share of either side plans a case, all that should have a value have one.
    let alike = compared(&[read(&mixed), read(&mixed)]);
    assert!(alike.cases.iter().all(|case| case.missing == (0, 0)), "{}", alike.sentence);
}

#[test]
fn exchanged_sides_give_mirrored_answers() {
    let scenario = small(3);
    let all = read(&runs(20, 0, &scenario));
    for seed in 0..12_u64 {
        // Sides of unlike size in an order of their own, with changes of some links and a noise that varies.
        let of = |day: usize| (day as u64 * 7 + seed * 3).is_multiple_of(if seed % 2 == 0 { 2 } else { 3 });
        let (a, b): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|(day, _)| of(*day));
        let by = |place: &Place<'_>, _: usize| {
            let noise = [0.002, 0.01, 0.05, 0.3][seed as usize % 4];
            let moved = if of(place.day) && place.case % 3 == 1 { 0.02 * (seed as f64 - 6.0) } else { 0.0 };
            let bad = if seed % 5 == 4 && place.day == 8 { -0.5 } else { 0.0 };
            noise * own(seed, place, 0.3) + moved + bad
        };
        let margin_percent = [None, Some(3.0), Some(0.1)][seed as usize % 3];
        let there = compare_runs(&[a.clone(), b.clone()], Options { margin_percent }, by);
        let back = compare_runs(&[b, a], Options { margin_percent }, by);
        assert_mirrored(&there, &back, seed);
    }
}

fn assert_mirrored(there: &Comparison, back: &Comparison, seed: u64) {
    let mirrored = |word: Word| match word {
        Word::Improved => Word::Regressed,
        Word::Regressed => Word::Improved,
        same => same,
    };
    let inverse = |one: f64, other: f64| {
        let product = (1.0 + one / 100.0) * (1.0 + other / 100.0);
        assert!((product - 1.0).abs() < 1e-9, "{seed}: {one} and {other}");
    };
    let Counts { regressed, improved, equivalent, undecided, too_noisy } = there.counts;
    let counts = Counts { regressed: improved, improved: regressed, equivalent, undecided, too_noisy };
    assert_eq!(counts, back.counts, "{seed}: {} / {}", there.sentence, back.sentence);
    assert_eq!(there.groups.len(), back.groups.len());
    for group in &there.groups {
        let other = back.groups.iter().find(|other| other.name == group.name).unwrap();
        assert!((group.margin_percent - other.margin_percent).abs() < 1e-9, "{seed}: {group:?} {other:?}");
        inverse(group.change.unwrap().percent, other.change.unwrap().percent);
        if group.counts.regressed + group.counts.improved == 0 {
            assert_eq!(group.verdict, other.verdict, "{seed}: {group:?} {other:?}");
        }
    }
    for case in &there.cases {
        let name = &there.groups[case.group].name;
        let same = |other: &&railgauge_analysis::compare::Case| {
            other.link == case.link && back.groups[other.group].name == *name
        };
        let other = back.cases.iter().find(same).unwrap();
        assert_eq!(mirrored(case.verdict), other.verdict, "{seed}: {} / {}", case.reason, other.reason);
        inverse(case.change.percent, other.change.percent);
        if let Some(((low, high), (low_back, high_back))) = case.change.interval.zip(other.change.interval) {
            inverse(low, high_back);
            inverse(high, low_back);
        }
        assert_eq!((case.n.0, case.n.1), (other.n.1, other.n.0));
    }
    let (there, back) = (there.headline.unwrap(), back.headline.unwrap());
    inverse(there.percent, back.percent);
    let ((low, high), (low_back, high_back)) = (there.interval.unwrap(), back.interval.unwrap());
    inverse(low, high_back);
    inverse(high, low_back);
}

#[test]
fn what_has_no_value_on_either_side_is_said_so_and_counts_agree_with_their_nouns() {
    let sides = in_turn(2);
    let options = Options { margin_percent: Some(5.0) };
    let cases = |found: &Comparison| found.one_sided.iter().map(|case| case.name.clone()).collect::<Vec<_>>();
    let nothing = compare_runs(&sides, options, |_, _| f64::NAN);
    assert_eq!((nothing.exit_code, nothing.counts.all()), (3, 0));
    let all = cases(&nothing).len();
    assert_eq!(nothing.sentence, format!("nothing could be compared. {all} cases have no value on either side."));
    let first = cases(&nothing)[0].clone();
    let one = |side: Option<usize>| {
        compare_runs(&sides, options, |place, _| {
            if first.contains(&place.link) && place.case == 0 && side.is_none_or(|side| side == place.side) {
                f64::NAN
            } else {
                0.0
            }
        })
    };
    assert!(one(None).sentence.contains("1 case has no value on either side."), "{}", one(None).sentence);
    assert!(one(Some(0)).sentence.contains("1 case has values on one side only."), "{}", one(Some(0)).sentence);
    assert_eq!(one(None).one_sided[0].reason, "made up: timed out");
}

#[test]
fn values_that_are_all_the_same_are_equivalent_and_have_an_interval() {
    let (before, after) = turns(&small(2));
    // Every run measured what the first one did.
    let mut sides = [read(&before), read(&after)];
    let first = sides[0][0].1.readings.clone();
    sides.iter_mut().flatten().for_each(|(_, run)| run.readings.clone_from(&first));
    let found = compare_runs(&sides, Options::default(), |_, _| 0.0);
    assert_eq!((found.status, found.counts.equivalent), (Status::Pass, found.cases.len()), "{}", found.sentence);
    assert!(found.sentence.starts_with("performance is the same (0.00 %): "), "{}", found.sentence);
    assert_equivalent_is_within(&found);
    assert!(found.cases.iter().all(|case| case.reason.starts_with("did not change: 0.00 % lies within ±1.00 %")));
    // Below four runs there is none, and only then is it said.
    let few = compare_runs(&[sides[0][..3].to_vec(), sides[1][..3].to_vec()], Options::default(), |_, _| 0.0);
    assert!(few.sentence.contains("(nothing can be concluded below 4 runs a side)"), "{}", few.sentence);
}
