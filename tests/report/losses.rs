//! Packets that TCP lost and sent again: the values count, a host that loses many is named as any other slow host is, and why.

use std::path::Path;

use railgauge_analysis::{
    journal::parse,
    reason::Id,
    status::Status,
    verdict::{Kind, Verdicts},
};
use railgauge_model::journal::event::{Case, LinkRecord, Sample};
use railgauge_report::draw;
use railgauge_wire::{
    measure::{Measurement, SLICE},
    step::Checked,
    terms::Carrier,
    unit::GigabitsPerSecond,
};

use crate::{
    numbers,
    support::{self, Dice},
};

/// What a pair carries in Gb/s, and which share of the packets its sender had to send again.
type Pair = fn(&Case) -> (f64, f64);

/// Eight hosts, every pair once.
fn drawn(pair: Pair) -> Verdicts {
    let tests = "name = \"tcp\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1MiB\"\n\
                 [[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"5 Gb/s\"";
    let lines = numbers::lines("a[1-8]", tests, |case| {
        let (gbps, lost) = pair(case);
        let gbps = gbps * (1.0 + 0.004 * Dice(8 ^ (case.id << 8)).normal());
        let operations = (gbps * 2e9 / 8.0 / case.cell.size.as_f64()) as u64;
        let bytes = case.cell.size * operations;
        let end = Measurement {
            elapsed: SLICE * 20,
            operations,
            bytes,
            moved: Some(bytes),
            cpu: SLICE * 10,
            ..Measurement::default()
        };
        let resent = (lost * bytes.as_f64() / 1500.0) as u64;
        let sample = Sample {
            responder: Some(Box::new(end.clone())),
            initiator: end,
            checked: Checked { verified: case.cell.size * 2, ..Checked::default() },
            // What is sent again is on the wire, too.
            from_counters: [
                ("tcp/RetransSegs".to_owned(), resent),
                ("netdev/tx_bytes".to_owned(), (bytes.as_f64() * 1.05) as u64 + resent * 1500),
            ]
            .into(),
            ..Sample::default()
        };
        let link = LinkRecord {
            transport: Carrier::Tcp,
            rate_gbps: Some(GigabitsPerSecond(25.0)),
            mtu: 1500,
            from_device: "eth0".into(),
            to_device: "eth0".into(),
            ..support::group::link()
        };
        (link, sample)
    });
    let path = Path::new("records.jsonl");
    draw(&parse(support::text(&lines).as_bytes(), path).unwrap(), path).unwrap().verdicts
}

fn is_of(case: &Case, host: &str) -> bool {
    case.flow.hosts().iter().any(|end| ***end == *host)
}

/// Lossy cases that the test's verdict notes, and the parts at which packets are lost.
fn noted(verdicts: &Verdicts) -> (usize, Vec<String>) {
    let own = verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::EveryCase).unwrap();
    assert_eq!(own.status, Status::Pass, "{}", own.reason);
    let lost = own.reason.iter().find(|reason| reason.id == Id::LostPackets);
    lost.map_or_else(Default::default, |lost| {
        let [cases, parts] = ["cases", "parts"].map(|field| lost.json(field));
        (serde_json::from_value(cases).unwrap(), serde_json::from_value(parts).unwrap())
    })
}

/// Senders count what is sent again, wherever it was lost.
#[test]
fn a_lossy_host_is_found_whether_or_not_it_is_slow() {
    let pairs: [(Pair, &[&str]); 4] = [
        (|case| if *case.flow.to.host == *"a5" { (10.0, 0.01) } else { (10.0, 0.0) }, &["host a5, receiving"]),
        (|case| if *case.flow.from.host == *"a5" { (10.0, 0.01) } else { (10.0, 0.0002) }, &["host a5, sending"]),
        (|case| if is_of(case, "a5") { (10.0, 0.002) } else { (10.0, 0.0) }, &["host a5"]),
        (|case| if is_of(case, "a5") { (6.5, 0.01) } else { (10.0, 0.0) }, &["host a5"]),
    ];
    for (pair, named) in pairs {
        assert_eq!(noted(&drawn(pair)).1, named);
    }
}

#[test]
fn a_host_that_loses_packets_and_is_slow_is_named_with_its_losses() {
    let pairs: [Pair; 3] = [
        |case| if is_of(case, "a5") { (6.5, 0.001) } else { (10.0, 0.0) },
        |case| if is_of(case, "a5") { (6.0, 0.01) } else { (10.0, 0.00015) },
        |case| if is_of(case, "a5") { (2.0, 0.05) } else { (10.0, 0.001) },
    ];
    for pair in pairs {
        let found = drawn(pair);
        assert_eq!(found.cases.contaminated, 0);
        let [part] = &found.localisation[0].suspects[..] else { panic!("{:?}", found.localisation[0].suspects) };
        assert_eq!(part.host(), Some("a5"), "{part:?}");
        assert!(part.meanwhile.as_deref().is_some_and(|words| words.contains('%')), "{part:?}");
        assert_ne!(found.exit_code, 0);
    }
}

#[test]
fn losses_that_do_not_explain_a_slow_host_are_not_named_with_it() {
    let pairs: [Pair; 2] = [
        // Everywhere alike.
        |case| if is_of(case, "a5") { (6.0, 0.002) } else { (10.0, 0.002) },
        // Even at a round trip of 1 ms a stream that loses so few reaches more.
        |case| if is_of(case, "a5") { (0.2, 0.0002) } else { (10.0, 0.0) },
    ];
    for pair in pairs {
        let found = drawn(pair);
        let [part] = &found.localisation[0].suspects[..] else { panic!("{:?}", found.localisation[0].suspects) };
        assert_eq!((part.host(), &part.meanwhile), (Some("a5"), &None), "{part:?}");
    }
}

#[test]
fn good_values_with_losses_pass_with_a_note() {
    let pairs: [(Pair, bool); 3] = [(|_| (10.0, 0.00005), false), (|_| (10.0, 0.0005), true), (|_| (10.0, 0.01), true)];
    for (pair, is_noted) in pairs {
        let found = drawn(pair);
        assert_eq!((found.status, found.exit_code), (Status::Pass, 0), "{}", found.sentence);
        let (cases, parts) = noted(&found);
        assert_eq!((cases > 0, parts), (is_noted, Vec::new()), "everywhere alike");
    }
}
