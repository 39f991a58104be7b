//! Numbers that nobody measured, in every field of a good journal: no report ends by them, and none passes with them.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::LazyLock,
};

use proptest::prelude::*;
use railgauge_analysis::{journal::parse, row::Row, status::Status};
use railgauge_frame as frame;
use railgauge_model::{
    journal::event::{Case, Event, Line, LinkRecord, Moment, Outcome, Sample, Together},
    plan,
    schedule::{Inventory, schedule},
};
use railgauge_report::text::Screen;
use railgauge_report::{draw, frame_rows, text};
use railgauge_wire::{
    measure::{Measurement, SLICE},
    step::Checked,
    terms::{Carrier, GpuPath, LinkLayer},
    unit::{Bytes, GigabitsPerSecond, Nanoseconds, NanosecondsI64},
};
use serde_json::Value;

use crate::support::{self, Scenario, sealed_within};

/// The farthest that a number may be.
const FARTHEST: &str = "4611686018427387904";

/// What stands in place of a number, as JSON.
const EXTREMES: &[&str] = &[
    "-9223372036854775808",
    "-1",
    "0",
    "1",
    "4294967295",
    "4294967296",
    "1000000000000000000",
    "4611686018427387904",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "-1e308",
    "5e-324",
    "1e999",
];

/// Places whose number may be another one, and which, and why that is no measurement of its own.
const FREE: &[(&str, &[&str], &str)] = &[
    ("/facts/", EXTREMES, "what a host is; of it only ceilings are computed"),
    ("/link/rate_gbps", EXTREMES, "the same"),
    ("/link/mtu", EXTREMES, "the same"),
    ("/gpu", EXTREMES, "the name of a part"),
    ("/offset", &["-1", "0", "1"], "clocks may be as near"),
    ("/cpu", &["0"], "it was not counted, and there is no value"),
    ("/cpu", &["4294967295", "4294967296"], "two threads may be busy all the time"),
    ("/responder/cpu", &["1"], "it may have slept"),
    ("/slices/", &["0", "1"], "an interval may have been quiet"),
    ("/responder/elapsed", &["4294967295", "4294967296"], "a longer window makes a lower value"),
];

/// A journal, its numbers and its rows.
struct Good {
    lines: Vec<Value>,
    /// Line and place of a number: of all that stand at the same place of an event one, and of lists the first and the last.
    numbers: Vec<(usize, String)>,
    rows: Vec<Row>,
}

impl Good {
    fn new(text: &str) -> Self {
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut seen = BTreeSet::new();
        let mut numbers = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let mut found = Vec::new();
            walk(line, "", "", &mut found);
            numbers
                .extend(found.into_iter().filter(|(kind, _)| seen.insert(kind.clone())).map(|(_, place)| (at, place)));
        }
        let (status, rows) = drawn(text).unwrap();
        assert_eq!(status, Status::Pass);
        Self { lines, numbers, rows }
    }

    /// The journal with something else in place of a number.
    fn with(&self, (line, place): &(usize, String), number: &str) -> String {
        let text = |(at, value): (usize, &Value)| {
            let mut value = value.clone();
            if at == *line {
                *value.pointer_mut(place).unwrap() = Value::String("@".into());
            }
            value.as_object_mut().unwrap().remove("sum");
            let within = if at == 0 { "" } else { self.lines[0]["run"].as_str().unwrap() };
            sealed_within(within, &serde_json::to_string(&value).unwrap().replace("\"@\"", number))
        };
        self.lines.iter().enumerate().map(text).collect()
    }

    /// What is wrong with the report of such a journal, if anything is.
    fn fault(&self, number: &(usize, String), extreme: &str) -> Option<String> {
        let free = |(place, numbers, _): &(&str, &[&str], &str)| number.1.contains(place) && numbers.contains(&extreme);
        let free = FREE.iter().any(free);
        let text = self.with(number, extreme);
        let said = |what: &str| Some(format!("{extreme} at {} of line {}: {what}", number.1, number.0 + 1));
        match catch_unwind(AssertUnwindSafe(|| drawn(&text))) {
            Err(_) => said("a panic"),
            Ok(Some((Status::Pass, rows))) if rows != self.rows && !free => {
                let (new, old) = rows.iter().zip(&self.rows).find(|(new, old)| new != old).unzip();
                said(&format!("a pass with\n{new:?}\nin place of\n{old:?}"))
            }
            Ok(_) => None,
        }
    }
}

