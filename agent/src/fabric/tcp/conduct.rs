//! One pass from the link's thread: starts a thread per stream and direction, and leads both ends through
//!
//! ```text
//! I ── Go ──▶ R      both start their sinks and their sources; the sources wait at a gate
//! I ◀─ Ready ─ R
//! I ── Start ▶ R     where the responder sends; the clock runs from here
//!        payload
//! I ── Halt ─▶ R     where the responder sends and the stop rule says so
//!   ── Sent ──▶      by each side that sends: bytes per stream
//!   ◀─ Counted ─     by its peer; one final byte on every stream then wakes the peer's threads
//!   ◀─ Got ────      by its peer, once every byte has arrived: the pass is over
//! ```

use std::{
    net::TcpStream,
    os::fd::AsFd,
    sync::atomic::Ordering,
    thread::{Builder, Scope},
    time::{Duration, Instant},
};

use railgauge_wire::{Failure, Kind, Measurement, Nanoseconds, Stage, TestMetric, remedy, step};

use super::{
    memory::Bytes,
    shared::{self, Channel, Flow, PassRecord, Purpose, Shared, Signal, Team},
    stream::{self, Stream},
};
use crate::{
    bench::{Window, clock},
    system::wait::{self, READABLE},
};

/// Minimum receive buffer of a stream: one call takes all available bytes, however small the messages.
pub(super) const RECEIVE: usize = 256 << 10;

/// Time for the current pass to end well when a responder is asked to stop.
const GRACE: Duration = Duration::from_secs(1);

/// Longest time between two checks of the window and the controller.
const LOOK: Nanoseconds = Nanoseconds::from_millis(100);

/// Shortest time between checks of an overdue warm-up without data.
const LOOK_WHILE_COLD: Nanoseconds = Nanoseconds::from_millis(1);

pub(super) struct Lines<'a> {
    pub channel: &'a mut Channel,
    pub sockets: &'a [TcpStream],
    pub front: &'a mut [Bytes],
    pub back: &'a mut [Bytes],
    /// Whether a timed pass uses the whole buffer, not only one message's part.
    pub dram: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Part {
    /// The initiator's stop rule, and its start on the agent's clock.
    Lead(step::Window, Option<Nanoseconds>),
    Follow,
}

/// Cuts the streams after a failure: their bytes can no longer be assigned.
pub(super) fn conduct(lines: Lines<'_>, shared: &Shared<'_>, part: Part) -> Result<Measurement, Failure> {
    let Lines { channel, sockets, front, back, dram } = lines;
    let before = clock::cpu();
    let leads = matches!(part, Part::Lead(..));
    let forward = shared.pass.metric == TestMetric::Latency || !shared.pass.op.pulls();
    let directions = (forward == leads || shared.pass.bidirectional, forward != leads || shared.pass.bidirectional);
    let record = std::thread::scope(|scope| {
        let record = start_threads(scope, shared, directions, (sockets, front, back), dram).and_then(|()| {
            let (sends, receives) = directions;
            let record = PassRecord::default();
            Conductor {
                channel: &mut *channel,
                shared,
                part,
                sends,
                receives,
                window: None,
                counted: 0,
                moved: 0,
                said_sent: false,
                stopping: None,
                record,
            }
            .run(sockets)
        });
        record.map_err(|failure| {
            let first = shared.failure().filter(|_| failure.kind == Kind::Fabric);
            // No thread may stay in a call or at the gate, and the streams are useless now.
            shared.halt.store(true, Ordering::Relaxed);
            stream::cut(sockets);
            channel.cut();
            shared.open_gate();
            first.unwrap_or(failure)
        })
    })?;
    shared::measurement(shared, record, clock::cpu() - before)
}

