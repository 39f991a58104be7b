//! Matrix products of a GPU (GEMM), by the host's own cuBLASLt or hipBLASLt.
//!
//! Products are queued one behind the other on one stream and timed by events on the GPU's own clock, as copies are. What is timed is
//! what is verified: the same matrices, of whole numbers (see `gpu::matrices`), the same algorithm, and the result of the last timed product
//! is compared too.

use std::collections::BTreeMap;

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    measure::Measurement,
    node::NodeSpec,
    step::{Checked, Pattern},
    terms::{LinkLayer, flops},
};

use super::{Mover, Opened, queued::Queued};
use crate::{
    bench::control::Control,
    gpu::{Stream, device, matrices::Matrices, product::Product},
};

/// What multiplies, and what is multiplied. What is dropped first is declared first: nothing is under way then.
pub(super) struct Multiplier {
    product: Product,
    matrices: Matrices,
    stream: Stream,
    rows: u32,
    settings: BTreeMap<String, String>,
    /// Whether the result is that of a timed product which has not been compared yet.
    timed: bool,
}

impl Multiplier {
    /// Opens the GPU at this PCI address, takes the memory, and chooses the algorithm.
    pub(super) fn open(pci: &str, spec: &NodeSpec) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::new(Stage::Open, Kind::Internal, format!("{}: {what}", spec.op));
        let precision = spec.precision.ok_or_else(|| wrong("no precision was told"))?;
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
        Ok(Self { product, matrices, stream, rows, settings, timed: false })
    }

    fn queued(&self) -> Queued<'_, impl Fn() -> Result<(), Failure>> {
        Queued { stream: &self.stream, queue: || self.product.multiply(&self.stream, &self.matrices) }
    }
}

/// Products may still be under way when a pass is given up: the memory goes only when they are over.
impl Drop for Multiplier {
    fn drop(&mut self) {
        // A stream that failed has nothing under way.
        let _ = self.stream.device().enter();
        let _ = self.stream.wait();
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
        // One pass holds one result: what was wrong in either of the two is wrong in it.
        let wrong = left.wrong.max(fresh.wrong);
        Ok(Checked { verified: fresh.verified, wrong, first_wrong: left.first_wrong.or(fresh.first_wrong) })
    }

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure> {
        self.stream.device().enter()?;
        let one = self.queued().warm_up(spec, control)?;
        // What is compared afterwards is what the timed products write.
        self.matrices.poison(&self.stream)?;
        let measured = self.queued().time(spec, control, one)?;
        self.timed = true;
        Ok(Measurement { flops: flops(self.rows).saturating_mul(measured.operations), ..measured })
    }

    fn opened(&self) -> Opened {
        let gpu = self.stream.device().pci().to_owned();
        Opened {
            link_layer: LinkLayer::Memory,
            carrier: self.stream.device().maker().products(),
            devices: (gpu.clone(), gpu),
            settings: self.settings.clone(),
        }
    }
}
