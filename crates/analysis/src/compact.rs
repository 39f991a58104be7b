//! Optional values in eight bytes: a run may have millions of rows.

use jiff::Timestamp;

/// Not a number counts as none.
#[derive(Debug, Clone, Copy)]
pub struct Number(f64);

impl Number {
    pub fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl From<Option<f64>> for Number {
    fn from(number: Option<f64>) -> Self {
        Self(number.unwrap_or(f64::NAN))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// A time to the microsecond, as in the frame, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(i64);

/// Before every [`Timestamp`].
const NEVER: i64 = i64::MIN;

impl Moment {
    /// Microseconds since 1970.
    pub fn microseconds(self) -> Option<i64> {
        (self.0 != NEVER).then_some(self.0)
    }
}

impl From<Option<Timestamp>> for Moment {
    fn from(time: Option<Timestamp>) -> Self {
        Self(time.map_or(NEVER, Timestamp::as_microsecond))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_comes_back_and_what_is_not_does_not() {
        for number in [None, Some(0.0), Some(-1.5), Some(f64::INFINITY)] {
            assert_eq!(Number::from(number).get(), number);
        }
        assert_eq!(Number::from(Some(f64::NAN)).get(), None);
        assert!(Number::from(None) == Number::from(None) && Number::from(None) != Number::from(Some(0.0)));
        for time in [Timestamp::UNIX_EPOCH, Timestamp::MIN, Timestamp::MAX] {
            assert_eq!(Moment::from(Some(time)).microseconds(), Some(time.as_microsecond()));
        }
        assert_eq!(Moment::from(None).microseconds(), None);
    }
}
