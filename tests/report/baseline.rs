//! Baselines: learned from runs, held against others; what cannot be held against one never passes.

use std::{path::Path, sync::Arc};

use crate::support::Scenario;
use railgauge_analysis::{
    baseline::learn,
    history::Run,
    journal::{Journal, parse},
    results::results,
    rows::rows,
    status::Status,
    verdict::{Verdict, verdicts},
};
use railgauge_model::plan::{
    baseline::{Baseline, BaselineError, wanted},
    model::{Expectation, Limit},
};
use railgauge_wire::{terms::Metric, unit::Bytes};

fn small() -> Scenario {
    Scenario { sizes: vec![65536, 1 << 20], ..Scenario::healthy(6, 1) }
}

fn journal(scenario: &Scenario) -> Journal {
    parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn run(scenario: &Scenario) -> Run {
    let dir = tempfile::tempdir().unwrap();
    scenario.write(dir.path());
    crate::kept::read(dir.path(), Metric::ALL).unwrap()
}

/// What a healthy cluster came to, as it comes back from its file.
fn learned(scenarios: &[Scenario]) -> Baseline {
    let baseline = learn(scenarios.iter().map(run).collect()).unwrap();
    let read = Baseline::parse(&serde_json::to_string_pretty(&baseline).unwrap()).unwrap();
    assert_eq!(read.entries.len(), baseline.entries.len());
    read
}

/// The verdict on a test's metric against a baseline.
fn held(journal: &mut Journal, test: usize, metric: Metric, percent: f64, baseline: &Baseline) -> Verdict {
    let limit = Limit::WithinPercentOfBaseline(percent);
    journal.plan.tests[test].expect = vec![Expectation {
        metric,
        limit,
        written: None,
        sizes: None,
        rails: Vec::new(),
        group: None,
        source: None,
        line: 1,
    }];
    journal.plan.baseline = Some(wanted(baseline.clone(), &journal.plan.tests));
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let name = &journal.plan.tests[test].name;
    verdicts(journal, &results, &rows, Vec::new()).verdicts.into_iter().find(|verdict| verdict.test == *name).unwrap()
}

#[test]
fn a_baseline_holds_centres_spreads_and_what_they_rest_on() {
    let baseline = learned(&[small(), Scenario { slow: Some(2), ..small() }]);
    assert_eq!((baseline.runs.len(), baseline.settings.len()), (2, 3));
    let entry = |metric, size| {
        let of = |entry: &&railgauge_model::plan::baseline::Entry| {
            entry.class.test == "write-bw" && entry.class.metric == metric && entry.class.size_bytes == Bytes(size)
        };
        baseline.entries.iter().find(of).unwrap()
    };
    let bandwidth = entry(Metric::Bandwidth, 1 << 20);
    // One of six hosts was bad in one of two runs, and the centre is where it was.
    assert!((bandwidth.centre / 193.2 - 1.0).abs() < 0.01, "{bandwidth:?}");
    assert!(bandwidth.spread_percent > 0.1 && bandwidth.spread_percent < 2.0, "{bandwidth:?}");
    assert_eq!((bandwidth.n, bandwidth.links, bandwidth.runs, bandwidth.unit.as_str()), (30, 15, 2, "Gb/s"));
    assert_eq!(baseline.ends.len(), 2, "an RDMA NIC and an interface: {:?}", baseline.ends);
    let nic = &baseline.ends[&bandwidth.ends[0]];
    assert!(nic.hardware.contains_key("NIC driver") && nic.hardware.contains_key("processor"), "{nic:?}");
}

#[test]
fn a_healthy_run_passes_and_a_slow_one_fails_for_both_directions_of_better() {
    let baseline = learned(&[small()]);
    for (test, metric) in [(0, Metric::Bandwidth), (1, Metric::LatencyP50)] {
        let good = held(&mut journal(&small()), test, metric, 5.0, &baseline);
        assert_eq!(good.status, Status::Pass, "{}", good.reason);
        let bad = held(&mut journal(&Scenario { slow: Some(2), ..small() }), test, metric, 5.0, &baseline);
        assert_eq!((bad.status, bad.offenders.is_empty()), (Status::Fail, false), "{}", bad.reason);
        assert!(bad.offenders.iter().all(|o| [&o.src_host, &o.dst_host].contains(&&"gpu003".to_owned())));
    }
}

#[test]
fn other_hardware_is_inconclusive_and_named() {
    let baseline = learned(&[small()]);
    let mut other = journal(&small());
    for up in other.hosts.values_mut() {
        up.facts.rdma.iter_mut().for_each(|device| device.board = Some("MT_0000000838".into()));
    }
    let verdict = held(&mut other, 0, Metric::Bandwidth, 50.0, &baseline);
    assert_eq!(verdict.status, Status::Inconclusive);
    assert!(
        verdict.reason.to_string().contains("the baseline is of other hardware: NIC board unknown → MT_"),
        "{}",
        verdict.reason
    );
    // One host of six is enough: the others are judged, and the whole is not a pass.
    let mut one = journal(&small());
    one.hosts.get_mut("gpu002").unwrap().facts.cpu.model = Some("another".into());
    let verdict = held(&mut one, 0, Metric::Bandwidth, 50.0, &baseline);
    assert_eq!((verdict.status, verdict.tally.judged), (Status::Inconclusive, 20), "{}", verdict.reason);
    assert!(
        verdict.reason.to_string().contains("processor ") && verdict.reason.to_string().contains(" → another"),
        "{}",
        verdict.reason
    );
}

#[test]
fn other_settings_and_unknown_tests_classes_and_hosts_are_inconclusive() {
    let baseline = learned(&[small()]);
    let reason = |change: fn(&mut Journal), metric| {
        let mut journal = journal(&small());
        change(&mut journal);
        let verdict = held(&mut journal, 0, metric, 50.0, &baseline);
        assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.reason);
        verdict.reason.to_string()
    };
    let depth = reason(|journal| journal.plan.tests[0].knobs.depth = Some(64), Metric::Bandwidth);
    assert!(depth.contains("the baseline was measured with other settings: knobs.depth unset → 64"), "{depth}");
    let size = reason(
        |journal| {
            let half = |id: u64, journal: &mut Journal| {
                for attempt in journal.tries.iter_mut().filter(|attempt| attempt.case == id) {
                    let sample = attempt.result.as_mut().unwrap();
                    sample.initiator.operations *= 2;
                    sample.checked.verified = sample.checked.verified / 2;
                }
            };
            journal.plan.tests.iter_mut().for_each(|test| test.sizes.push(Bytes(32768)));
            for at in 0..journal.cases.len() {
                if journal.cases[at].cell.size == Bytes(65536) {
                    Arc::make_mut(&mut journal.cases[at].cell).size = Bytes(32768);
                    half(journal.cases[at].id, journal);
                }
            }
        },
        Metric::Bandwidth,
    );
    assert!(size.contains("the baseline has no bandwidth of such a link"), "{size}");
    let mut unknown = journal(&small());
    let name = unknown.plan.tests[0].name.clone();
    let mut without = baseline.clone();
    without.settings.remove(&name);
    let verdict = held(&mut unknown, 0, Metric::Bandwidth, 50.0, &without);
    assert_eq!(verdict.status, Status::Inconclusive);
    assert!(verdict.reason.to_string().contains("the baseline has no test write-bw"), "{}", verdict.reason);
    let mut none = journal(&small());
    held(&mut none, 0, Metric::Bandwidth, 50.0, &baseline);
    none.plan.baseline = None;
    let results = results(&none).unwrap();
    let rows = rows(&none, &results);
    assert_eq!(verdicts(&none, &results, &rows, Vec::new()).verdicts[0].status, Status::Inconclusive);
}

