//! A test of a GPU's memory: pattern after pattern is written to all of it and compared, by the GPU itself.
//!
//! The patterns are those of memory testers such as memtest86 and cuda_memtest: all bits clear and set, neighbouring bits that differ in steps of
//! one, two and four, and words of which no two are alike, which shows an address that leads elsewhere.

use std::cell::Cell;

use railgauge_wire::{
    failure::{Failure, Stage},
    measure::Measurement,
    node::{NodeSpec, PATTERNS},
    step::{Checked, Pattern, Window},
    terms::LinkLayer,
    unit::Bytes,
};

use super::{Mover, Opened, queued::Queued};
use crate::{
    bench::control::Control,
    gpu::{
        Buffer, Stream, device,
        kernels::{self, Tally, Words},
    },
    memory::pattern,
};

const fn all(flip: u64) -> Words {
    Words { are_random: false, flip }
}

const ALTERNATING: [u64; 3] = [0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0x0f0f_0f0f_0f0f_0f0f];

/// The patterns in their order, each followed by its complement.
const WORDS: [Words; PATTERNS as usize] = [
    all(0),
    all(u64::MAX),
    all(ALTERNATING[0]),
    all(!ALTERNATING[0]),
    all(ALTERNATING[1]),
    all(!ALTERNATING[1]),
    all(ALTERNATING[2]),
    all(!ALTERNATING[2]),
    Words { are_random: true, flip: 0 },
    Words { are_random: true, flip: u64::MAX },
];

/// A GPU, and the part of its memory that is tested.
pub(super) struct Patterns {
    stream: Stream,
    buffer: Buffer,
    /// Of the timed pass. Kernels may still count when a pass is given up, so it goes with the memory.
    tally: Option<Tally>,
    checked: Checked,
    /// Free and all memory of the GPU before any was taken.
    memory: Option<(u64, u64)>,
}

impl Patterns {
    /// Opens the GPU at this PCI address and takes the memory.
    pub(super) fn open(gpu: &str, spec: &NodeSpec) -> Result<Self, Failure> {
        let device = device::at(gpu)?;
        let memory = device.memory().ok();
        let (stream, buffer) = (Stream::new(&device)?, Buffer::new(&device, spec.size.0)?);
        Ok(Self { stream, buffer, tally: None, checked: Checked::default(), memory })
    }
}

/// Kernels may still be under way when a pass is given up: the memory goes only when they are over.
impl Drop for Patterns {
    fn drop(&mut self) {
        // A stream that failed has nothing under way.
        let _ = self.stream.wait();
    }
}

impl Mover for Patterns {
    fn verify(&mut self, pattern: &Pattern, control: &Control) -> Result<Checked, Failure> {
        kernels::poison(&self.stream, &self.buffer, 0, pattern, 0)?;
        kernels::fill(&self.stream, &self.buffer, 0, pattern, 0)?;
        control.check(Stage::Verify)?;
        kernels::check(&self.stream, &self.buffer, 0, pattern, 0)
    }

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure> {
        self.stream.device().enter()?;
        let tally = &*self.tally.insert(Tally::new(&self.stream)?);
        let number = Cell::new(0_usize);
        let queue = || {
            let at = number.replace(number.get() + 1);
            let words = WORDS[at % WORDS.len()];
            // The same for a pattern and its complement.
            let seen = Pattern { size: spec.size, seed: spec.verify.unwrap_or_default(), iteration: at as u64 / 2 };
            let key = pattern::key(&seen, 0);
            kernels::write_words(&self.stream, &self.buffer, key, words)?;
            kernels::check_words(&self.stream, &self.buffer, key, words, tally)
        };
        let queued = Queued { stream: &self.stream, queue };
        let one = queued.warm_up(spec, control)?;
        // From the first pattern on, and each of them once at least.
        number.set(0);
        let fewest = if matches!(spec.window, Window::Iterations(_)) { 1 } else { PATTERNS };
        let measured = queued.time_at_least(spec, control, one, fewest);
        // What was found is told of a pass that was given up, too.
        let found = tally.read(&self.stream);
        if let Ok((wrong, first_wrong)) = found {
            let verified = Bytes(spec.size.0.saturating_mul(number.get() as u64));
            self.checked = Checked { verified, wrong: Bytes(wrong), first_wrong };
        }
        let measured = measured?;
        found.map(|_| measured)
    }

    fn checked(&self) -> Checked {
        self.checked
    }

    fn opened(&self) -> Opened {
        let (device, gpu) = (self.stream.device(), self.stream.device().pci().to_owned());
        let mut settings = device.record();
        settings.insert("patterns".to_owned(), PATTERNS.to_string());
        if let Some((free, total)) = self.memory {
            settings.insert("gpu_memory_free".to_owned(), free.to_string());
            settings.insert("gpu_memory".to_owned(), total.to_string());
        }
        Opened {
            link_layer: LinkLayer::Memory,
            carrier: device.maker().kernels(),
            devices: (gpu.clone(), gpu),
            settings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_is_once_set_and_once_clear_beside_one_that_is_not() {
        let plain = || WORDS.iter().filter(|words| !words.are_random).map(|words| words.flip);
        for bit in 0..64 {
            let values: Vec<bool> = plain().map(|word| (word >> bit) & 1 == 1).collect();
            assert!(values.contains(&true) && values.contains(&false), "{bit}");
        }
        // Any two neighbours, in both ways.
        for bit in 0..63 {
            for wanted in [1, 2] {
                assert!(plain().any(|word| (word >> bit) & 3 == wanted), "{bit}");
            }
        }
        assert_eq!(WORDS.iter().filter(|words| words.are_random).count(), 2);
    }
}