fn start_threads<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'_>,
    (sends, receives): (bool, bool),
    lines: (&'env [TcpStream], &'env mut [Bytes], &'env mut [Bytes]),
    dram: bool,
) -> Result<(), Failure> {
    let (sockets, front, back) = lines;
    if shared.pass.metric == TestMetric::Latency {
        let (stream, (bytes, stage)) = (Stream::new(&sockets[0], 0, shared), front[0].split()?);
        return match sends {
            true => begin(scope, shared, &shared.sources, 0, move || stream::ping(stream, bytes, stage)),
            false => begin(scope, shared, &shared.sinks, 0, move || stream::echo(stream, bytes, stage)),
        };
    }
    let size = shared.pass.size.as_usize();
    let none: &mut [Bytes] = &mut [];
    let (out, into) = match (sends, receives) {
        (true, true) => (front, back),
        (true, false) => (front, none),
        _ => (none, front),
    };
    for (number, (socket, buffer)) in sockets.iter().zip(into).enumerate() {
        begin(scope, shared, &shared.sinks, number, move || {
            let (bytes, stage) = buffer.split()?;
            let region = if dram { bytes.len() } else { size.max(RECEIVE).min(bytes.len()) };
            stream::sink(Stream::new(socket, number, shared), &mut bytes[..region], stage)
        })?;
    }
    for (number, (socket, buffer)) in sockets.iter().zip(out).enumerate() {
        begin(scope, shared, &shared.sources, number, move || {
            let (bytes, stage) = buffer.split()?;
            let region = if dram { bytes.len() } else { size };
            stream::source(Stream::new(socket, number, shared), &mut bytes[..region], stage)
        })?;
    }
    Ok(())
}

fn begin<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'_>,
    team: &'env Team,
    number: usize,
    work: impl FnOnce() -> Result<Flow, Failure> + Send + 'scope,
) -> Result<(), Failure> {
    let (member, thread) = (shared.member(team), Builder::new().name(format!("stream-{number}")));
    thread.spawn_scoped(scope, move || member.work(number, work)).map(drop).map_err(|error| {
        Failure::new(Stage::Measure, Kind::Configuration, format!("no thread for stream {number}: {error}"))
            .remedy(remedy::RAISE_PROCESSES)
    })
}

struct Conductor<'a, 'b> {
    channel: &'a mut Channel,
    shared: &'a Shared<'b>,
    part: Part,
    sends: bool,
    receives: bool,
    /// The stop rule at the leading end of a bandwidth pass; counts bytes.
    window: Option<Window>,
    counted: u64,
    /// Bytes moved at the last check.
    moved: u64,
    said_sent: bool,
    stopping: Option<Instant>,
    record: PassRecord,
}

impl Conductor<'_, '_> {
    fn run(mut self, sockets: &[TcpStream]) -> Result<PassRecord, Failure> {
        match self.part {
            Part::Lead(rule, start_at) => self.lead(rule, start_at)?,
            Part::Follow => self.channel.say(&Signal::Ready)?,
        }
        while !self.is_over() {
            self.turn(sockets)?;
        }
        self.record.interval = self.window.take().and_then(|window| window.finish(clock::now()).interval);
        Ok(self.record)
    }

    fn lead(&mut self, rule: step::Window, start_at: Option<Nanoseconds>) -> Result<(), Failure> {
        self.channel.say(&Signal::Go(self.shared.pass))?;
        while wait::wait([(self.channel.as_fd(), READABLE)], Some(Duration::from_millis(100))).map_err(internal)? == [0]
        {
            self.shared.control.check(Stage::Measure)?;
        }
        match self.channel.hear()? {
            Signal::Ready => {}
            Signal::Refused(why) => return Err(Failure::new(Stage::Measure, Kind::Unsupported, why)),
            other => return Err(unexpected(&other)),
        }
        if let Some(start) = start_at {
            clock::wait_until(start, self.shared.control)?;
        }
        let started = clock::now();
        self.record.started = Some(started);
        if self.shared.pass.metric == TestMetric::Bandwidth {
            self.window = Some(Window::begin(rule, railgauge_wire::unit::Bytes(1), started));
        }
        if self.receives {
            self.channel.say(&Signal::Start)?;
        }
        self.shared.open_gate();
        Ok(())
    }

    fn is_over(&self) -> bool {
        (!self.sends || self.record.theirs.is_some()) && (!self.receives || self.record.ours.is_some())
    }

