use serde::{Deserialize, Serialize};

amount! {
    /// A number of bytes.
    Bytes
}

impl Bytes {
    pub const fn of(length: usize) -> Self {
        Self(length as u64)
    }

    /// A number of KiB (1024 bytes).
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib << 10)
    }

    /// A number of MiB (2^20 bytes).
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// A number of GiB (2^30 bytes).
    pub const fn from_gib(gib: u64) -> Self {
        Self(gib << 30)
    }

    /// A length of something in memory. Agents and controllers run on 64 bits: nothing is cut off.
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }

    /// This many times as much; `None` where it is more than [`Self::MAX`].
    pub const fn checked_mul(self, count: u64) -> Option<Self> {
        match self.0.checked_mul(count) {
            Some(product) => Some(Self(product)),
            None => None,
        }
    }

    /// In bits.
    pub const fn bits(self) -> f64 {
        self.0 as f64 * 8.0
    }

    pub const fn gib(self) -> f64 {
        self.0 as f64 / (1_u64 << 30) as f64
    }

    /// Whether it is a whole number of `unit`; of no bytes only nothing is.
    pub const fn is_multiple_of(self, unit: Self) -> bool {
        self.0.is_multiple_of(unit.0)
    }
}

impl From<u32> for Bytes {
    fn from(number: u32) -> Self {
        Self(number.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_bare_number() {
        assert_eq!(serde_json::to_string(&Bytes(7)).unwrap(), "7");
        assert_eq!(serde_json::from_str::<Bytes>("18446744073709551615").unwrap(), Bytes::MAX);
        let wrong = |text| serde_json::from_str::<Bytes>(text).unwrap_err().to_string();
        let bare = |text| serde_json::from_str::<u64>(text).unwrap_err().to_string();
        for text in ["-1", "1.5", "\"8MiB\"", "[8]"] {
            assert_eq!(wrong(text), bare(text), "{text}");
        }
    }

    #[test]
    fn bytes_are_multiplied_by_counts_and_go_into_each_other() {
        assert_eq!(Bytes::from_kib(4) * 3, Bytes(12_288));
        assert_eq!(Bytes::from_mib(1) / Bytes::from_kib(64), 16);
        assert_eq!(Bytes::from_gib(3).gib(), 3.0);
        assert_eq!(Bytes::of(5).bits(), 40.0);
        assert!(Bytes(12).is_multiple_of(Bytes(4)) && !Bytes(12).is_multiple_of(Bytes(8)));
    }
}
