//! Nights of made-up runs, from their journals to the page.

use std::{fs, path::Path};

use railgauge_analysis::{
    history::METRICS,
    status::Status,
    trend::{History, Options, Rule, State, Trend, Watched, Way, day, trend},
};
use railgauge_report as report;
use railgauge_report::text::Screen;

use crate::support::Scenario;

mod absent;
mod dates;
mod edited;
mod joint;
mod moved;
mod newest;
mod nights;
mod presence;
mod replaced;
mod rotation;
mod told;
mod unsteady;
mod words;

/// A night of a small cluster; `slow` is a host that carries less.
fn night(day: u32) -> Scenario {
    let seed = 1000 + u64::from(day);
    Scenario { sizes: vec![1 << 20], repeats: 1, day, seed, ..Scenario::healthy(4, 1) }
}

fn watch(nights: impl IntoIterator<Item = Scenario>, options: &Options) -> Trend {
    let place = tempfile::tempdir().unwrap();
    let mut collected = History::default();
    for scenario in nights {
        let directory = place.path().join(format!("night-{:03}", scenario.day));
        scenario.write(&directory);
        collected.add(crate::kept::read(&directory, &METRICS).unwrap());
        fs::remove_dir_all(&directory).unwrap();
    }
    trend(collected, options).unwrap()
}

/// Fifty nights; from the fortieth on a host is slow.
fn slow_from_the_fortieth() -> impl DoubleEndedIterator<Item = Scenario> {
    (0..50).map(|day| Scenario { slow: (day >= 40).then_some(1), ..night(day) })
}

#[test]
fn a_host_that_became_slow_is_one_line_with_its_night() {
    let found = watch(slow_from_the_fortieth(), &Options::default());
    assert_eq!((found.status, found.exit_code), (Status::Fail, 1), "{}", found.sentence);
    assert_eq!((found.runs, found.span.0.as_str()), ((50, 50), "2026-11-21"));
    let change = &found.changes[0];
    assert_eq!((change.name.as_str(), change.way, change.state), ("host gpu002", Way::Worse, State::Open));
    // The fortieth night after 21 November.
    assert_eq!(change.since, "2026-12-31");
    for (at, alert) in &change.members {
        let (series, alert) = (&found.series[*at], &found.series[*at].alerts[*alert]);
        assert!(series.link.contains("gpu002") && series.kind.starts_with("write-"), "{} {}", series.kind, series.link);
        assert_eq!(alert.rule, Rule::Step);
        assert!(day(&alert.raised).unwrap() - alert.day < 8, "{}", alert.reason);
        let expected = if series.kind.contains("bandwidth") { -39.5 } else { 33.5 };
        assert!((alert.percent - expected).abs() < 2.5, "{}", alert.reason);
    }
    // Three links of the host, one bandwidth and eight latencies each.
    assert_eq!(change.series.0, 27, "{}", change.sentence);
    let others = found.changes.iter().skip(1).count();
    assert!(others <= 1, "{:?}", found.changes.iter().map(|change| &change.name).collect::<Vec<_>>());
}

#[test]
fn the_order_of_reading_changes_nothing_that_is_found() {
    let forth = watch(slow_from_the_fortieth(), &Options::default());
    let back = watch(slow_from_the_fortieth().rev(), &Options::default());
    let told = |trend: &Trend| (trend.sentence.clone(), trend.changes[0].sentence.clone(), trend.epochs.clone());
    assert_eq!(told(&forth), told(&back));
}

#[test]
fn new_firmware_forgives_nothing_and_is_said_and_a_declared_epoch_accepts() {
    let updated = |scenario: Scenario| Scenario {
        firmware: if scenario.day >= 40 { "28.44.0001" } else { "28.41.1000" },
        ..scenario
    };
    let found = watch(slow_from_the_fortieth().map(updated), &Options::default());
    let change = &found.changes[0];
    assert_eq!((found.exit_code, change.name.as_str(), change.since.as_str()), (1, "host gpu002", "2026-12-31"));
    assert!(change.epochs[0].contains("28.41.1000 → 28.44.0001"), "{:?}", change.epochs);
    assert_eq!(found.epochs.len(), 1);
    assert_eq!((found.epochs[0].date.as_str(), found.epochs[0].hosts.len()), ("2026-12-31", 3));
    assert!(found.epochs[0].what.contains("28.41.1000 → 28.44.0001"), "{:?}", found.epochs);
    // The same by declaration.
    let epochs = vec![(day("2026-12-31").unwrap(), "new switches".to_owned())];
    let declared = watch(slow_from_the_fortieth(), &Options { epochs, ..Options::default() });
    assert!(declared.changes.iter().all(|change| change.since != "2026-12-31"), "{:?}", declared.changes);
    assert_eq!(declared.epochs[0].what, "new switches");
    // Ten nights of the level that was accepted: watched weakly, and said so.
    assert!(declared.series.iter().all(|series| series.state == Watched::Weakly), "{}", declared.sentence);
    assert_eq!(declared.exit_code, 0, "{}", declared.sentence);
}

