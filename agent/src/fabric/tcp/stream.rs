//! Sending and receiving on streams: bandwidth and verifying passes with one `send` per message, and latency on the first stream.
//!
//! Latency of write and send: a message and the same number of bytes back; a sample is half a round trip. Read: a request of 8
//! bytes, and the message back; a sample is the whole round trip.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use railgauge_wire::{Bytes, Failure, Kind, Measurement, Nanoseconds, Op, Stage, remedy};

use super::{
    memory::Bounce,
    shared::{Flow, Purpose, Shared},
};
use crate::bench::{Pacer, Recorder, Slices, Window, clock};

pub(super) struct Stream<'a> {
    socket: &'a TcpStream,
    number: usize,
    shared: &'a Shared<'a>,
    /// Vain calls since the last check of the flags.
    idle: u32,
}

impl<'a> Stream<'a> {
    pub(super) fn new(socket: &'a TcpStream, number: usize, shared: &'a Shared<'a>) -> Self {
        Self { socket, number, shared, idle: 0 }
    }

    #[inline]
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) => self.again(error)?,
            }
        }
        Ok(())
    }

    /// At least one byte.
    #[inline]
    pub(super) fn receive(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        loop {
            match self.socket.read(into) {
                Ok(0) => return Err(self.broke(&io::Error::other("the peer closed it"))),
                Ok(n) => return Ok(n),
                Err(error) => self.again(error)?,
            }
        }
    }

    /// `Ok` if a failed call is to be repeated.
    #[cold]
    fn again(&mut self, error: io::Error) -> Result<(), Failure> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if error.raw_os_error() != Some(libc::ETIMEDOUT) => {
                self.idle = self.idle.wrapping_add(1);
                // A spinning loop checks the flags now and then, a sleeping one after every vain wake-up.
                match !self.shared.spin || self.idle.is_multiple_of(1024) {
                    true => self.shared.control.check(Stage::Measure),
                    false => Ok(()),
                }
            }
            _ => Err(self.broke(&error)),
        }
    }

    fn broke(&self, error: &io::Error) -> Failure {
        let cause = format!("stream {} to {} broke: {error}", self.number, self.shared.peer);
        Failure::new(Stage::Measure, Kind::Fabric, cause).remedy(remedy::CHECK_PEER_AND_LINK)
    }
}