    fn turn(&mut self, sockets: &[TcpStream]) -> Result<(), Failure> {
        let (shared, control) = (self.shared, self.shared.control);
        let to_mark = self.window.as_ref().map_or(LOOK, |window| window.mark.saturating_sub(clock::now()).min(LOOK));
        let to_mark = if self.is_cold() { to_mark.max(LOOK_WHILE_COLD) } else { to_mark };
        let bells = [&shared.bell, control.bell().unwrap_or(&shared.bell)];
        let [said, ..] = wait::wait(
            [(self.channel.as_fd(), READABLE), (bells[0].as_fd(), READABLE), (bells[1].as_fd(), READABLE)],
            Some(to_mark.into()),
        )
        .map_err(internal)?;
        bells.iter().for_each(|bell| bell.quiet());
        if let Some(failure) = shared.failure() {
            return Err(failure);
        }
        if said != 0 {
            let signal = self.channel.hear()?;
            self.heard(signal, sockets)?;
        }
        control.check(Stage::Measure)?;
        if control.stopped() && self.stopping.get_or_insert_with(Instant::now).elapsed() > GRACE {
            return Err(Failure::new(Stage::Measure, Kind::Aborted, "stopped before the initiator ended its pass"));
        }
        let moved = self.moved();
        if moved != self.moved {
            self.moved = moved;
            control.progressed(clock::now());
        }
        self.look_at_window(moved)?;
        if self.sends && !self.said_sent && shared.sources.is_done() {
            self.said_sent = true;
            self.channel.say(&Signal::Sent(shared.sources.bytes()))?;
        }
        if self.receives && self.record.ours.is_none() && shared.sinks.is_done() {
            let ours = shared::sinks(shared)?;
            self.channel.say(&Signal::Got(ours.clone()))?;
            self.record.ours = Some(ours);
        }
        Ok(())
    }

    /// Sent payload bytes, or received ones where this end only receives.
    fn moved(&self) -> u64 {
        let lanes = self.shared.lanes.iter();
        match self.sends {
            true => lanes.map(|lane| lane.sent.load(Ordering::Relaxed)).sum(),
            false => lanes.map(|lane| lane.received.load(Ordering::Relaxed)).sum(),
        }
    }

    /// A warm-up without data. On a busy host its time can be over before its threads first ran.
    fn is_cold(&self) -> bool {
        self.shared.pass.purpose == Purpose::WarmUp && self.moved == 0
    }

    fn look_at_window(&mut self, counted: u64) -> Result<(), Failure> {
        if self.is_cold() {
            return Ok(());
        }
        let Some(window) = self.window.as_mut().filter(|window| window.running) else { return Ok(()) };
        window.completed(clock::now(), counted - self.counted);
        self.counted = counted;
        if !window.running {
            self.shared.halt.store(true, Ordering::Relaxed);
            if self.receives {
                self.channel.say(&Signal::Halt)?;
            }
        }
        Ok(())
    }

    fn heard(&mut self, signal: Signal, sockets: &[TcpStream]) -> Result<(), Failure> {
        match signal {
            Signal::Start if self.sends => {
                self.record.started = Some(clock::now());
                self.shared.open_gate();
            }
            Signal::Halt if self.sends => self.shared.halt.store(true, Ordering::Relaxed),
            Signal::Sent(bytes) if self.receives => {
                for (lane, bytes) in self.shared.lanes.iter().zip(bytes) {
                    lane.total.store(bytes.0 + 1, Ordering::Release);
                }
                self.channel.say(&Signal::Counted)?;
            }
            Signal::Counted if self.said_sent => {
                let streams = self.shared.sources.bytes().len();
                for (number, socket) in sockets.iter().enumerate().take(streams) {
                    Stream::new(socket, number, self.shared).send(&[0])?;
                }
            }
            Signal::Got(theirs) if self.said_sent => {
                self.record.ended = Some(clock::now());
                self.record.theirs = Some(theirs);
            }
            other => return Err(unexpected(&other)),
        }
        Ok(())
    }
}

fn unexpected(signal: &Signal) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, format!("the peer said {signal:?} where it makes no sense"))
}

fn internal(error: std::io::Error) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, format!("waiting failed: {error}"))
}
