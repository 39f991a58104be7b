//! Two sets of made-up runs, from their directories to the page.

use std::{fs, path::Path};

use railgauge::{
    analysis::{
        compare::{Comparison, Design, Options, Table, When, Word, compare},
        history::{self, METRICS, RunError},
        journal,
        verdict::Status,
    },
    report,
};
use railgauge_wire::terms::Metric;

use crate::support::Scenario;

fn small(hosts: usize) -> Scenario {
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
    let place = tempfile::tempdir().unwrap();
    let mut table = Table::default();
    for (when, side) in [(When::Before, before), (When::After, after)] {
        for directory in directories(place.path(), side.iter().cloned()) {
            let mut run = history::read(&directory, &METRICS).unwrap();
            run.path = directory.file_name().unwrap().into();
            table.add(when, run);
        }
    }
    compare(table, &options).unwrap()
}

/// `n` runs from day `first` on, each with noise of its own.
fn runs(n: u32, first: u32, scenario: &Scenario) -> Vec<Scenario> {
    (first..first + n).map(|day| Scenario { day, seed: 1 + u64::from(day), ..scenario.clone() }).collect()
}

#[test]
fn a_host_that_became_slow_is_one_line() {
    let slow = Scenario { slow: Some(1), firmware: "28.44.0001", ..small(4) };
    let found = comparison(&runs(8, 0, &small(4)), &runs(8, 8, &slow), Options::default());
    assert_eq!((found.status, found.exit_code), (Status::Fail, 1), "{}", found.sentence);
    let regressed: Vec<_> = found.causes.iter().filter(|(word, _)| *word == Word::Regressed).collect();
    assert_eq!(regressed[0].1.name, "host gpu002", "{:?}", found.causes);
    for cell in &found.cells {
        let group = &found.groups[cell.group];
        let touched = cell.link.contains("gpu002") && group.name.starts_with("write-");
        assert_eq!(cell.verdict == Word::Regressed, touched, "{}: {}: {}", group.name, cell.link, cell.reason);
        if touched && group.metric == Metric::Bandwidth {
            assert!((-41.0..-37.0).contains(&cell.change.percent), "{}", cell.reason);
            let (low, high) = cell.change.interval.unwrap();
            assert!(low < cell.change.percent && cell.change.percent < high && cell.level.unwrap() >= 0.95);
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
    assert_eq!(found.counts.not_enough_data, found.cells.len());
    assert!(found.cells.iter().all(|cell| cell.change.interval.is_none() && cell.p > 0.05));
    let reason = "1 before and 3 runs after: nothing can be told from chance below 4 runs a side";
    assert_eq!(found.cells[0].reason, reason);
}

#[test]
fn what_is_missing_or_not_to_be_trusted_is_named() {
    let down = Scenario { down: Some(2), contaminated: true, ..small(3) };
    let found = comparison(&runs(4, 0, &small(3)), &runs(4, 4, &down), Options::default());
    assert_eq!(found.status, Status::Inconclusive, "{}", found.sentence);
    assert!(found.one_sided.iter().all(|cell| cell.only == Some(When::Before)), "{:?}", found.one_sided);
    let lost = found.one_sided.iter().filter(|cell| cell.reason.contains("No route to host")).count();
    // Two links to the host that is down, and the cell in which every run is contaminated.
    assert_eq!((lost, found.one_sided.len()), (20, 22), "{:?}", found.one_sided);
    let disturbed = found.left_out.iter().find(|out| out.reason.starts_with("contaminated: ")).unwrap();
    assert_eq!((disturbed.side, disturbed.values), (When::After, 8), "{disturbed:?}");
}

#[test]
fn a_stored_frame_and_the_journal_alone_say_the_same() {
    let place = tempfile::tempdir().unwrap();
    let directory = &directories(place.path(), [Scenario { sizes: vec![65536], ..Scenario::troubled(4, 2) }])[0];
    let from_journal = history::read(directory, &METRICS).unwrap();
    report::write(directory).unwrap();
    let from_frame = history::read(directory, &METRICS).unwrap();
    assert!(!from_frame.readings.is_empty());
    assert_eq!(from_frame, from_journal);
    // A frame that is older than its journal is not believed.
    fs::write(directory.join("records.parquet"), "old").unwrap();
    let journal = fs::File::open(directory.join("records.jsonl")).unwrap();
    journal.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
    assert_eq!(history::read(directory, &METRICS).unwrap(), from_journal);
}

#[test]
fn a_run_that_planned_nothing_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let whole = small(2).jsonl();
    let started = whole.split_once('\n').unwrap().0;
    fs::write(place.path().join("records.jsonl"), format!("{started}\n")).unwrap();
    let error = history::read(place.path(), &METRICS).unwrap_err();
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
    history::read_all(&[run.clone(), copy.clone()], &METRICS, |_, run| read.push(run));
    assert!(read[0].is_ok() && matches!(read[1], Err(RunError::Copy { .. })), "{:?}", read[1]);
    for words in [vec!["compare", "day-01", "copy"], vec!["baseline", "day-01", "copy"]] {
        let mut railgauge = std::process::Command::new(env!("CARGO_BIN_EXE_railgauge"));
        let output = railgauge.args(words).current_dir(place.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("a copy of the run in") && said.contains("day-01"), "{said}");
    }
}

/// The comparison of two tests of one run that were measured in turn.
fn in_turn(scenario: &Scenario) -> Comparison {
    let path = Path::new("records.jsonl");
    let drawn = report::draw(&journal::parse(scenario.jsonl().as_bytes(), path).unwrap(), path).unwrap();
    assert_eq!(drawn.view.interleaved[0].title, "write-bw → write-bw-tc104, 8 blocks");
    drawn.verdicts.interleaved.into_iter().next().unwrap().comparison
}

#[test]
fn tests_measured_in_turn_are_compared_block_by_block() {
    let scenario = |in_turn| Scenario { sizes: vec![1 << 20], in_turn: Some(in_turn), ..Scenario::healthy(4, 1) };
    let worse = in_turn(&scenario(0.95));
    assert_eq!((worse.design, worse.status), (Design::Blocks, Status::Fail), "{}", worse.sentence);
    assert_eq!((worse.counts.regressed, worse.cells.len()), (6, 6));
    for cell in &worse.cells {
        assert_eq!(cell.n, (8, 8));
        let (low, high) = cell.change.interval.unwrap();
        assert!(
            low < cell.change.percent && cell.change.percent < high && low < -4.0 && high > -6.0,
            "{}",
            cell.reason
        );
        assert!(cell.reason.contains("8 blocks"), "{}", cell.reason);
    }
    let headline = worse.headline.unwrap();
    assert!((headline.percent + 4.8).abs() < 0.4, "{headline:?}");
    let setting = &worse.configuration.tests[..];
    assert!(setting.iter().any(|s| s.key == "knobs.traffic_class" && s.after == "104"), "{setting:?}");
    let same = in_turn(&scenario(1.0));
    assert_eq!((same.counts.regressed, same.counts.improved), (0, 0), "{}", same.sentence);
    // A link that is down is named and not passed over.
    let down = in_turn(&Scenario { down: Some(3), ..scenario(1.0) });
    assert_eq!((down.cells.len(), down.one_sided.len(), down.status), (3, 3, Status::Inconclusive));
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
    document["cells"].as_array_mut().unwrap().truncate(3);
    insta::assert_json_snapshot!(document);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("compare.html");
    let view = report::compare::write(&comparison, &path).unwrap();
    insta::assert_snapshot!(report::compare::text::summary(&view, Path::new("compare.html"), false));
    let page = fs::read_to_string(&path).unwrap();
    for foreign in ["http:", "https:", "<script", "<link", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("host gpu003") && page.contains("<svg"));
    let body = page.split_once("</head>").unwrap().1;
    insta::assert_snapshot!(without_drawings(body));
}

/// Drawings are for the eye: a snapshot keeps only that there is one.
fn without_drawings(page: &str) -> String {
    let mut parts = page.split("<svg");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "<svg>" + part.split_once("</svg>").map_or("", |(_, rest)| rest))
}

/// Draws a page to look at: `RAILGAUGE_SAMPLES=DIR cargo test --test report -- --ignored comparison_sample`.
#[test]
#[ignore = "draws a page for the eye"]
fn comparison_sample() {
    let dir = std::path::PathBuf::from(std::env::var("RAILGAUGE_SAMPLES").expect("a directory in RAILGAUGE_SAMPLES"));
    fs::create_dir_all(&dir).unwrap();
    report::compare::write(&told(), &dir.join("compare.html")).unwrap();
}
