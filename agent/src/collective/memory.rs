//! The memory of a rank, and whether all ranks of a host find room.

use std::ops::Range;

use parking_lot::Mutex;
use railgauge_wire::{Failure, Kind, Stage, remedy};

use super::engine::Sides;
use crate::{
    memory::{host::Buffer, place},
    system::tree::Tree,
};

/// Bytes the ranks of this process hold or are about to take.
static HELD: Mutex<u64> = Mutex::new(0);

pub(crate) struct Memory {
    input: Buffer,
    output: Buffer,
    scratch: Buffer,
    held: u64,
}

impl Memory {
    /// Two buffers of `capacity` bytes. That `siblings` ranks find as much is looked at before any of them takes
    /// anything, so that a lack of memory is known before anything moves.
    pub(crate) fn new(capacity: u64, siblings: u32, huge_pages: bool) -> Result<Self, Failure> {
        let need = capacity.saturating_mul(2);
        let all = need.saturating_mul(siblings.max(1).into());
        {
            let mut held = HELD.lock();
            let room = place::bytes(&Tree::host()).map(|free| free.saturating_add(*held));
            if let Some(room) = room.filter(|room| all > *room) {
                let cause = format!(
                    "{siblings} ranks with two buffers of {capacity} bytes each need {all} bytes of memory on this \
                     host, {room} are available"
                );
                return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::FEWER_RANKS));
            }
            *held += need;
        }
        let buffers = Buffer::new(capacity, huge_pages)
            .and_then(|input| Ok((input, Buffer::new(capacity, huge_pages)?, Buffer::new(0, false)?)));
        match buffers {
            Ok((input, output, scratch)) => Ok(Self { input, output, scratch, held: need }),
            Err(failure) => {
                *self::HELD.lock() -= need;
                Err(failure)
            }
        }
    }

    /// Bytes of each buffer.
    pub(crate) fn capacity(&self) -> u64 {
        self.input.len() as u64
    }

    pub(crate) fn scratch(&mut self, bytes: usize) -> Result<(), Failure> {
        if bytes > self.scratch.len() {
            self.scratch = Buffer::new(bytes as u64, false)?;
        }
        Ok(())
    }

    pub(crate) fn input_mut(&mut self) -> &mut [u8] {
        self.input.bytes_mut()
    }

    pub(crate) fn output(&self) -> &[u8] {
        self.output.bytes()
    }

    pub(crate) fn output_mut(&mut self) -> &mut [u8] {
        self.output.bytes_mut()
    }

    /// The memories of one operation, which has the bytes `at` of both buffers.
    pub(crate) fn sides(&mut self, at: Range<usize>) -> Sides<'_> {
        Sides {
            input: &self.input.bytes()[at.clone()],
            output: &mut self.output.bytes_mut()[at],
            scratch: self.scratch.bytes_mut(),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        *HELD.lock() -= self.held;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_would_not_find_room_together_are_refused_before_the_first_takes_any() {
        let free = place::bytes(&Tree::new("/")).unwrap();
        let failure = Memory::new(free / 4, 1_000, false).map(drop).unwrap_err();
        assert!(failure.cause.contains("1000 ranks"), "{failure}");
        assert!(Memory::new(4096, 2, false).is_ok());
    }
}
