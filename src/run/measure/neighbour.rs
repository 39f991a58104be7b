//! Traffic alongside a flow between its two hosts: TCP connections of the agents over the interfaces of the same NICs, from before the
//! flow's window to after it. The analysis reports its rate in the window; this module only ensures that it ran.

use std::time::Duration;

use railgauge_model::schedule::devices::devices;
use railgauge_model::{
    journal::event::{Neighbour, Together},
    plan::{
        model::{Beside, Host, RateLimit, Test},
        per_end::PerEnd,
    },
    schedule::{AFTER, BEFORE, Cell, Flow, Port},
};
use railgauge_wire::{
    Bytes, Failure, GigabitsPerSecond, HostFacts, Kind, Knobs, Measurement, Memory, Nanoseconds, NanosecondsI64, Op,
    Service, Stage, TestMetric, Transport, Window, facts::port_name, measure::SLICE, remedy,
};

use super::super::{
    failures::host_of,
    links::{self, Held, Link, Wanted},
};
use super::{
    case::{HostAgent, PairCase},
    steps::{self, Timed},
};

/// Largest message: that of iperf3's TCP streams.
const LARGEST: Bytes = Bytes::from_kib(128);
/// Smallest message of rate-limited connections.
const SMALLEST: Bytes = Bytes::from_kib(1);
/// A rate-limited connection sends at once what it may send in this time.
const AT_ONCE: Nanoseconds = Nanoseconds::from_millis(10);

struct Direction {
    opposite: bool,
    link: Link,
    held: Held,
}

pub(super) struct Neighbours {
    test: Test,
    cell: Cell,
    rate: Option<GigabitsPerSecond>,
    directions: Vec<Direction>,
}

/// Opens the connections that a case wants; `None` where it wants none.
///
/// # Errors
/// A NIC has no interface for TCP, or the hosts cannot be joined over it. All directions are closed then.
pub(super) async fn open(case: &PairCase) -> Result<Option<Neighbours>, Failure> {
    let (Some(flows), Some(beside)) = (case.case.cell.neighbours, &case.test().beside) else { return Ok(None) };
    if beside.command.is_some() {
        return Ok(None);
    }
    let (test, cell) = (traffic(case.test()), cell(beside, flows));
    let flow = &case.case.flow;
    let (from, from_port) = end(case, &flow.from, &case.from)?;
    let (to, to_port) = end(case, &flow.to, &case.to)?;
    let hosts = [from, to];
    let (same, opposite) = beside.direction.ways();
    // A read brings its bytes to the initiator.
    let pulls = case.case.cell.op.pulls();
    let (forth, back) = if pulls { (opposite, same) } else { (same, opposite) };
    let mut directions = Vec::new();
    for against in [false, true].into_iter().filter(|against| if *against { back } else { forth }) {
        let (ports, agents) = match against {
            false => ((&from_port, &to_port), (&case.from, &case.to)),
            true => ((&to_port, &from_port), (&case.to, &case.from)),
        };
        let flow = Flow::pair(ports.0.clone(), ports.1.clone());
        let wanted = Wanted {
            hosts: &hosts,
            test: &test,
            flow: &flow,
            qps: cell.qps,
            max_size: cell.size,
            id: links::fresh_id(),
            token: links::token()?,
            rides_out: false,
        };
        let link = links::open(wanted, (&agents.0.0, &agents.0.1), (&agents.1.0, &agents.1.1)).await.map_err(named)?;
        let held = Held::new(&link.from, &link.to, link.id);
        directions.push(Direction { opposite: against, link, held });
    }
    Ok(Some(Neighbours { test, cell, rate: beside.rate, directions }))
}

fn traffic(test: &Test) -> Test {
    let window = match test.window {
        Window::Duration(time) => time,
        Window::Iterations(_) | Window::Adaptive { .. } => Nanoseconds::ZERO,
    };
    Test {
        op: Op::Write,
        metric: TestMetric::Bandwidth,
        transport: Transport::Tcp,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        gpu_path: None,
        gpus: PerEnd::default(),
        gpu_distance: None,
        rate_limit: None,
        threads: 1,
        bidirectional: false,
        verify: false,
        knobs: Knobs::default(),
        window: Window::Duration(window.saturating_add((BEFORE + AFTER).into())),
        ..test.clone()
    }
}

fn cell(beside: &Beside, flows: u32) -> Cell {
    Cell {
        op: Op::Write,
        metric: TestMetric::Bandwidth,
        transport: Transport::Tcp,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        size: message(beside.rate, flows),
        qps: flows,
        only: None,
        neighbours: None,
        applied: None,
        manner: None,
    }
}

