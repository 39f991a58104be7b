//! How fast bytes move between host and GPU, and on the GPU: so that a slow slot is not blamed on the fabric.
//!
//! Method of nvbandwidth: large copies between page-locked host memory and the device, the median of several.

use std::sync::Arc;

use railgauge_wire::{
    copies::Copies,
    failure::Failure,
    unit::{Bytes, GigabytesPerSecond, Nanoseconds},
};

use super::{
    buffer::Buffer,
    device::Device,
    stream::{Pinned, Stream},
};
use crate::{bench::clock, memory::host};

const TIMES: usize = 5;

/// Bytes of a copy: enough for the start of a copy not to count, little enough to be there.
const LENGTH: u64 = 64 << 20;

/// Measures copies of a GPU, also to other GPUs of the host.
pub fn measure(gpu: u32, peers: &[u32]) -> Result<Copies, Failure> {
    let device = &Device::open(gpu)?;
    let stream = Stream::new(device)?;
    let (here, there) = (Buffer::new(device, LENGTH)?, Buffer::new(device, LENGTH)?);
    let mut host = host::Buffer::new(LENGTH, false)?;
    // Zeros may travel faster than data.
    host.bytes_mut().chunks_mut(8).zip(0_u64..).for_each(|(chunk, i)| {
        let word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    });
    let pinned = Pinned::new(device, host)?;
    let to_gpu = median(|| stream.deliver(&here, &pinned, 0, LENGTH), &stream)?;
    let on_gpu = median(|| stream.on_device(&there, &here, LENGTH), &stream)?;
    let from_gpu = median(|| stream.fetch(&pinned, &there, 0, LENGTH), &stream)?;
    let to_peer = |peer: &u32| {
        let other: Arc<Device> = Device::open(*peer)?;
        let target = Buffer::new(&other, LENGTH)?;
        device.reach(&other)?;
        Ok((*peer, median(|| stream.on_device(&target, &here, LENGTH), &stream)?))
    };
    let to_peers = peers.iter().map(to_peer).collect::<Result<_, Failure>>()?;
    Ok(Copies { gpu, pci: device.pci().to_owned(), to_gpu, from_gpu, on_gpu, to_peers })
}

fn median(mut copy: impl FnMut() -> Result<(), Failure>, stream: &Stream) -> Result<GigabytesPerSecond, Failure> {
    let mut times = [Nanoseconds::ZERO; TIMES];
    copy()?;
    stream.wait()?;
    for time in &mut times {
        let begin = clock::now();
        copy()?;
        stream.wait()?;
        *time = (clock::now() - begin).max(Nanoseconds(1));
    }
    times.sort_unstable();
    Ok(GigabytesPerSecond::of(Bytes(LENGTH), times[TIMES / 2]))
}
