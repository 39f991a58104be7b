//! Suspects of made-up runs, named in words.

use std::path::Path;

use railgauge::analysis::{
    journal::{Journal, parse},
    localise::{Localisation, Standing, localise},
    results::results,
    rows::rows,
};

use railgauge::report::{text, write};

use crate::support::Scenario;

fn found(scenario: &Scenario) -> Vec<Localisation> {
    let journal: Journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results, &|_| None);
    localise(&journal, &results, &rows)
}

#[test]
fn a_slow_host_is_named_in_every_test_that_shows_it() {
    let scenario = Scenario { slow: Some(4), ..Scenario::healthy(8, 2) };
    let all = found(&scenario);
    let verbs: Vec<&Localisation> = all.iter().filter(|test| !test.test.contains("tcp")).collect();
    assert!(verbs.len() >= 2, "{:?}", all.iter().map(|test| &test.test).collect::<Vec<_>>());
    for test in verbs {
        let names: Vec<&str> = test.suspects.iter().map(|suspect| suspect.name.as_str()).collect();
        assert_eq!(names, ["host gpu005"], "{}: {:?}", test.test, test.remarks);
        let suspect = &test.suspects[0];
        assert_eq!((suspect.kind, suspect.hosts.as_slice()), ("host", &["gpu005".to_owned()][..]));
        assert_eq!((suspect.n, suspect.bad, suspect.partners), (14, 14, 7), "{}", suspect.reason);
        let (low, high) = suspect.interval_percent.unwrap();
        assert!(low <= suspect.change_percent && suspect.change_percent <= high);
        // Bandwidth falls to 60 %, latency rises by 35 %.
        let expected = if test.unit == "Gb/s" { -40.0 } else { 35.0 };
        assert!((suspect.change_percent - expected).abs() < 3.0, "{}", suspect.reason);
        assert!(suspect.reason.starts_with("14 of 14 pairs with 7 hosts are bad, typically "), "{}", suspect.reason);
        assert!(test.unjudged.is_empty() && test.good.len() == 1 && test.missing == 0);
        assert!(
            test.probes.iter().all(|probe| [&probe.flow.from, &probe.flow.to].iter().any(|p| &*p.host == "gpu005"))
        );
        assert_eq!(test.probes.len(), 10);
    }
}

#[test]
fn nobody_is_named_on_a_healthy_cluster() {
    for scenario in
        [Scenario::healthy(8, 2), Scenario::healthy(4, 1), Scenario { software: true, ..Scenario::healthy(5, 1) }]
    {
        for test in found(&scenario) {
            assert!(test.suspects.is_empty(), "{}: {:?}", test.test, test.suspects);
            assert!(test.probes.is_empty() && test.pairs > 0);
        }
    }
}

#[test]
fn few_hosts_and_missing_ones_are_said() {
    for test in found(&Scenario::healthy(3, 1)) {
        assert!(test.suspects.is_empty());
        let remark = &test.remarks[0];
        assert!(remark.starts_with("no part can be told from the others among "), "{remark}");
        assert!(remark.ends_with(" hosts, 4 are needed"), "{remark}");
    }
    let down = found(&Scenario { down: Some(7), ..Scenario::healthy(8, 1) });
    assert!(down.iter().all(|test| test.suspects.is_empty()) && down.iter().any(|test| test.missing == 7), "{down:?}");
}

#[test]
fn probes_settle_a_suspect() {
    let mut test = found(&Scenario { slow: Some(4), ..Scenario::healthy(8, 2) }).remove(0);
    let good = test.good[0].centre;
    let unsettled = test.clone();
    let values = |factor: f64| (0..10).map(|probe| (probe, good * factor)).collect::<Vec<_>>();
    test.confirm(&values(0.6));
    assert_eq!(test.suspects[0].standing, Standing::Confirmed);
    assert!(
        test.suspects[0].reason.ends_with("; confirmed by 10 further tests: 40.00 %"),
        "{}",
        test.suspects[0].reason
    );
    let mut cleared = unsettled.clone();
    cleared.confirm(&values(1.0));
    assert_eq!(cleared.suspects[0].standing, Standing::Cleared);
    let mut open = unsettled;
    open.confirm(&values(0.6)[..2]);
    assert_eq!(open.suspects[0].standing, Standing::Open);
    assert!(serde_json::to_string(&open).unwrap().contains(r#""standing":"open""#));
}

#[test]
fn a_named_part_stands_at_the_top_of_everything() {
    let dir = tempfile::tempdir().unwrap();
    Scenario { slow: Some(4), ..Scenario::healthy(8, 1) }.write(dir.path());
    let written = write(dir.path()).unwrap();
    let parts = written.view.parts.as_ref().unwrap();
    assert_eq!(parts.sentence, "Suspect, not settled: host gpu005.");
    assert_eq!(parts.named.len(), 1, "each part once for all tests: {:?}", parts.named);
    assert_eq!(parts.named[0].evidence.len(), 2);
    let [test, change, reason] = &parts.named[0].evidence[0];
    assert!(test == "write-bw" && reason.starts_with("7 of 7 pairs with 7 hosts are bad"), "{test}: {reason}");
    assert!(change.starts_with("−40.") && change.contains(" to "), "{change}");

    let page = std::fs::read_to_string(&written.page).unwrap();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place("Which part is bad</h2>") < place("<h2>Verdicts</h2>"));
    assert_eq!(page.matches("class=\"band\"").count(), 4, "a row and a column in both tests");
    assert!(page.contains(" Framed: host gpu005."));
    let text = text::summary(&written.view, &written.page, false);
    assert!(text.contains("parts: Suspect, not settled: host gpu005.\n    host gpu005 (suspect)\n"), "{text}");
    let junit = std::fs::read_to_string(dir.path().join("junit.xml")).unwrap();
    assert!(junit.contains("suspect: host gpu005: 7 of 7 pairs"), "{junit}");
    let verdicts: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("verdicts.json")).unwrap()).unwrap();
    let suspect = &verdicts["localisation"][0]["suspects"][0];
    assert_eq!((&suspect["name"], &suspect["n"]), (&"host gpu005".into(), &7.into()));
    for key in ["change_percent", "interval_percent", "method", "reason"] {
        assert!(!suspect[key].is_null(), "{key}");
    }
}

#[test]
fn a_healthy_cluster_has_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    Scenario::healthy(8, 1).write(dir.path());
    let written = write(dir.path()).unwrap();
    let parts = written.view.parts.as_ref().unwrap();
    assert_eq!((parts.sentence.as_str(), parts.named.len()), ("No part stands out.", 0));
    assert!(parts.tests[0].starts_with("write-bw: 28 pairs at 16 MiB by bandwidth; good pairs reach "), "{parts:?}");
    assert!(text::summary(&written.view, &written.page, false).contains("parts: No part stands out.\n"));
    assert!(!std::fs::read_to_string(&written.page).unwrap().contains("class=\"band\""));
}
