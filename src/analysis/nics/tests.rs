//! Two tests of two hosts with four rails, worked by hand.

use std::{path::Path, sync::Arc};

use railgauge_model::{
    journal::event::{Case, LinkRecord, Sample},
    plan,
    schedule::{Inventory, schedule},
};
use railgauge_wire::{
    facts::HostFacts,
    measure::Measurement,
    terms::{Carrier, GpuPath, LinkLayer},
    unit::Nanoseconds,
};

use super::*;
use crate::analysis::{
    journal::{HostUp, Journal, JournalEnd, Try},
    results::results,
    rows::rows,
    verdict::verdicts,
};

/// A run in which single rails move 10 Gb/s and together this share of it; `more` keys are of the second test.
fn journal(share: f64, more: &str) -> Journal {
    let test = "[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = [\"64KiB\"]\nverify = false\nwarm_up = \"0s\"\n\
                pattern = \"neighbours\"\n";
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[0-3]\"], tcp = [\"a\", \"b\", \"c\", \"d\"] }}\n\
         {test}name = \"all\"\n{test}name = \"each\"\nrails = \"each\"\n{more}\n"
    );
    let plan = plan::parse("t.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
    let schedule = schedule(&plan, &Inventory::of_plan(&plan)).unwrap();
    let cases: Vec<Case> = schedule
        .cases()
        .map(|place| {
            let (round, flow, cell) = schedule.resolve(place).unwrap();
            let test = plan.tests[round.test].name.clone();
            Case { id: place.id, test, round: round.number, flow: flow.clone(), cell: cell.clone() }
        })
        .collect();
    assert_eq!(cases.len(), 16);
    let tries = cases.iter().map(|case| Try {
        case: case.id,
        repeat: 0,
        started_at: "2026-11-21T02:00:00.000Z".into(),
        link: Some(Arc::new(link())),
        result: Ok(sample(if case.test == "all" { share } else { 1.0 })),
    });
    let up = |host: usize| {
        let facts = HostFacts { hostname: format!("h{host}"), ..HostFacts::default() };
        (format!("h{host}"), HostUp { facts, clock: None, wall: None })
    };
    Journal {
        tries: tries.collect(),
        hosts: (0..4).map(up).collect(),
        cases,
        end: JournalEnd::Finished,
        ..Journal::of(plan)
    }
}

fn link() -> LinkRecord {
    LinkRecord {
        transport: Carrier::Tcp,
        link_layer: LinkLayer::Ethernet,
        gpu_path: GpuPath::None,
        software: false,
        from_device: "eth0".into(),
        to_device: "eth0".into(),
        rate_gbps: None,
        mtu: 1500,
        write_order: None,
        settings: Default::default(),
    }
}

fn sample(share: f64) -> Sample {
    let bytes = Bytes((2.5e9 * share) as u64);
    let end = Measurement {
        started: Nanoseconds(7_000_000_000),
        elapsed: Nanoseconds::from_secs(2),
        operations: bytes.0 / 65536,
        bytes,
        moved: Some(bytes),
        ..Measurement::default()
    };
    Sample { initiator: end.clone(), responder: Some(end), ..Sample::default() }
}

fn found(journal: &Journal) -> Vec<AllNics> {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let found = nics(&journal.plan.tests, &results, &rows);
    assert_eq!(verdicts(journal, &results, &rows, Vec::new()).nics, found);
    found
}

#[test]
fn all_nics_are_held_against_the_sum_of_single_ones() {
    let journal = journal(0.8, "");
    // One rail after the other: a round for each.
    let rounds = journal.cases.iter().filter(|case| case.test == "each").map(|case| (case.round, case.flow.from.rail));
    assert!(rounds.clone().all(|(round, rail)| round == rail) && rounds.count() == 8);
    let [all] = &found(&journal)[..] else { panic!() };
    assert_eq!((all.pairs, all.missing, all.rails), (2, 0, (4, 4)));
    assert!((all.percent.unwrap() - 80.0).abs() < 0.1, "{all:?}");
    assert!(all.words().contains("All 4 NICs together reach 80.0 % of the sum of single ones"), "{}", all.words());
}

#[test]
fn a_missing_rail_is_no_smaller_sum() {
    let mut journal = journal(0.8, "");
    let gone = journal.cases.iter().find(|case| case.test == "each" && &*case.flow.from.host == "h0").unwrap().id;
    journal.tries.retain(|attempt| attempt.case != gone);
    let all = found(&journal).remove(0);
    assert_eq!((all.pairs, all.missing), (1, 1), "{all:?}");
    journal.tries.clear();
    let none = found(&journal).remove(0);
    assert_eq!((none.pairs, none.missing, none.percent), (0, 2, None));
    assert!(none.words().contains("not known"), "{}", none.words());
}

#[test]
fn tests_that_differ_otherwise_are_no_pair() {
    assert!(found(&journal(0.8, "measure = \"3s\"")).is_empty());
    assert!(!found(&journal(0.8, "[[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"1 Gb/s\"")).is_empty());
}
