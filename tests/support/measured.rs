//! Made-up measurements: a link of 200 Gb/s at 98 % efficiency, 4 million messages a second, 1.8 µs, and noise.

use railgauge_made::Times;
use railgauge_model::{
    journal::event::{Case, Sample},
    plan::Plan,
};
use railgauge_wire::{
    measure::{Lane, Latency, Measurement, SLICE, SourcePort},
    step::Checked,
    terms::{TestMetric, Transport},
    unit::{Bytes, Nanoseconds, NanosecondsF64},
};

use super::Scenario;

pub use railgauge_made::Dice;

pub fn sample(scenario: &Scenario, plan: &Plan, case: &Case, ends: [usize; 2], repeat: u32) -> Sample {
    let mut dice = Dice(plan.seed ^ (scenario.seed << 40) ^ (case.id << 8) ^ u64::from(repeat));
    let slow_here = scenario.slow_at.is_none_or(|size| Bytes(size) == case.cell.size);
    let slow = slow_here
        && scenario.slow.is_some_and(|slow| ends.iter().any(|end| (slow..slow + scenario.slow_hosts).contains(end)));
    let used = |i: u32| case.cell.only.is_none_or(|only| only == i);
    let bad = |port: u16| match &scenario.bad_path {
        Some((a, b, ports)) => ends.contains(a) && ends.contains(b) && ports.contains(&port),
        None => false,
    };
    // Every queue pair has the flow label of its number, counted from 1.
    let shares: Vec<(u16, f64)> = (0..case.cell.qps)
        .map(|i| {
            (
                49153 + i as u16,
                if !used(i) {
                    0.0
                } else if bad(49153 + i as u16) {
                    0.5
                } else {
                    1.0
                },
            )
        })
        .collect();
    let crosses = case.flow.from.rail != case.flow.to.rail;
    let less = scenario.crossed.filter(|_| crosses).unwrap_or(1.0);
    let carried = less * shares.iter().map(|(_, share)| share).sum::<f64>()
        / (0..case.cell.qps).filter(|&i| used(i)).count() as f64;
    let flaps = scenario.flapping.is_some_and(|(host, rail)| ends.contains(&host) && case.flow.from.rail == rail);
    let chosen = |share: u64| case.id == (plan.seed * 31) % share && repeat == 0;
    let initiator = match case.cell.metric {
        TestMetric::Bandwidth | TestMetric::Compute => {
            let whole = bandwidth(scenario, case, (slow, carried), flaps && repeat == 1, &mut dice);
            let sum: f64 = shares.iter().map(|(_, share)| share).sum();
            let lane = |&(port, share): &(u16, f64)| Lane {
                bytes: Bytes((whole.bytes.as_f64() * share / sum) as u64),
                source_port: (case.cell.transport == Transport::Verbs).then_some(SourcePort::PredictedUdp(port)),
            };
            Measurement { lanes: shares.iter().map(lane).collect(), ..whole }
        }
        TestMetric::Latency | TestMetric::Step => latency(scenario, case, (slow, less), &mut dice),
    };
    let responder = (case.cell.transport == Transport::Tcp).then(|| {
        let elapsed = initiator.elapsed * 500 / 499;
        Box::new(Measurement { elapsed, cpu: initiator.cpu * 3 / 2, ..initiator.clone() })
    });
    let wrong = scenario.wrong && chosen(97);
    let mut sample = Sample {
        initiator,
        responder,
        checked: Checked {
            verified: case.cell.size * 2 * u64::from(case.cell.qps),
            wrong: if wrong { Bytes(8) } else { Bytes::ZERO },
            first_wrong: wrong.then_some(4096),
        },
        ..Sample::default()
    };
    if scenario.contaminated && chosen(41) {
        sample.to_counters = [("out_of_sequence".to_owned(), 1312), ("rx_prio3_pause".to_owned(), 90211)].into();
        sample.contaminated = vec!["the receiver's port carried 31 % more bytes than were sent".into()].into();
    }
    sample
}

/// Makes a sample one of so many operations, if it is one of latency.
pub fn with_operations(sample: &mut Sample, operations: u64) {
    let end = &mut sample.initiator;
    if let Some(latency) = &mut end.latency {
        // All of the same time: nothing else of the distribution is asked for.
        let time = latency.p50;
        let times = [&mut latency.min, &mut latency.p90, &mut latency.p99, &mut latency.p999, &mut latency.max];
        times.into_iter().for_each(|one| *one = time);
        (latency.samples, latency.mean, latency.stdev) = (operations, time.into(), NanosecondsF64(0.0));
        latency.histogram = vec![(time, operations)];
        end.elapsed = time * (2 * operations);
        end.bytes = end.bytes / end.operations * operations;
        end.operations = operations;
    }
}

fn bandwidth(
    scenario: &Scenario,
    case: &Case,
    (slow, carried): (bool, f64),
    flaps: bool,
    dice: &mut Dice,
) -> Measurement {
    let size = case.cell.size.as_f64();
    let (line, rate) = match (case.cell.transport, scenario.software) {
        (Transport::Tcp, _) => (22.0, 0.4e6 * f64::from(case.cell.qps)),
        (_, true) => (0.16, 3e3),
        (_, false) => (195.5, 4.0e6),
    };
    let variant = scenario.in_turn.filter(|_| &*case.test == "write-bw-tc104").unwrap_or(1.0);
    let wire = carried * variant * line * if slow && case.cell.transport == Transport::Verbs { 0.6 } else { 1.0 };
    let bits = 1.0 / (1.0 / wire + 1e9 / (rate * size * 8.0)) * (1.0 + 0.006 * dice.normal());
    let elapsed = Nanoseconds::from_secs(2);
    let mut slices: Vec<Bytes> = (0..elapsed / SLICE)
        .map(|_| Bytes((bits * SLICE.as_f64() / 8.0 * (1.0 + 0.004 * dice.normal())) as u64))
        .collect();
    if flaps {
        slices.iter_mut().skip(7).take(5).for_each(|slice| *slice = Bytes::ZERO);
    }
    let bytes = slices.iter().copied().sum::<Bytes>();
    let operations = (bytes.as_f64() / size) as u64;
    let cpu = if case.cell.transport == Transport::Tcp { elapsed * 9 / 10 } else { elapsed };
    Measurement {
        started: Nanoseconds(1),
        elapsed,
        operations,
        bytes,
        cpu,
        slices: slices.into(),
        latency: None,
        interval: None,
        ..Measurement::default()
    }
}

fn latency(scenario: &Scenario, case: &Case, (slow, less): (bool, f64), dice: &mut Dice) -> Measurement {
    let base = if scenario.software { 260_000.0 } else { 1_800.0 };
    let base = base / less * if slow { 1.35 } else { 1.0 } + case.cell.size.as_f64() / 25.0;
    let times = Times::drawn(dice, 4000, base);
    let at = |share: f64| Nanoseconds(times.at(share));
    let operations = times.sorted.len() as u64;
    // Half round trips, one after the other.
    let elapsed = Nanoseconds(2 * times.sorted.iter().sum::<u64>());
    Measurement {
        started: Nanoseconds(1),
        elapsed,
        operations,
        bytes: case.cell.size * operations,
        cpu: elapsed,
        slices: Vec::new().into(),
        latency: Some(Box::new(Latency {
            samples: operations,
            min: at(0.0),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
            mean: NanosecondsF64(times.mean),
            stdev: NanosecondsF64(times.stdev),
            timer: Nanoseconds(22),
            histogram: times.histogram.into_iter().map(|(edge, count)| (Nanoseconds(edge), count)).collect(),
        })),
        ..Measurement::default()
    }
}
