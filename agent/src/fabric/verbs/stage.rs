//! Messages of GPU memory that go through host memory: brought there before each is posted, taken back after each came.

use std::sync::Arc;

use railgauge_wire::{
    failure::Failure,
    terms::{GpuPath, Op},
};

use super::{end::VerbsEnd, layout::HEADER};
use crate::verbs::region::Region;

/// The copies around the messages of one pass.
pub(crate) struct Stage {
    region: Arc<Region>,
    outgoing: Vec<u64>,
    /// Where messages land that do not land in the receives they take.
    incoming: Option<Vec<u64>>,
    /// Bytes in front of the payload of a receive.
    header: u64,
    size: u64,
}

impl VerbsEnd {
    /// The copies that a pass of `op` with messages of `size` bytes needs; none where the device reaches the memory.
    pub(crate) fn stage(&self, op: Op, size: u64) -> Option<Stage> {
        (self.resources.gpu_path == GpuPath::Staged).then(|| Stage {
            region: self.resources.region.clone(),
            outgoing: (0..self.connection.pairs.len()).map(|i| self.resources.layout.outgoing(i)).collect(),
            incoming: (op != Op::Send)
                .then(|| (0..self.connection.pairs.len()).map(|i| self.resources.layout.incoming(i)).collect()),
            header: if self.resources.layout.datagrams { HEADER } else { 0 },
            size,
        })
    }
}

impl Stage {
    /// Before so many messages are posted on queue pair `i`: every one of them is copied.
    pub(crate) fn fetch(&self, i: usize, messages: u64) -> Result<(), Failure> {
        (0..messages).try_for_each(|_| self.region.backing().fetch(self.outgoing[i], self.size))
    }

    /// After a message has come on queue pair `i` and taken the receive at `place`.
    pub(crate) fn deliver(&self, i: usize, place: u64) -> Result<(), Failure> {
        let place = self.incoming.as_ref().map_or(place + self.header, |places| places[i]);
        self.region.backing().deliver(place, self.size)
    }
}
