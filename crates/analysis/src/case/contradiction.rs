use serde::Serialize;

use crate::words::number;

#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "contradiction", rename_all = "kebab-case")]
pub enum Contradiction {
    #[error(
        "{} {what} {}, and {} {}{}",
        .counts[0], .by[0], .counts[1], .by[1], .at.as_ref().map_or_else(String::new, |host| format!(" at {host}"))
    )]
    Counts {
        what: &'static str,
        by: [&'static str; 2],
        counts: [u128; 2],
        /// The host of the second, if it differs.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
    },
    #[error("{what}: {} {unit}, and {by} {}", number(*.value), limits(*.range, .unit))]
    Outside { what: &'static str, value: f64, unit: &'static str, by: &'static str, range: (f64, f64) },
    #[error("rank {rank} reports for {host}, and is planned elsewhere")]
    Elsewhere { rank: u32, host: String },
    #[error("it began at `{started_at}`, which is not a time")]
    Start { started_at: String },
}

fn limits((least, most): (f64, f64), unit: &str) -> String {
    match (least.is_finite(), most.is_finite()) {
        (_, false) => format!("{} {unit} at least", number(least)),
        (true, _) if least > 0.0 => format!("{} to {} {unit}", number(least), number(most)),
        _ => format!("{} {unit} at most", number(most)),
    }
}
