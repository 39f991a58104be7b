//! Two sets of made-up runs, from their directories to the page.

use std::{collections::BTreeSet, fs, path::Path};

use railgauge_analysis::{
    compare::{Case, Comparison, Design, Obstacle, Options, Table, Turns, When, Word, compare},
    history::{METRICS, Run, RunError},
    journal,
    row::Untrusted,
    status::Status,
};
use railgauge_report as report;
use railgauge_report::{compare::CompareView, text::Screen};
use railgauge_wire::{terms::Metric, unit::Bytes};

use crate::support::Scenario;

pub(crate) fn small(hosts: usize) -> Scenario {
    Scenario { sizes: vec![65536, 1 << 20], repeats: 1, ..Scenario::healthy(hosts, 1) }
}

/// Run directories of these scenarios, one a day, below `place`.
fn directories(place: &Path, scenarios: impl IntoIterator<Item = Scenario>) -> Vec<std::path::PathBuf> {
    let write = |scenario: Scenario| {
        let directory = place.join(format!("day-{:02}", scenario.day));
        scenario.write(&directory);
        directory
    };
    scenarios.into_iter().map(write).collect()
}

fn comparison(before: &[Scenario], after: &[Scenario], options: Options) -> Comparison {
    changed(before, after, options, |_, _| 0.0)
}

/// What a reading is of: the day of its run, its case, its link and its size.
pub(crate) struct Place<'r> {
    pub side: usize,
    pub day: usize,
    pub case: u64,
    pub link: String,
    pub size: u64,
    pub metric: &'r Metric,
}

/// A comparison of runs whose values differ from what the scenarios measured by so much, as a difference of logarithms.
fn changed(
    before: &[Scenario],
    after: &[Scenario],
    options: Options,
    by: impl Fn(&Place<'_>, &Scenario) -> f64,
) -> Comparison {
    compare_runs(&[read(before), read(after)], options, |place, at| by(place, &[before, after][place.side][at]))
}

/// Runs as they are read, with their days.
pub(crate) fn read(scenarios: &[Scenario]) -> Vec<(usize, Run)> {
    let place = tempfile::tempdir().unwrap();
    let read = |(scenario, directory): (&Scenario, std::path::PathBuf)| {
        let mut run = crate::kept::read(&directory, &METRICS).unwrap();
        run.path = directory.file_name().unwrap().into();
        (scenario.day as usize, run)
    };
    scenarios.iter().zip(directories(place.path(), scenarios.iter().cloned())).map(read).collect()
}

/// [`changed`] of runs that were read before; `by` is told the number of the run in its side. Where it is not a number the
/// case failed.
pub(crate) fn compare_runs(
    sides: &[Vec<(usize, Run)>; 2],
    options: Options,
    by: impl Fn(&Place<'_>, usize) -> f64,
) -> Comparison {
    let mut table = Table::default();
    for (side, when) in [When::Before, When::After].into_iter().enumerate() {
        for (at, (day, run)) in sides[side].iter().enumerate() {
            let mut run = run.clone();
            for reading in &mut run.readings {
                let case = &run.cases[reading.case as usize];
                let (link, size) = (case.flow.name(), case.cell.size.0);
                let place = Place { side, day: *day, case: reading.case, link, size, metric: &reading.metric };
                let factor = by(&place, at).exp();
                reading.value = match factor.is_nan() {
                    true => Err(Untrusted::Objection { error: "made up: timed out".to_owned() }),
                    false => reading.value.clone().map(|value| value * factor),
                };
            }
            table.add(when, run);
        }
    }
    compare(table, &options).unwrap()
}

/// `n` runs from day `first` on, each with noise of its own.
pub(crate) fn runs(n: u32, first: u32, scenario: &Scenario) -> Vec<Scenario> {
    (first..first + n).map(|day| Scenario { day, seed: 1 + u64::from(day), ..scenario.clone() }).collect()
}

/// Standard normal noise of a place whose neighbours in time are correlated by `r`; days count from 0.
fn luck(seed: u64, r: f64, day: usize) -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut uniform = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let first = normal();
    (0..day).fold(first, |last, _| r * last + (1.0 - r * r).sqrt() * normal())
}

/// Luck of a case's own.
pub(crate) fn own(seed: u64, place: &Place<'_>, r: f64) -> f64 {
    luck(seed * 1_000_003 + place.case * 31 + *place.metric as u64, r, place.day)
}

/// Twenty runs of which those before and those after take turns.
pub(crate) fn turns(scenario: &Scenario) -> (Vec<Scenario>, Vec<Scenario>) {
    runs(20, 0, scenario).into_iter().partition(|scenario| scenario.day % 2 == 0)
}

#[test]
fn correlated_runs_of_one_side_first_are_no_change_and_the_reason_is_told() {
    let sides = [read(&runs(10, 0, &small(5))), read(&runs(10, 10, &small(5)))];
    for seed in 1..=6 {
        for shared in [0.0, 0.5, 1.0] {
            let by = |place: &Place<'_>, _: usize| {
                let everybody = luck(seed, 0.6, place.day);
                0.015 * ((1.0_f64 - shared).sqrt() * own(seed, place, 0.6) + f64::sqrt(shared) * everybody)
            };
            // In so noisy a place a change of 3 % is asked about, which 10 + 10 runs in turn could settle.
            let options = Options { margin_percent: Some(3.0) };
            let found = compare_runs(&sides, options, by);
            assert_eq!((found.counts.regressed, found.counts.improved), (0, 0), "{seed}, {shared}: {}", found.sentence);
            assert_eq!((found.status, found.exit_code), (Status::Inconclusive, 3), "{}", found.sentence);
            let order = found.order.unwrap();
            assert_eq!((order.turns, order.sequence.as_str()), (Turns::OneSideFirst, "AAAAAAAAAABBBBBBBBBB"));
            assert!(order.worth < 0.4 && order.costs.is_some() && order.hint.is_some(), "{order:?}");
            let of_order = found.cases.iter().filter(|case| case.obstacle == Some(Obstacle::Order)).count();
            assert_eq!(order.held_back, of_order);
            assert!(found.cases.iter().all(|case| case.p >= case.p_if_independent));
        }
    }
}

