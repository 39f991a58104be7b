use std::{collections::BTreeMap, path::Path};

use railgauge_model::{
    journal::event::{LinkRecord, Together},
    plan,
    schedule::{Inventory, schedule},
};
use railgauge_wire::{
    Bytes, Carrier, GigabitsPerSecond, GpuPath, HostFacts, LinkLayer, Nanoseconds, NanosecondsI64, RdmaDevice, RdmaPort,
};

use super::*;
use crate::{
    case::{Doubt, State},
    journal::{HostUp, Journal, JournalEnd, Try},
    results::results,
    row::Row,
    rows::rows,
    status::Status,
    verdict::{Kind, Verdict, verdicts},
};

mod neighbours;
mod victims;

const MS: u64 = 1_000_000;
const BYTES: u64 = 400_000_000;

/// A flow of the synthetic pass: delay of its window in ms, and error of its clock in ns.
#[derive(Clone, Copy)]
struct Made {
    late: u64,
    error: u64,
    /// Bytes counted by its source's NIC for everything that left.
    seen: u64,
}

const GOOD: Made = Made { late: 0, error: MS, seen: 0 };

fn plan_text(pattern: &str) -> String {
    format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[0-3]\"], groups = {{ G = \"h[0,2]\", E = \"h[2-3]\", \
         all = \"h[0-3]\" }} }}\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\nverify = false\nwarm_up = \"0s\"\n{pattern}\n"
    )
}

fn journal(pattern: &str, flows: &[Option<Made>]) -> Journal {
    let text = plan_text(pattern);
    let plan = plan::parse("t.toml", &text, Path::new("")).unwrap().0;
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    assert_eq!(cases.len(), flows.len());
    let tries = cases.iter().zip(flows).filter_map(|(case, made)| {
        let link = Some(Arc::new(link()));
        let result = Ok(sample((*made)?));
        Some(Try { case: case.id, repeat: 0, started_at: "2026-11-21T02:00:00.000Z".into(), link, result })
    });
    let hosts = (0..4).map(|i| (format!("h{i}"), host(i))).collect();
    Journal { tries: tries.collect(), hosts, cases, end: JournalEnd::Finished, ..Journal::of(plan) }
}

fn host(number: usize) -> HostUp {
    let port = RdmaPort { number: 1, rate_gbps: Some(GigabitsPerSecond(100.0)), ..Default::default() };
    let device = RdmaDevice { name: "mlx5_0".into(), ports: vec![port], ..Default::default() };
    let facts = HostFacts { hostname: format!("h{number}"), rdma: vec![device], ..Default::default() };
    HostUp { facts, clock: None, wall: None }
}

fn link() -> LinkRecord {
    LinkRecord {
        transport: Carrier::VerbsRc,
        link_layer: LinkLayer::RoceV2,
        gpu_path: GpuPath::None,
        software: false,
        from_device: "mlx5_0".into(),
        to_device: "mlx5_0".into(),
        rate_gbps: Some(GigabitsPerSecond(100.0)),
        mtu: 4096,
        write_order: None,
        settings: BTreeMap::new(),
    }
}

fn sample(made: Made) -> Sample {
    let at = 7_000_000_000_000 + made.late * 1_000_003;
    let moment = Moment { at: Nanoseconds(at), error: Nanoseconds(made.error) };
    let bytes = 20 * BYTES;
    let initiator = Measurement {
        started: Nanoseconds(at + made.late * MS),
        elapsed: Nanoseconds::from_secs(2),
        operations: bytes / 65536,
        bytes: Bytes(bytes),
        moved: Some(Bytes(bytes)),
        slices: vec![Bytes(BYTES); 20].into(),
        ..Default::default()
    };
    let counters = [("counters/port_xmit_data".to_owned(), made.seen / 4)].into();
    Sample {
        initiator,
        from_counters: if made.seen > 0 { counters } else { BTreeMap::default() },
        together: Some(Together { start: Nanoseconds(1), from: moment, to: moment }.into()),
        ..Sample::default()
    }
}

const INCAST: &str = "pattern = \"incast\"\nto = \"h0\"";
const OUTCAST: &str = "pattern = \"outcast\"\nfrom = \"h0\"";

