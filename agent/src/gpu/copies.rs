//! How fast bytes move between host and GPU, and on the GPU: so that a slow slot is not blamed on the fabric.
//!
//! Method of nvbandwidth: large copies between page-locked host memory and the device, the median of several.

use std::sync::Arc;

use railgauge_wire::failure::Failure;

use super::{Buffer, Device, Pinned, Stream};
use crate::{bench::clock, memory::host};

/// Copies of each kind; the median counts.
const TIMES: usize = 5;

/// Bytes per second, each the median of several copies. A copy on the device reads and writes every byte; it is
/// counted once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copies {
    /// Host to device, in GB/s (1e9 bytes).
    pub to_device: f64,
    /// Device to host, in GB/s.
    pub to_host: f64,
    /// On the device, in GB/s.
    pub on_device: f64,
}

/// Measures copies of `length` bytes.
///
/// # Errors
/// There is not enough memory, or the driver refuses.
pub fn measure(device: &Arc<Device>, length: u64) -> Result<Copies, Failure> {
    let stream = Stream::new(device)?;
    let (here, there) = (Buffer::new(device, length)?, Buffer::new(device, length)?);
    let mut pinned = Pinned::new(device, host::Buffer::new(length, false)?)?;
    // Zeros may travel faster than data.
    pinned.bytes_mut().chunks_mut(8).zip(0_u64..).for_each(|(chunk, i)| {
        let word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    });
    let to_device = median(length, || stream.to_device(&here, 0, pinned.bytes()), &stream)?;
    let on_device = median(length, || stream.on_device(&there, &here, length), &stream)?;
    let mut back = || stream.to_host(pinned.bytes_mut(), &there, 0);
    let to_host = median(length, &mut back, &stream)?;
    Ok(Copies { to_device, to_host, on_device })
}

fn median(length: u64, mut copy: impl FnMut() -> Result<(), Failure>, stream: &Stream) -> Result<f64, Failure> {
    let mut times = [0; TIMES];
    copy()?;
    stream.wait()?;
    for time in &mut times {
        let begin = clock::now();
        copy()?;
        stream.wait()?;
        *time = (clock::now() - begin).max(1);
    }
    times.sort_unstable();
    // Bytes per nanosecond are GB/s.
    Ok(length as f64 / times[TIMES / 2] as f64)
}