#[test]
fn too_few_values_are_no_baseline() {
    // Three hosts have three links.
    let tiny = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(3, 1) };
    let baseline = learned(std::slice::from_ref(&tiny));
    let verdict = held(&mut journal(&tiny), 0, Metric::Bandwidth, 50.0, &baseline);
    assert_eq!(verdict.status, Status::Inconclusive);
    assert!(
        verdict.reason.to_string().contains("rests on 3 values of such a link, and 5 are needed"),
        "{}",
        verdict.reason
    );
    let twice = learned(&[tiny.clone(), tiny.clone()]);
    assert_eq!(held(&mut journal(&tiny), 0, Metric::Bandwidth, 50.0, &twice).status, Status::Pass);
}

#[test]
fn data_that_is_wrong_disturbed_or_missing_never_passes_against_a_baseline() {
    let baseline = learned(&[small()]);
    let status = |scenario: Scenario| {
        let mut journal = journal(&scenario);
        (0..3).map(|test| held(&mut journal, test, Metric::Bandwidth, 99.0, &baseline).status).max().unwrap()
    };
    assert_eq!(status(Scenario { wrong: true, ..small() }), Status::Fail);
    assert_eq!(status(Scenario { contaminated: true, ..small() }), Status::Inconclusive);
    assert_eq!(status(Scenario { down: Some(5), ..small() }), Status::Inconclusive);
    let mut short = journal(&small());
    let at = short.tries.iter().position(|tried| tried.case == 3 && tried.repeat == 2).unwrap();
    short.tries.remove(at);
    assert_eq!(held(&mut short, 0, Metric::Bandwidth, 99.0, &baseline).status, Status::Inconclusive);
}

#[test]
fn noise_is_no_violation() {
    let mut baseline = learned(&[small()]);
    baseline.entries.iter_mut().for_each(|entry| {
        entry.spread_percent = 20.0;
        entry.centre *= 1.1;
    });
    let verdict = held(&mut journal(&small()), 0, Metric::Bandwidth, 2.0, &baseline);
    assert_eq!(verdict.status, Status::Inconclusive);
    assert!(verdict.reason.to_string().contains("whose values scatter by 20.00 %"), "{}", verdict.reason);
}

#[test]
fn runs_with_other_settings_and_foreign_documents_are_refused() {
    let mut other = run(&small());
    other.plan.tests[0].knobs.depth = Some(64);
    let error = learn(vec![run(&small()), other]).unwrap_err();
    assert_eq!((error.test.as_str(), error.different.name.as_str()), ("write-bw", "knobs.depth"), "{error}");
    for (text, words) in [
        ("hello", "is not a baseline"),
        (r#"{"version": 9}"#, "is a baseline of version 9; this railgauge reads version 1"),
        (r#"{"version": 1}"#, "is not a baseline: missing field"),
    ] {
        assert!(Baseline::parse(text).unwrap_err().to_string().contains(words), "{text}");
    }
    let mut broken = learned(&[small()]);
    broken.entries[0].centre = 0.0;
    let error = Baseline::parse(&serde_json::to_string(&broken).unwrap()).unwrap_err();
    assert!(matches!(&error, BaselineError::Entry { test, .. } if *test == broken.entries[0].class.test), "{error}");
}
