//! Verdicts say where the hosts stand that they name.

use std::{collections::BTreeMap, fs};

use railgauge_analysis::{
    reason::Id,
    status::Status,
    verdict::{Kind, Verdict, Verdicts},
};
use railgauge_model::journal::event::Event;
use serde_json::Value;

use crate::kept::write;
use crate::support::{self, Scenario};

/// The report of a run whose plan says where these hosts stand, with its JUnit file.
fn report(scenario: &Scenario, places: &[(&str, &str)]) -> (Verdicts, String) {
    let mut lines = scenario.lines();
    for line in &mut lines {
        if let Event::Started { resolved, .. } = &mut line.event {
            resolved.places = places.iter().map(|(host, place)| ((*host).to_owned(), (*place).to_owned())).collect();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("records.jsonl"), support::text(&lines)).unwrap();
    let verdicts = write(dir.path()).unwrap().verdicts;
    (verdicts, fs::read_to_string(dir.path().join("junit.xml")).unwrap())
}

fn small(scenario: Scenario) -> Scenario {
    Scenario { sizes: vec![65536, 1 << 20], ..scenario }
}

fn told(verdict: &Verdict) -> Vec<(String, String)> {
    let places = verdict.reason.iter().filter(|reason| reason.id == Id::Where).map(|reason| reason.json("places"));
    let places = places.flat_map(|places| serde_json::from_value::<Vec<Value>>(places).unwrap());
    let field = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    places.map(|one| (field(&one, "host"), field(&one, "place"))).collect()
}

#[test]
fn a_slow_host_is_named_with_its_rack_and_slot() {
    let scenario = small(Scenario { slow: Some(2), ..Scenario::healthy(6, 1) });
    let (found, junit) = report(&scenario, &[("gpu003", "A12/7"), ("gpu005", "A13/1")]);
    let parts: Vec<&Verdict> = found.verdicts.iter().filter(|one| one.kind == Kind::Parts).collect();
    let bad: Vec<&&Verdict> =
        parts.iter().filter(|one| one.parts.iter().any(|part| part.name.contains("gpu003"))).collect();
    assert!(!bad.is_empty(), "{:?}", found.verdicts.iter().map(|one| one.reason.to_string()).collect::<Vec<_>>());
    for verdict in bad {
        assert_eq!(told(verdict), [("gpu003".into(), "A12/7".into())], "{}", verdict.reason);
        assert!(verdict.reason.to_string().contains("gpu003 (rack A12, slot 7)"), "{}", verdict.reason);
        assert_eq!(verdict.place, BTreeMap::from([("gpu003".to_owned(), "A12/7".to_owned())]));
        let part = verdict.parts.iter().find(|part| part.name.contains("gpu003")).unwrap();
        assert_eq!(part.place.as_deref(), Some("A12/7"));
    }
    assert!(junit.contains("gpu003 (rack A12, slot 7)"));
    assert!(junit.contains(r#"<property name="place" value="gpu003 (rack A12, slot 7)"/>"#), "{junit}");
    // A pass sends nobody anywhere.
    assert!(found.verdicts.iter().filter(|one| one.status == Status::Pass).all(|one| one.place.is_empty()));
    let document = serde_json::to_value(&found).unwrap();
    let has = |one: &serde_json::Value| one.get("place").is_some();
    assert!(document["verdicts"].as_array().unwrap().iter().any(has));
}

#[test]
fn a_host_that_failed_is_told_with_its_place_and_others_without_one_make_no_noise() {
    let scenario = small(Scenario { down: Some(3), ..Scenario::healthy(4, 1) });
    let (found, _) = report(&scenario, &[("gpu004", "rack12/u07")]);
    let every = found.verdicts.iter().find(|one| one.kind == Kind::EveryCase && one.status != Status::Pass).unwrap();
    assert_eq!(told(every), [("gpu004".into(), "rack12/u07".into())], "{}", every.reason);
    assert!(every.reason.to_string().ends_with("gpu004 (rack12, u07)"), "{}", every.reason);
    // Without places nothing is other than it was.
    let (bare, junit) = report(&scenario, &[]);
    let with = |found: &Verdicts| found.verdicts.iter().map(|one| one.status).collect::<Vec<_>>();
    assert_eq!(with(&bare), with(&found));
    for (one, other) in bare.verdicts.iter().zip(&found.verdicts) {
        assert!(one.place.is_empty() && told(one).is_empty());
        assert!(other.reason.to_string().starts_with(&one.reason.to_string()));
    }
    assert!(!junit.contains("name=\"place\"") && !junit.contains("location:"));
}