/// Small for rate-limited connections, so that they send evenly.
fn message(rate: Option<GigabitsPerSecond>, flows: u32) -> Bytes {
    let Some(rate) = rate else { return LARGEST };
    // Gb/s are bits per nanosecond.
    let most = Bytes((rate.0 / f64::from(flows.max(1)) * AT_ONCE.as_f64() / 8.0) as u64);
    let mut size = LARGEST;
    while size > most && size > SMALLEST {
        size = Bytes(size.0 / 2);
    }
    size
}

/// A host whose only interface is that of the NIC at this end of the flow, and that port.
fn end(case: &PairCase, port: &Port, (_, facts): &HostAgent) -> Result<(Host, Port), Failure> {
    let host = host_of(&case.plan.hosts, &port.host)?;
    if case.case.cell.transport == Transport::Tcp {
        return Ok((host.clone(), port.clone()));
    }
    let interface = interface(host, facts, port)?;
    Ok((Host { tcp: vec![interface], ..host.clone() }, Port { rail: 0, ..port.clone() }))
}

fn interface(host: &Host, facts: &HostFacts, port: &Port) -> Result<String, Failure> {
    let all = devices(host, Some(facts), Transport::Verbs);
    let wrong = |cause: String| {
        Failure::new(Stage::Open, Kind::Configuration, cause).at(&host.name).remedy(remedy::NAME_INTERFACE)
    };
    let Some(name) = all.get(port.rail as usize) else {
        return Err(wrong(format!("the background traffic has no NIC: rail {} does not exist there", port.rail)));
    };
    let (device, number) = port_name(name);
    let found = facts.rdma.iter().find(|known| known.name == device);
    let found = found.and_then(|known| known.ports.iter().find(|port| port.number == number.unwrap_or(1)));
    found
        .and_then(|port| port.netdev.clone())
        .ok_or_else(|| wrong(format!("the background traffic cannot use TCP: no network interface of {name} is known")))
}

fn named(failure: Failure) -> Failure {
    let cause = format!("the background traffic: {}", failure.cause);
    Failure { cause, ..failure }
}

impl Neighbours {
    /// Runs all of it from before the planned start until the flow must be over. `wait` is the time until the start.
    pub(super) async fn run(&self, together: Together, wait: Duration) -> Result<Vec<Neighbour>, Failure> {
        let mut running = Vec::new();
        for Direction { opposite, link, .. } in &self.directions {
            let moment = if *opposite { together.to } else { together.from };
            let start = moment.at.saturating_sub(BEFORE.into());
            running.push(async move {
                steps::arm(link, &self.test, &self.cell).await.map_err(named)?;
                let limit = self.rate.map(RateLimit::Rate);
                let wait = wait.saturating_sub(BEFORE);
                let timed = steps::timed(link, &self.test, &self.cell, Some((start, wait)), limit).await;
                let Timed { initiator, responder, .. } = match timed {
                    Err(failure) => return Err(named(steps::attribute(failure, link).await)),
                    Ok(timed) => timed,
                };
                Ok(Neighbour {
                    opposite: *opposite,
                    flows: self.cell.qps,
                    from_device: link.record.from_device.clone(),
                    to_device: link.record.to_device.clone(),
                    sender: initiator,
                    receiver: responder.map(|end| *end).filter(|end| !end.elapsed.is_zero() && end.operations > 0),
                })
            });
        }
        let mut running = running.into_iter();
        match (running.next(), running.next()) {
            (Some(one), Some(other)) => {
                let (one, other) = tokio::join!(one, other);
                Ok(vec![one?, other?])
            }
            (Some(one), None) => Ok(vec![one.await?]),
            _ => Ok(Vec::new()),
        }
    }

    /// Whether one of the directions ran during the flow as the plan wants it.
    ///
    /// # Errors
    /// As [`covered`].
    pub(super) fn covered(&self, flow: &Measurement, together: &Together, beside: &Neighbour) -> Result<(), Failure> {
        covered(flow, together, beside, self.rate)
    }

    /// Closes all connections, and waits for that: the next cell must not meet them.
    pub(super) async fn close(self) {
        for direction in self.directions {
            direction.held.close().await;
        }
    }
}

const ENOUGH: f64 = 0.8;
/// Unlimited traffic may leave one slice in this many empty. A stream that lost its last segments retransmits after 200 ms at the earliest
/// (Linux, TCP_RTO_MIN), which leaves two or three slices empty.
const EMPTY_ONE_IN: u64 = 3;

