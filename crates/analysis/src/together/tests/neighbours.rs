//! A flow alone and alongside TCP connections of its own two hosts, computed by hand.

use railgauge_model::{journal::event::Neighbour, plan::Plan};
use railgauge_wire::{Failure, Kind as FailureKind, Stage};

use super::{victims::scaled, *};
use crate::{
    together::{Answer, Beside, Other},
    verdict::Verdicts,
};

/// The flow's shares of 32 Gb/s in each repeat: alone, with one connection, with four.
const SHARES: [[f64; 3]; 4] = [[1.0, 0.9, 0.5], [0.99, 0.91, 0.5], [1.01, 0.9, 0.51], [1.0, 0.89, 0.49]];

fn parsed(keys: &str) -> Plan {
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[0-1]\"] }}\n[[test]]\nop = \"write\"\n\
         metric = \"bandwidth\"\nsizes = [\"64KiB\"]\nverify = false\nwarm_up = \"0s\"\nrepeats = 4\n\
         beside = {{ flows = [1, 4], direction = \"both\" }}\n{keys}\n"
    );
    plan::parse("t.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0
}

/// Connections of one direction that move this share of 32 Gb/s.
fn neighbour(opposite: bool, flows: u32, share: f64) -> Neighbour {
    let mut end = scaled(share).initiator;
    end.moved = Some(end.bytes);
    let (from_device, to_device) = ("eth0".to_owned(), "eth0".to_owned());
    Neighbour { opposite, flows, from_device, to_device, sender: end.clone(), receiver: Some(end) }
}

/// `change` may spoil the results of a case.
fn journal_of(keys: &str, change: impl Fn(&Case, &mut Result<Sample, Failure>)) -> Journal {
    let plan = parsed(keys);
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    let numbers: Vec<_> = cases.iter().map(|case| (case.round, case.cell.neighbours)).collect();
    assert_eq!(numbers, [(0, None), (0, Some(1)), (0, Some(4))], "alone first, in the same round");
    let mut tries = Vec::new();
    for (repeat, shares) in (0..).zip(SHARES) {
        for (case, share) in cases.iter().zip(shares) {
            let mut sample = scaled(share);
            if let Some(flows) = case.cell.neighbours {
                sample.neighbours = vec![neighbour(false, flows, 0.4), neighbour(true, flows, 0.2)].into();
            }
            let mut result = Ok(sample);
            change(case, &mut result);
            let link = Some(Arc::new(link()));
            tries.push(Try { case: case.id, repeat, started_at: "2026-11-21T02:00:00.000Z".into(), link, result });
        }
    }
    let hosts = (0..2).map(|i| (format!("h{i}"), host(i))).collect();
    Journal { tries, hosts, cases, end: JournalEnd::Finished, ..Journal::of(plan) }
}

fn connections(one: &Beside) -> u32 {
    match one.other {
        Other::Connections { neighbours, .. } => neighbours,
        _ => 0,
    }
}

fn told(journal: &Journal) -> (Vec<Beside>, Vec<Row>, Verdicts) {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let verdicts = verdicts(journal, &results, &rows, Vec::new());
    (verdicts.beside.clone(), rows, verdicts)
}

