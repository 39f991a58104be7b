//! What a sample says that cannot be true, as fields.

use std::fmt;

use serde::Serialize;

use crate::analysis::words::number;

/// Something that cannot be true.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "contradiction", rename_all = "kebab-case")]
pub enum Contradiction {
    /// Two counts of one thing that do not agree.
    Counts {
        what: &'static str,
        by: [&'static str; 2],
        counts: [u128; 2],
        /// The host of the second, where that is another one.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
    },
    /// A number that is outside of what it can be, or is not a number.
    Outside {
        what: &'static str,
        value: f64,
        /// Its unit.
        unit: &'static str,
        by: &'static str,
        /// The least and the most that it can be.
        range: (f64, f64),
    },
    Elsewhere {
        rank: u32,
        host: String,
    },
    /// A start that is not a time.
    Start {
        started_at: String,
    },
}

/// A number with its unit that `by` has between these two, unless it is there.
pub(super) fn outside(
    what: &'static str,
    (value, unit): (f64, &'static str),
    by: &'static str,
    range: (f64, f64),
) -> Option<Contradiction> {
    let is_inside = (range.0..=range.1).contains(&value);
    (!is_inside).then_some(Contradiction::Outside { what, value, unit, by, range })
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts { what, by: [one, other], counts: [n, m], at } => {
                write!(f, "{n} {what} {one}, and {m} {other}")?;
                at.iter().try_for_each(|host| write!(f, " at {host}"))
            }
            Self::Outside { what, value, unit, by, range: (least, most) } => {
                write!(f, "{what}: {} {unit}, and {by} ", number(*value))?;
                match (least.is_finite(), most.is_finite()) {
                    (_, false) => write!(f, "{} {unit} at least", number(*least)),
                    (true, _) if *least > 0.0 => write!(f, "{} to {} {unit}", number(*least), number(*most)),
                    _ => write!(f, "{} {unit} at most", number(*most)),
                }
            }
            Self::Elsewhere { rank, host } => write!(f, "rank {rank} speaks for {host}, and is planned elsewhere"),
            Self::Start { started_at } => write!(f, "it began at `{started_at}`, which is not a time"),
        }
    }
}
