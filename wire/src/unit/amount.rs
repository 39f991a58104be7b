//! What whole amounts of every unit have in common.

/// Makes a whole number of some unit: amounts of one unit add up, are multiplied and divided by counts, and go into each
/// other a number of times.
macro_rules! amount {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            pub const ZERO: Self = Self(0);
            pub const MAX: Self = Self(u64::MAX);

            #[inline]
            #[must_use]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// The amount as a float, rounded beyond 2^53.
            #[inline]
            #[must_use]
            pub const fn as_f64(self) -> f64 {
                self.0 as f64
            }

            /// The sum, [`Self::MAX`] where it is larger than that.
            #[inline]
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference, nothing where `other` is the larger one.
            #[inline]
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            #[inline]
            #[must_use]
            pub const fn abs_diff(self, other: Self) -> Self {
                Self(self.0.abs_diff(other.0))
            }

            /// This many times as much, [`Self::MAX`] where it is larger than that.
            #[inline]
            #[must_use]
            pub const fn saturating_mul(self, count: u64) -> Self {
                Self(self.0.saturating_mul(count))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::ops::Add for $name {
            type Output = Self;

            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl std::ops::AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;

            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl std::ops::Mul<u64> for $name {
            type Output = Self;

            #[inline]
            fn mul(self, count: u64) -> Self {
                Self(self.0 * count)
            }
        }

        impl std::ops::Div<u64> for $name {
            type Output = Self;

            #[inline]
            fn div(self, count: u64) -> Self {
                Self(self.0 / count)
            }
        }

        impl std::ops::Div for $name {
            type Output = u64;

            /// How often `other` goes into it.
            #[inline]
            fn div(self, other: Self) -> u64 {
                self.0 / other.0
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                Self(all.map(|one| one.0).sum())
            }
        }
    };
}
