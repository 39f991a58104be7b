//! From where on a sample is doubted.

use railgauge_wire::Bytes;

/// Factor by which bytes on the wire may exceed payload and headers.
pub(super) const WIRE_TOLERANCE: f64 = 1.02;
/// Bytes of other traffic: address resolution, the controller's own connection, housekeeping.
pub(super) const WIRE_ALLOWANCE: f64 = 256.0 * 1024.0;
/// Bytes on the wire of an acknowledgement: 14 + 40 + 8 + 12 + 4 + 4 for RoCE v2 over IPv6, 14 + 40 + 32 for TCP over
/// IPv6 with timestamps; Ethernet pads frames to 64 and adds a checksum of 4.
pub(super) const ACKNOWLEDGEMENT: f64 = 90.0;
/// Bytes on the wire per payload byte of TCP alongside a flow: 1,538 for 1,460 at the usual MTU, plus some retransmissions.
pub(super) const BESIDE_HEADERS: f64 = 1.1;
/// Payload below which the wire check is skipped: the allowance would be a quarter of it.
pub(super) const WIRE_MINIMUM: Bytes = Bytes::from_mib(1);
/// Share of packets lost by TCP above which that is noted. The value still counts, because TCP sends them again.
pub(crate) const NOTED: f64 = 1e-4;
/// Losses accepted whatever their share.
pub(super) const LOSS_ALLOWANCE: u64 = 3;
