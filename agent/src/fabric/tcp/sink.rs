//! The receiving end of one stream in a bandwidth or verifying pass.

use std::{
    net::TcpStream,
    sync::atomic::{AtomicU64, Ordering},
};

use railgauge_wire::{
    failure::Failure,
    unit::{Bytes, Nanoseconds},
};

use super::{
    memory::Bounce,
    shared::{Flow, Shared},
    signal::Purpose,
    stream::Stream,
};
use crate::bench::{Slices, clock, cpu};

/// Receives into `buffer` until every announced byte and the final one have come. In a verifying pass byte `i` of the
/// message lands at `i` and nothing else is touched; in a timed pass the buffer is walked through in a ring.
pub(super) fn run(
    shared: &Shared<'_>,
    number: usize,
    socket: &TcpStream,
    buffer: &mut [u8],
    mut stage: Option<&mut Bounce>,
) -> Result<Flow, Failure> {
    let mut stream = Stream::new(socket, number, shared);
    let lane = &shared.lanes[number];
    let keep = (shared.pass.purpose == Purpose::Verify).then_some(shared.pass.size.0);
    let region = keep.map_or(buffer.len(), |size| size as usize);
    let before = cpu::thread();
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
        // The final byte is no payload: it neither counts nor ends the measured time.
        let payload = n as u64 - u64::from(done);
        if payload > 0 {
            last = now;
            slices.get_or_insert_with(|| Slices::new(begin(&shared.origin, now))).add(now, payload);
            lane.received.store(received - u64::from(done), Ordering::Relaxed);
        }
        if done {
            let first = Nanoseconds(shared.origin.load(Ordering::Relaxed));
            let cpu = cpu::thread() - before;
            return Ok(Flow { bytes: Bytes(received - 1), first, last: last.max(first), cpu, slices, latency: None });
        }
    }
}

/// The moment the first byte of any stream arrived.
fn begin(origin: &AtomicU64, now: Nanoseconds) -> Nanoseconds {
    match origin.compare_exchange(0, now.0, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => now,
        // Two threads may see their first bytes at almost the same time; time never runs backwards for either.
        Err(earlier) => Nanoseconds(earlier).min(now),
    }
}
