//! What whole amounts of every unit have in common.

/// An operator of a unit: its trait and function, the other side, the result, and how that comes from the two numbers.
macro_rules! operator {
    ($name:ty: $trait:ident::$call:ident($other:ty) -> $out:ty, |$a:ident, $b:ident| $value:expr) => {
        impl std::ops::$trait<$other> for $name {
            type Output = $out;

            fn $call(self, other: $other) -> $out {
                let ($a, $b) = (self, other);
                $value
            }
        }
    };
}

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

            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            /// The amount as a float, rounded beyond 2^53.
            pub const fn as_f64(self) -> f64 {
                self.0 as f64
            }

            /// The sum, [`Self::MAX`] where it is larger than that.
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference, nothing where `other` is the larger one.
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            pub const fn abs_diff(self, other: Self) -> Self {
                Self(self.0.abs_diff(other.0))
            }

            /// This many times as much, [`Self::MAX`] where it is larger than that.
            pub const fn saturating_mul(self, count: u64) -> Self {
                Self(self.0.saturating_mul(count))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        operator!($name: Add::add($name) -> $name, |a, b| Self(a.0 + b.0));
        operator!($name: Sub::sub($name) -> $name, |a, b| Self(a.0 - b.0));
        operator!($name: Mul::mul(u64) -> $name, |a, count| Self(a.0 * count));
        operator!($name: Div::div(u64) -> $name, |a, count| Self(a.0 / count));
        // How often the other goes into it.
        operator!($name: Div::div($name) -> u64, |a, b| a.0 / b.0);

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                Self(all.map(|one| one.0).sum())
            }
        }
    };
}
