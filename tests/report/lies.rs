//! Lies about counts. The truth of each journal breaks its limit; each lie changes what one end, one rank or one line says so that the
//! limit would be kept. None passes.

use std::path::Path;

use railgauge_analysis::journal::parse;
use railgauge_model::journal::event::{Case, Event, Line, LinkRecord, Sample};
use railgauge_report::draw;
use railgauge_wire::{
    measure::{Lane, Latency, Measurement, SLICE},
    step::Checked,
    terms::{Carrier, Op, TestMetric, Transport},
    unit::{Bytes, GigabitsPerSecond, Nanoseconds, NanosecondsF64, NanosecondsI64},
};

use crate::{numbers, support};

/// Tests with a limit that values of `honest(1)` break and those of `honest(2)` keep.
const TRUTHS: [(&str, &str); 9] = [
    (
        "stream",
        "op = \"send\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\nqps = 2\n\
                [[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"13 Gb/s\"",
    ),
    (
        "rate",
        "op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\n\
              [[test.expect]]\nmetric = \"message_rate\"\nat_least = \"0.0248 Mmsg/s\"",
    ),
    (
        "both",
        "op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\nbidirectional = true\n\
              [[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"26 Gb/s\"",
    ),
    (
        "both-verbs",
        "op = \"send\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\nbidirectional = true\n\
              [[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"26 Gb/s\"",
    ),
    (
        "answers",
        "op = \"send\"\nmetric = \"latency\"\ntransport = \"tcp\"\nsizes = \"64\"\n\
                 [[test.expect]]\nmetric = \"latency_p50\"\nat_most = \"38 us\"",
    ),
    (
        "reads",
        "op = \"read\"\nmetric = \"latency\"\ntransport = \"tcp\"\nsizes = \"64\"\n\
               [[test.expect]]\nmetric = \"latency_p50\"\nat_most = \"38 us\"",
    ),
    (
        "verbs",
        "op = \"send\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\n\
               [[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"13 Gb/s\"",
    ),
    (
        "written",
        "op = \"write\"\nmetric = \"latency\"\nsizes = \"64\"\n\
                 [[test.expect]]\nmetric = \"latency_p50\"\nat_most = \"38 us\"",
    ),
    (
        "group",
        "op = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\nranks_per_host = 2\nsizes = \"64MiB\"\n\
               [[test.expect]]\nmetric = \"algbw\"\nat_least = \"290 GB/s\"",
    ),
];

type Lie = fn(&mut Sample, f64);

