//! The start of a try, and its compact form in the journal: a million outcomes do not need two dates each.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const MILLISECOND: i64 = 1_000_000;

/// The `ago` of an outcome exceeds the range of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its `ago` reaches back to no time of day")]
pub(super) struct NoTime;

/// The start of a try, as the journal has it. A run may have millions of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Started(Told);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    At(i64),
    /// Milliseconds before its line was written.
    Before(u64),
    /// Boxed twice, since the other variants take eight bytes.
    Other(Box<Box<str>>),
}

impl Started {
    pub fn time(&self) -> Option<Timestamp> {
        match &self.0 {
            Told::At(nanoseconds) => Timestamp::from_nanosecond((*nanoseconds).into()).ok(),
            Told::Before(_) => None,
            Told::Other(text) => text.parse().ok(),
        }
    }

    pub fn no_time(&self) -> Option<&str> {
        match &self.0 {
            Told::Other(text) if self.time().is_none() => Some(text),
            _ => None,
        }
    }

    /// How many whole milliseconds before `at` it was; `None` where it was later, or where milliseconds are not exact.
    pub(super) fn before(&self, at: &str) -> Option<u64> {
        let Told::At(began) = self.0 else { return None };
        let between = nanoseconds(at)?.checked_sub(began)?;
        u64::try_from(between / MILLISECOND).ok().filter(|_| between >= 0 && between % MILLISECOND == 0)
    }

    /// Resolves it against `at`, the time of its line.
    ///
    /// # Errors
    /// The result is not a valid time.
    pub(super) fn resolve(&mut self, at: &str) -> Result<(), NoTime> {
        let Told::Before(milliseconds) = self.0 else { return Ok(()) };
        let ago = i64::try_from(milliseconds).ok().and_then(|ago| ago.checked_mul(MILLISECOND));
        let time = nanoseconds(at).zip(ago).and_then(|(at, ago)| at.checked_sub(ago));
        self.0 = Told::At(time.ok_or(NoTime)?);
        Ok(())
    }

    pub(super) fn of_fields<E: de::Error>(started_at: Option<Self>, ago: Option<u64>) -> Result<Self, E> {
        match (started_at, ago) {
            (Some(at), None) => Ok(at),
            (None, Some(ago)) => Ok(Self(Told::Before(ago))),
            (None, None) => Err(E::missing_field("started_at")),
            (Some(_), Some(_)) => Err(E::custom("`started_at` and `ago` in one outcome")),
        }
    }
}

impl From<String> for Started {
    fn from(text: String) -> Self {
        Self(nanoseconds(&text).map_or_else(|| Told::Other(Box::new(text.into())), Told::At))
    }
}

/// Nanoseconds since 1970; `None` if invalid or out of range.
fn nanoseconds(text: &str) -> Option<i64> {
    i64::try_from(text.parse::<Timestamp>().ok()?.as_nanosecond()).ok()
}

impl From<&str> for Started {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl std::fmt::Display for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.0, self.time()) {
            (Told::Other(text), _) => f.write_str(text),
            (Told::At(nanoseconds), Some(time)) if nanoseconds % MILLISECOND == 0 => write!(f, "{time:.3}"),
            (Told::At(_), Some(time)) => write!(f, "{time}"),
            (Told::At(_) | Told::Before(_), _) => Ok(()),
        }
    }
}

impl Serialize for Started {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Started {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(text: &str) -> Started {
        Started::from(text)
    }

    fn resolved(ago: u64, at: &str) -> Result<Started, NoTime> {
        let mut started = Started(Told::Before(ago));
        started.resolve(at).map(|()| started)
    }

    #[test]
    fn times_are_times_however_far_away() {
        for text in ["2026-11-28T03:00:00.123Z", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00.5Z"] {
            assert_eq!(started(text).time(), Some(text.parse().unwrap()), "{text}");
            assert_eq!(started(text).no_time(), None);
        }
        assert_eq!((started("soon").time(), started("soon").no_time()), (None, Some("soon")));
        assert!(started("2026-11-28T03:00:00Z") < started("2026-11-28T03:00:01Z"));
        assert!(started("2026-11-28T03:00:00Z") < started("soon"));
        assert!(size_of::<Started>() <= 16);
    }

    #[test]
    fn it_is_written_as_it_was_read() {
        for text in ["2026-11-28T03:00:00.000Z", "2026-11-28T03:00:00.123Z", "2026-11-28T03:00:00.123456Z", "soon"] {
            assert_eq!(started(text).to_string(), text);
        }
    }

    #[test]
    fn milliseconds_before_a_line_tell_it_where_they_do_so_exactly() {
        let at = "2026-11-28T03:00:02.250Z";
        for (text, ago) in [
            ("2026-11-28T03:00:01.000Z", Some(1250)),
            (at, Some(0)),
            ("2026-11-28T03:00:02.251Z", None),
            ("2026-11-28T03:00:02.0005Z", None),
            ("soon", None),
        ] {
            assert_eq!(started(text).before(at), ago, "{text}");
            let Some(ago) = ago else { continue };
            assert_eq!(resolved(ago, at), Ok(started(text)));
        }
        assert_eq!(started(at).before("soon"), None);
        for (ago, at) in [(u64::MAX, at), (i64::MAX as u64, at), (1, "soon")] {
            assert!(resolved(ago, at).is_err());
        }
    }
}