/// A host that lost 5 % while all values have 1 % of noise.
fn five_percent(place: &Place<'_>, seed: u64, after: bool) -> f64 {
    let lost = if after && place.link.contains("gpu002") && *place.metric == Metric::Bandwidth { -0.05 } else { 0.0 };
    0.01 * own(seed, place, 0.0) + lost
}

#[test]
fn what_the_order_cannot_carry_is_named_when_the_runs_take_turns() {
    let options = Options { margin_percent: Some(2.0) };
    let (before, after) = turns(&small(5));
    let found = changed(&before, &after, options, |place, _| five_percent(place, 7, place.day % 2 == 1));
    let order = found.order.as_ref().unwrap();
    assert_eq!((order.turns, order.worth, order.held_back), (Turns::InTurn, 1.0, 0));
    assert!(order.costs.is_none() && order.hint.is_none());
    assert_eq!(found.status, Status::Fail, "{}", found.sentence);
    let touched = |case: &&railgauge_analysis::compare::Case| {
        case.link.contains("gpu002") && found.groups[case.group].metric == Metric::Bandwidth
    };
    assert!(found.cases.iter().filter(touched).all(|case| case.verdict == Word::Regressed));
    assert_eq!(found.counts.regressed, found.cases.iter().filter(touched).count());
    assert!(found.causes.iter().any(|cause| cause.name.starts_with("host gpu002")), "{:?}", found.causes);
    // A single link that lost 3 sigma among others is too little for runs of one side first.
    let single = |place: &Place<'_>, after: bool| {
        let lost = if after && place.case == 0 && *place.metric == Metric::Bandwidth { -0.03 } else { 0.0 };
        0.01 * own(7, place, 0.0) + lost
    };
    let first =
        changed(&runs(10, 0, &small(5)), &runs(10, 10, &small(5)), options, |place, _| single(place, place.day > 9));
    assert_eq!((first.counts.regressed, first.exit_code), (0, 3), "{}", first.sentence);
    assert!(first.order.as_ref().unwrap().held_back > 0, "{:?}", first.order);
    let in_turn = changed(&before, &after, options, |place, _| single(place, place.day % 2 == 1));
    assert_eq!((in_turn.counts.regressed, in_turn.exit_code), (1, 1), "{}", in_turn.sentence);
    // Half the rate is named in any order.
    let half = |place: &Place<'_>, _: &Scenario| {
        let lost = if place.day > 9 && place.case == 0 { -0.7 } else { 0.0 };
        0.01 * own(7, place, 0.6) + lost
    };
    let found = changed(&runs(10, 0, &small(5)), &runs(10, 10, &small(5)), options, half);
    assert_eq!((found.counts.regressed, found.exit_code), (1, 1), "{}", found.sentence);
}

