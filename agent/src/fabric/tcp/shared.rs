//! Shared state of the threads of one pass, its account, and the control frames of a link.
//!
//! A byte counts when the receiver has it: the initiator's window ends when the peer has confirmed every byte (or, where the initiator
//! receives, with its own last byte), and both ends must have counted the same bytes. With both directions at once each end's account is
//! of what it sent, and has what it received alongside.
//!
//! Control frames are JSON on a separate connection, so that payload streams carry payload only.

use std::{
    io,
    net::TcpStream,
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::{Condvar, Mutex};
use railgauge_wire::{
    BitsPerSecond, Bytes, Failure, Kind, Measurement, Nanoseconds, Op, Stage, TestMetric, frame, measure, remedy, step,
};
use serde::{Deserialize, Serialize};

use crate::{
    bench::{Slices, control::Control},
    system::wait::Doorbell,
};

pub(super) struct Shared<'a> {
    pub pass: Pass,
    pub control: &'a Control,
    /// Never sleep in a call: the sockets are non-blocking, and calls are repeated until they succeed.
    pub spin: bool,
    pub peer: String,
    /// The initiator's stop rule; latency loops follow it by themselves.
    pub rule: Option<step::Window>,
    pub halt: AtomicBool,
    /// When the first payload byte of any stream arrived, in nanoseconds on the agent's clock; 0 before.
    pub origin: AtomicU64,
    pub lanes: Vec<Lane>,
    pub sources: Team,
    pub sinks: Team,
    pub bell: Doorbell,
    failure: Mutex<Option<Failure>>,
    gate: (Mutex<bool>, Condvar),
}

#[repr(align(128))]
#[derive(Default)]
pub(super) struct Lane {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    /// Bytes of the whole stream, the final byte included; 0 while unknown.
    pub total: AtomicU64,
}

#[derive(Default)]
pub(super) struct Team {
    running: AtomicUsize,
    flows: Mutex<Vec<(usize, Flow)>>,
}

#[derive(Default)]
pub(super) struct Flow {
    pub bytes: Bytes,
    /// First and last moment, on the agent's clock.
    pub first: Nanoseconds,
    pub last: Nanoseconds,
    pub cpu: Nanoseconds,
    /// Bytes over time; sinks only.
    pub slices: Option<Slices>,
    /// Its own window and times; latency loops only.
    pub latency: Option<Measurement>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        pass: Pass,
        control: &'a Control,
        spin: bool,
        peer: &str,
        streams: usize,
    ) -> Result<Self, Failure> {
        let bell = Doorbell::new().map_err(|error| {
            Failure::new(Stage::Measure, Kind::Configuration, format!("no descriptor for a doorbell: {error}"))
                .remedy(remedy::RAISE_OPEN_FILES)
        })?;
        Ok(Self {
            pass,
            control,
            spin,
            peer: peer.to_owned(),
            rule: None,
            halt: AtomicBool::new(false),
            origin: AtomicU64::new(0),
            lanes: (0..streams).map(|_| Lane::default()).collect(),
            sources: Team::default(),
            sinks: Team::default(),
            bell,
            failure: Mutex::new(None),
            gate: (Mutex::new(false), Condvar::new()),
        })
    }

    pub(super) fn member<'s>(&'s self, team: &'s Team) -> Member<'s> {
        team.running.fetch_add(1, Ordering::AcqRel);
        Member(team, self)
    }

    pub(super) fn failure(&self) -> Option<Failure> {
        self.failure.lock().clone()
    }

    pub(super) fn open_gate(&self) {
        *self.gate.0.lock() = true;
        self.gate.1.notify_all();
    }

    pub(super) fn wait_at_gate(&self) {
        self.gate.1.wait_while(&mut self.gate.0.lock(), |open| !*open);
    }
}

pub(super) struct Member<'s>(&'s Team, &'s Shared<'s>);

impl Member<'_> {
    pub(super) fn work(self, number: usize, work: impl FnOnce() -> Result<Flow, Failure>) {
        match work() {
            Ok(flow) => self.0.flows.lock().push((number, flow)),
            // The first failure is the cause; those of the other streams follow from it.
            Err(failure) => drop(self.1.failure.lock().get_or_insert(failure)),
        }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.1.bell.ring();
    }
}