#[test]
fn missing_nights_new_hosts_and_repeats_are_normal() {
    let hosts = |day: u32| if day < 25 { 3 } else { 4 };
    let nights = (0..60).filter(|day| day % 7 != 3).map(|day| Scenario { hosts: hosts(day), ..night(day) });
    let found = watch(nights, &Options::default());
    assert!(found.changes.len() <= 1, "{:?}", found.changes.iter().map(|change| &change.sentence).collect::<Vec<_>>());
    assert_eq!(found.runs.1, 60 - 9);
    let young = found.series.iter().filter(|series| series.link.contains("gpu004"));
    assert!(young.clone().count() > 0 && young.clone().all(|series| series.span.0.as_str() > "2026-12-10"));
}

#[test]
fn few_nights_pass_nothing() {
    let found = watch((0..5).map(night), &Options::default());
    assert_eq!((found.status, found.exit_code), (Status::Inconclusive, 3));
}

/// Nothing is said of dates and of a spread that nobody knows.
#[test]
fn no_run_has_no_dates_and_one_night_no_spread() {
    let place = tempfile::tempdir().unwrap();
    let view = |nights: Vec<Scenario>| {
        let mut trend = watch(nights, &Options::default());
        trend.unreadable.push(("torn-night".into(), "records.jsonl: holds no events".into()));
        report::trend::write(&trend, &place.path().join("trend.html")).unwrap()
    };
    assert_eq!(view(Vec::new()).span, "0 series, 0 nights with 0 runs (1 more left out)");
    let one = view(vec![night(3)]);
    assert!(one.span.ends_with(", 2026-11-24 to 2026-11-24"), "{}", one.span);
    let spread = one.kinds.columns.iter().position(|column| column.name == "spread of nights").unwrap();
    assert!(!one.kinds.rows.is_empty() && one.kinds.rows.iter().all(|row| row[spread] == "–"), "{:?}", one.kinds.rows);
}

#[test]
fn the_text_and_the_page() {
    let mut trend = watch(slow_from_the_fortieth(), &Options::default());
    trend.unreadable.push(("torn-night".into(), "records.jsonl: holds no events".into()));
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trend.html");
    let view = report::trend::write(&trend, &path).unwrap();
    insta::assert_snapshot!(report::trend::text::summary(&view, Path::new("trend.html"), &Screen::PLAIN));
    let page = fs::read_to_string(&path).unwrap();
    for foreign in ["http:", "https:", "<link", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // The one script is ours: the page's policy allows it by its hash, and no other.
    assert!(page.matches("<script").count() == 1 && page.contains("script-src 'sha256-"));
    assert!(page.contains("host gpu002") && page.contains("<svg") && page.contains("torn-night"));
    let mut document = serde_json::to_value(&trend).unwrap();
    document["series"].as_array_mut().unwrap().truncate(2);
    document["changes"].as_array_mut().unwrap().truncate(1);
    insta::assert_json_snapshot!(document);
}

/// A page with something in most sections, to be seen in a browser.
pub fn page(dir: &Path) -> std::path::PathBuf {
    let firmware = |day| if day >= 10 { "28.44.0001" } else { "28.41.1000" };
    let nights = (0..40).map(|day| Scenario {
        slow: (day >= 30).then_some(1),
        down: (day == 39).then_some(3),
        firmware: firmware(day),
        ..night(day)
    });
    let mut trend = watch(nights, &Options::default());
    trend.unreadable.push(("torn-night".into(), "records.jsonl: holds no events".into()));
    let path = dir.join("trend.html");
    report::trend::write(&trend, &path).unwrap();
    path
}

/// Draws a page to look at: `RAILGAUGE_SAMPLES=DIR cargo test --test report -- --ignored trend_sample`.
#[test]
#[ignore = "draws a page for the eye"]
fn by_hand_trend_sample() {
    let dir = std::path::PathBuf::from(std::env::var("RAILGAUGE_SAMPLES").expect("a directory in RAILGAUGE_SAMPLES"));
    fs::create_dir_all(&dir).unwrap();
    let slow = |day| (50..62).contains(&day) || day >= 80;
    let firmware = |day| if day >= 10 { "28.44.0001" } else { "28.41.1000" };
    let nights = (0..110).filter(|day| day % 9 != 4).map(|day| Scenario {
        slow: slow(day).then_some(1),
        firmware: firmware(day),
        ..night(day)
    });
    report::trend::write(&watch(nights, &Options::default()), &dir.join("trend.html")).unwrap();
}
