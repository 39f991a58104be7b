//! When a try began.

use jiff::Timestamp;

/// The start of a try, as the journal has it. A run may have millions of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Started(Text);

/// A time of day in nanoseconds since 1970, or what stands there in place of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Text {
    At(i64),
    Other(Box<str>),
}

impl Started {
    /// The time; `None` where the text is none.
    pub fn time(&self) -> Option<Timestamp> {
        match &self.0 {
            Text::At(nanoseconds) => Timestamp::from_nanosecond((*nanoseconds).into()).ok(),
            Text::Other(text) => text.parse().ok(),
        }
    }

    /// The text, where it is no time.
    pub fn no_time(&self) -> Option<&str> {
        match &self.0 {
            Text::Other(text) if self.time().is_none() => Some(text),
            _ => None,
        }
    }
}

impl From<String> for Started {
    fn from(text: String) -> Self {
        // What is centuries away does not fit, and stays a text.
        let time = text.parse::<Timestamp>().ok().and_then(|time| i64::try_from(time.as_nanosecond()).ok());
        Self(time.map_or_else(|| Text::Other(text.into()), Text::At))
    }
}

impl From<&str> for Started {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_times_however_far_away() {
        let started = |text: &str| Started::from(text);
        for text in ["2026-11-28T03:00:00.123Z", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00.5Z"] {
            assert_eq!(started(text).time(), Some(text.parse().unwrap()), "{text}");
            assert_eq!(started(text).no_time(), None);
        }
        assert_eq!((started("soon").time(), started("soon").no_time()), (None, Some("soon")));
        assert!(started("2026-11-28T03:00:00Z") < started("2026-11-28T03:00:01Z"));
        assert!(started("2026-11-28T03:00:00Z") < started("soon"));
        assert!(size_of::<Started>() <= 16);
    }
}