fn judged(pattern: &str, flows: &[Option<Made>], look: impl Fn(&[CaseResult<'_>], &[Row])) {
    let journal = journal(pattern, flows);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    look(&results, &rows);
}

fn of(rows: &[Row], metric: Metric) -> Vec<(Option<f64>, Option<f64>)> {
    rows.iter().filter(|row| row.metric == metric).map(|row| (row.value, row.ceiling)).collect()
}

fn close(found: Option<f64>, wanted: f64) {
    assert!(found.is_some_and(|found| (found / wanted - 1.0).abs() < 1e-3), "{found:?} is not {wanted}");
}

#[test]
fn only_the_time_in_which_all_ran_counts() {
    judged(INCAST, &[Some(GOOD), Some(Made { late: 30, error: 2 * MS, ..GOOD }), Some(GOOD)], |results, rows| {
        let pass = &results[0].part.as_ref().unwrap().passes[&0];
        // From the latest start to the first end, each reduced by the error of its clock.
        assert_eq!(pass.overlap, Some((NanosecondsI64(32_000_000), NanosecondsI64(1_999_000_000))));
        assert!(results.iter().all(|result| result.state == State::Measured), "{:?}", results[0].doubts);
        assert_eq!((pass.slices().len(), pass.fairness()), (19, Some(1.0)));
        pass.slices().into_iter().for_each(|sum| close(Some(sum), 96.0));
        let flows = of(rows, Metric::Bandwidth);
        assert_eq!(flows.len(), 3);
        let ceiling = of(rows, Metric::IngressBandwidth)[0].1.unwrap();
        for (value, share) in flows {
            close(value, 32.0);
            close(share, ceiling / 3.0);
        }
        for metric in [Metric::IngressBandwidth, Metric::TotalBandwidth] {
            let sums = of(rows, metric);
            assert_eq!(sums.len(), 1, "{metric}");
            close(sums[0].0, 96.0);
            // One NIC of 100 Gb/s takes all of it.
            close(sums[0].1, ceiling);
            assert!((97.0..99.0).contains(&ceiling), "{ceiling}");
        }
        assert_eq!(of(rows, Metric::EgressBandwidth).len(), 3);
        assert_eq!(name(&results[0], Metric::IngressBandwidth), "all flows into h0:0");
    });
}

#[test]
fn fairness_is_one_over_n_for_a_flow_that_has_everything() {
    let flow = |gbps| FlowShare {
        case: 0,
        source: Port::new("h0", 0),
        sink: Port::new("h1", 0),
        moved: Bytes::ZERO,
        beside: Bytes::ZERO,
        against: Bytes::ZERO,
        packets: 1.0,
        gbps,
        slices: Vec::new(),
    };
    let fairness = |flows: &[Option<f64>]| {
        let flows = flows.iter().map(|gbps| flow(*gbps)).collect();
        Pass { overlap: None, flows, doubts: Vec::new() }.fairness()
    };
    close(fairness(&[Some(10.0), Some(0.0), Some(0.0), Some(0.0)]), 0.25);
    close(fairness(&[Some(1.0), Some(3.0)]), 0.8);
    assert_eq!(fairness(&[Some(1.0), None]), None);
    assert_eq!(fairness(&[Some(0.0)]), None);
}

#[test]
fn a_flow_that_ran_by_itself_is_no_number() {
    let late = Made { late: 1_500, ..GOOD };
    judged(INCAST, &[Some(GOOD), Some(late), Some(GOOD)], |results, rows| {
        assert!(rows.iter().filter(|row| row.metric.has_ceiling()).all(|row| row.value.is_none()));
        for result in results {
            assert_eq!(result.state, State::Contaminated);
            let wanted = "all flows of the round ran together for 0.50 of 2.00 s only: h2 began last, 1.50 s after";
            assert!(result.doubts[0].to_string().starts_with(wanted), "{:?}", result.doubts);
        }
    });
}

#[test]
fn a_clock_that_is_not_known_is_no_number() {
    let unsure = Made { error: 150 * MS, ..GOOD };
    judged(INCAST, &[Some(GOOD), Some(unsure), Some(GOOD)], |results, rows| {
        assert!(of(rows, Metric::Bandwidth).iter().all(|(value, _)| value.is_none()));
        let clock = Scattered::Clock { host: "h2".into(), error: Nanoseconds(150_000_000) };
        assert_eq!(results[0].doubts, [Doubt::Round(clock)]);
    });
}

#[test]
fn a_flow_that_is_missing_makes_the_others_doubtful() {
    judged(INCAST, &[Some(GOOD), None, Some(GOOD)], |results, _| {
        let states: Vec<State> = results.iter().map(|result| result.state).collect();
        assert_eq!(states, [State::Contaminated, State::NotRun, State::Contaminated]);
        assert_eq!(results[0].doubts, [Doubt::Round(Scattered::FlowsMissing { measured: 2, planned: 3 })]);
    });
}

#[test]
fn the_bytes_of_a_shared_nic_are_those_of_all_its_flows() {
    // Three flows leave h0; its NIC counts all of them with about 2 % of headers.
    let payload = 3 * 20 * BYTES;
    let honest = Some(Made { seen: payload / 100 * 102, ..GOOD });
    judged(OUTCAST, &[honest; 3], |results, _| {
        assert!(results.iter().all(|result| result.state == State::Measured), "{:?}", results[0].doubts);
    });
    let hidden = Some(Made { seen: payload / 100 * 112, ..GOOD });
    judged(OUTCAST, &[hidden; 3], |results, _| {
        assert!(results.iter().all(|result| result.state == State::Contaminated));
        assert!(results[0].doubts[0].to_string().contains("foreign traffic"), "{:?}", results[0].doubts);
    });
}

/// One flow into h0 of three whose sample was changed.
fn spoilt(change: impl Fn(&mut Sample)) -> (Vec<State>, Vec<String>, Vec<Option<f64>>) {
    let mut journal = journal(INCAST, &[Some(GOOD); 3]);
    change(journal.tries[1].result.as_mut().unwrap());
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let values = of(&rows, Metric::Bandwidth).into_iter().map(|(value, _)| value).collect();
    (
        results.iter().map(|result| result.state).collect(),
        results[1].doubts.iter().map(Doubt::to_string).collect(),
        values,
    )
}

#[test]
fn flows_whose_times_or_slices_are_missing_did_not_run_together_for_all_we_know() {
    type Change = fn(&mut Sample);
    let none: Change = |sample| {
        sample.initiator.slices.clear();
        sample.responder = Some(Box::new(sample.initiator.clone()));
    };
    let changes: [(&str, Change); 7] = [
        ("slices of 100 ms", |sample| sample.initiator.slices.clear()),
        ("slices of 100 ms", |sample| sample.initiator.slices.truncate(3)),
        ("slices of 100 ms", none),
        ("slices of 100 ms", |sample| {
            sample.responder = Some(Box::new(Measurement { slices: Vec::new().into(), ..sample.initiator.clone() }));
        }),
        ("when it ran", |sample| {
            sample.initiator.started = Nanoseconds::ZERO;
            sample.together.as_mut().unwrap().from.at = Nanoseconds::ZERO;
        }),
        ("when it ran", |sample| {
            sample.responder = Some(Box::new(Measurement { started: Nanoseconds::ZERO, ..sample.initiator.clone() }));
        }),
        ("when it ran", |sample| {
            let together = sample.together.as_mut().unwrap();
            (together.from.at, together.to.at) = (Nanoseconds::ZERO, Nanoseconds::ZERO);
            sample.initiator.started = Nanoseconds::ZERO;
            sample.responder = Some(Box::new(sample.initiator.clone()));
        }),
    ];
    for (words, change) in changes {
        let (states, doubts, values) = spoilt(change);
        assert!(states.iter().all(|state| *state == State::Contaminated), "{words}: {states:?}, {doubts:?}");
        assert!(doubts[0].contains(words), "{doubts:?}");
        assert!(values.iter().all(Option::is_none), "{words}: {values:?}");
    }
    // A responder that was not counting while the flows ran received nothing of them.
    let (states, ..) = spoilt(|sample| {
        let late = sample.initiator.started + Nanoseconds::from_secs(60);
        sample.responder = Some(Box::new(Measurement { started: late, ..sample.initiator.clone() }));
    });
    assert_eq!(states, [State::Measured, State::Impossible, State::Measured]);
}

#[test]
fn an_account_of_another_time_is_impossible_for_its_flow_alone() {
    let late: fn(Nanoseconds) -> Nanoseconds = |started| started + Nanoseconds::from_secs(1_000);
    let early: fn(Nanoseconds) -> Nanoseconds = |started| started - Nanoseconds::from_secs(1_000);
    for elsewhere in [late, early] {
        for (host, responder_lies) in [("h2", false), ("h0", true)] {
            let (mut journal, ends) = (journal(INCAST, &[Some(GOOD); 3]), 0..3);
            for place in ends {
                let sample = journal.tries[place].result.as_mut().unwrap();
                let honest = sample.initiator.clone();
                let lie = Measurement { started: elsewhere(honest.started), ..honest.clone() };
                sample.responder =
                    Some(Box::new(if place == 1 && responder_lies { lie.clone() } else { honest.clone() }));
                sample.initiator = if place == 1 && !responder_lies { lie } else { honest };
            }
            let results = results(&journal).unwrap();
            let states: Vec<State> = results.iter().map(|result| result.state).collect();
            assert_eq!(states, [State::Measured, State::Impossible, State::Measured], "{:?}", results[0].doubts);
            let said = results[1].lacks.impossible[0].to_string();
            assert!(said.starts_with(&format!("{host}: ")) && said.contains("1000.0 s"), "{said}");
            let rows = rows(&journal, &results);
            let values: Vec<_> = of(&rows, Metric::Bandwidth).into_iter().map(|(value, _)| value).collect();
            close(values[0], 32.0);
            close(values[2], 32.0);
            // No sum is made of a round that lacks one of its flows.
            assert!(values[1].is_none() && of(&rows, Metric::TotalBandwidth)[0].0.is_none());
        }
        // If its other end counts nothing, nothing proves that the flow ran with the others.
        let (states, doubts, values) = spoilt(|sample| sample.initiator.started = elsewhere(sample.initiator.started));
        assert_eq!(states, [State::Contaminated, State::Impossible, State::Contaminated]);
        assert!(doubts[0].starts_with("h2: ") && values.iter().all(Option::is_none), "{doubts:?}");
    }
}

#[test]
fn samples_of_other_repeats_are_no_flows_of_a_pass() {
    let mut journal = journal(INCAST, &[Some(GOOD), Some(GOOD), None]);
    journal.plan.tests[0].repeats = 2;
    let again = Try { repeat: 1, ..journal.tries[0].clone() };
    journal.tries.push(again);
    let results = results(&journal).unwrap();
    assert!(results[0].doubts[0].to_string().starts_with("only "), "{:?}", results[0].doubts);
}

fn in_scope(pattern: &str, flows: usize, scope: &str) -> (Status, usize) {
    let expect = format!("{pattern}\n[[test.expect]]\n{scope}");
    let journal = journal(&expect, &vec![Some(GOOD); flows]);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let judged = verdicts(&journal, &results, &rows, Vec::new());
    let verdict = judged.verdicts.iter().find(|verdict| verdict.kind == Kind::Expectation).unwrap();
    (verdict.status, verdict.tally.in_scope)
}

#[test]
fn a_sum_is_in_a_group_by_the_nic_that_it_is_about() {
    // All flows into h0 are about h0, whatever the source of the first one.
    let limit =
        |metric: &str, group: &str| format!("metric = \"{metric}\"\nat_least = \"200 Gb/s\"\ngroup = \"{group}\"");
    assert_eq!(in_scope(INCAST, 3, &limit("ingress_bandwidth", "G")), (Status::Fail, 1));
    assert_eq!(in_scope(OUTCAST, 3, &limit("egress_bandwidth", "G")), (Status::Fail, 1));
    // h0 is not in E, but two of the three senders are.
    assert_eq!(in_scope(INCAST, 3, &limit("egress_bandwidth", "E")), (Status::Fail, 2));
    // The sum of a round is in a group only with all its ends.
    assert_eq!(in_scope(INCAST, 3, &limit("total_bandwidth", "all")), (Status::Fail, 1));
    // A limit about nothing of the test is an error of the plan.
    for (metric, group) in [("ingress_bandwidth", "E"), ("total_bandwidth", "G")] {
        let text = plan_text(&format!("{INCAST}\n[[test.expect]]\n{}", limit(metric, group)));
        assert!(plan::parse("t.toml", &text, Path::new("")).is_err(), "{metric} {group}");
    }
}

#[test]
fn a_sum_is_of_a_rail_by_the_nic_that_it_is_about() {
    let crossed = "pattern = \"incast\"\nto = \"h0\"\nrails = \"crossed\"";
    let limit = |rail: u32| format!("metric = \"ingress_bandwidth\"\nat_least = \"200 Gb/s\"\nrails = [{rail}]");
    assert_eq!(in_scope(crossed, 3, &limit(0)), (Status::Fail, 1));
}

fn told(is_slow: impl Fn(&Case) -> bool) -> Verdict {
    let mut journal = journal("pattern = \"all-to-all\"", &[Some(GOOD); 12]);
    for at in 0..journal.tries.len() {
        let sample = journal.tries[at].result.as_mut().unwrap();
        if is_slow(&journal.cases[at]) {
            let all = &mut sample.initiator;
            (all.bytes, all.operations) = (all.bytes / 5, all.operations / 5);
            all.moved = Some(all.bytes);
            all.slices.iter_mut().for_each(|slice| *slice = *slice / 5);
        }
    }
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let judged = verdicts(&journal, &results, &rows, Vec::new());
    judged.verdicts.into_iter().find(|verdict| verdict.kind == Kind::Parts).unwrap()
}

#[test]
fn a_flow_far_below_the_others_of_its_round_is_no_pass() {
    let even = told(|_| false);
    assert_eq!((even.status, even.tally.judged), (Status::Pass, 12), "{}", even.reason);
    let one = told(|case| &*case.flow.from.host == "h1" && &*case.flow.to.host == "h2");
    assert_eq!((one.status, one.tally.doubtful), (Status::Inconclusive, 1), "{}", one.reason);
    let host = told(|case| case.flow.hosts().iter().any(|host| &***host == "h3"));
    assert_eq!((host.status, host.tally.doubtful), (Status::Inconclusive, 6), "{}", host.reason);
}
