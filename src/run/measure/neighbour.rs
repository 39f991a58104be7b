//! Traffic beside a flow between its two hosts: TCP connections of the agents over the interfaces of the same NICs, from before the
//! flow's window to after it. What it carried in the window is told by the analysis; here it must have run at all.

use std::time::Duration;

use railgauge_model::{
    journal::event::{Neighbour, Together},
    plan::model::{Beside, Host, RateLimit, Test},
    schedule::{AFTER, BEFORE, Cell, Flow, Port},
};
use railgauge_wire::{
    facts::HostFacts,
    failure::{Failure, Kind, Stage},
    link::Knobs,
    measure::{Measurement, SLICE},
    remedy,
    step::Window,
    terms::{Memory, Op, Service, TestMetric, Transport},
    unit::{Bytes, GigabitsPerSecond, Nanoseconds, NanosecondsI64},
};

use super::super::{
    links::{self, Held, Link, Wanted},
    rails::devices,
};
use super::{
    case::{HostAgent, PairCase},
    steps::{self, Timed},
};

/// Largest message: that of iperf3's TCP streams.
const LARGEST: Bytes = Bytes::from_kib(128);
/// Smallest message of connections that are held back.
const SMALLEST: Bytes = Bytes::from_kib(1);
/// What a connection that is held back sends at once: what it may in this time.
const AT_ONCE: Nanoseconds = Nanoseconds::from_millis(10);

/// Connections of one direction.
struct Direction {
    opposite: bool,
    link: Link,
    held: Held,
}

/// All traffic beside one flow, opened and ready.
pub(super) struct Neighbours {
    test: Test,
    cell: Cell,
    rate: Option<GigabitsPerSecond>,
    directions: Vec<Direction>,
}

/// Opens the connections that a case wants beside it; `None` where it wants none.
///
/// # Errors
/// A NIC has no interface for TCP, or the hosts cannot be joined over it. Of several directions none stays open.
pub(super) async fn open(case: &PairCase) -> Result<Option<Neighbours>, Failure> {
    let (Some(flows), Some(beside)) = (case.case.cell.neighbours, &case.test().beside) else { return Ok(None) };
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

/// A test as which the traffic is run: nothing of the flow's own settings holds for it.
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
        memory: Memory::Host,
        gpu_path: None,
        gpus: Vec::new(),
        gpu_distance: None,
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
        memory: Memory::Host,
        size: message(beside.rate, flows),
        qps: flows,
        only: None,
        neighbours: None,
        manner: None,
    }
}

/// Size of a message: small where connections are held back, so that they send evenly.
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

/// A host with the interface of the NIC that is this end of the flow as its only one, and that port.
fn end(case: &PairCase, port: &Port, (_, facts): &HostAgent) -> Result<(Host, Port), Failure> {
    let host = case.plan.hosts.iter().find(|host| *host.name == *port.host).ok_or_else(|| {
        Failure::new(Stage::Open, Kind::Internal, "the schedule names a host the plan does not have").at(&port.host)
    })?;
    if case.case.cell.transport == Transport::Tcp {
        return Ok((host.clone(), port.clone()));
    }
    let interface = interface(host, facts, port)?;
    Ok((Host { tcp: vec![interface], ..host.clone() }, Port { rail: 0, ..port.clone() }))
}

/// Interface of the RDMA port that is a rail of a host.
fn interface(host: &Host, facts: &HostFacts, port: &Port) -> Result<String, Failure> {
    let all = devices(host, Some(facts), Transport::Verbs);
    let wrong = |cause: String| {
        Failure::new(Stage::Open, Kind::Configuration, cause).at(&host.name).remedy(remedy::NAME_INTERFACE)
    };
    let Some(name) = all.get(port.rail as usize) else {
        return Err(wrong(format!("the traffic beside it has no NIC: rail {} does not exist there", port.rail)));
    };
    let (device, number) = match name.rsplit_once(':') {
        Some((device, number)) => (device, number.parse().unwrap_or(1)),
        None => (name.as_str(), 1),
    };
    let found = facts.rdma.iter().find(|known| known.name == device);
    let found = found.and_then(|known| known.ports.iter().find(|port| port.number == number));
    found
        .and_then(|port| port.netdev.clone())
        .ok_or_else(|| wrong(format!("the traffic beside it cannot use TCP: no network interface of {name} is known")))
}

/// A failure of the traffic, so that nobody takes it for one of the flow.
fn named(failure: Failure) -> Failure {
    let cause = format!("the traffic beside it: {}", failure.cause);
    Failure { cause, ..failure }
}

