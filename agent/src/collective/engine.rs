//! Runs a [`Script`] over a [`Wire`], an ordered stream of bytes to and from each other rank: sends and receives piece by piece until
//! both lists are done.

use std::ops::Range;

use railgauge_wire::{Endpoint, Failure, Kind, Opened, Stage};

use super::{
    script::{How, Script, Side, Stretch},
    table::Kernel,
};
use crate::bench::control::Control;

/// Most bytes per direction at once. Received data is sent on while it is in a core's cache.
const PIECE: usize = 512 << 10;

pub(crate) struct Sides<'m> {
    /// Empty for an operation in place.
    pub input: &'m [u8],
    pub output: &'m mut [u8],
    pub scratch: &'m mut [u8],
}

impl Sides<'_> {
    fn bytes(&self, side: Side, at: Range<usize>) -> &[u8] {
        match side {
            Side::Input => &self.input[at],
            Side::Output => &self.output[at],
            Side::Scratch => &self.scratch[at],
        }
    }

    fn bytes_mut(&mut self, side: Side, at: Range<usize>) -> &mut [u8] {
        match side {
            Side::Output => &mut self.output[at],
            Side::Scratch => &mut self.scratch[at],
            // Algorithms never write to the input.
            Side::Input => &mut [],
        }
    }

    fn reduce(&mut self, kernel: Kernel, into: (Side, usize), given: (Side, usize), incoming: &[u8]) {
        let stretch = |start: usize| start..start + incoming.len();
        let (target, source) = (stretch(into.1), stretch(given.1));
        match (into.0, given.0) {
            _ if into == given => (kernel.into)(self.bytes_mut(into.0, target), incoming),
            (Side::Output, Side::Input) => (kernel.of)(&mut self.output[target], &self.input[source], incoming),
            (Side::Scratch, Side::Input) => (kernel.of)(&mut self.scratch[target], &self.input[source], incoming),
            (Side::Scratch, Side::Output) => (kernel.of)(&mut self.scratch[target], &self.output[source], incoming),
            (Side::Output, Side::Scratch) => (kernel.of)(&mut self.output[target], &self.scratch[source], incoming),
            // Two places of one memory.
            (side, _) => {
                let own = self.bytes(side, source).to_vec();
                (kernel.of)(self.bytes_mut(side, target), &own, incoming);
            }
        }
    }
}

/// Position in a list of messages: its number, and the next byte of it in its memory.
#[derive(Clone, Copy)]
struct Cursor {
    number: usize,
    at: usize,
}

impl Cursor {
    fn new(first: Option<&Stretch>) -> Self {
        Self { number: 0, at: first.map_or(0, |stretch| stretch.at.start) }
    }

    /// Advances by `bytes` within `current`, and to the start of `next` at its end.
    fn advance(&mut self, bytes: usize, current: &Stretch, next: Option<&Stretch>) {
        self.at += bytes;
        if self.at == current.at.end {
            *self = Self { number: self.number + 1, at: next.map_or(0, |stretch| stretch.at.start) };
        }
    }

    /// End of the accessible bytes from `at` to `end` of `side`, if message `number` of another list, whose cursor this is, must have
    /// passed them.
    fn passed(&self, number: usize, other: &Stretch, side: Side, at: usize, end: usize) -> usize {
        if self.number != number {
            return if self.number > number { end } else { at };
        }
        let pending = self.at..other.at.end;
        match other.side == side {
            true if pending.contains(&at) => at,
            true if at < pending.start => end.min(pending.start),
            _ => end,
        }
    }
}

