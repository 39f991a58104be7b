//! One message at a time, there and back, on the first stream.
//!
//! Write and send: the message goes there and the same number of bytes comes back; a sample is half a round trip.
//! Read: a request of [`REQUEST`] bytes goes there and the message comes back; a sample is the whole round trip.

use std::{net::TcpStream, sync::atomic::Ordering};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    terms::Op,
    unit::{Bytes, Nanoseconds},
};

use super::{
    memory::Bounce,
    shared::{Flow, Shared},
    signal::Pass,
    stream::Stream,
};
use crate::bench::{Recorder, Window, clock, cpu};

/// Bytes of a request for a message.
const REQUEST: usize = 8;

/// Bytes that go there, and bytes that come back.
pub(super) fn there_and_back(pass: &Pass) -> (usize, usize) {
    let size = pass.size.as_usize();
    if pass.op == Op::Read { (REQUEST, size) } else { (size, size) }
}

/// The initiator: sends, waits for the answer, keeps the time.
pub(super) fn ping(
    shared: &Shared<'_>,
    socket: &TcpStream,
    buffer: &mut [u8],
    mut stage: Option<&mut Bounce>,
) -> Result<Flow, Failure> {
    let mut stream = Stream::new(socket, 0, shared);
    let (there, back) = there_and_back(&shared.pass);
    let rule = shared.rule.ok_or_else(|| Failure::new(Stage::Measure, Kind::Internal, "a latency pass without end"))?;
    let mut recorder = Recorder::new();
    let mut window = Window::ready(rule, shared.pass.size);
    shared.wait_at_gate();
    let deadline = clock::at(shared.control.deadline());
    let before = cpu::thread();
    let first = clock::now();
    window.start(first);
    let mut last = first;
    while window.running() && recorder.samples() < window.quota() {
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
    let cpu = cpu::thread() - before;
    let bytes = Bytes::of(there) * recorder.samples();
    let trips = if shared.pass.op == Op::Read { 1 } else { 2 };
    let latency = Some((window.finish(last), recorder.finish(trips)));
    Ok(Flow { bytes, first, last, cpu, slices: None, latency })
}

/// The responder: answers until everything announced has come.
pub(super) fn echo(
    shared: &Shared<'_>,
    socket: &TcpStream,
    buffer: &mut [u8],
    mut stage: Option<&mut Bounce>,
) -> Result<Flow, Failure> {
    let mut stream = Stream::new(socket, 0, shared);
    let (there, back) = there_and_back(&shared.pass);
    let before = cpu::thread();
    let (mut received, mut first) = (0u64, None::<Nanoseconds>);
    loop {
        let mut got = 0;
        while got < there {
            let n = stream.receive(&mut buffer[got..there])?;
            got += n;
            received += n as u64;
            if received == shared.lanes[0].total.load(Ordering::Acquire) {
                let cpu = cpu::thread() - before;
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
        // Not in every round: whatever the responder does between two messages costs the initiator time.
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
