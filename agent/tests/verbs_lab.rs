//! Two agents on RDMA devices, driven through the wire protocol: open, join, verify, measure, verify.
//!
//! Needs two hosts (or one) with a working RDMA port each, so it runs only where `RAILGAUGE_VERBS_TEST` says how to
//! start the agents: two command lines separated by `;`, split at spaces, such as
//! `ssh -F run/ssh_config lab1 /agent;ssh -F run/ssh_config lab2 /agent`. `RAILGAUGE_VERBS_DEVICES` may name their
//! devices, separated by `;`. One test after the other: `--test-threads=1`.

use std::process::Command;

use railgauge_wire::{
    Answer, Ask, Bytes, Carrier, Checked, Completion, Endpoint, Failure, Footprint, Joining, Kind, Knobs, LinkId,
    LinkLayer, LinkSpec, Measurement, Memory, Nanoseconds, Op, Opened, Pattern, Role, Service, SourcePort, Step,
    Stepped, TestMetric, Timing, Transport, Window, WriteLatency,
};

use crate::{controller::Agent, skip::skipped};

const MS: Nanoseconds = Nanoseconds::from_millis(1);

/// Two agents with one link between them.
struct Pair {
    agents: [Agent; 2],
    opened: [Opened; 2],
    link: LinkId,
}

/// The two command lines, if this machine has any.
fn commands() -> Option<[Command; 2]> {
    let Ok(text) = std::env::var("RAILGAUGE_VERBS_TEST") else {
        skipped("RAILGAUGE_VERBS_TEST does not say how to start two agents (see agent/tests/verbs_lab.rs)");
        return None;
    };
    let mut lines = text.split(';').map(|line| {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().expect("a command"));
        command.args(words);
        command
    });
    Some([lines.next().expect("a first command"), lines.next().expect("a second command")])
}

fn spec(role: Role, knobs: &Knobs, service: Service, qps: u32, max_size: u64) -> LinkSpec {
    let devices = std::env::var("RAILGAUGE_VERBS_DEVICES").ok();
    let place = usize::from(role == Role::Responder);
    LinkSpec {
        role,
        transport: Transport::Verbs,
        service,
        device: devices.and_then(|devices| devices.split(';').nth(place).map(str::to_owned)),
        port: 0,
        address: None,
        memory: Memory::Host,
        gpu: None,
        gpu_path: None,
        qps,
        threads: 1,
        max_size: Bytes(max_size),
        token: "0123456789abcdef0123456789abcdef".into(),
        rides_out: false,
        knobs: knobs.clone(),
    }
}

fn timing(op: Op, metric: TestMetric, size: u64) -> Timing {
    let window = Window::Duration(MS * 300);
    Timing {
        op,
        metric,
        size: Bytes(size),
        window,
        warm_up: MS * 50,
        start_at: None,
        bidirectional: false,
        only: None,
        pace: None,
    }
}

fn opened(agent: &mut Agent, link: LinkId, spec: LinkSpec) -> Result<Opened, Failure> {
    match agent.ask(Ask::Open { link, spec: Box::new(spec) })? {
        Answer::Opened(opened) => Ok(*opened),
        other => panic!("{other:?}"),
    }
}

/// Queue pairs of all threads.
fn queue_pairs(endpoint: &Endpoint) -> u64 {
    match endpoint {
        Endpoint::Verbs(endpoint) => endpoint.qp_numbers.len() as u64,
        Endpoint::Several(threads) => threads.iter().map(queue_pairs).sum(),
        Endpoint::Tcp(_) => panic!("a verbs link"),
    }
}

impl Pair {
    fn new(knobs: &Knobs, service: Service, qps: u32, max_size: u64) -> Option<Self> {
        // The hosts may be virtual ones that share a busy processor: answers may be late by a good part of a second.
        let write_latency = knobs.write_latency.or(Some(WriteLatency::Poll));
        let knobs = Knobs { timeout: knobs.timeout.or(Some(18)), write_latency, ..knobs.clone() };
        Self::of(|role| spec(role, &knobs, service, qps, max_size))
    }