/// Whether traffic of one direction ran during all of a flow's window, by the clocks of its sender and receiver.
///
/// Rate-limited traffic is judged by its bytes in the whole window: its messages may leave slices empty. Unlimited traffic must have
/// carried something in at least two of three full slices of the window.
///
/// # Errors
/// It began late, stopped early, or moved too little.
fn covered(
    flow: &Measurement,
    together: &Together,
    beside: &Neighbour,
    rate: Option<GigabitsPerSecond>,
) -> Result<(), Failure> {
    let (sender, receiver) = if beside.opposite { (together.to, together.from) } else { (together.from, together.to) };
    let begin = flow.started.saturating_since(together.from.at);
    let on = |at: Nanoseconds, offset: NanosecondsI64| at.saturating_add_signed(offset);
    let (from, until) = (on(sender.at, begin), on(sender.at, begin.later(flow.elapsed)));
    let ended = beside.sender.started.saturating_add(beside.sender.elapsed);
    let way = if beside.opposite { " against it" } else { "" };
    let wrong = |what: String, remedy| {
        let cause = format!("the background traffic{way} {what}, so it was not measured with it");
        Err(Failure::new(Stage::Measure, Kind::Internal, cause).remedy(remedy))
    };
    if beside.sender.started > from {
        let late = (beside.sender.started - from).milliseconds();
        return wrong(format!("began {late} ms after its window"), remedy::MEASURE_LONGER);
    }
    if ended < until {
        let early = (until - ended).milliseconds();
        return wrong(format!("ended {early} ms before its window did"), remedy::MEASURE_LONGER);
    }
    let (from, until) = (on(receiver.at, begin), on(receiver.at, begin.later(flow.elapsed)));
    let moved = beside.receiver.as_ref().map_or(0.0, |end| end.bytes_within(from, until));
    if moved <= 0.0 {
        return wrong("carried nothing in its window".to_owned(), remedy::LOWER_BESIDE);
    }
    if let Some(GigabitsPerSecond(wanted)) = rate {
        // Bits per nanosecond are Gb/s.
        let gbps = moved * 8.0 / until.saturating_sub(from).max(Nanoseconds(1)).as_f64();
        let digits = (2.0 - wanted.log10().floor()).clamp(0.0, 9.0) as usize;
        return match gbps < wanted * ENOUGH {
            true => wrong(format!("moved {gbps:.digits$} of {wanted} Gb/s"), remedy::LOWER_BESIDE),
            false => Ok(()),
        };
    }
    let (empty, all) = beside.receiver.as_ref().map_or((0, 0), |end| empty_slices(end, from, until));
    if empty * EMPTY_ONE_IN <= all {
        return Ok(());
    }
    wrong(
        format!("carried nothing in {empty} of {all} slices of {} ms of its window", SLICE.milliseconds()),
        remedy::LOWER_BESIDE,
    )
}

/// How many of the slices entirely between two moments on an end's clock were empty, and how many there are. Those before its first byte or
/// after its last slice were empty.
fn empty_slices(end: &Measurement, from: Nanoseconds, until: Nanoseconds) -> (u64, u64) {
    let before = end.started.min(until).saturating_sub(from).0 / SLICE.0;
    let places = from.saturating_sub(end.started).0.div_ceil(SLICE.0)..until.saturating_sub(end.started).0 / SLICE.0;
    let carried = |place: &u64| {
        let bytes = usize::try_from(*place).ok().and_then(|place| end.slices.get(place));
        bytes.is_some_and(|bytes| !bytes.is_zero())
    };
    let all = before + places.end.saturating_sub(places.start);
    let carrying = places.filter(carried).count() as u64;
    (all - carrying, all)
}

#[cfg(test)]
mod tests {
    use railgauge_model::journal::event::Moment;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn end(started: u64, elapsed: u64, slices: &[u64]) -> Measurement {
        Measurement {
            started: Nanoseconds(started),
            elapsed: Nanoseconds(elapsed),
            operations: 1,
            bytes: Bytes(slices.iter().sum()),
            slices: slices.iter().copied().map(Bytes).collect(),
            ..Measurement::default()
        }
    }

    fn cause(opposite: bool, rate: Option<f64>, sender: Measurement, receiver: Option<Measurement>) -> Option<String> {
        let moment = |at| Moment { at: Nanoseconds(at), error: Nanoseconds(1000) };
        let together = Together { start: Nanoseconds(0), from: moment(10 * SECOND), to: moment(110 * SECOND) };
        let (from_device, to_device) = ("eth0".to_owned(), "eth0".to_owned());
        let beside = Neighbour { opposite, flows: 4, from_device, to_device, sender, receiver };
        let flow = end(10 * SECOND, SECOND, &[1; 10]);
        covered(&flow, &together, &beside, rate.map(GigabitsPerSecond)).err().map(|failure| failure.cause)
    }

