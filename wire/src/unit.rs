//! Units as types: bytes cannot be taken for a time, nor a rate in one unit for one in another.
//!
//! Each serializes to JSON as its bare number. `Display` also prints the bare number: the text around it names the unit. Factors between
//! units are only here. Operations without a use are omitted.
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
//! A field of bytes takes only bytes:
//!
//! ```
//! # use railgauge_wire::{measure::Measurement, unit::Bytes};
//! let measured = Measurement { bytes: Bytes(8), ..Measurement::default() };
//! ```
//! ```compile_fail,E0308
//! # use railgauge_wire::{measure::Measurement, unit::Nanoseconds};
//! let measured = Measurement { bytes: Nanoseconds(8), ..Measurement::default() };
//! ```
//! The kernel reports an interface's speed in Mb/s; the rate of a port is in Gb/s. Only a conversion changes the unit:
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

pub fn is_zero<T: Default + PartialEq>(amount: &T) -> bool {
    *amount == T::default()
}
