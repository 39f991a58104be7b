//! The sending end of one stream in a bandwidth or verifying pass: one `send` per message, as fast as the socket takes
//! them.

use std::{net::TcpStream, sync::atomic::Ordering, time::Duration};

use railgauge_wire::failure::{Failure, Stage};

use super::{
    memory::Bounce,
    shared::{Flow, Shared},
    signal::Purpose,
    stream::Stream,
};
use crate::bench::{Pacer, clock, cpu};

/// Longest sleep of a source that is held back: after it, it looks whether it shall end.
const NAP: Duration = Duration::from_millis(20);

/// Sends messages out of `buffer`, walking through the whole of it, until halted or the quota is sent.
pub(super) fn run(
    shared: &Shared<'_>,
    number: usize,
    socket: &TcpStream,
    buffer: &mut [u8],
    mut stage: Option<&mut Bounce>,
) -> Result<Flow, Failure> {
    let mut stream = Stream::new(socket, number, shared);
    let size = shared.pass.size.as_usize();
    let stride = size.next_multiple_of(64);
    let idle = shared.pass.only.is_some_and(|only| only as usize != number);
    let quota = if idle { 0 } else { shared.pass.quota.unwrap_or(u64::MAX) };
    // While bytes stream, the kernel may join small messages into full segments; see `endpoint::tcp::socket` for the rest.
    let joining = shared.pass.purpose != Purpose::Verify;
    shared.wait_at_gate();
    set_nodelay(socket, !joining);
    let (first, before) = (clock::now(), cpu::thread());
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
    // Also pushes out what was held back to fill a segment.
    set_nodelay(socket, true);
    let cpu = cpu::thread() - before;
    Ok(Flow { bytes: shared.pass.size * messages, first, last: clock::now(), cpu, ..Flow::default() })
}

fn set_nodelay(socket: &TcpStream, on: bool) {
    // Was accepted when the socket was prepared; without it only small segments come later.
    let _ = socket.set_nodelay(on);
}
