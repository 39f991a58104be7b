use std::fmt;

use serde::Serialize;

use crate::words::number;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "contradiction", rename_all = "kebab-case")]
pub enum Contradiction {
    Counts {
        what: &'static str,
        by: [&'static str; 2],
        counts: [u128; 2],
        /// The host of the second, if it differs.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
    },
    Outside {
        what: &'static str,
        value: f64,
        unit: &'static str,
        by: &'static str,
        range: (f64, f64),
    },
    Elsewhere {
        rank: u32,
        host: String,
    },
    Start {
        started_at: String,
    },
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
            Self::Elsewhere { rank, host } => write!(f, "rank {rank} reports for {host}, and is planned elsewhere"),
            Self::Start { started_at } => write!(f, "it began at `{started_at}`, which is not a time"),
        }
    }
}