#[test]
fn noise_that_swallows_everything_is_too_noisy_to_tell() {
    let (before, after) = turns(&small(4));
    let noisy = |place: &Place<'_>, _: &Scenario| if place.size == 65536 { 0.4 * own(3, place, 0.0) } else { 0.0 };
    for options in [Options::default(), Options { margin_percent: Some(1.0) }] {
        let found = changed(&before, &after, options, noisy);
        assert_eq!((found.status, found.exit_code), (Status::Inconclusive, 3), "{}", found.sentence);
        for case in &found.cases {
            let group = &found.groups[case.group];
            assert_eq!(group.too_noisy, group.margin_percent > 25.0, "{group:?}");
            let noisy = group.name.contains("64 KiB");
            assert_eq!(group.too_noisy, noisy, "{group:?}");
            assert_eq!(case.verdict == Word::TooNoisy, noisy, "{}", case.reason);
            assert_eq!(case.obstacle == Some(Obstacle::Noise), noisy);
            // A factor up or down: in percent the lower edge is nearer.
            let low = -100.0 * group.margin_percent / (100.0 + group.margin_percent);
            assert!((group.margin_low_percent - low).abs() < 1e-9, "{group:?}");
        }
        assert_eq!(found.counts.too_noisy, found.cases.iter().filter(|case| case.verdict == Word::TooNoisy).count());
        let place = tempfile::tempdir().unwrap();
        let view = report::compare::write(&found, &place.path().join("compare.html")).unwrap();
        let group = found.groups.iter().find(|group| group.too_noisy).unwrap();
        let row = view.groups.rows.iter().find(|row| row[0] == group.name).unwrap();
        assert!(row[4].starts_with('−') && row[4].contains(" to +"), "{row:?}");
    }
}

#[test]
fn causes_say_which_metrics_and_sizes_and_improvements_are_drawn() {
    let (before, after) = turns(&small(6));
    let by = |place: &Place<'_>, _: &Scenario| {
        let after = place.day % 2 == 1 && *place.metric == Metric::Bandwidth;
        match (place.link.contains("gpu005"), place.size) {
            (true, _) if after => -0.12,
            (false, 65536) if after => 0.06,
            _ => 0.0,
        }
    };
    let found = changed(&before, &after, Options { margin_percent: Some(3.0) }, by);
    assert_eq!(found.status, Status::Fail, "{}", found.sentence);
    let of = |word| found.causes.iter().filter(move |cause| cause.verdict == word);
    assert!(of(Word::Regressed).any(|cause| cause.name.starts_with("host gpu005")), "{:?}", found.causes);
    assert!(of(Word::Improved).count() > 0, "{:?}", found.causes);
    for cause in of(Word::Improved) {
        assert_ne!(cause.name, "every link");
        for part in &cause.parts {
            assert_eq!(
                (part.metric, &part.sizes[..], part.of_sizes),
                (Metric::Bandwidth, &[Bytes(65536)][..], 2),
                "{cause:?}"
            );
            assert!(part.percent.0 > 3.0 && part.percent.1 < 10.0, "{cause:?}");
        }
        assert_eq!(cause.cases.0, cause.parts.iter().map(|part| part.cases).sum::<usize>());
        assert!(cause.text.contains("64 KiB") && !cause.text.contains("1 MiB"), "{}", cause.text);
    }
    let place = tempfile::tempdir().unwrap();
    let view = report::compare::write(&found, &place.path().join("compare.html")).unwrap();
    // Where more links became better than worse the row is drawn so.
    let rows = |of: fn(&railgauge_analysis::compare::Counts) -> bool| {
        found.groups.iter().filter(|group| of(&group.counts)).count()
    };
    let (better, worse) = (rows(|c| c.improved > c.regressed), rows(|c| c.regressed > c.improved));
    assert!(better > 0 && worse > 0);
    assert_eq!((dots(&view, "f-good"), dots(&view, "f-worst")), (better, worse));
    // A latency that rose by hundreds of percent does not squeeze a bandwidth.
    let metrics: BTreeSet<Metric> = found.groups.iter().map(|group| group.metric).collect();
    assert!(metrics.len() > 1 && view.overview.len() == metrics.len(), "{metrics:?}");
    let rows = view.changed.rows.iter().filter(|row| row[0] == Word::Improved.words()).count();
    assert_eq!(rows, found.counts.improved.min(200));
}