/// The numbers below a value: their kind, which is the same for all elements of a list but the last, and their place.
fn walk(value: &Value, kind: &str, place: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Number(_) => found.push((kind.to_owned(), place.to_owned())),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let last = if at + 1 == items.len() { "last" } else { "some" };
                walk(item, &format!("{kind}/{last}"), &format!("{place}/{at}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, item) in fields {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                walk(item, &format!("{kind}/{name}"), &format!("{place}/{escaped}"), found);
            }
        }
        _ => {}
    }
}

/// Status and rows of a journal; `None` where there is no report.
fn drawn(journal: &str) -> Option<(Status, Vec<Row>)> {
    let path = Path::new("records.jsonl");
    let journal = parse(journal.as_bytes(), path).ok()?;
    let drawn = draw(&journal, path).ok()?;
    // The page and the summary come of the view: drawing them must not end either.
    let _ = text::summary(&drawn.view, path, &Screen::PLAIN);
    let rows = frame_rows(&journal, path).unwrap();
    frame::frame(&rows).unwrap();
    Some((drawn.verdicts.status, rows))
}

/// Pairs over verbs and TCP, and their hosts' clocks and counters.
static PAIRS: LazyLock<Good> = LazyLock::new(|| {
    let mut lines = Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(2, 1) }.lines();
    for line in &mut lines {
        match &mut line.event {
            // Two hosts are too few for demands on peers.
            Event::Started { resolved, .. } => resolved.tests.iter_mut().for_each(|test| test.expect.truncate(1)),
            Event::HostUp { wall, .. } => *wall = Some(NanosecondsI64(1_000)),
            Event::Outcome(outcome) => {
                let sample = outcome.result.as_mut().unwrap();
                sample.waited = Some(Nanoseconds::from_millis(2_600));
                sample.initiator.interval = Some(Box::new(0.01));
                let warm_up = sample.initiator.operations / 4;
                let end = &mut sample.initiator;
                let moved = end.bytes + end.bytes / end.operations * warm_up;
                end.moved = Some(moved);
                // Over verbs who answers has the warm-up in its count.
                let operations = end.operations + warm_up;
                let answers = Measurement { elapsed: end.elapsed, operations, bytes: moved, ..Measurement::default() };
                sample.responder = sample.responder.take().or_else(|| end.latency.is_some().then(|| Box::new(answers)));
                sample.from_counters = [("netdev/tx_packets".to_owned(), 5)].into();
                sample.to_counters = [("rx_prio3_pause".to_owned(), 5)].into();
            }
            _ => {}
        }
    }
    Good::new(&support::text(&lines))
});

/// A collective.
static GROUP: LazyLock<Good> = LazyLock::new(|| {
    let plan =
        "op = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\nranks_per_host = 2\nsizes = \"64MiB\"";
    Good::new(&run(plan, |case| (support::group::link(), support::group::sample(case, 300_000))))
});

/// Flows at once, and both directions.
static ROUND: LazyLock<Good> = LazyLock::new(|| {
    let plan = "op = \"write\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\npattern = \"incast\"\nwarm_up = \"0s\"\n\
                [[test]]\nname = \"both\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\nbidirectional = true";
    Good::new(&run(plan, |case| {
        let at = 7_000_000_000_000;
        let bytes = 20 * 6250 * 65536;
        let end = Measurement {
            started: Nanoseconds(at),
            elapsed: SLICE * 20,
            operations: bytes / 65536,
            bytes: Bytes(bytes),
            moved: Some(Bytes(bytes)),
            cpu: SLICE * 10,
            slices: vec![Bytes(bytes / 20); 20].into(),
            ..Measurement::default()
        };
        let moment = Moment { at: Nanoseconds(at), error: Nanoseconds(1_000) };
        let together = Together { start: Nanoseconds::from_secs(1_795_000_000), from: moment, to: moment };
        let both = &*case.test == "both";
        let sample = Sample {
            responder: both.then(|| Box::new(end.clone())),
            initiator: end,
            checked: Checked { verified: Bytes(2 * 65536), ..Checked::default() },
            offset: both.then(|| Box::new(NanosecondsI64(5_000))),
            together: (!both).then(|| together.into()),
            ..Sample::default()
        };
        (link(), sample)
    }))
});