/// Ends all streams at once, so that no thread stays in a call.
pub(super) fn cut(streams: &[TcpStream]) {
    for stream in streams {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Longest sleep of a rate-limited source between checks of the flags.
const NAP: Duration = Duration::from_millis(20);

/// Sends messages from the whole of `buffer` in turn, until halted or the quota is sent.
pub(super) fn source(
    mut stream: Stream<'_>,
    buffer: &mut [u8],
    mut stage: Option<&mut Bounce>,
) -> Result<Flow, Failure> {
    let Stream { socket, number, shared, .. } = stream;
    let size = shared.pass.size.as_usize();
    let stride = size.next_multiple_of(64);
    let idle = shared.pass.only.is_some_and(|only| only as usize != number);
    let quota = if idle { 0 } else { shared.pass.quota.unwrap_or(u64::MAX) };
    // While bytes stream, the kernel may join small messages into full segments; see `endpoint::tcp::socket` for the rest.
    let joining = shared.pass.purpose != Purpose::Verify;
    shared.wait_at_gate();
    set_nodelay(socket, !joining);
    let (first, before) = (clock::now(), clock::cpu());
    let (mut at, mut messages) = (0, 0);
    let mut pacer = Pacer::new(shared.pass.pace, shared.pass.size, first);
    while messages < quota && !shared.halt.load(Ordering::Relaxed) {
        if let Some(wait) = pacer
            .as_mut()
            .map(|pacer| Duration::from(pacer.wait(clock::now(), messages)))
            .filter(|wait| !wait.is_zero())
        {
            shared.control.check(Stage::Measure)?;
            std::thread::sleep(wait.min(NAP));
            continue;
        }
        let message = &mut buffer[at..at + size];
        if let Some(stage) = &mut stage {
            stage.fetch(message, at)?;
        }
        stream.send(message)?;
        messages += 1;
        shared.lanes[number].sent.store(messages * size as u64, Ordering::Relaxed);
        at = if at + stride + size <= buffer.len() { at + stride } else { 0 };
    }
    // Also flushes data held back to fill a segment.
    set_nodelay(socket, true);
    let cpu = clock::cpu() - before;
    Ok(Flow { bytes: shared.pass.size * messages, first, last: clock::now(), cpu, ..Flow::default() })
}

fn set_nodelay(socket: &TcpStream, on: bool) {
    // Was accepted when the socket was prepared; without it small segments are only delayed.
    let _ = socket.set_nodelay(on);
}

/// Receives until every announced byte and the final one have arrived. In a verifying pass byte `i` of the message lands at `i`; in a
/// timed pass `buffer` is a ring.
pub(super) fn sink(mut stream: Stream<'_>, buffer: &mut [u8], mut stage: Option<&mut Bounce>) -> Result<Flow, Failure> {
    let shared = stream.shared;
    let lane = &shared.lanes[stream.number];
    let keep = (shared.pass.purpose == Purpose::Verify).then_some(shared.pass.size.0);
    let region = keep.map_or(buffer.len(), |size| size as usize);
    let before = clock::cpu();
    let (mut received, mut at, mut last) = (0u64, 0, Nanoseconds::ZERO);
    let mut slices: Option<Slices> = None;
    let mut beyond = [0];
    loop {
        let rest = if keep == Some(received) { &mut beyond[..] } else { &mut buffer[at..region] };
        let n = stream.receive(rest)?;
        if let Some(stage) = stage.as_mut().filter(|_| keep != Some(received)) {
            stage.deliver(&buffer[at..at + n], at)?;
        }
        let now = clock::now();
        received += n as u64;
        at += n;
        if at >= region {
            at = 0;
        }
        let total = lane.total.load(Ordering::Acquire);
        let done = total == received;
        // The final byte is not payload: it neither counts nor ends the measured time.
        let payload = n as u64 - u64::from(done);
        if payload > 0 {
            last = now;
            slices.get_or_insert_with(|| Slices::new(origin(&shared.origin, now))).add(now, payload);
            lane.received.store(received - u64::from(done), Ordering::Relaxed);
        }
        if done {
            let first = Nanoseconds(shared.origin.load(Ordering::Relaxed));
            let cpu = clock::cpu() - before;
            return Ok(Flow { bytes: Bytes(received - 1), first, last: last.max(first), cpu, slices, latency: None });
        }
    }
}

fn origin(origin: &AtomicU64, now: Nanoseconds) -> Nanoseconds {
    match origin.compare_exchange(0, now.0, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => now,
        // Two threads may receive their first bytes at almost the same time; time never runs backwards for either.
        Err(earlier) => Nanoseconds(earlier).min(now),
    }
}

pub(super) fn ping(mut stream: Stream<'_>, buffer: &mut [u8], mut stage: Option<&mut Bounce>) -> Result<Flow, Failure> {
    let shared = stream.shared;
    let (there, back) = shared.pass.there_and_back();
    let rule = shared.rule.ok_or_else(|| Failure::new(Stage::Measure, Kind::Internal, "a latency pass without end"))?;
    let mut recorder = Recorder::new();
    let mut window = Window::ready(rule, shared.pass.size);
    shared.wait_at_gate();
    let deadline = clock::at(shared.control.deadline);
    let before = clock::cpu();
    let first = clock::now();
    window.start(first);
    let mut last = first;
    while window.running && recorder.samples < window.quota() {
        if let Some(stage) = stage.as_mut().filter(|_| shared.pass.op != Op::Read) {
            stage.fetch(&mut buffer[..there], 0)?;
        }
        stream.send(&buffer[..there])?;
        let mut got = 0;
        while got < back {
            got += stream.receive(&mut buffer[got..back])?;
        }
        if let Some(stage) = &mut stage {
            stage.deliver(&buffer[..back], 0)?;
        }
        let now = clock::now();
        recorder.record(now - last);
        window.completed(now, 1);
        last = now;
        if now > deadline || shared.control.aborted() {
            shared.control.check(Stage::Measure)?;
        }
    }
    let cpu = clock::cpu() - before;
    let bytes = Bytes::of(there) * recorder.samples;
    let trips = if shared.pass.op == Op::Read { 1 } else { 2 };
    let latency = Some(Box::new(recorder.finish(trips)));
    let measured = Measurement { latency, ..window.finish(last) };
    Ok(Flow { bytes, first, last, cpu, slices: None, latency: Some(measured) })
}

pub(super) fn echo(mut stream: Stream<'_>, buffer: &mut [u8], mut stage: Option<&mut Bounce>) -> Result<Flow, Failure> {
    let shared = stream.shared;
    let (there, back) = shared.pass.there_and_back();
    let before = clock::cpu();
    let (mut received, mut first) = (0u64, None::<Nanoseconds>);
    loop {
        let mut got = 0;
        while got < there {
            let n = stream.receive(&mut buffer[got..there])?;
            got += n;
            received += n as u64;
            if received == shared.lanes[0].total.load(Ordering::Acquire) {
                let cpu = clock::cpu() - before;
                let last = clock::now();
                return Ok(Flow {
                    bytes: Bytes(received - 1),
                    first: first.unwrap_or_default().min(last),
                    last,
                    cpu,
                    ..Flow::default()
                });
            }
        }
        // Not in every round: the responder's work between two messages costs the initiator time.
        if first.is_none() {
            first = Some(clock::now());
        }
        if let Some(stage) = &mut stage {
            if shared.pass.op != Op::Read {
                stage.deliver(&buffer[..there], 0)?;
            }
            stage.fetch(&mut buffer[..back], 0)?;
        }
        stream.send(&buffer[..back])?;
    }
}
