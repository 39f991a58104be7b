//! Which results a finding of the preflight fits.

use std::path::Path;

use railgauge::{
    analysis::{
        explain::explained,
        journal::{Journal, parse},
        localise::localise,
        outliers::outliers,
        results::results,
        rows::rows,
    },
    preflight::{Finding, Severity},
};

use crate::support::Scenario;

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
        remedy: railgauge_wire::remedy::MEANT.into(),
        source: String::new(),
    }
}

/// Tests that a finding fits.
fn fits(journal: &Journal, finding: &Finding) -> Vec<String> {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let found = localise(journal, &results, &rows);
    let fits = explained(finding, &journal.plan, &outliers(journal, &results, &rows, &found));
    fits.into_iter().map(|fit| fit.test).collect()
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

/// A case that fails before its devices are opened has none in its row.
#[test]
fn a_finding_on_a_device_is_told_of_cases_that_never_opened_it() {
    let scenario = Scenario { down: Some(2), ..Scenario::healthy(6, 1) };
    let mut journal = journal(&scenario);
    journal.plan.hosts[2].devices = vec!["mlx5_0".to_owned()];
    let of = |device: &str| Finding { devices: vec![device.to_owned()], ..finding("port-state", FAILURE, &[2]) };
    let told = fits(&journal, &of("mlx5_0"));
    assert!(told.contains(&"write-bw".to_owned()) && !told.contains(&"tcp-baseline".to_owned()), "{told:?}");
    assert_eq!(fits(&journal, &of("mlx5_9")), [""; 0], "no device of the test");
    // Of a device of which the plan has port 2, port 1 says nothing.
    journal.plan.hosts[2].devices = vec!["mlx5_0:2".to_owned()];
    assert_eq!((fits(&journal, &of("mlx5_0")), fits(&journal, &of("mlx5_0:2"))), (vec![], told.clone()));
    // Where the plan leaves it to the agent, nobody knows which device it would have been.
    journal.plan.hosts[2].devices.clear();
    assert_eq!(fits(&journal, &of("mlx5_9")), told);
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