fn link() -> LinkRecord {
    LinkRecord {
        transport: Carrier::VerbsRc,
        link_layer: LinkLayer::RoceV2,
        gpu_path: GpuPath::None,
        software: false,
        from_device: "mlx5_0".into(),
        to_device: "mlx5_0".into(),
        rate_gbps: Some(GigabitsPerSecond(400.0)),
        mtu: 4096,
        write_order: None,
        settings: [("gpu".to_owned(), "1".to_owned())].into(),
    }
}

fn run(tests: &str, measured: impl Fn(&Case) -> (LinkRecord, Sample)) -> String {
    support::text(&lines("a[1-4]", tests, measured))
}

/// The journal of a run of some tests over these hosts.
pub(crate) fn lines(hosts: &str, tests: &str, measured: impl Fn(&Case) -> (LinkRecord, Sample)) -> Vec<Line> {
    let text =
        format!("name = \"p\"\nlaunch = {{ via = \"ssh\" }}\nhosts = {{ names = [\"{hosts}\"] }}\n[[test]]\n{tests}\n");
    let plan = plan::parse("p.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    let at = "2026-11-21T02:00:00.000Z".to_owned();
    let hosts = support::group::hosts(&plan).into_iter();
    let up = hosts.map(|(host, up)| Event::HostUp {
        host,
        facts: Box::new(up.facts),
        clock: Some((NanosecondsI64(-3), Nanoseconds(5))),
        wall: Some(NanosecondsI64(1)),
    });
    let outcome = |case: &Case| {
        let (link, sample) = measured(case);
        let (link, result, started_at) = (Some(link), Ok(sample), at.as_str().into());
        Event::Outcome(Box::new(Outcome { case: case.id, repeat: 0, started_at, link, link_line: None, result }))
    };
    let started = Event::Started {
        run_id: "run".into(),
        plan: "p".into(),
        plan_hash: String::new(),
        resolved: Box::new(plan.clone()),
        version: "0.1.0".into(),
        controller: String::new(),
        launcher: String::new(),
    };
    let events = [started].into_iter().chain(up).chain([Event::Planned { cases: cases.clone() }]);
    let events = events.chain(cases.iter().map(outcome)).chain([Event::Finished]);
    events.map(|event| Line { at: at.clone(), event }).collect()
}

#[test]
#[ignore = "slow: all of them, two minutes; the property takes some"]
fn no_number_at_all_ends_a_report_or_passes() {
    for good in [&*PAIRS, &*GROUP, &*ROUND] {
        let all = good.numbers.iter().flat_map(|number| EXTREMES.iter().map(move |extreme| (number, extreme)));
        let faults: Vec<String> = all.filter_map(|(number, extreme)| good.fault(number, extreme)).collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

#[test]
fn no_number_that_all_hosts_tell_ends_a_report() {
    for good in [&*PAIRS, &*GROUP, &*ROUND] {
        for (line, place) in good.numbers.iter().filter(|(_, place)| place.contains("/result/Ok/")) {
            let mut all = good.with(&(*line, place.clone()), FARTHEST);
            for (other, value) in good.lines.iter().enumerate() {
                let line = all.lines().nth(other).unwrap().to_owned();
                if value.pointer(place).is_some_and(Value::is_number) {
                    let spoiled = good.with(&(other, place.clone()), FARTHEST);
                    all = all.replace(&line, spoiled.lines().nth(other).unwrap());
                }
            }
            assert!(catch_unwind(|| drawn(&all)).is_ok(), "{place}");
        }
    }
}

proptest! {
    /// `PROPTEST_CASES=5000` for more of them.
    #[test]
    fn no_number_ends_a_report_or_passes(
        good in 0..3_usize, number in any::<prop::sample::Index>(), extreme in 0..EXTREMES.len()
    ) {
        let good: &Good = [&PAIRS, &GROUP, &ROUND][good];
        prop_assert_eq!(good.fault(number.get(&good.numbers), EXTREMES[extreme]), None);
    }
}