impl Team {
    pub(super) fn is_done(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }

    /// The accounts, in the order of the streams.
    pub(super) fn flows(&self) -> Vec<Flow> {
        let mut flows = std::mem::take(&mut *self.flows.lock());
        flows.sort_by_key(|(number, _)| *number);
        flows.into_iter().map(|(_, flow)| flow).collect()
    }

    pub(super) fn bytes(&self) -> Vec<Bytes> {
        let mut bytes: Vec<_> = self.flows.lock().iter().map(|(number, flow)| (*number, flow.bytes)).collect();
        bytes.sort_unstable();
        bytes.into_iter().map(|(_, bytes)| bytes).collect()
    }
}

fn internal(cause: String) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, cause)
}

pub(super) fn sinks(shared: &Shared<'_>) -> Result<Measurement, Failure> {
    let flows = shared.sinks.flows();
    complete(shared, &flows)?;
    let started =
        flows.iter().map(|flow| flow.first).filter(|first| *first > Nanoseconds::ZERO).min().unwrap_or_default();
    let last = flows.iter().map(|flow| flow.last).max().unwrap_or(started).max(started);
    let bytes = flows.iter().map(|flow| flow.bytes).sum();
    let cpu = flows.iter().map(|flow| flow.cpu).sum();
    let lanes = flows.iter().map(|flow| measure::Lane { bytes: flow.bytes, source_port: None }).collect();
    let slices = flows
        .into_iter()
        .filter_map(|flow| flow.slices)
        .map(|slices| slices.finish(last).into_iter().map(Bytes).collect());
    let slices = slices.reduce(|sum: Vec<Bytes>, more| added(&sum, &more)).unwrap_or_default();
    let operations = operations(shared, bytes);
    Ok(Measurement {
        started,
        elapsed: last - started,
        operations,
        bytes,
        cpu,
        slices: slices.into(),
        lanes,
        ..Measurement::default()
    })
}

#[derive(Default)]
pub(super) struct PassRecord {
    /// When the gate opened; the initiator's window starts there.
    pub started: Option<Nanoseconds>,
    pub ended: Option<Nanoseconds>,
    pub theirs: Option<Measurement>,
    pub ours: Option<Measurement>,
    pub interval: Option<Box<f64>>,
}

/// The account of a pass at this end. `conducting` is the CPU time of the link's own thread.
pub(super) fn measurement(
    shared: &Shared<'_>,
    record: PassRecord,
    conducting: Nanoseconds,
) -> Result<Measurement, Failure> {
    let mut sources = shared.sources.flows();
    if record.theirs.is_some() {
        complete(shared, &sources)?;
    }
    let sent: Bytes = sources.iter().map(|flow| flow.bytes).sum();
    let cpu = conducting + sources.iter().map(|flow| flow.cpu).sum();
    if let Some(theirs) = record.theirs.as_ref().filter(|theirs| theirs.bytes != sent) {
        return Err(internal(format!("{sent} bytes were sent, the peer counted {}", theirs.bytes)));
    }
    if let Some(measured) = sources.first_mut().and_then(|flow| flow.latency.take()) {
        return Ok(Measurement { cpu, ..measured });
    }
    let received = record.theirs.as_ref().and(record.ours.as_ref()).map(|ours| ours.bytes);
    let ours = record.ours.unwrap_or_default();
    // The initiator's clock runs from the gate to the peer's last word, the responder's over its threads' times.
    let begun =
        [record.started.unwrap_or_default(), ours.started].into_iter().filter(|time| *time > Nanoseconds::ZERO).min();
    let begun = begun.unwrap_or_default();
    let ended = record.ended.unwrap_or_default().max(ours.started + ours.elapsed).max(begun);
    let (cpu, Measurement { bytes, slices, lanes, .. }) = (cpu + ours.cpu, record.theirs.unwrap_or(ours));
    Ok(Measurement {
        started: begun,
        elapsed: ended - begun,
        operations: operations(shared, bytes),
        bytes,
        received,
        cpu,
        slices,
        interval: record.interval,
        lanes,
        ..Measurement::default()
    })
}