/// The script must be of a group that runs the same operation at every rank.
pub(crate) fn play<W: Wire + ?Sized>(
    script: &Script,
    sides: &mut Sides<'_>,
    kernel: Option<Kernel>,
    width: usize,
    wire: &mut W,
    control: &Control,
) -> Result<(), Failure> {
    for (from, to) in &script.copies {
        if from.side == Side::Input {
            let given = &sides.input[from.at.clone()];
            match to.side {
                Side::Scratch => sides.scratch[to.at.clone()].copy_from_slice(given),
                _ => sides.output[to.at.clone()].copy_from_slice(given),
            }
        } else {
            sides.output.copy_within(from.at.clone(), to.at.start);
        }
    }
    let (sends, receives) = (&script.sends, &script.receives);
    let mut sent = Cursor::new(sends.first().map(|send| &send.what));
    let mut received = Cursor::new(receives.first().map(|receive| &receive.into));
    let mut tries = 0;
    loop {
        let mut moved = 0;
        let (mut wants_to, mut wants_from) = (None, None);
        if let Some(send) = sends.get(sent.number) {
            let end = send.what.at.end.min(sent.at + PIECE);
            let end = match send.after {
                Some(n) => received.passed(n, &receives[n].into, send.what.side, sent.at, end),
                None => end,
            };
            if end > sent.at {
                let bytes = wire.offer(send.to, sides.bytes(send.what.side, sent.at..end))?;
                if bytes < end - sent.at {
                    wants_to = Some(send.to);
                }
                sent.advance(bytes, &send.what, sends.get(sent.number + 1).map(|next| &next.what));
                moved += bytes;
            }
        }
        if let Some(receive) = receives.get(received.number) {
            let (side, at) = (receive.into.side, received.at);
            let end = receive.into.at.end.min(at + PIECE);
            let end = match receive.behind {
                Some(n) => sent.passed(n, &sends[n].what, side, at, end),
                None => end,
            };
            let most = (end - at) / width * width;
            if most > 0 {
                let bytes = match (receive.how, kernel) {
                    (How::Reduce(given, start), Some(kernel)) => {
                        let given = (given, start + at - receive.into.at.start);
                        let mut reduce = |incoming: &[u8]| sides.reduce(kernel, (side, at), given, incoming);
                        wire.lend(receive.from, most, width, &mut reduce)?
                    }
                    _ => wire.take(receive.from, sides.bytes_mut(side, at..end))?,
                };
                received.advance(bytes, &receive.into, receives.get(received.number + 1).map(|next| &next.into));
                moved += bytes;
                wants_from = Some(receive.from);
            }
        }
        if moved > 0 {
            tries = 0;
        } else if sent.number == sends.len() && received.number == receives.len() {
            return Ok(());
        } else {
            wire.rest(wants_from, wants_to, tries, control)?;
            tries += 1;
        }
    }
}

/// The wire of one rank to all others. Only [`Wire::rest`] waits.
pub(crate) trait Wire {
    /// Takes as many of `bytes` for rank `to` as there is room for, from the front, and returns their number. The caller may overwrite
    /// them afterwards.
    fn offer(&mut self, to: usize, bytes: &[u8]) -> Result<usize, Failure>;

    /// Stores data from rank `from`, and returns its length in bytes.
    fn take(&mut self, from: usize, into: &mut [u8]) -> Result<usize, Failure>;

    /// Shows data from rank `from` to `reader`, whole elements of `width` bytes and at most `most` bytes, and returns their number.
    /// `most` never exceeds the message that is being received.
    fn lend(&mut self, from: usize, most: usize, width: usize, reader: &mut dyn FnMut(&[u8]))
    -> Result<usize, Failure>;

    /// Waits a while for rank `from` to send or rank `to` to have room. `tries` counts vain calls since the last progress: waits get
    /// longer.
    fn rest(&mut self, from: Option<usize>, to: Option<usize>, tries: u32, control: &Control) -> Result<(), Failure>;

    fn name(&self, _rank: usize) -> &str {
        "another rank"
    }

    /// Names the ranks in a failure to wait.
    fn waiting(&self, failure: Failure, from: Option<usize>, to: Option<usize>) -> Failure {
        let whom = match (from, to) {
            (Some(from), _) => format!("waiting for bytes from {}", self.name(from)),
            (None, Some(to)) => format!("waiting for {} to take bytes", self.name(to)),
            (None, None) => return failure,
        };
        Failure { cause: format!("{}, {whom}", failure.cause), ..failure }
    }
}

pub(super) fn unconnected(rank: usize) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, format!("no connection to rank {rank}"))
}

#[derive(Debug, Clone)]
pub(crate) struct Neighbour {
    /// As `rank 2 (lab3)`.
    pub name: String,
    pub endpoint: Endpoint,
}

pub(crate) trait RankPort {
    fn opened(&self) -> &Opened;

    /// Joins rank `rank` with all ranks of `group`.
    fn join(
        self: Box<Self>,
        rank: usize,
        group: &[Neighbour],
        control: &Control,
    ) -> Result<(Box<dyn Wire>, Opened), Failure>;
}