impl Neighbours {
    /// Runs all of it from before the planned start until the flow must be over. `wait` is how long it is until the start.
    ///
    /// # Errors
    /// That of the first direction that failed.
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
                    receiver: responder.filter(|end| !end.elapsed.is_zero() && end.operations > 0),
                })
            });
        }
        // Two at most.
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

    /// Closes all connections, and waits for that: the next cell must not meet them.
    pub(super) async fn close(self) {
        for direction in self.directions {
            direction.held.close().await;
        }
    }
}

/// Whether traffic ran beside a flow in all of its window, by the clocks of its sender and receiver.
///
/// # Errors
/// It began late, stopped early, or carried nothing then: the flow was not measured beside it.
pub(super) fn covered(flow: &Measurement, together: &Together, beside: &Neighbour) -> Result<(), Failure> {
    let (sender, receiver) = if beside.opposite { (together.to, together.from) } else { (together.from, together.to) };
    let begin = flow.started.saturating_since(together.from.at);
    let on = |at: Nanoseconds, offset: NanosecondsI64| at.saturating_add_signed(offset);
    let (from, until) = (on(sender.at, begin), on(sender.at, begin.later(flow.elapsed)));
    let ended = beside.sender.started.saturating_add(beside.sender.elapsed);
    let wrong = |what: String| {
        let cause = format!("the traffic beside it {what}, so it was not measured beside that traffic");
        Err(Failure::new(Stage::Measure, Kind::Internal, cause).remedy(remedy::MEASURE_LONGER))
    };
    if beside.sender.started > from {
        return wrong(format!("began {} ms after its window", (beside.sender.started - from).milliseconds()));
    }
    if ended < until {
        return wrong(format!("ended {} ms before its window did", (until - ended).milliseconds()));
    }
    let counted = match &beside.receiver {
        Some(end) => carried(end, on(receiver.at, begin), on(receiver.at, begin.later(flow.elapsed))),
        None => false,
    };
    if counted { Ok(()) } else { wrong("carried nothing in its window".to_owned()) }
}

/// Whether an end counted anything between two moments on its clock.
fn carried(end: &Measurement, from: Nanoseconds, until: Nanoseconds) -> bool {
    let slices = end.slices.iter().zip(0_u64..);
    let within = |place: u64| {
        let begin = end.started + SLICE * place;
        begin < until && begin + SLICE > from
    };
    slices.into_iter().any(|(bytes, place)| within(place) && !bytes.is_zero())
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

    fn cause(sender: Measurement, receiver: Option<Measurement>) -> Option<String> {
        let moment = |at| Moment { at: Nanoseconds(at), error: Nanoseconds(1000) };
        // The receiver's clock is 100 s ahead.
        let together = Together { start: Nanoseconds(0), from: moment(10 * SECOND), to: moment(110 * SECOND) };
        let beside = Neighbour {
            opposite: false,
            flows: 4,
            from_device: "eth0".into(),
            to_device: "eth0".into(),
            sender,
            receiver,
        };
        let flow = end(10 * SECOND, SECOND, &[1; 10]);
        covered(&flow, &together, &beside).err().map(|failure| failure.cause)
    }

    #[test]
    fn traffic_that_did_not_run_all_the_time_is_no_neighbour() {
        let sent = || end(10 * SECOND - SECOND / 5, 2 * SECOND, &[5; 20]);
        let got = || Some(end(110 * SECOND - SECOND / 5, 2 * SECOND, &[5; 20]));
        assert_eq!(cause(sent(), got()), None);
        let late = cause(end(10 * SECOND + SECOND / 10, 2 * SECOND, &[5; 20]), got()).unwrap();
        assert!(late.contains("began 100 ms after"), "{late}");
        let short = cause(end(10 * SECOND - SECOND / 5, SECOND, &[5; 10]), got()).unwrap();
        assert!(short.contains("ended 200 ms before"), "{short}");
        // Nothing arrived in the window, or nobody counted it.
        let mut slices = [0; 20];
        slices[0] = 5;
        let still = cause(sent(), Some(end(110 * SECOND - SECOND / 5, 2 * SECOND, &slices))).unwrap();
        assert!(still.contains("carried nothing"), "{still}");
        assert!(cause(sent(), None).unwrap().contains("carried nothing"));
    }

    #[test]
    fn messages_of_slow_connections_are_small() {
        assert_eq!(message(None, 4), LARGEST);
        assert_eq!(message(Some(GigabitsPerSecond(100.0)), 1), LARGEST);
        // 2.5 Mb/s each: 3,125 bytes in ten milliseconds.
        assert_eq!(message(Some(GigabitsPerSecond(0.01)), 4), Bytes::from_kib(2));
        assert_eq!(message(Some(GigabitsPerSecond(1e-6)), 1), SMALLEST);
    }
}
