//! What one rank does in one collective: its sends and its receives, each in order, and what waits for what.
//!
//! Algorithms write scripts; [`super::engine`] plays them over a wire. Sends and receives go on side by side, piece by
//! piece: a send that hands on what a receive brings follows it within the stretch, so that blocks stream through a
//! rank and transfer and reduction overlap without the algorithm saying how large a piece is.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
    /// Partial results that are nobody's.
    Scratch,
}

/// A stretch of one of the memories, in bytes from where the operation's share of it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub side: Side,
    /// Where in it.
    pub at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Send {
    pub to: usize,
    /// The bytes.
    pub what: Stretch,
    /// Number of the receive that brings (some of) them: a byte goes out once that receive has passed it.
    pub after: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receive {
    pub from: usize,
    /// Where it goes.
    pub into: Stretch,
    pub how: How,
    /// Number of the send that still reads the same bytes: one is written once that send has passed it.
    pub behind: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Place,
    /// It is reduced with as many bytes of this memory from this place on, and the result is stored.
    Reduce(Side, usize),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Script {
    /// Copied inside the rank before anything moves.
    pub copies: Vec<(Stretch, Stretch)>,
    /// Messages out, in order.
    pub sends: Vec<Send>,
    /// Messages in, in order.
    pub receives: Vec<Receive>,
}

impl Stretch {
    pub(crate) fn output(at: Range<usize>) -> Self {
        Self { side: Side::Output, at }
    }
}

impl Script {
    /// Adds a message out, unless it is empty.
    pub(crate) fn send(&mut self, to: usize, what: Stretch, after: Option<usize>) {
        if !what.at.is_empty() {
            self.sends.push(Send { to, what, after });
        }
    }

    /// Adds a message in, unless it is empty.
    pub(crate) fn receive(&mut self, from: usize, into: Stretch, how: How, behind: Option<usize>) {
        if !into.at.is_empty() {
            self.receives.push(Receive { from, into, how, behind });
        }
    }

    /// Adds a copy inside the rank, unless it is empty or would copy bytes onto themselves.
    pub(crate) fn copy(&mut self, from: Stretch, to: Stretch) {
        if !from.at.is_empty() && from != to {
            self.copies.push((from, to));
        }
    }

    /// Number of the last receive so far, for sends that follow it.
    pub(crate) fn last_receive(&self) -> Option<usize> {
        self.receives.len().checked_sub(1)
    }

    /// Number of the last send so far, for receives that must not overtake it.
    pub(crate) fn last_send(&self) -> Option<usize> {
        self.sends.len().checked_sub(1)
    }
}
