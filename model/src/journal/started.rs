use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

/// The start of a try, as the journal has it. A run may have millions of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "String")]
pub enum Started {
    At(Timestamp),
    NoTime(Box<str>),
}

impl Started {
    pub const fn time(&self) -> Option<Timestamp> {
        match self {
            Self::At(time) => Some(*time),
            Self::NoTime(_) => None,
        }
    }
}

impl From<String> for Started {
    fn from(text: String) -> Self {
        text.parse().map_or_else(|_| Self::NoTime(text.into()), Self::At)
    }
}

impl From<&str> for Started {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) if time.subsec_nanosecond() % 1_000_000 == 0 => write!(f, "{time:.3}"),
            Self::At(time) => write!(f, "{time}"),
            Self::NoTime(text) => f.write_str(text),
        }
    }
}

impl Serialize for Started {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(text: &str) -> Started {
        Started::from(text)
    }

    #[test]
    fn times_are_times_however_far_away() {
        for text in ["2026-11-28T03:00:00.123Z", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00.5Z"] {
            assert_eq!(started(text).time(), Some(text.parse().unwrap()), "{text}");
        }
        assert_eq!(started("soon"), Started::NoTime("soon".into()));
        assert!(started("2026-11-28T03:00:00Z") < started("2026-11-28T03:00:01Z"));
        assert!(started("2026-11-28T03:00:00Z") < started("soon"));
        assert!(size_of::<Started>() <= 24);
    }

    #[test]
    fn it_is_written_as_it_was_read() {
        for text in ["2026-11-28T03:00:00.000Z", "2026-11-28T03:00:00.123Z", "2026-11-28T03:00:00.123456Z", "soon"] {
            assert_eq!(started(text).to_string(), text);
        }
    }
}
