//! Ranks joined by RDMA: one reliable connection between any two. Messages of at most [`SLOT`] bytes are sent from registered slots to
//! registered slots, and copied or reduced out of them on arrival. The word of every message is the number of payload messages its sender
//! has consumed: at most [`WINDOW`] are on the way, so every message finds a posted receive. A rank without data sends an empty message.

use std::{collections::VecDeque, os::fd::AsFd, sync::Arc, time::Duration};

use railgauge_wire::{Failure, Kind, Stage};

use super::engine::{Wire, unconnected};
use crate::{
    bench::control::Control,
    system::wait::{self, READABLE},
    verbs::{
        completion::{CompletionQueue, Poller},
        events::Watch,
        receive::Messages,
        words::{self, Doing},
    },
};

mod port;

pub(crate) use port::VerbsRankPort;

const SLOT: u32 = 64 << 10;
/// Payload messages on the way from one rank to another.
const WINDOW: u32 = 8;
/// Empty messages on the way: one for every half window consumed, with a reserve.
const EMPTY: u32 = 8;
/// Receives posted, and sends in flight, for each other rank.
const DEPTH: u32 = WINDOW + EMPTY;
/// Slots for each other rank: received into, then sent from.
const SLOTS: u32 = 2 * DEPTH;

/// Yields before a sleep.
const YIELDS: u32 = 64;
/// Vain tries between two checks of the controller's flags, for a rank that never sleeps.
const LOOK: u32 = 4096;
const NAP: Duration = Duration::from_millis(100);

pub(crate) struct Verbs {
    /// `None` for this rank.
    lanes: Vec<Option<Lane>>,
    queue: Arc<CompletionQueue>,
    poller: Poller,
    watch: Watch,
}

struct Lane {
    name: String,
    messages: Messages,
    sent: u32,
    loaded: u32,
    left: u32,
    theirs: u32,
    /// Its messages that this rank has consumed, and those already reported.
    consumed: u32,
    told: u32,
    /// Payload slots in order: slot and length.
    arrived: VecDeque<(u32, usize)>,
    at: usize,
}

impl Lane {
    fn new(name: String, messages: Messages) -> Self {
        let arrived = VecDeque::with_capacity(DEPTH as usize);
        Self { name, messages, sent: 0, loaded: 0, left: 0, theirs: 0, consumed: 0, told: 0, arrived, at: 0 }
    }

    /// Whether a slot is free and, for payload, a receive is posted. Counters wrap.
    fn ready(&self, payload: bool) -> bool {
        let free = self.sent.wrapping_sub(self.left) < DEPTH;
        free && (!payload || self.loaded.wrapping_sub(self.theirs) < WINDOW)
    }

    fn post(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let slot = DEPTH + self.sent % DEPTH;
        let posted = self.messages.send(slot, bytes, self.consumed);
        posted.map_err(|errno| self.refused(errno))?;
        self.sent = self.sent.wrapping_add(1);
        self.loaded = self.loaded.wrapping_add(u32::from(!bytes.is_empty()));
        self.told = self.consumed;
        Ok(())
    }

    /// Frees the first slot; notifies the other rank now and then.
    fn consume(&mut self) -> Result<(), Failure> {
        let Some((slot, _)) = self.arrived.pop_front() else { return Ok(()) };
        self.at = 0;
        self.messages.receive(slot).map_err(|errno| self.refused(errno))?;
        self.consumed = self.consumed.wrapping_add(1);
        if self.consumed.wrapping_sub(self.told) >= WINDOW / 2 && self.ready(false) {
            self.post(&[])?;
        }
        Ok(())
    }

    /// What is left of the first arrived message, at most `most` bytes.
    fn first(&mut self, most: usize) -> Result<&[u8], Failure> {
        let Some((slot, length)) = self.arrived.front().copied() else { return Ok(&[]) };
        let part = self.at..length.min(self.at + most);
        let refused = |errno| refused(&self.name, errno);
        self.messages.slot(slot).and_then(|bytes| bytes.get(part).ok_or(libc::EINVAL)).map_err(refused)
    }

    fn take(&mut self, bytes: usize) -> Result<usize, Failure> {
        self.at += bytes;
        if self.arrived.front().is_some_and(|(_, length)| self.at == *length) {
            self.consume()?;
        }
        Ok(bytes)
    }

    fn refused(&self, errno: i32) -> Failure {
        refused(&self.name, errno)
    }
}

fn refused(name: &str, errno: i32) -> Failure {
    words::verb(Stage::Measure, Doing::Post, "the queue pair", errno).about(format_args!("to {name}"))
}