/// Dots of this class in the charts of a comparison, each of which is there for a desk and for a phone.
pub(crate) fn dots(view: &CompareView, class: &str) -> usize {
    view.overview.iter().map(|figure| figure.svg.matches(class).count()).sum::<usize>() / 2
}

#[test]
fn a_host_that_became_slow_is_one_line() {
    let slow = Scenario { slow: Some(1), firmware: "28.44.0001", ..small(4) };
    let found = comparison(&runs(8, 0, &small(4)), &runs(8, 8, &slow), Options::default());
    assert_eq!((found.status, found.exit_code), (Status::Fail, 1), "{}", found.sentence);
    let regressed: Vec<_> = found.causes.iter().filter(|cause| cause.verdict == Word::Regressed).collect();
    assert_eq!(regressed[0].name, "host gpu002", "{:?}", found.causes);
    for case in &found.cases {
        let group = &found.groups[case.group];
        let touched = case.link.contains("gpu002") && group.name.starts_with("write-");
        assert_eq!(case.verdict == Word::Regressed, touched, "{}: {}: {}", group.name, case.link, case.reason);
        if touched && group.metric == Metric::Bandwidth {
            assert!((-41.0..-37.0).contains(&case.change.percent), "{}", case.reason);
            let (low, high) = case.change.interval.unwrap();
            assert!(low < case.change.percent && case.change.percent < high && case.level.unwrap() >= 0.95);
        }
    }
    let headline = found.headline.unwrap();
    assert!(headline.percent < -10.0 && headline.interval.unwrap().1 < -10.0, "{headline:?}");
    assert!(!found.alternating);
    let firmware = found.configuration.hosts.iter().find(|change| change.fact.ends_with("firmware")).unwrap();
    assert_eq!((firmware.before.as_deref(), firmware.after.as_deref()), (Some("28.41.1000"), Some("28.44.0001")));
    // The fourth host has a firmware of its own, which did not change.
    assert_eq!(firmware.hosts, ["gpu001", "gpu002", "gpu003"]);
}

#[test]
fn the_same_cluster_twice_is_equivalent_and_says_by_what_margin() {
    let all = runs(20, 0, &small(3));
    let (before, after): (Vec<Scenario>, Vec<Scenario>) = all.into_iter().partition(|scenario| scenario.day % 2 == 0);
    let found = comparison(&before, &after, Options { margin_percent: Some(3.0) });
    assert!(found.alternating);
    assert_eq!((found.counts.regressed, found.counts.improved), (0, 0), "{}", found.sentence);
    let bandwidth = found.groups.iter().find(|group| group.metric == Metric::Bandwidth).unwrap();
    assert_eq!(
        (bandwidth.margin_raised, bandwidth.counts.equivalent),
        (false, bandwidth.counts.all()),
        "{bandwidth:?}"
    );
    assert!((bandwidth.margin_percent - 3.0).abs() < 1e-9 && bandwidth.noise_floor_percent.unwrap() < 1.5);
    assert!(found.headline.unwrap().percent.abs() < 1.0);
    // A margin below the noise cannot be had.
    let narrow = comparison(&before, &after, Options { margin_percent: Some(0.01) });
    assert!(narrow.groups.iter().all(|group| group.margin_raised), "{:?}", narrow.groups);
}

#[test]
fn few_runs_are_not_enough_and_nothing_passes() {
    let found = comparison(&runs(1, 0, &small(2)), &runs(3, 1, &small(2)), Options::default());
    assert_eq!((found.status, found.exit_code), (Status::Inconclusive, 3));
    assert_eq!(found.counts.undecided, found.cases.len());
    assert!(found.cases.iter().all(|case| case.change.interval.is_none() && case.p > 0.05));
    let reason = "1 before and 3 runs after: no change can be separated from chance below 4 runs a side";
    assert_eq!(found.cases[0].reason, reason);
    assert!(report::compare::view(&found).unwrap().groups.rows.is_empty());
}

