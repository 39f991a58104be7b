//! The throughput of a PCIe slot.
//!
//! Sources: PCI Express Base Specification 3.0 to 5.0 (128b/130b, framing, sequence number and LCRC of 8 bytes, headers
//! of three or four double words) and 6.0 (flits: 236 of 256 bytes carry transactions); Intel AN 690 for the same
//! formula, payload / (payload + overhead) × link data rate, without flow control.

use railgauge_wire::Gpu;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pcie {
    /// GT/s per lane: 8 is generation 3, 16 generation 4, 32 generation 5.
    pub gigatransfers: f64,
    pub lanes: u32,
    /// In bytes. If unknown, 512 is assumed, which keeps the result an upper bound.
    pub max_payload: Option<u32>,
}

/// The largest MaxPayload that adapters and hosts use in practice.
const LARGEST_USUAL_PAYLOAD: u32 = 512;
const LINK_BYTES: f64 = 8.0;
/// Header of a completion with data, and of a write to a 64-bit address.
const COMPLETION: f64 = 12.0;
const WRITE: f64 = 16.0;

const GENERATIONS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];

impl Pcie {
    /// The best state of a GPU's slot, because an idle GPU lowers the generation. `None` if NVML does not report it.
    pub(crate) fn of_gpu(gpu: &Gpu) -> Option<Self> {
        let (generation, lanes) = gpu.pcie_max?;
        let gigatransfers = *GENERATIONS.get((generation as usize).checked_sub(1)?)?;
        Some(Self { gigatransfers, lanes, max_payload: gpu.function.max_payload })
    }

    /// Gb/s after line coding; `None` for an invalid speed.
    pub(crate) fn raw(self) -> Option<f64> {
        let coding = match self.gigatransfers {
            speed if !speed.is_finite() || speed <= 0.0 => return None,
            ..=5.0 => 8.0 / 10.0,
            ..=32.0 => 128.0 / 130.0,
            _ => 236.0 / 256.0,
        };
        (self.lanes > 0).then(|| self.gigatransfers * f64::from(self.lanes) * coding)
    }

    /// Gb/s of payload that a NIC can fetch from memory to send it: completions with data.
    pub(crate) fn sending(self) -> Option<f64> {
        self.payload(COMPLETION)
    }

    /// Gb/s of payload that a NIC can store to memory as it receives it: writes.
    pub(crate) fn receiving(self) -> Option<f64> {
        self.payload(WRITE)
    }

    fn payload(self, header: f64) -> Option<f64> {
        let payload = f64::from(self.max_payload.unwrap_or(LARGEST_USUAL_PAYLOAD));
        // Flits have no framing or LCRC per packet.
        let link = if self.gigatransfers > 32.0 { 0.0 } else { LINK_BYTES };
        (payload > 0.0).then_some(())?;
        Some(self.raw()? * payload / (payload + header + link))
    }
}
