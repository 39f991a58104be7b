//! Bytes of a stream: in host memory, or on a GPU behind a page-locked bounce buffer. A socket cannot reach a GPU, so with `memory =
//! "cuda"` every message is copied from the GPU before it is sent and to the GPU after it arrives, within the measured time: `staged`.

use std::sync::Arc;

use railgauge_wire::{Checked, Failure, GpuPath, Kind, LinkSpec, Memory, Pattern, Stage, remedy};

use crate::{
    gpu::{self, Device, Pinned, Stream, kernels},
    memory::{host::Buffer, pattern},
};

pub(super) fn device(spec: &LinkSpec) -> Result<Option<Arc<Device>>, Failure> {
    if spec.memory == Memory::Host {
        return Ok(None);
    }
    if let Some(path) = spec.gpu_path.filter(|path| *path != GpuPath::Staged) {
        let cause = format!("the plan demands the GPU path {path}, and a socket cannot reach GPU memory");
        return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::STAGE_OVER_TCP));
    }
    Device::open(spec.gpu.unwrap_or(0)).map(Some)
}

pub(super) enum Bytes {
    Host(Buffer),
    Staged(Pinned, Bounce),
}

/// Offsets are those of the bounce buffer.
pub(super) struct Bounce {
    stream: Stream,
    there: gpu::Buffer,
}

impl Bytes {
    pub(super) fn new(length: u64, huge: bool, device: Option<&Arc<Device>>) -> Result<Self, Failure> {
        let here = Buffer::new(length, huge)?;
        let Some(device) = device else { return Ok(Self::Host(here)) };
        let stage = Bounce { stream: Stream::new(device)?, there: gpu::Buffer::new(device, length)? };
        Ok(Self::Staged(Pinned::new(device, here)?, stage))
    }

    pub(super) fn split(&mut self) -> Result<(&mut [u8], Option<&mut Bounce>), Failure> {
        Ok(match self {
            Self::Host(buffer) => (buffer.bytes_mut(), None),
            Self::Staged(pinned, stage) => (pinned.bytes()?, Some(stage)),
        })
    }

    pub(super) fn fill(&mut self, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        match self {
            Self::Host(buffer) => pattern::fill(&mut buffer.bytes_mut()[..pattern.size.as_usize()], pattern, qp),
            Self::Staged(_, stage) => kernels::fill(&stage.stream, &stage.there, 0, pattern, qp)?,
        }
        Ok(())
    }

    pub(super) fn poison(&mut self, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        match self {
            Self::Host(buffer) => pattern::poison(&mut buffer.bytes_mut()[..pattern.size.as_usize()], pattern, qp),
            Self::Staged(_, stage) => kernels::poison(&stage.stream, &stage.there, 0, pattern, qp)?,
        }
        Ok(())
    }

    pub(super) fn check(&self, pattern: &Pattern, qp: u32) -> Result<Checked, Failure> {
        match self {
            Self::Host(buffer) => Ok(pattern::check(&buffer.bytes()[..pattern.size.as_usize()], pattern, qp)),
            Self::Staged(_, stage) => kernels::check(&stage.stream, &stage.there, 0, pattern, qp),
        }
    }
}

impl Bounce {
    /// Brings bytes from the GPU before they are sent.
    pub(super) fn fetch(&mut self, here: &mut [u8], at: usize) -> Result<(), Failure> {
        self.stream.to_host(here, &self.there, at as u64)
    }

    pub(super) fn deliver(&mut self, here: &[u8], at: usize) -> Result<(), Failure> {
        self.stream.to_device(&self.there, at as u64, here)
    }
}
