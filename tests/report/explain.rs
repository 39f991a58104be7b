//! Which results a finding of the preflight fits.

use std::path::Path;

use railgauge_analysis::{
    explain::explained,
    journal::{Journal, parse},
    localise::localise,
    outliers::outliers,
    results::results,
    rows::rows,
};
use railgauge_preflight::{Finding, Observation, Severity, Value, WantedBy};
use railgauge_report::draw;

use crate::{
    outliers::change,
    support::{self, Scenario},
};

fn journal(scenario: &Scenario) -> Journal {
    parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn finding(check: &str, severity: Severity, hosts: &[usize]) -> Finding {
    Finding {
        check: check.into(),
        severity,
        waived: false,
        unread: false,
        hosts: hosts.iter().map(|host| format!("gpu{:03}", host + 1)).collect(),
        devices: Vec::new(),
        what: String::new(),
        observed: None,
        key: None,
        meaning: String::new(),
        remedy: railgauge_wire::remedy::NONE_IF_MEANT.into(),
        source: String::new(),
    }
}

/// Tests that a finding fits, as the only one.
fn fits(journal: &Journal, finding: &Finding) -> Vec<String> {
    fits_of(journal, std::slice::from_ref(finding)).remove(0)
}

/// Tests that each finding fits.
fn fits_of(journal: &Journal, found: &[Finding]) -> Vec<Vec<String>> {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let parts = localise(journal, &results, &rows);
    let fits = explained(found, &outliers(journal, &results, &rows, &parts));
    fits.into_iter().map(|fits| fits.into_iter().map(|fit| fit.test).collect()).collect()
}

const WARNING: Severity = Severity::Warning;
const FAILURE: Severity = Severity::Failure;

#[test]
fn a_finding_of_the_slow_host_fits_and_one_of_another_does_not() {
    for hosts in [4, 5, 9] {
        let journal = journal(&Scenario { slow: Some(2), sizes: vec![65536, 1 << 20], ..Scenario::healthy(hosts, 1) });
        assert_eq!(fits(&journal, &finding("mtu", WARNING, &[2])), ["write-bw"], "{hosts} hosts");
        assert_eq!(fits(&journal, &finding("governor", WARNING, &[2])), ["write-lat"], "a governor costs latency");
        assert_eq!(fits(&journal, &finding("mtu", WARNING, &[1])), [""; 0], "another host");
    }
}

#[test]
fn what_every_host_has_explains_nothing() {
    let slow = journal(&Scenario { slow: Some(2), sizes: vec![1 << 20], ..Scenario::healthy(6, 1) });
    let down = journal(&Scenario { down: Some(2), sizes: vec![1 << 20], ..Scenario::healthy(6, 1) });
    let all: Vec<usize> = (0..6).collect();
    for check in ["mtu", "idle", "device-count", "versions"] {
        for journal in [&slow, &down] {
            assert_eq!(fits(journal, &finding(check, FAILURE, &all)), [""; 0], "{check}: nobody to compare with");
        }
    }
    // A kernel that is not the wanted one is something to know and stops no case.
    assert_eq!(fits(&down, &finding("versions", FAILURE, &[2])), [""; 0]);
    assert_eq!(fits(&slow, &finding("clock", WARNING, &[2])), [""; 0], "a clock slows nothing");
}

#[test]
fn cases_that_are_missing_are_told_of_the_host_that_lacks_them() {
    let journal = journal(&Scenario { down: Some(2), sizes: vec![1 << 20], ..Scenario::healthy(6, 1) });
    let told = fits(&journal, &finding("device-count", FAILURE, &[2]));
    assert!(told.contains(&"write-bw".to_owned()) && told.contains(&"write-lat".to_owned()), "{told:?}");
    assert_eq!(fits(&journal, &finding("device-count", WARNING, &[2])), [""; 0], "a warning stops nothing");
    assert_eq!(fits(&journal, &finding("device-count", FAILURE, &[3])), [""; 0], "another host");
}

#[test]
fn a_healthy_cluster_needs_no_explanation() {
    let mut told = 0;
    for seed in 0..20 {
        let journal = journal(&Scenario { seed, sizes: vec![1 << 20], ..Scenario::healthy(6, 1) });
        told += fits(&journal, &finding("idle", WARNING, &[2, 3])).len();
    }
    assert_eq!(told, 0, "a difference under the least effect is none");
}

/// What takes 3 % from healthy peers does not take 40 % from another host.
#[test]
fn what_good_peers_have_too_is_the_cause_of_no_bad_part() {
    let slow = Scenario { slow: Some(2), sizes: vec![1 << 20], ..Scenario::healthy(9, 1) };
    for (lost, factor) in [(0.0, 1.0), (3.0, 0.97)] {
        let mut journal = journal(&slow);
        let spared = ["gpu001", "gpu002", "gpu008", "gpu009"];
        change(&mut journal, |_, _, ends| !ends.iter().all(|end| spared.contains(end)), factor);
        assert_eq!(fits(&journal, &finding("mtu", WARNING, &[2, 3, 4, 5])), [""; 0], "{lost} %");
        assert_eq!(fits(&journal, &finding("mtu", WARNING, &[2])), ["write-bw"], "{lost} %");
    }
}

/// Every host has a load of its own, and so a finding of its own.
#[test]
fn what_healthy_peers_have_in_a_comparable_size_is_no_cause() {
    let journal = journal(&Scenario { slow: Some(2), sizes: vec![1 << 20], ..Scenario::healthy(9, 1) });
    let busy = |host: usize, load: f64| Finding {
        observed: Some(Observation {
            fact: "load".into(),
            unit: None,
            seen: Some(Value::from(load)),
            wanted: None,
            wanted_by: None,
        }),
        ..finding("idle", WARNING, &[host])
    };
    let fits_slow = |peers: &[(usize, f64)]| {
        let found: Vec<Finding> = [(2, 60.0)].iter().chain(peers).map(|(host, load)| busy(*host, *load)).collect();
        !fits_of(&journal, &found)[0].is_empty()
    };
    assert!(fits_slow(&[]));
    assert!(!fits_slow(&[(3, 41.0), (4, 52.5), (5, 71.0)]), "some peers");
    let all: Vec<(usize, f64)> = [0, 1, 3, 4, 5, 6, 7, 8].map(|host| (host, 50.0 + host as f64)).to_vec();
    assert!(!fits_slow(&all), "all peers");
    // Its number sets the host apart.
    assert!(fits_slow(&all.iter().map(|(host, load)| (*host, load / 4.0)).collect::<Vec<_>>()));
}

/// A port at 380 of 400 Gb/s does not take 40 %.
#[test]
fn a_value_that_cannot_take_as_much_is_no_cause() {
    let journal = journal(&Scenario { slow: Some(2), sizes: vec![1 << 20], ..Scenario::healthy(6, 1) });
    for (rate, told) in [(380.0, &[][..]), (200.0, &["write-bw"][..])] {
        let observed = Observation {
            fact: "link_rate".into(),
            unit: Some("Gb/s".into()),
            seen: Some(Value::from(rate)),
            wanted: Some(Value::from(400.0)),
            wanted_by: Some(WantedBy::Others),
        };
        let finding = Finding { observed: Some(observed), ..finding("link-rate", WARNING, &[2]) };
        assert_eq!(fits(&journal, &finding), told, "{rate}");
    }
}

#[test]
fn the_first_step_is_a_finding_only_where_that_may_be_the_cause() {
    let scenario = Scenario { slow: Some(4), sizes: vec![1 << 24], repeats: 1, ..Scenario::healthy(8, 1) };
    let text = support::followed::followed_up(&scenario, &scenario).0;
    for (busy, step) in [(&["gpu005"][..], "configuration"), (&["gpu003", "gpu004", "gpu005", "gpu006"], "parts")] {
        let mut journal = parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
        // No two of them are equally busy.
        for (host, more) in busy.iter().zip(0..) {
            let facts = &mut journal.hosts.get_mut(*host).unwrap().facts;
            facts.load.average = Some(f64::from(facts.cpu.threads) + f64::from(more));
            facts.load.busy = Some(0.9);
        }
        let others = |end: &&str| busy.contains(end) && *end != "gpu005";
        change(&mut journal, |_, _, ends| ends.iter().any(others) && !ends.contains(&"gpu005"), 0.97);
        let banner = draw(&journal, Path::new("records.jsonl")).unwrap().view.banner;
        assert!(
            banner.causes[0].starts_with("host gpu005 is at ") && banner.causes[0].ends_with("(confirmed)"),
            "{banner:?}"
        );
        assert_eq!(banner.remedy.unwrap().anchor, step, "{busy:?}");
    }
}