#[test]
fn the_values_that_are_left_of_runs_that_failed_show_no_equivalence() {
    let failed = |scenario: Scenario| Scenario { down: (!scenario.day.is_multiple_of(4)).then_some(2), ..scenario };
    let before: Vec<Scenario> = runs(8, 0, &small(3)).into_iter().map(failed).collect();
    let found = comparison(&before, &runs(8, 8, &small(3)), Options { margin_percent: Some(10.0) });
    let (left, whole): (Vec<&Case>, Vec<&Case>) = found.cases.iter().partition(|case| case.n.0 == 2);
    assert!(!left.is_empty() && left.iter().all(|case| case.verdict == Word::Undecided), "{left:#?}");
    assert!(left.iter().all(|case| case.obstacle == Some(Obstacle::FewRuns)), "{left:#?}");
    assert!(!whole.is_empty() && whole.iter().all(|case| case.verdict == Word::Equivalent), "{whole:#?}");
    assert_eq!(found.exit_code, 3);
}

#[test]
fn what_is_missing_or_not_to_be_trusted_is_named() {
    let down = Scenario { down: Some(2), contaminated: true, ..small(3) };
    let found = comparison(&runs(4, 0, &small(3)), &runs(4, 4, &down), Options::default());
    assert_eq!(found.status, Status::Inconclusive, "{}", found.sentence);
    assert!(found.one_sided.iter().all(|case| case.only == Some(When::Before)), "{:?}", found.one_sided);
    let lost = found.one_sided.iter().filter(|case| case.reason.contains("No route to host")).count();
    // Two links to the host that is down, and the case in which every run is contaminated.
    assert_eq!((lost, found.one_sided.len()), (20, 22), "{:?}", found.one_sided);
    let disturbed = found.left_out.iter().find(|out| out.reason.starts_with("contaminated: ")).unwrap();
    assert_eq!((disturbed.side, disturbed.values), (When::After, 8), "{disturbed:?}");
}

#[test]
fn a_stored_frame_and_the_journal_alone_say_the_same() {
    let place = tempfile::tempdir().unwrap();
    let directory = &directories(place.path(), [Scenario { sizes: vec![65536], ..Scenario::troubled(4, 2) }])[0];
    let from_journal = crate::kept::read(directory, &METRICS).unwrap();
    crate::kept::write(directory).unwrap();
    let from_frame = crate::kept::read(directory, &METRICS).unwrap();
    assert!(!from_frame.readings.is_empty());
    assert_eq!(from_frame, from_journal);
    // A frame that is older than its journal is not believed.
    fs::write(directory.join("records.parquet"), "old").unwrap();
    let journal = fs::File::open(directory.join("records.jsonl")).unwrap();
    journal.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
    assert_eq!(crate::kept::read(directory, &METRICS).unwrap(), from_journal);
}

#[test]
fn a_run_that_planned_nothing_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let whole = small(2).jsonl();
    let started = whole.split_once('\n').unwrap().0;
    fs::write(place.path().join("records.jsonl"), format!("{started}\n")).unwrap();
    let error = crate::kept::read(place.path(), &METRICS).unwrap_err();
    assert!(matches!(error, RunError::Unplanned { .. }) && error.to_string().contains("records.jsonl"), "{error}");
}

#[test]
fn a_copy_of_a_run_does_not_count_twice() {
    let place = tempfile::tempdir().unwrap();
    let run = &directories(place.path(), runs(1, 1, &small(2)))[0];
    let copy = place.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(run.join("records.jsonl"), copy.join("records.jsonl")).unwrap();
    let mut read = Vec::new();
    crate::kept::read_all(&[run.clone(), copy.clone()], &METRICS, |_, run| read.push(run));
    assert!(read[0].is_ok() && matches!(read[1], Err(RunError::Copy { .. })), "{:?}", read[1]);
    for words in [vec!["compare", "day-01", "copy"], vec!["runs", "baseline", "day-01", "copy"]] {
        let mut railgauge = std::process::Command::new(env!("CARGO_BIN_EXE_railgauge"));
        let output = railgauge.args(words).current_dir(place.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("a copy of the run in") && said.contains("day-01"), "{said}");
    }
}

/// The comparison of two tests of one run that were measured in turn.
fn in_turn(scenario: &Scenario) -> Comparison {
    answered(scenario).0
}

/// The same with the answer that the page gives.
fn answered(scenario: &Scenario) -> (Comparison, &'static str) {
    let path = Path::new("records.jsonl");
    let drawn = report::draw(&journal::parse(scenario.jsonl().as_bytes(), path).unwrap(), path).unwrap();
    assert_eq!(drawn.view.interleaved[0].title, "write-bw → write-bw-tc104, 8 blocks");
    (drawn.verdicts.interleaved.into_iter().next().unwrap().comparison, drawn.view.interleaved[0].comparison.word)
}

