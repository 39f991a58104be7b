//! Rates, each in the unit of its source: JSON holds that number unchanged.

use serde::{Deserialize, Serialize};

use super::{Bytes, Nanoseconds};

macro_rules! rates {
    ($($(#[$about:meta])* $name:ident($number:ty);)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $number);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

rates! {
    /// 1e9 bits per second: rates of RDMA ports and what is computed from them.
    GigabitsPerSecond(f64);
    /// 1e6 bits per second: the speed of a network interface, as the kernel reports it.
    MegabitsPerSecond(u64);
    /// Bits per second: traffic, from counters.
    BitsPerSecond(f64);
    /// 1e9 bytes per second: copies of GPUs, bandwidths of collectives.
    GigabytesPerSecond(f64);
    /// 1e6 bytes per second: the line rate of an NVLink, as NVML reports it.
    MegabytesPerSecond(u32);
}

impl GigabitsPerSecond {
    /// Positive and finite.
    pub const fn is_rate(self) -> bool {
        self.0.is_finite() && self.0 > 0.0
    }

    /// Ignores NaN.
    pub const fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Ignores NaN.
    pub const fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    pub const fn bits(self) -> BitsPerSecond {
        BitsPerSecond(self.0 * 1e9)
    }
}

impl BitsPerSecond {
    pub const fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

impl GigabytesPerSecond {
    /// Bytes per nanosecond are GB/s.
    pub const fn of(data: Bytes, time: Nanoseconds) -> Self {
        Self(data.as_f64() / time.as_f64())
    }
}

impl From<MegabitsPerSecond> for GigabitsPerSecond {
    fn from(rate: MegabitsPerSecond) -> Self {
        Self(rate.0 as f64 / 1e3)
    }
}

impl From<GigabytesPerSecond> for GigabitsPerSecond {
    fn from(rate: GigabytesPerSecond) -> Self {
        Self(rate.0 * 8.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_bare_number() {
        let written = |value: &str| serde_json::from_str::<serde_json::Value>(value).unwrap();
        assert_eq!(serde_json::to_value(GigabitsPerSecond(0.1)).unwrap(), written("0.1"));
        assert_eq!(serde_json::to_value(MegabitsPerSecond(25_000)).unwrap(), written("25000"));
        assert_eq!(serde_json::to_value(BitsPerSecond(1.5)).unwrap(), written("1.5"));
        assert_eq!(serde_json::to_value(GigabytesPerSecond(55.4)).unwrap(), written("55.4"));
        assert_eq!(serde_json::to_value(MegabytesPerSecond(26_562)).unwrap(), written("26562"));
    }

    #[test]
    fn rates_of_other_units_are_converted() {
        assert_eq!(GigabitsPerSecond::from(MegabitsPerSecond(25_000)), GigabitsPerSecond(25.0));
        assert_eq!(GigabitsPerSecond::from(GigabytesPerSecond(50.0)), GigabitsPerSecond(400.0));
        assert_eq!(GigabitsPerSecond(400.0).bits(), BitsPerSecond(4e11));
    }

    #[test]
    fn what_is_no_rate_is_told_from_one() {
        for none in [0.0, -200.0, f64::NAN, f64::INFINITY] {
            assert!(!GigabitsPerSecond(none).is_rate(), "{none}");
        }
        assert!(GigabitsPerSecond(0.1).is_rate());
    }
}
