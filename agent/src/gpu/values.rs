//! The data of collectives (see [`crate::memory::values`]), as the kernels make and compare it.

use std::sync::Arc;

use railgauge_wire::{
    failure::Failure,
    terms::{Datatype, Reduction},
};

use super::{buffer::Buffer, device::Device, stream::Stream, table};
use crate::memory::values::{Part, cap};

pub struct Values {
    table: Buffer,
    datatype: Datatype,
    reduction: Option<Reduction>,
    ranks: u32,
    key: u64,
}

impl Values {
    /// Data of `ranks` ranks for one reduction, or for operations that only move it.
    pub fn new(
        stream: &Stream,
        datatype: Datatype,
        reduction: Option<Reduction>,
        ranks: u32,
        seed: u64,
    ) -> Result<Self, Failure> {
        let device: &Arc<Device> = stream.device();
        let ranks = ranks.max(1);
        let given = table::given(datatype, reduction);
        let elements = given.chain(table::reduced(datatype, reduction, ranks));
        let bytes: Vec<u8> = elements.flat_map(u64::to_le_bytes).collect();
        let table = Buffer::new(device, bytes.len() as u64)?;
        stream.to_device(&table, 0, &bytes)?;
        stream.wait()?;
        Ok(Self { table, datatype, reduction, ranks, key: seed })
    }

    /// Where the elements of a part's numbers stand: as one rank gives them, or reduced.
    pub(super) fn table(&self, part: &Part) -> u64 {
        let reduced = if part.many > 1 { u64::from(table::NUMBERS) * 8 } else { 0 };
        self.table.address() + reduced
    }

    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// Base-2 logarithm of the width of an element.
    pub(super) fn shift(&self) -> u32 {
        self.datatype.bytes().0.ilog2()
    }

    pub(super) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Largest number a rank gives to a sum.
    pub(super) fn cap(&self) -> u32 {
        cap(self.most(), self.ranks)
    }

    /// Ranks that give something other than nothing to one sum: more would leave the range.
    pub(super) fn most(&self) -> u32 {
        table::largest_sum(self.datatype, self.reduction)
    }

    pub(super) fn mode(&self) -> u32 {
        match self.reduction {
            Some(Reduction::Sum | Reduction::Avg | Reduction::Mulsum) => 0,
            Some(Reduction::Prod) => 1,
            Some(Reduction::Min) => 2,
            Some(Reduction::Max) | None => 3,
        }
    }
}