#[test]
fn each_number_of_connections_is_held_against_the_same_flow_alone() {
    let limit = "[[test.expect]]\nmetric = \"beside_loss\"\nat_most = \"20%\"";
    let (all, rows, verdicts) = told(&journal_of(limit, |_, _| {}));
    let [one, four] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((connections(one), connections(four), one.alone_case, four.alone_case), (1, 4, 0, 0));
    assert_eq!((one.answer, four.answer), (Answer::Lost, Answer::Lost));
    assert!((one.loss_percent.unwrap() - 10.0).abs() < 0.5 && (four.loss_percent.unwrap() - 50.0).abs() < 0.5);
    close(one.alone_gbps, 32.0);
    close(four.beside_gbps, 16.0);
    // Both directions together: 0.4 and 0.2 of 32 Gb/s.
    close(four.neighbours_gbps, 19.2);
    // None for the flow alone.
    let losses: Vec<&Row> = rows.iter().filter(|row| row.metric == Metric::BesideLoss).collect();
    assert_eq!(losses.iter().map(|row| (row.case, row.n)).collect::<Vec<_>>(), [(1, 4), (2, 4)]);
    assert_eq!(of(&rows, Metric::BesideBandwidth).len(), 2);
    close(of(&rows, Metric::BesideBandwidth)[1].0, 19.2);
    assert_eq!(of(&rows, Metric::Bandwidth).len(), 3);
    assert!(of(&rows, Metric::TotalBandwidth).is_empty(), "these flows share no NIC");
    assert!(rows.iter().all(|row| (row.case == 0) == row.env.is_empty()), "{rows:?}");
    let judged = verdicts.verdicts.iter().find(|one| one.kind == Kind::Expectation).unwrap();
    assert_eq!(judged.status, Status::Fail, "{}", judged.reason);
}

#[test]
fn without_the_traffic_there_is_no_value_beside_it() {
    let limit = "[[test.expect]]\nmetric = \"beside_loss\"\nat_most = \"99%\"";
    let stopped = |case: &Case, result: &mut Result<Sample, Failure>| {
        if case.cell.neighbours == Some(4) {
            *result = Err(Failure::new(Stage::Measure, FailureKind::Internal, "the traffic beside it ended early"));
        }
    };
    let (all, rows, verdicts) = told(&journal_of(limit, stopped));
    let four = all.iter().find(|one| connections(one) == 4).unwrap();
    assert_eq!((four.answer, four.beside_gbps, four.loss_percent), (Answer::Unknown, None, None));
    assert!(four.why_unknown.contains("ended early"), "{}", four.why_unknown);
    assert!(rows.iter().filter(|row| row.case == 2).all(|row| row.value.is_none() && row.error.is_some()), "{rows:?}");
    let judged = verdicts.verdicts.iter().find(|one| one.kind == Kind::Expectation).unwrap();
    assert_ne!(judged.status, Status::Pass, "{}", judged.reason);
}

#[test]
fn a_flow_alone_with_foreign_traffic_spoils_all_its_losses() {
    let foreign = |case: &Case, result: &mut Result<Sample, Failure>| {
        if let (None, Ok(sample)) = (case.cell.neighbours, result) {
            sample.from_counters.insert("counters/port_xmit_data".into(), sample.initiator.bytes.0);
        }
    };
    let (all, ..) = told(&journal_of("", foreign));
    assert!(all.iter().all(|one| one.answer == Answer::Unknown && one.alone_gbps.is_none()), "{all:?}");
    assert!(all.iter().all(|one| one.why_unknown.contains("foreign traffic")), "{all:?}");
}

#[test]
fn what_the_test_itself_sent_beside_is_no_foreign_traffic() {
    // Counters with the flow's bytes alone, with those of the connections too, and with twice as many.
    let counted = |times: f64| {
        journal_of("", move |case, result| {
            if let (Some(_), Ok(sample)) = (case.cell.neighbours, result) {
                let beside = sample.neighbours[0].sender.bytes.0 as f64 * times;
                let seen = (sample.initiator.bytes.0 as f64 + beside) * 1.01 / 4.0;
                sample.from_counters.insert("counters/port_xmit_data".into(), seen as u64);
            }
        })
    };
    for (times, state) in [(0.0, State::Measured), (1.0, State::Measured), (2.0, State::Contaminated)] {
        let journal = counted(times);
        let results = results(&journal).unwrap();
        let found: Vec<State> = results.iter().map(|result| result.state).collect();
        assert_eq!(found, [State::Measured, state, state], "{times}: {:?}", results[1].doubts);
    }
}