/// Of which truth, what is changed, and how; each by several factors.
const LIES: [(&str, &str, Lie); 52] = [
    ("stream", "the sender counts more", |s, f| more(&mut s.initiator, f)),
    ("stream", "the receiver counts more", |s, f| more(there(s), f)),
    ("stream", "the sender was sooner", |s, f| sooner(&mut s.initiator, f)),
    ("stream", "the receiver was sooner", |s, f| sooner(there(s), f)),
    ("stream", "the sender counts more bytes", |s, f| s.initiator.bytes = by(s.initiator.bytes, f)),
    ("stream", "the sender has more in its lanes", |s, f| {
        s.initiator.lanes.iter_mut().for_each(|l| l.bytes = by(l.bytes, f))
    }),
    ("stream", "the sender has one lane more", |s, _| s.initiator.lanes.push(Lane::default())),
    ("stream", "the receiver counts nothing", |s, f| {
        more(&mut s.initiator, f);
        s.responder = None;
    }),
    ("rate", "the sender counts more operations", |s, f| s.initiator.operations = times(s.initiator.operations, f)),
    ("rate", "the sender counts more", |s, f| more(&mut s.initiator, f)),
    ("rate", "the receiver counts more operations", |s, f| there(s).operations = times(there(s).operations, f)),
    ("rate", "the receiver counts more", |s, f| more(there(s), f)),
    ("both", "the initiator counts more", |s, f| more(&mut s.initiator, 2.0 * f)),
    ("both", "the responder counts more", |s, f| more(there(s), 2.0 * f)),
    ("both", "the initiator was sooner", |s, f| sooner(&mut s.initiator, f)),
    ("both", "the responder was sooner", |s, f| sooner(there(s), f)),
    ("both", "the initiator counts more both ways", |s, f| {
        more(&mut s.initiator, 2.0 * f);
        s.initiator.received = s.initiator.received.map(|bytes| by(bytes, f));
    }),
    ("both", "the responder counts more both ways", |s, f| {
        more(there(s), 2.0 * f);
        there(s).received = there(s).received.map(|bytes| by(bytes, f));
    }),
    ("both", "the initiator counts more and received nothing", |s, f| {
        more(&mut s.initiator, 2.0 * f);
        s.initiator.received = None;
    }),
    ("both", "the responder counts more and received nothing", |s, f| {
        more(there(s), 2.0 * f);
        there(s).received = None;
    }),
    ("both", "the initiator counts bytes of two operations", |s, f| s.initiator.bytes = by(s.initiator.bytes, 2.0 * f)),
    ("both-verbs", "the initiator counts more", |s, f| more(&mut s.initiator, 2.0 * f)),
    ("both-verbs", "the responder counts more", |s, f| more(there(s), 2.0 * f)),
    ("both-verbs", "the initiator counts more in its window", |s, f| {
        let moved = s.initiator.moved;
        more(&mut s.initiator, 2.0 * f);
        s.initiator.moved = moved;
    }),
    ("both-verbs", "the responder counts more and says nothing of all", |s, f| {
        more(there(s), 2.0 * f);
        there(s).moved = None;
    }),
    ("both-verbs", "the initiator was sooner", |s, f| sooner(&mut s.initiator, f)),
    ("answers", "more operations in the same time", often),
    ("answers", "more operations, and all of them moved", |s, f| {
        often(s, f);
        s.initiator.moved = Some(s.initiator.bytes);
    }),
    ("answers", "shorter times in a shorter window", |s, f| sooner(&mut s.initiator, f)),
    ("answers", "shorter times in the same window", |s, f| shorter(latency(s), f)),
    ("answers", "a smaller median", |s, f| latency(s).p50 = Nanoseconds(times(latency(s).p50.0, 1.0 / f))),
    ("answers", "fewer operations than times", |s, f| s.initiator.operations = times(s.initiator.operations, 1.0 / f)),
    ("answers", "the peer answered more", |s, f| {
        often(s, f);
        there(s).operations += 1;
    }),
    ("answers", "the peer says nothing", |s, f| {
        often(s, f);
        s.responder = None;
    }),
    ("reads", "more operations in the same time", often),
    ("reads", "shorter times in a shorter window", |s, f| sooner(&mut s.initiator, f)),
    ("verbs", "the sender counts more", |s, f| more(&mut s.initiator, f)),
    ("verbs", "the receiver counts more", |s, f| more(there(s), f)),
    ("verbs", "the sender was sooner", |s, f| sooner(&mut s.initiator, f)),
    ("verbs", "the receiver counts nothing", |s, f| {
        more(&mut s.initiator, f);
        s.responder = None;
    }),
    ("written", "more operations in the same time", often),
    ("written", "more operations, and all of them moved", |s, f| {
        often(s, f);
        s.initiator.moved = s.initiator.moved.map(|bytes| by(bytes, f));
    }),
    ("written", "more operations, and the peer says nothing", |s, f| {
        often(s, f);
        s.initiator.moved = s.initiator.moved.map(|bytes| by(bytes, f));
        s.responder = None;
    }),
    ("written", "shorter times in a shorter window", |s, f| sooner(&mut s.initiator, f)),
    ("group", "a rank has larger batches", |s, f| {
        batches(s, f);
        s.ranks[1].operations = s.initiator.operations;
    }),
    ("group", "all ranks but one have larger batches", |s, f| {
        batches(s, f);
        let operations = s.initiator.operations;
        s.ranks.iter_mut().skip(1).for_each(|rank| rank.operations = operations);
    }),
    ("group", "the whole has larger batches", batches),
    ("group", "a rank counts more operations", |s, f| s.ranks[1].operations = times(s.ranks[1].operations, f)),
    ("group", "a shorter window", |s, f| s.initiator.elapsed = Nanoseconds(times(s.initiator.elapsed.0, 1.0 / f))),
    ("group", "shorter times", |s, f| shorter(latency(s), f)),
    ("group", "a rank is missing", |s, f| {
        batches(s, f);
        s.ranks.truncate(7);
    }),
    ("group", "a rank verified for another", |s, f| {
        batches(s, f);
        s.ranks[0].checked.verified = Bytes::ZERO;
    }),
];