#[test]
fn tests_measured_in_turn_are_compared_block_by_block() {
    let scenario = |in_turn| Scenario { sizes: vec![1 << 20], in_turn: Some(in_turn), ..Scenario::healthy(4, 1) };
    let (worse, answer) = answered(&scenario(0.95));
    assert_eq!(answer, "regressed");
    assert_eq!((worse.design, worse.status), (Design::Blocks, Status::Fail), "{}", worse.sentence);
    assert_eq!((worse.counts.regressed, worse.cases.len()), (6, 6));
    for case in &worse.cases {
        assert_eq!(case.n, (8, 8));
        let (low, high) = case.change.interval.unwrap();
        assert!(
            low < case.change.percent && case.change.percent < high && low < -4.0 && high > -6.0,
            "{}",
            case.reason
        );
        assert!(case.reason.contains("8 blocks"), "{}", case.reason);
    }
    let headline = worse.headline.unwrap();
    assert!((headline.percent + 4.8).abs() < 0.4, "{headline:?}");
    let setting = &worse.configuration.tests[..];
    assert!(setting.iter().any(|s| s.key == "knobs.traffic_class" && s.after == "104"), "{setting:?}");
    let same = in_turn(&scenario(1.0));
    assert_eq!((same.counts.regressed, same.counts.improved), (0, 0), "{}", same.sentence);
    // A link that is down is named and not passed over.
    let down = in_turn(&Scenario { down: Some(3), ..scenario(1.0) });
    assert_eq!((down.cases.len(), down.one_sided.len(), down.status), (3, 3, Status::Inconclusive));
    assert!(down.one_sided[0].reason.contains("No route to host"), "{}", down.one_sided[0].reason);
}

fn told() -> Comparison {
    let slow = Scenario { slow: Some(2), down: Some(3), firmware: "28.44.0001", ..small(4) };
    comparison(&runs(5, 0, &small(4)), &runs(5, 5, &slow), Options::default())
}

#[test]
fn the_document_the_text_and_the_page() {
    let comparison = told();
    let mut document = serde_json::to_value(&comparison).unwrap();
    document["cases"].as_array_mut().unwrap().truncate(3);
    insta::assert_json_snapshot!(document);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("compare.html");
    let view = report::compare::write(&comparison, &path).unwrap();
    insta::assert_snapshot!(report::compare::text::summary(&view, Path::new("compare.html"), &Screen::PLAIN));
    let page = fs::read_to_string(&path).unwrap();
    for foreign in ["http:", "https:", "<link", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // The one script is ours: the page's policy allows it by its hash, and no other.
    assert!(page.matches("<script").count() == 1 && page.contains("script-src 'sha256-"));
    assert!(page.contains("host gpu003") && page.contains("<svg"));
    let body = page.split_once("</head>").unwrap().1;
    // The script is the same in all pages.
    let body = body.split_once("<script>").unwrap().0;
    insta::assert_snapshot!(without_drawings(body));
}

#[test]
fn a_plan_whose_hash_is_none_ends_no_page() {
    let mut comparison = comparison(&runs(2, 0, &small(2)), &runs(2, 2, &small(2)), Options::default());
    // The twelfth byte is in the middle of the last letter.
    comparison.before.runs[0].plan_hash = "abcdefghijk\u{e9}".to_owned();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("compare.html");
    report::compare::write(&comparison, &path).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("abcdefghijk\u{e9}"));
}

/// Drawings are for the eye: a snapshot keeps only that there is one.
fn without_drawings(page: &str) -> String {
    let mut parts = page.split("<svg");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "<svg>" + part.split_once("</svg>").map_or("", |(_, rest)| rest))
}

/// A page with something in every section, to be seen in a browser.
pub fn page(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("compare.html");
    report::compare::write(&told(), &path).unwrap();
    path
}

/// Draws a page to look at: `RAILGAUGE_SAMPLES=DIR cargo test --test report -- --ignored comparison_sample`.
#[test]
#[ignore = "draws a page for the eye"]
fn by_hand_comparison_sample() {
    let dir = std::path::PathBuf::from(std::env::var("RAILGAUGE_SAMPLES").expect("a directory in RAILGAUGE_SAMPLES"));
    fs::create_dir_all(&dir).unwrap();
    report::compare::write(&told(), &dir.join("compare.html")).unwrap();
}
