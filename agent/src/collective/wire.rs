//! What carries messages between ranks: an ordered stream of bytes to each other rank and from each.

use railgauge_wire::{
    failure::Failure,
    link::{Endpoint, Opened},
};

use crate::bench::control::Control;

/// The wire of one rank to all others. No call but [`Wire::rest`] waits.
pub(crate) trait Wire {
    /// Takes as many of `bytes` for rank `to` as there is room for now, from the front, and says how many. They may be
    /// overwritten afterwards.
    fn offer(&mut self, to: usize, bytes: &[u8]) -> Result<usize, Failure>;

    /// Stores what has come from rank `from`, at most what fits, and says how many bytes that were.
    fn take(&mut self, from: usize, into: &mut [u8]) -> Result<usize, Failure>;

    /// Shows what has come from rank `from` to `reader`, whole elements of `width` bytes and at most `most` bytes of
    /// them, and says how many bytes that were. `most` never reaches beyond the message that is being received.
    fn lend(&mut self, from: usize, most: usize, width: usize, reader: &mut dyn FnMut(&[u8]))
    -> Result<usize, Failure>;

    /// Waits a while for rank `from` to send or rank `to` to have room. `tries` counts the calls in vain since
    /// something moved: short waits come before long ones.
    fn rest(&mut self, from: Option<usize>, to: Option<usize>, tries: u32, control: &Control) -> Result<(), Failure>;
}

/// A failure to wait for rank `from` to send or rank `to` to take bytes, with their names.
pub(super) fn waiting(failure: Failure, from: Option<&str>, to: Option<&str>) -> Failure {
    let whom = match (from, to) {
        (Some(from), _) => format!("waiting for bytes from {from}"),
        (None, Some(to)) => format!("waiting for {to} to take bytes"),
        (None, None) => return failure,
    };
    Failure { cause: format!("{}, {whom}", failure.cause), ..failure }
}

/// Another rank, or this one, as its ticket describes it.
#[derive(Debug, Clone)]
pub(crate) struct Neighbour {
    /// The rank, in words: `rank 2 (lab3)`.
    pub name: String,
    pub endpoint: Endpoint,
}

/// What was opened for a rank to join its group from.
pub(crate) trait RankPort {
    /// What it is, and how the others reach it.
    fn opened(&self) -> &Opened;

    /// Joins rank `rank` with all ranks of `group`, and says what has become of it.
    fn join(
        self: Box<Self>,
        rank: usize,
        group: &[Neighbour],
        control: &Control,
    ) -> Result<(Box<dyn Wire>, Opened), Failure>;
}