fn times(count: u64, factor: f64) -> u64 {
    (count as f64 * factor) as u64
}

fn by(bytes: Bytes, factor: f64) -> Bytes {
    Bytes(times(bytes.0, factor))
}

fn there(sample: &mut Sample) -> &mut Measurement {
    sample.responder.as_deref_mut().unwrap()
}

fn latency(sample: &mut Sample) -> &mut Latency {
    sample.initiator.latency.as_deref_mut().unwrap()
}

/// More in the same time, in every account of one end.
fn more(end: &mut Measurement, factor: f64) {
    let size = end.bytes / end.operations;
    end.operations = times(end.operations, factor);
    end.bytes = size * end.operations;
    let lanes = end.lanes.len().max(1) as u64;
    end.lanes.iter_mut().for_each(|lane| lane.bytes = end.bytes / lanes);
    end.slices.iter_mut().for_each(|slice| *slice = by(*slice, factor));
    end.moved = end.moved.map(|_| end.bytes);
}

/// The same in less time.
fn sooner(end: &mut Measurement, factor: f64) {
    end.elapsed = Nanoseconds(times(end.elapsed.0, 1.0 / factor));
    end.slices.clear();
    end.latency.iter_mut().for_each(|latency| shorter(latency, factor));
}

fn shorter(latency: &mut Latency, factor: f64) {
    *latency = of_one_time(Nanoseconds(times(latency.p50.0, 1.0 / factor)), latency.samples);
}

/// More operations, each in less time.
fn often(sample: &mut Sample, factor: f64) {
    let latency =
        of_one_time(Nanoseconds(times(latency(sample).p50.0, 1.0 / factor)), times(latency(sample).samples, factor));
    let end = &mut sample.initiator;
    end.bytes = end.bytes / end.operations * latency.samples;
    end.operations = latency.samples;
    end.latency = Some(Box::new(latency));
}

/// A collective with more operations in each batch.
fn batches(sample: &mut Sample, factor: f64) {
    let factor = factor.ceil() as u64;
    let end = &mut sample.initiator;
    end.bytes = end.bytes * factor;
    end.operations *= factor;
    let times = end.latency.as_deref_mut().unwrap();
    *times = of_one_time(times.p50 / factor, times.samples);
    let p50 = times.p50;
    sample.ranks.iter_mut().for_each(|rank| (rank.p50, rank.max) = (p50, p50));
}

fn of_one_time(time: Nanoseconds, samples: u64) -> Latency {
    Latency {
        samples,
        min: time,
        p50: time,
        p90: time,
        p99: time,
        p999: time,
        max: time,
        mean: NanosecondsF64(time.as_f64()),
        histogram: vec![(time, samples)],
        ..Latency::default()
    }
}

