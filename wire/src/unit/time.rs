use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

amount! {
    /// A duration, or a clock's value since it started.
    Nanoseconds
}

impl Nanoseconds {
    pub const PER_MICROSECOND: f64 = 1e3;

    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds * 1_000_000)
    }

    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1_000_000_000)
    }

    /// Saturates at zero and at [`Self::MAX`].
    pub const fn saturating_add_signed(self, offset: NanosecondsI64) -> Self {
        Self(self.0.saturating_add_signed(offset.0))
    }

    /// Negative if `start` is later; saturates.
    pub const fn saturating_since(self, start: Self) -> NanosecondsI64 {
        let time = self.0.abs_diff(start.0);
        match self.0 >= start.0 {
            true => NanosecondsI64(0_i64.saturating_add_unsigned(time)),
            false => NanosecondsI64(0_i64.saturating_sub_unsigned(time)),
        }
    }

    pub const fn microseconds(self) -> f64 {
        self.0 as f64 / Self::PER_MICROSECOND
    }

    pub const fn milliseconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    pub const fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Saturates (584 years).
impl From<Duration> for Nanoseconds {
    fn from(time: Duration) -> Self {
        u64::try_from(time.as_nanos()).map_or(Self::MAX, Self)
    }
}

impl From<Nanoseconds> for Duration {
    fn from(time: Nanoseconds) -> Self {
        Self::from_nanos(time.0)
    }
}

impl From<Nanoseconds> for NanosecondsF64 {
    fn from(time: Nanoseconds) -> Self {
        Self(time.as_f64())
    }
}

impl TryFrom<Nanoseconds> for NanosecondsI64 {
    type Error = std::num::TryFromIntError;

    /// Fails beyond 292 years.
    fn try_from(time: Nanoseconds) -> Result<Self, Self::Error> {
        i64::try_from(time.0).map(Self)
    }
}

/// A mean, a deviation or a bound in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanosecondsF64(pub f64);

impl NanosecondsF64 {
    pub const fn microseconds(self) -> f64 {
        self.0 / Nanoseconds::PER_MICROSECOND
    }

    pub const fn seconds(self) -> f64 {
        self.0 / 1e9
    }
}

impl fmt::Display for NanosecondsF64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

operator!(NanosecondsF64: Add::add(NanosecondsF64) -> NanosecondsF64, |a, b| Self(a.0 + b.0));
operator!(NanosecondsF64: Mul::mul(f64) -> NanosecondsF64, |a, factor| Self(a.0 * factor));
operator!(NanosecondsF64: Div::div(f64) -> NanosecondsF64, |a, divisor| Self(a.0 / divisor));

/// A difference of clocks, or a time relative to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanosecondsI64(pub i64);

impl NanosecondsI64 {
    pub const MIN: Self = Self(i64::MIN);
    pub const MAX: Self = Self(i64::MAX);
    pub const ZERO: Self = Self(0);

    /// Rounded beyond 2^53.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Absolute value.
    pub const fn distance(self) -> Nanoseconds {
        Nanoseconds(self.0.unsigned_abs())
    }

    pub const fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Saturates at [`Self::MAX`].
    pub const fn later(self, time: Nanoseconds) -> Self {
        Self(self.0.saturating_add_unsigned(time.0))
    }

    /// Saturates at [`Self::MIN`].
    pub const fn earlier(self, time: Nanoseconds) -> Self {
        Self(self.0.saturating_sub_unsigned(time.0))
    }

    /// Saturates.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

operator!(NanosecondsI64: Sub::sub(NanosecondsI64) -> NanosecondsI64, |a, b| Self(a.0 - b.0));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_bare_number() {
        let written = |value: &str| serde_json::from_str::<serde_json::Value>(value).unwrap();
        assert_eq!(serde_json::to_value(Nanoseconds(7)).unwrap(), written("7"));
        assert_eq!(serde_json::to_value(NanosecondsI64(-7)).unwrap(), written("-7"));
        assert_eq!(serde_json::to_value(NanosecondsF64(0.5)).unwrap(), written("0.5"));
        assert_eq!(serde_json::from_str::<Nanoseconds>("18446744073709551615").unwrap(), Nanoseconds::MAX);
    }

    #[test]
    fn times_too_long_stay_at_the_end() {
        assert_eq!(Nanoseconds::from(Duration::from_micros(3)), Nanoseconds(3_000));
        assert_eq!(Nanoseconds::from(Duration::MAX), Nanoseconds::MAX);
        assert_eq!(Nanoseconds(5).saturating_since(Nanoseconds(7)), NanosecondsI64(-2));
        assert_eq!(Nanoseconds::MAX.saturating_since(Nanoseconds::ZERO), NanosecondsI64::MAX);
        assert_eq!(Nanoseconds::ZERO.saturating_since(Nanoseconds::MAX), NanosecondsI64::MIN);
        assert_eq!(Nanoseconds(5).saturating_add_signed(NanosecondsI64(-7)), Nanoseconds::ZERO);
    }

    #[test]
    fn one_time_goes_into_another_so_many_times() {
        assert_eq!(Nanoseconds::from_secs(1) / Nanoseconds::from_millis(300), 3);
        assert_eq!(Nanoseconds::from_millis(1_500).seconds(), 1.5);
        assert_eq!(Nanoseconds(1_500).microseconds(), 1.5);
    }
}