fn complete(shared: &Shared<'_>, flows: &[Flow]) -> Result<(), Failure> {
    let streams = if shared.pass.metric == TestMetric::Latency { 1 } else { shared.lanes.len() };
    match flows.len() == streams {
        true => Ok(()),
        false => Err(internal(format!("{} of {streams} streams have an account", flows.len()))),
    }
}

/// For latency: received messages; for reads half of them are requests.
fn operations(shared: &Shared<'_>, bytes: Bytes) -> u64 {
    let each = if shared.pass.metric == TestMetric::Latency {
        shared.pass.there_and_back().0 as u64
    } else {
        shared.pass.size.0
    };
    bytes.0.checked_div(each).unwrap_or(0)
}

/// Sum of two series with the same start; where one is shorter, the values of the other.
fn added(one: &[Bytes], other: &[Bytes]) -> Vec<Bytes> {
    let at = |series: &[Bytes], i: usize| series.get(i).copied().unwrap_or_default();
    (0..one.len().max(other.len())).map(|i| at(one, i) + at(other, i)).collect()
}

/// One pass: the use of the streams until both ends have counted every byte.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Pass {
    pub op: Op,
    pub metric: TestMetric,
    pub size: Bytes,
    pub bidirectional: bool,
    /// The only stream that carries payload; all of them if `None`.
    pub only: Option<u32>,
    /// Maximum rate of each source on a stream; unlimited if `None`.
    pub pace: Option<BitsPerSecond>,
    /// Messages per stream; until `Halt` if `None`.
    pub quota: Option<u64>,
    pub purpose: Purpose,
}

/// Bytes of the request of a read in a latency pass.
const REQUEST: usize = 8;

impl Pass {
    /// Bytes of a message of a latency pass, and of its answer.
    pub(super) fn there_and_back(&self) -> (usize, usize) {
        let size = self.size.as_usize();
        if self.op == Op::Read { (REQUEST, size) } else { (size, size) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Purpose {
    /// One message per stream, kept for the check.
    Verify,
    WarmUp,
    Measure,
}

/// I is the initiator, R the responder; a source sends payload, a sink receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Signal {
    Go(Pass),
    Ready,
    Refused(String),
    /// I → R: its sources may begin.
    Start,
    /// I → R: its sources shall end.
    Halt,
    /// Source → sink: payload sent, by stream. Nothing more but one final byte will come.
    Sent(Vec<Bytes>),
    /// Sink → source: the totals are known; a final byte on every stream wakes the sink's threads.
    Counted,
    /// Sink → source: every byte has arrived; the sink's account.
    Got(Measurement),
    /// Between passes: the sender has done its part of a case.
    Turn,
    /// The sender has failed: nothing more follows, and its own failure says why.
    GivenUp,
}

#[derive(Debug)]
pub(super) struct Channel {
    stream: TcpStream,
    pub peer: String,
}

impl Channel {
    pub(super) fn new(stream: TcpStream, peer: String) -> Self {
        Self { stream, peer }
    }

    pub(super) fn say(&mut self, signal: &Signal) -> Result<(), Failure> {
        frame::write(&mut self.stream, signal).map_err(|error| self.broke(&error))
    }

    /// Call it when the connection is readable: signals are short and arrive whole, so one that does not follow its first byte within the
    /// socket's time limit means a broken peer.
    pub(super) fn hear(&mut self) -> Result<Signal, Failure> {
        match frame::read(&mut self.stream) {
            Ok(Some(Signal::GivenUp)) => {
                Err(Failure::new(Stage::Measure, Kind::Aborted, "the other end of the link failed"))
            }
            Ok(Some(signal)) => Ok(signal),
            Ok(None) => Err(self.broke(&io::Error::other("the peer closed it"))),
            Err(error) => Err(self.broke(&error)),
        }
    }

    /// Makes both directions of the connection end at once.
    pub(super) fn cut(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    fn broke(&self, error: &io::Error) -> Failure {
        let cause = format!("the connection to {} broke: {error}", self.peer);
        Failure::new(Stage::Measure, Kind::Fabric, cause).remedy(remedy::CHECK_PEER_AND_LINK)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