/// What the hosts of a case would have measured, `speed` times as fast as 10 Gb/s or 50 µs.
fn honest(case: &Case, speed: u64) -> Sample {
    let cell = &case.cell;
    if !case.flow.members.is_empty() {
        return support::group::sample(case, 300_000 / speed);
    }
    let elapsed = SLICE * 20;
    let warm_up = 100;
    let end = match cell.metric {
        TestMetric::Latency => {
            let time = Nanoseconds(50_000 / speed);
            let trips = if cell.op == Op::Read { 1 } else { 2 };
            let operations = elapsed / time / trips;
            let latency = Some(Box::new(of_one_time(time, operations)));
            Measurement { operations, latency, ..Measurement::default() }
        }
        _ => Measurement { operations: speed * 2_500_000_000 / cell.size.0, ..Measurement::default() },
    };
    let bytes = cell.size * end.operations;
    let lanes = u64::from(cell.qps);
    let streams = end.latency.is_none();
    let of_lane = Lane { bytes: bytes / lanes, source_port: None };
    let end = Measurement {
        started: Nanoseconds(7_000_000_000),
        elapsed,
        bytes,
        cpu: elapsed / 2,
        moved: Some(bytes + cell.size * warm_up),
        lanes: if streams { vec![of_lane; lanes as usize].into() } else { Vec::new().into() },
        slices: if streams { vec![bytes / 20; 20].into() } else { Vec::new().into() },
        ..end
    };
    let (both, verbs) = (case.test.starts_with("both"), cell.transport == Transport::Verbs);
    let end = Measurement { received: if verbs { end.moved } else { Some(bytes) }.filter(|_| both), ..end };
    // Over verbs who answers has the warm-up in its count.
    let more = if verbs && !streams { warm_up } else { 0 };
    let operations = end.operations + more;
    let there = Measurement {
        operations,
        bytes: cell.size * operations,
        latency: None,
        lanes: Vec::new().into(),
        ..end.clone()
    };
    Sample {
        responder: Some(Box::new(there)),
        initiator: end,
        checked: Checked { verified: cell.size * 2 * lanes, ..Checked::default() },
        waited: Some(elapsed + SLICE),
        offset: both.then(|| Box::new(NanosecondsI64(0))),
        ..Sample::default()
    }
}

fn link(case: &Case) -> LinkRecord {
    let tcp = case.cell.transport == Transport::Tcp;
    match case.flow.members.is_empty() {
        true => LinkRecord {
            transport: if tcp { Carrier::Tcp } else { Carrier::VerbsRc },
            rate_gbps: Some(GigabitsPerSecond(400.0)),
            mtu: if tcp { 1500 } else { 4096 },
            ..support::group::link()
        },
        false => support::group::link(),
    }
}

fn lines(truth: &str, speed: u64, lie: impl Fn(&mut Sample)) -> Vec<Line> {
    let (name, keys) = TRUTHS.iter().find(|(name, _)| *name == truth).unwrap();
    numbers::lines("a[1-4]", &format!("name = \"{name}\"\n{keys}"), |case| {
        let mut sample = honest(case, speed);
        lie(&mut sample);
        (link(case), sample)
    })
}

fn exit_code(lines: &[Line]) -> u8 {
    let path = Path::new("records.jsonl");
    let journal = parse(support::text(lines).as_bytes(), path).unwrap();
    // What belongs to no plan is refused.
    draw(&journal, path).map_or(4, |drawn| drawn.verdicts.exit_code)
}

#[test]
fn no_lie_about_a_count_turns_a_fail_into_a_pass() {
    for (truth, _) in TRUTHS {
        assert_eq!([1, 2].map(|speed| exit_code(&lines(truth, speed, |_| ()))), [1, 0], "{truth}");
    }
    let mut dice = support::Dice(39);
    let (mut tried, mut believed) = (0, Vec::new());
    for (truth, what, lie) in LIES {
        for _ in 0..2 {
            let factor = 1.45 + dice.normal().abs().min(3.0);
            tried += 1;
            if exit_code(&lines(truth, 1, |sample| lie(sample, factor))) == 0 {
                believed.push(format!("{truth}: {what} ({factor:.2})"));
            }
        }
    }
    assert!(tried >= 60 && believed.is_empty(), "{tried} lies, believed: {believed:#?}");
}

#[test]
fn no_second_outcome_of_a_case_is_taken_for_the_first() {
    for repeat in [0, 1, 7] {
        let (mut slow, fast) = (lines("stream", 1, |_| ()), lines("stream", 2, |_| ()));
        let end = slow.len() - 1;
        let again = fast.into_iter().filter(|line| matches!(line.event, Event::Outcome(_))).map(|mut line| {
            if let Event::Outcome(outcome) = &mut line.event {
                outcome.repeat = repeat;
            }
            line
        });
        slow.splice(end..end, again);
        assert_ne!(exit_code(&slow), 0, "repeat {repeat}");
    }
}