    fn sent() -> Measurement {
        end(10 * SECOND - SECOND / 5, 2 * SECOND, &[5; 20])
    }

    fn got(slices: &[u64]) -> Option<Measurement> {
        Some(end(110 * SECOND - SECOND / 5, 2 * SECOND, slices))
    }

    #[test]
    fn traffic_that_did_not_run_all_the_time_is_no_neighbour() {
        let all = || got(&[5; 20]);
        assert_eq!(cause(false, None, sent(), all()), None);
        let late = cause(false, None, end(10 * SECOND + SECOND / 10, 2 * SECOND, &[5; 20]), all()).unwrap();
        assert!(late.contains("began 100 ms after"), "{late}");
        let short = cause(false, None, end(10 * SECOND - SECOND / 5, SECOND, &[5; 10]), all()).unwrap();
        assert!(short.contains("ended 200 ms before"), "{short}");
        let mut slices = [0; 20];
        slices[0] = 5;
        let still = cause(false, None, sent(), got(&slices)).unwrap();
        assert!(still.contains("carried nothing"), "{still}");
        assert!(cause(false, None, sent(), None).unwrap().contains("carried nothing"));
    }

    #[test]
    fn greedy_traffic_carries_something_in_most_slices_of_the_window() {
        let without = |places: std::ops::Range<usize>| {
            let mut slices = [5; 20];
            slices[places].fill(0);
            cause(false, None, sent(), got(&slices))
        };
        assert_eq!((without(0..2), without(12..20)), (None, None));
        for places in [2..5, 7..10, 9..15] {
            assert_eq!(without(places.clone()), None, "{places:?}");
        }
        for places in [0..6, 5..9, 8..20] {
            assert!(without(places.clone()).unwrap().contains("in 4 of 10 slices"), "{places:?}");
        }
        let mut one = [0; 20];
        one[5] = 1;
        assert!(cause(false, None, sent(), got(&one)).unwrap().contains("in 9 of 10 slices"));
        let late = cause(false, None, sent(), Some(end(110 * SECOND + SECOND / 2, SECOND, &[5; 10]))).unwrap();
        assert!(late.contains("in 5 of 10 slices"), "{late}");
        assert!(cause(false, None, sent(), got(&[5; 6])).unwrap().contains("in 6 of 10 slices"));
        // Slices cut by the window's edges are not judged.
        let between = Some(end(110 * SECOND - SECOND / 20, 2 * SECOND, &{
            let mut slices = [5; 20];
            slices[0] = 0;
            slices[10] = 0;
            slices
        }));
        assert_eq!(cause(false, None, sent(), between), None);
        let (sent, got) =
            (end(110 * SECOND - SECOND / 5, 2 * SECOND, &[5; 20]), |slices| end(98 * SECOND / 10, 2 * SECOND, slices));
        assert_eq!(cause(true, None, sent.clone(), Some(got(&[5; 20]))), None);
        let against = cause(true, None, sent, Some(got(&one))).unwrap();
        assert!(against.contains("against it") && against.contains("in 9 of 10 slices"), "{against}");
    }

    #[test]
    fn traffic_with_a_rate_moves_four_fifths_of_it_at_least() {
        let with = |slices: &[u64]| cause(false, Some(2.0), sent(), got(slices));
        assert_eq!(with(&[25_000_000; 20]), None);
        assert_eq!(with(&[20_000_000; 20]), None);
        let slow = with(&[15_000_000; 20]).unwrap();
        assert!(slow.contains("moved 1.20 of 2 Gb/s"), "{slow}");
        let mut outside = [250_000_000; 20];
        outside[2..12].fill(1);
        assert!(with(&outside).unwrap().contains("moved 0.00 of 2 Gb/s"));
        let mut every_other = [0; 20];
        every_other.iter_mut().step_by(2).for_each(|bytes| *bytes = 50_000_000);
        assert_eq!(with(&every_other), None);
    }

    #[test]
    fn messages_of_slow_connections_are_small() {
        assert_eq!(message(None, 4), LARGEST);
        assert_eq!(message(Some(GigabitsPerSecond(100.0)), 1), LARGEST);
        assert_eq!(message(Some(GigabitsPerSecond(0.01)), 4), Bytes::from_kib(2));
        assert_eq!(message(Some(GigabitsPerSecond(1e-6)), 1), SMALLEST);
    }
}
