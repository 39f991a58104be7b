//! What two processes say to each other over a socket: one greeting per direction of a queue pair, then requests with
//! their payload, each with a reply. Both processes are on one machine, so numbers have its byte order.

use std::io::{self, Read, Write};

/// Where a stream of requests comes from and goes to: what a packet's headers say.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Hello {
    /// Queue pair that is asked.
    pub to: u32,
    /// Queue pair that asks.
    pub from: u32,
    /// `enum ibv_qp_type`.
    pub service: u32,
    /// First packet sequence number.
    pub psn: u32,
    /// Path MTU in bytes.
    pub mtu: u32,
    /// Retries of a receiver that is not ready; 7 is for ever.
    pub rnr_retry: u32,
    /// Partition key, by value.
    pub pkey: u32,
    /// Whether packets carry a global route header.
    pub global: u32,
    /// LIDs; 0 on Ethernet.
    pub source_lid: u32,
    pub target_lid: u32,
    /// GIDs, where packets are global.
    pub source_gid: [u8; 16],
    pub target_gid: [u8; 16],
}

/// One request; `length` bytes of payload follow unless it is a read or an atomic.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Request {
    /// `enum ibv_wr_opcode`.
    pub opcode: u32,
    /// Bytes of the message.
    pub length: u32,
    /// Immediate data as it was given.
    pub immediate: u32,
    /// Key of the peer's memory.
    pub rkey: u32,
    /// Address there.
    pub remote: u64,
    /// What is added, or compared.
    pub operand: u64,
    /// What is swapped in.
    pub swap: u64,
    /// Reads and atomics that are outstanding with this one.
    pub outstanding: u32,
    /// Queue key of a datagram.
    pub qkey: u32,
}

/// The end of a request; `length` bytes follow.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Reply {
    /// One of [`status`].
    pub status: u32,
    /// Bytes of what was read.
    pub length: u32,
}

/// What became of a request at its target.
pub mod status {
    /// Carried out.
    pub const DONE: u32 = 0;
    /// No packet arrives, as far as the requester can tell. The stream ends.
    pub const DROPPED: u32 = 1;
    /// The key, the range or the permission is wrong. The stream ends, as after all that follow.
    pub const ACCESS: u32 = 2;
    /// The request itself is wrong.
    pub const INVALID: u32 = 3;
    /// The target failed.
    pub const OPERATION: u32 = 4;
    /// There is no receive for it.
    pub const NOT_READY: u32 = 5;
}

/// Structures of plain numbers without padding.
///
/// # Safety
/// Every bit pattern is a value, and no byte is padding.
pub unsafe trait Plain: Copy + Default {}

// SAFETY: ten numbers of 32 bits and two arrays of 16 bytes.
unsafe impl Plain for Hello {}
// SAFETY: four numbers of 32 bits, three of 64, two of 32.
unsafe impl Plain for Request {}
// SAFETY: two numbers of 32 bits.
unsafe impl Plain for Reply {}

/// Writes a structure.
///
/// # Errors
/// The stream is closed.
pub fn put<T: Plain>(to: &mut impl Write, value: &T) -> io::Result<()> {
    // SAFETY: a plain structure has no padding, so all its bytes are set.
    to.write_all(unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) })
}

/// Reads a structure.
///
/// # Errors
/// The stream ends.
pub fn get<T: Plain>(from: &mut impl Read) -> io::Result<T> {
    let mut value = T::default();
    // SAFETY: any bytes are a value of a plain structure.
    from.read_exact(unsafe {
        std::slice::from_raw_parts_mut(std::ptr::from_mut(&mut value).cast::<u8>(), size_of::<T>())
    })?;
    Ok(value)
}
