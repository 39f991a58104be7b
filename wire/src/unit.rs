//! Units of what is measured, as types: an amount of bytes is never taken for a time, and a rate in one unit never for
//! one in another.
//!
//! Each is written to JSON as its bare number. `Display` prints the bare number too: the text around it names the unit.
//! Factors between units stand here and nowhere else. Operations that no one needs are left out: this is no algebra of
//! dimensions.
//!
//! Amounts of one unit add up:
//!
//! ```
//! # use railgauge_wire::unit::{Bytes, Nanoseconds};
//! assert_eq!(Bytes(8) + Bytes(8), Bytes(16));
//! assert_eq!(Nanoseconds(8) + Nanoseconds(8), Nanoseconds(16));
//! ```
//! Those of two units do not:
//!
//! ```compile_fail,E0308
//! # use railgauge_wire::unit::{Bytes, Nanoseconds};
//! let sum = Bytes(8) + Nanoseconds(8);
//! ```
//! A field of bytes takes bytes, and no time:
//!
//! ```
//! # use railgauge_wire::{measure::Measurement, unit::Bytes};
//! let measured = Measurement { bytes: Bytes(8), ..Measurement::default() };
//! ```
//! ```compile_fail,E0308
//! # use railgauge_wire::{measure::Measurement, unit::Nanoseconds};
//! let measured = Measurement { bytes: Nanoseconds(8), ..Measurement::default() };
//! ```
//! The kernel tells an interface's speed in Mb/s; the rate of a port is in Gb/s. Only a conversion makes one of the other:
//!
//! ```
//! # use railgauge_wire::{facts::RdmaPort, unit::MegabitsPerSecond};
//! let speed = MegabitsPerSecond(25_000);
//! let port = RdmaPort { rate_gbps: Some(speed.into()), ..RdmaPort::default() };
//! ```
//! ```compile_fail,E0308
//! # use railgauge_wire::{facts::RdmaPort, unit::MegabitsPerSecond};
//! let speed = MegabitsPerSecond(25_000);
//! let port = RdmaPort { rate_gbps: Some(speed), ..RdmaPort::default() };
//! ```

#[macro_use]
mod amount;
mod bytes;
mod rate;
mod time;

pub use bytes::Bytes;
pub use rate::{BitsPerSecond, GigabitsPerSecond, GigabytesPerSecond, MegabitsPerSecond, MegabytesPerSecond};
pub use time::{Nanoseconds, NanosecondsF64, NanosecondsI64};

/// Whether there is nothing: an amount that is not written, and read as nothing.
pub fn is_zero<T: Default + PartialEq>(amount: &T) -> bool {
    *amount == T::default()
}