    fn of(spec: impl Fn(Role) -> LinkSpec) -> Option<Self> {
        let [mut first, mut second] = commands()?;
        let mut agents = [Agent::greeted(&mut first), Agent::greeted(&mut second)];
        let link = 1;
        let from = opened(&mut agents[0], link, spec(Role::Initiator)).unwrap();
        let to = opened(&mut agents[1], link, spec(Role::Responder)).unwrap();
        let mut pair = Self { agents, opened: [from, to], link };
        pair.join().unwrap();
        Some(pair)
    }

    fn join(&mut self) -> Result<(), Failure> {
        let ends: [Endpoint; 2] = [self.opened[1].endpoint.clone(), self.opened[0].endpoint.clone()];
        let link = self.link;
        let ids = [0, 1].map(|i| self.agents[i].post(Ask::Join { link, peer: ends[i].clone() }));
        for i in [0, 1] {
            match self.agents[i].wait(ids[i])? {
                Answer::Joined(opened) => self.opened[i] = *opened,
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }

    fn step(&mut self, end: usize, step: Step) -> Result<Stepped, Failure> {
        match self.agents[end].ask(Ask::Step { link: self.link, step, limit_ms: 15_000 })? {
            Answer::Stepped(stepped) => Ok(stepped),
            Answer::Done => Ok(Stepped::Done),
            other => panic!("{other:?}"),
        }
    }

    fn stop(&mut self) -> Result<Stepped, Failure> {
        match self.agents[1].ask(Ask::Stop { link: self.link })? {
            Answer::Stepped(stepped) => Ok(stepped),
            other => panic!("{other:?}"),
        }
    }

    /// Moves the pattern once, and compares it.
    fn verified(&mut self, op: Op, metric: TestMetric, size: u64, iteration: u64) -> Result<Checked, Failure> {
        let pattern = Pattern { size: Bytes(size), seed: 42, iteration };
        let (source, sink) = if op.pulls() { (1, 0) } else { (0, 1) };
        self.step(source, Step::Fill(pattern))?;
        self.step(sink, Step::Poison(pattern))?;
        let served = matches!(op, Op::Send | Op::WriteImm);
        if served {
            self.step(1, Step::Serve { op, metric, size: Bytes(size), window: None })?;
        }
        self.step(0, Step::Transfer { op, pattern })?;
        if served {
            self.stop()?;
        }
        match self.step(sink, Step::Check(pattern))? {
            Stepped::Checked(checked) => Ok(checked),
            other => panic!("{other:?}"),
        }
    }

    fn timed(&mut self, timing: Timing) -> Result<[Measurement; 2], Failure> {
        let Timing { op, metric, size: Bytes(size), .. } = timing;
        self.step(1, Step::Serve { op, metric, size: Bytes(size), window: None })?;
        let measured = self.step(0, Step::Time(timing));
        let served = self.stop();
        match (measured?, served?) {
            (Stepped::Measured(initiator), Stepped::Measured(responder)) => Ok([*initiator, *responder]),
            other => panic!("{other:?}"),
        }
    }

    /// A whole case; prints what came out.
    fn case(&mut self, op: Op, metric: TestMetric, size: u64) -> [Measurement; 2] {
        self.case_of(timing(op, metric, size))
    }

    fn case_of(&mut self, timing: Timing) -> [Measurement; 2] {
        let Timing { op, metric, size: Bytes(size), .. } = timing;
        let right = Checked {
            verified: Bytes(size * queue_pairs(&self.opened[0].endpoint)),
            wrong: Bytes::ZERO,
            first_wrong: None,
        };
        assert_eq!(self.verified(op, metric, size, 1).unwrap(), right, "{op} {metric} {size} before");
        let measured = self.timed(timing).unwrap_or_else(|failure| panic!("{op} {metric} {size}: {failure}"));
        assert_eq!(self.verified(op, metric, size, 2).unwrap(), right, "{op} {metric} {size} after");
        let [initiator, responder] = &measured;
        assert!(initiator.operations > 0 && initiator.elapsed > Nanoseconds::ZERO, "{initiator:?}");
        assert_eq!(initiator.bytes, Bytes(initiator.operations * size));
        let gbps = initiator.bytes.bits() / initiator.elapsed.as_f64();
        let us = |ns: u64| ns as f64 / 1e3;
        match &initiator.latency {
            None => println!(
                "{op:12} {metric} {size:8} B  {gbps:9.4} Gb/s  {:8} operations, {} served, in {:.0} ms",
                initiator.operations,
                responder.operations,
                us(initiator.elapsed.0) / 1e3
            ),
            Some(latency) => println!(
                "{op:12} {metric} {size:8} B  min {:8.1} p50 {:8.1} p99 {:8.1} max {:8.1} µs  {} samples",
                us(latency.min.0),
                us(latency.p50.0),
                us(latency.p99.0),
                us(latency.max.0),
                latency.samples
            ),
        }
        measured
    }
}

#[test]
fn rc_writes_reads_and_their_latency() {
    let Some(mut pair) = Pair::new(&Knobs::default(), Service::Rc, 1, 1 << 20) else { return };
    for opened in &pair.opened {
        assert_eq!(opened.transport, Carrier::VerbsRc);
        println!("{} {} software {} {:?}", opened.device, opened.link_layer, opened.software, opened.settings);
        if opened.software {
            assert_eq!((opened.link_layer, opened.rate_gbps), (LinkLayer::RoceV2, None));
        }
    }
    for size in [1, 4096, 1 << 20] {
        pair.case(Op::Write, TestMetric::Bandwidth, size);
        pair.case(Op::Read, TestMetric::Bandwidth, size);
    }
    for size in [8, 4096] {
        pair.case(Op::Write, TestMetric::Latency, size);
        pair.case(Op::Read, TestMetric::Latency, size);
    }
}

#[test]
fn rc_sends_and_immediate_data() {
    let Some(mut pair) = Pair::new(&Knobs::default(), Service::Rc, 1, 1 << 16) else { return };
    for op in [Op::Send, Op::WriteImm] {
        for size in [1, 4096, 65536] {
            let [initiator, responder] = pair.case(op, TestMetric::Bandwidth, size);
            assert_eq!(initiator.operations, responder.operations, "what was sent has arrived, and nothing else");
        }
        pair.case(op, TestMetric::Latency, 8);
        pair.case(op, TestMetric::Latency, 4096);
    }
}

#[test]
fn rc_atomics_add_up() {
    let Some(mut pair) = Pair::new(&Knobs::default(), Service::Rc, 1, 8) else { return };
    for op in [Op::AtomicFadd, Op::AtomicCas] {
        pair.case(op, TestMetric::Bandwidth, 8);
        pair.case(op, TestMetric::Latency, 8);
    }
}

#[test]
fn several_queue_pairs_share_a_link() {
    let Some(mut pair) = Pair::new(&Knobs::default(), Service::Rc, 4, 1 << 16) else { return };
    for op in [Op::Write, Op::Read, Op::Send] {
        pair.case(op, TestMetric::Bandwidth, 4096);
    }
    let failure = pair.timed(timing(Op::Write, TestMetric::Latency, 8)).unwrap_err();
    assert_eq!(failure.remedy.unwrap().id, "one-queue-pair");
}

#[test]
fn several_threads_share_a_link() {
    // Two threads that poll and the kernel's work for both on one interpreted processor: answers may be late.
    let knobs = Knobs { depth: Some(16), timeout: Some(18), ..Knobs::default() };
    let threads = |role| LinkSpec { threads: 2, ..spec(role, &knobs, Service::Rc, 3, 1 << 16) };
    let Some(mut pair) = Pair::of(threads) else { return };
    assert_eq!(pair.opened[0].settings.get("threads").map(String::as_str), Some("2"));
    for op in [Op::Write, Op::Read, Op::Send, Op::WriteImm] {
        for size in [4096, 65536] {
            let [initiator, responder] = pair.case(op, TestMetric::Bandwidth, size);
            assert!(op == Op::Write || op == Op::Read || initiator.operations == responder.operations, "{op}");
        }
    }
    let failure = pair.timed(timing(Op::Send, TestMetric::Latency, 8)).unwrap_err();
    assert!(failure.cause.contains("one thread"), "{failure}");
}

#[test]
fn unreliable_services() {
    let Some(mut pair) = Pair::new(&Knobs::default(), Service::Uc, 1, 4096) else { return };
    for op in [Op::Write, Op::Send, Op::WriteImm] {
        pair.case(op, TestMetric::Bandwidth, 1024);
        pair.case(op, TestMetric::Latency, 8);
    }
    let failure = pair.timed(timing(Op::Read, TestMetric::Bandwidth, 8)).unwrap_err();
    assert!(failure.cause.contains("uc"), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "rc-service");
    drop(pair);
    let Some(mut pair) = Pair::new(&Knobs::default(), Service::Ud, 1, 4096) else { return };
    assert_eq!(pair.opened[0].transport, Carrier::VerbsUd);
    pair.case(Op::Send, TestMetric::Bandwidth, 1024);
    pair.case(Op::Send, TestMetric::Latency, 8);
}

#[test]
fn both_directions_at_once() {
    let Some(mut pair) = Pair::new(&Knobs::default(), Service::Rc, 2, 1 << 16) else { return };
    for op in [Op::Write, Op::Read, Op::Send] {
        let [initiator, responder] =
            pair.case_of(Timing { bidirectional: true, ..timing(op, TestMetric::Bandwidth, 16384) });
        assert!(responder.operations > 0, "{responder:?}");
        let overlap = responder.elapsed.as_f64() / initiator.elapsed.as_f64();
        assert!((0.5..2.0).contains(&overlap), "{op}: {} against {} ns", responder.elapsed, initiator.elapsed);
    }
}

#[test]
fn every_queue_pair_tells_its_part_and_one_can_carry_all_of_it() {
    let knobs = Knobs { flow_label: Some(5), ..Knobs::default() };
    let Some(mut pair) = Pair::new(&knobs, Service::Rc, 3, 1 << 16) else { return };
    for op in [Op::Write, Op::Read, Op::Send] {
        for (only, window) in [
            (None, Window::Duration(MS * 300)),
            (Some(1), Window::Duration(MS * 300)),
            (Some(2), Window::Iterations(100)),
        ] {
            let [near, _] = pair.case_of(Timing { only, window, ..timing(op, TestMetric::Bandwidth, 16_384) });
            assert_eq!(near.lanes.iter().map(|lane| lane.bytes).sum::<Bytes>(), near.bytes, "{op}: {near:?}");
            for (number, lane) in (0..).zip(&near.lanes) {
                assert_eq!(lane.bytes > Bytes::ZERO, only.is_none_or(|only| only == number), "{op} {only:?}: {near:?}");
                let port = 49_157 + u16::try_from(number).unwrap();
                assert_eq!(lane.source_port, Some(SourcePort::PredictedUdp(port)), "{op}: {near:?}");
            }
        }
    }
}

#[test]
fn event_mode_sleeps_instead_of_polling() {
    let knobs = Knobs { completion: Some(Completion::Events), ..Knobs::default() };
    let Some(mut pair) = Pair::new(&knobs, Service::Rc, 1, 1 << 16) else { return };
    for op in [Op::Write, Op::Send] {
        pair.case(op, TestMetric::Bandwidth, 16384);
    }
    for op in [Op::Send, Op::WriteImm, Op::Read, Op::AtomicFadd] {
        pair.case(op, TestMetric::Latency, 8);
    }
    let failure = pair.timed(timing(Op::Write, TestMetric::Latency, 8)).unwrap_err();
    assert!(failure.cause.contains("event mode"), "{failure}");
}

#[test]
fn knobs_are_used_and_recorded() {
    let knobs = Knobs {
        depth: Some(24),
        post_list: Some(5),
        signal_every: Some(12),
        inline: Some(64),
        outstanding_reads: Some(3),
        mtu: Some(512),
        traffic_class: Some(104),
        flow_label: Some(77),
        retry_count: Some(3),
        timeout: Some(17),
        relaxed_ordering: Some(false),
        footprint: Some(Footprint::Dram),
        core: Some(0),
        ..Knobs::default()
    };
    let Some(mut pair) = Pair::new(&knobs, Service::Rc, 1, 1 << 14) else { return };
    let settings = pair.opened[0].settings.clone();
    for (name, value) in [
        ("depth", "24"),
        ("post_list", "5"),
        ("signal_every", "12 (latency), 10 (bandwidth)"),
        ("outstanding_reads", "3"),
        ("mtu", "512"),
        ("traffic_class", "104"),
        ("flow_label", "77"),
        ("retry_count", "3"),
        ("timeout", "17"),
        ("relaxed_ordering", "false"),
        ("footprint", "dram"),
        ("core", "0"),
    ] {
        assert_eq!(settings.get(name).map(String::as_str), Some(value), "{name} of {settings:?}");
    }
    for (op, window) in [(Op::Write, Window::Iterations(1001)), (Op::Send, Window::Iterations(333))] {
        let [initiator, _] = pair.case_of(Timing { window, ..timing(op, TestMetric::Bandwidth, 2048) });
        let Window::Iterations(wanted) = window else { panic!() };
        assert_eq!(initiator.operations, wanted);
    }
    let window = Window::Iterations(100);
    for op in [Op::Write, Op::Send, Op::Read] {
        let [initiator, _] = pair.case_of(Timing { window, ..timing(op, TestMetric::Latency, 8) });
        assert_eq!(initiator.latency.map(|latency| latency.samples), Some(100));
    }
}

#[test]
fn mistakes_and_missing_things_are_failures_in_words() {
    let Some([mut first, _]) = commands() else { return };
    let mut agent = Agent::greeted(&mut first);
    let plain = |change: &dyn Fn(&mut LinkSpec)| {
        let mut spec = spec(Role::Initiator, &Knobs::default(), Service::Rc, 1, 4096);
        change(&mut spec);
        spec
    };
    let mut refused = |link, change: &dyn Fn(&mut LinkSpec)| opened(&mut agent, link, plain(change)).unwrap_err();
    let failure = refused(1, &|spec| spec.device = Some("mlx5_99".into()));
    assert!(failure.kind == Kind::Configuration && failure.cause.contains("rxe0"), "{failure}");
    let failure = refused(2, &|spec| spec.knobs.gid_index = Some(99));
    assert!(failure.cause.contains("GID index 99") && failure.cause.contains("RoCE v2"), "{failure}");
    let failure = refused(3, &|spec| spec.knobs.depth = Some(1 << 30));
    assert!(failure.kind == Kind::Unsupported && failure.cause.contains("depth"), "{failure}");
    // The longest message that the port takes, more of them than a guest has memory for.
    let failure = refused(4, &|spec| (spec.max_size, spec.qps) = (Bytes(1 << 31), 8));
    assert!(failure.cause.contains("memory"), "{failure}");
    let failure = refused(6, &|spec| spec.max_size = Bytes(1 << 50));
    assert_eq!(failure.kind, Kind::Unsupported, "{failure}");
    let failure = refused(5, &|spec| spec.knobs.huge_pages = Some(true));
    assert!(failure.remedy.unwrap().commands()[0].command.contains("nr_hugepages"));
}

#[test]
fn a_peer_that_goes_away_is_reported_and_not_waited_for() {
    // With the default timeout: what is asked is how a silent peer is given up.
    let Some(mut pair) = Pair::of(|role| spec(role, &Knobs::default(), Service::Rc, 1, 1 << 14)) else { return };
    let id = pair.agents[0].post(Ask::Step {
        link: pair.link,
        step: Step::Time(Timing {
            window: Window::Duration(MS * 10_000),
            ..timing(Op::Write, TestMetric::Bandwidth, 4096)
        }),
        limit_ms: 15_000,
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(pair.agents[1].ask(Ask::Close { link: pair.link }), Ok(Answer::Done));
    let failure = pair.agents[0].wait(id).unwrap_err();
    println!("{failure}");
    assert_eq!(failure.kind, Kind::Fabric);
    assert!(failure.remedy.is_some());
}

#[test]
fn rdma_cm_joins_as_well() {
    let knobs = Knobs { joining: Some(Joining::RdmaCm), traffic_class: Some(96), ..Knobs::default() };
    let Some(mut pair) = Pair::new(&knobs, Service::Rc, 2, 1 << 16) else { return };
    assert_eq!(pair.opened[0].settings.get("joining").map(String::as_str), Some("rdma-cm"));
    for op in [Op::Write, Op::Read, Op::Send, Op::WriteImm] {
        pair.case(op, TestMetric::Bandwidth, 16384);
    }
    drop(pair);
    let Some(mut pair) = Pair::new(&knobs, Service::Rc, 1, 1 << 16) else { return };
    for op in [Op::Write, Op::Send] {
        pair.case(op, TestMetric::Latency, 8);
    }
}