impl Verbs {
    /// Takes completions of arrivals and sends. Returns their number.
    fn progress(&mut self) -> Result<usize, Failure> {
        let (lanes, mut again) = (&mut self.lanes, Vec::new());
        let taken = self.poller.poll(|completion| {
            let Some(lane) = lanes.get_mut(completion.tag()).and_then(Option::as_mut) else { return };
            let Some(slot) = lane.messages.complete(&completion) else { return };
            if !completion.is_receive() {
                lane.left = lane.left.wrapping_add(1);
                return;
            }
            lane.theirs = completion.word();
            match completion.bytes() {
                0 => again.push((completion.tag(), slot)),
                length => lane.arrived.push_back((slot, length as usize)),
            }
        });
        let taken = taken.map_err(|failure| self.failed(failure))?;
        for (rank, slot) in again {
            let lane = self.lane(rank)?;
            lane.messages.receive(slot).map_err(|errno| lane.refused(errno))?;
        }
        Ok(taken)
    }

    fn look(&self, control: &Control, from: Option<usize>, to: Option<usize>) -> Result<(), Failure> {
        self.watch.check(Stage::Measure)?;
        control.check(Stage::Measure).map_err(|failure| self.waiting(failure, from, to))
    }

    fn failed(&self, failure: Failure) -> Failure {
        if let Err(event) = self.watch.check_behind(failure.stage) {
            return Failure { cause: format!("{}; then: {}", event.cause, failure.cause), ..event };
        }
        let name = self.poller.failed().map_or("another rank", |tag| self.name(tag));
        failure.about(format_args!("the connection to {name} broke"))
    }

    fn lane(&mut self, rank: usize) -> Result<&mut Lane, Failure> {
        self.lanes.get_mut(rank).and_then(Option::as_mut).ok_or_else(|| unconnected(rank))
    }

    /// The rank's lane, with a message if one has arrived.
    fn heard(&mut self, from: usize) -> Result<&mut Lane, Failure> {
        if self.lane(from)?.arrived.is_empty() {
            self.progress()?;
        }
        self.lane(from)
    }
}

impl Wire for Verbs {
    fn name(&self, rank: usize) -> &str {
        self.lanes.get(rank).and_then(Option::as_ref).map_or("another rank", |lane| lane.name.as_str())
    }

    fn offer(&mut self, to: usize, bytes: &[u8]) -> Result<usize, Failure> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if !self.lane(to)?.ready(true) {
                self.progress()?;
            }
            let lane = self.lane(to)?;
            if !lane.ready(true) {
                break;
            }
            let (now, later) = rest.split_at(rest.len().min(SLOT as usize));
            lane.post(now)?;
            rest = later;
        }
        Ok(bytes.len() - rest.len())
    }

    fn take(&mut self, from: usize, into: &mut [u8]) -> Result<usize, Failure> {
        let lane = self.heard(from)?;
        let bytes = lane.first(into.len())?;
        into[..bytes.len()].copy_from_slice(bytes);
        let length = bytes.len();
        lane.take(length)
    }

    fn lend(
        &mut self,
        from: usize,
        most: usize,
        width: usize,
        reader: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        let lane = self.heard(from)?;
        let bytes = lane.first(most)?;
        // Messages are cut at multiples of 64 KiB, and so between elements.
        let length = bytes.len() / width * width;
        reader(&bytes[..length]);
        lane.take(length)
    }

    fn rest(&mut self, from: Option<usize>, to: Option<usize>, tries: u32, control: &Control) -> Result<(), Failure> {
        if self.progress()? > 0 {
            return Ok(());
        }
        let queue = self.queue.clone();
        let Some(channel) = queue.channel().filter(|_| tries >= YIELDS) else {
            std::thread::yield_now();
            let look = tries % LOOK == LOOK - 1;
            return if look { self.look(control, from, to) } else { Ok(()) };
        };
        self.look(control, from, to)?;
        // An arrival before arming causes no event: poll once more.
        queue.arm()?;
        if self.progress()? == 0 {
            let bell = control.bell().map(|bell| (bell.as_fd(), READABLE));
            let on = std::iter::once((channel.as_fd(), READABLE)).chain(bell);
            wait::wait_any(on, Some(NAP))
                .map_err(|error| Failure::new(Stage::Measure, Kind::Internal, format!("waiting failed: {error}")))?;
        }
        while queue.take_event()? {}
        Ok(())
    }
}

impl Drop for Verbs {
    fn drop(&mut self) {
        // An untaken event would prevent the queue's destruction.
        while let Ok(true) = self.queue.take_event() {}
    }
}
