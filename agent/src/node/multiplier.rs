//! Matrix products (GEMM) by the host's own cuBLASLt or hipBLASLt, and tests of a GPU's memory.
//!
//! Products are queued in sequence on one stream and timed by events on the GPU's own clock, as copies are. The timed product is the
//! verified one: the same matrices of whole numbers (see `gpu::matrices`), the same algorithm, and the last timed result is compared too.
//!
//! A memory test writes pattern after pattern to all of it and compares on the GPU. The patterns are those of memory testers such as
//! memtest86 and cuda_memtest: all bits clear and set, neighbouring bits that differ in steps of one, two and four, and words that all
//! differ, which shows addressing errors.

use std::cell::Cell;

use railgauge_wire::{
    Bytes, Checked, Failure, Kind, LinkLayer, Measurement, NodeAccount, NodeSpec, PATTERNS, Pattern, Stage, Window,
    terms::flops,
};

use super::{
    copier::Queued,
    mover::{Mover, opened, twice},
};
use crate::{
    bench::control::Control,
    gpu::{
        Buffer, Matrices, Stream, device,
        kernels::{self, Tally, Words},
        product::Product,
    },
    memory::pattern,
};

/// Fields are dropped in order: the stream waits for products of a pass that was given up, before the memory is freed.
pub(super) struct Multiplier {
    stream: Stream,
    product: Product,
    matrices: Matrices,
    rows: u32,
    /// Whether the result is of a timed product and not compared yet.
    timed: bool,
}

impl Multiplier {
    pub(super) fn open(pci: &str, spec: &NodeSpec) -> Result<(Self, NodeAccount), Failure> {
        let wrong = |what: &str| Failure::new(Stage::Open, Kind::Internal, format!("{}: {what}", spec.op));
        let precision = spec.precision.ok_or_else(|| wrong("the request has no precision"))?;
        let rows = precision.rows(spec.size).ok_or_else(|| wrong("its size is not that of a square result"))?;
        let device = device::at(pci)?;
        let mut product = Product::new(&device, precision, rows)?;
        let stream = Stream::new(&device)?;
        let mut matrices = Matrices::new(&stream, precision, rows)?;
        // Algorithms are compared on data: products of zeros are faster.
        matrices.fill(&stream, &Pattern { size: spec.size, seed: 0, iteration: 0 })?;
        let algorithm = product.choose(&stream, &matrices)?;
        let mut settings = device.record();
        let own = [
            ("precision", precision.to_string()),
            ("shape", format!("{rows}x{rows}x{rows}")),
            ("library", product.library()),
            ("algorithm", algorithm),
        ];
        settings.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let account = opened(LinkLayer::Memory, device.vendor().products(), twice(device.pci()), settings);
        Ok((Self { product, matrices, stream, rows, timed: false }, account))
    }

    fn queued(&self) -> Queued<'_, impl Fn() -> Result<(), Failure>> {
        Queued { stream: &self.stream, queue: || self.product.multiply(&self.stream, &self.matrices) }
    }
}

impl Mover for Multiplier {
    fn verify(&mut self, pattern: &Pattern, control: &Control) -> Result<Checked, Failure> {
        self.stream.device().enter()?;
        let left = if self.timed { self.matrices.check(&self.stream)? } else { Checked::default() };
        self.timed = false;
        self.matrices.fill(&self.stream, pattern)?;
        self.matrices.poison(&self.stream)?;
        control.check(Stage::Verify)?;
        self.queued().once()?;
        control.check(Stage::Verify)?;
        let fresh = self.matrices.check(&self.stream)?;
        // A pass has one result, which covers errors of either.
        let wrong = left.wrong.max(fresh.wrong);
        Ok(Checked { verified: fresh.verified, wrong, first_wrong: left.first_wrong.or(fresh.first_wrong) })
    }

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure> {
        self.stream.device().enter()?;
        let one = self.queued().warm_up(spec, control)?;
        // The comparison must see what the timed products write.
        self.matrices.poison(&self.stream)?;
        let measured = self.queued().time(spec, control, one)?;
        self.timed = true;
        Ok(Measurement { flops: flops(self.rows).saturating_mul(measured.operations), ..measured })
    }
}

const fn all(flip: u64) -> Words {
    Words { are_random: false, flip }
}

const ALTERNATING: [u64; 3] = [0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0x0f0f_0f0f_0f0f_0f0f];

/// In order, each followed by its complement.
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

pub(super) struct Patterns {
    stream: Stream,
    buffer: Buffer,
    /// Of the timed pass. Kernels may still count when a pass is given up, so it is freed after the stream.
    tally: Option<Tally>,
    checked: Checked,
}

impl Patterns {
    pub(super) fn open(gpu: &str, spec: &NodeSpec) -> Result<(Self, NodeAccount), Failure> {
        let device = device::at(gpu)?;
        let mut settings = device.record();
        settings.insert("patterns".to_owned(), PATTERNS.to_string());
        // Before any of it is taken.
        if let Ok((free, total)) = device.memory() {
            settings.insert("gpu_memory_free".to_owned(), free.to_string());
            settings.insert("gpu_memory".to_owned(), total.to_string());
        }
        let (stream, buffer) = (Stream::new(&device)?, Buffer::new(&device, spec.size.0)?);
        let account = opened(LinkLayer::Memory, device.vendor().kernels(), twice(device.pci()), settings);
        Ok((Self { stream, buffer, tally: None, checked: Checked::default() }, account))
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
            let seen = Pattern { size: spec.size, seed: spec.verify.unwrap_or_default(), iteration: at as u64 / 2 };
            let key = pattern::key(&seen, 0);
            let all = (0, self.buffer.len());
            kernels::put(&self.stream, &self.buffer, all, key, words)?;
            kernels::compare(&self.stream, &self.buffer, all, key, words, tally)
        };
        let queued = Queued { stream: &self.stream, queue };
        let one = queued.warm_up(spec, control)?;
        // Each pattern at least once.
        number.set(0);
        let fewest = if matches!(spec.window, Window::Iterations(_)) { 1 } else { PATTERNS };
        let measured = queued.time_at_least(spec, control, one, fewest);
        // Findings of a given-up pass are also reported.
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
        // Any two neighbours, in both orders.
        for bit in 0..63 {
            for wanted in [1, 2] {
                assert!(plain().any(|word| (word >> bit) & 3 == wanted), "{bit}");
            }
        }
        assert_eq!(WORDS.iter().filter(|words| words.are_random).count(), 2);
    }
}
