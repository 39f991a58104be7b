//! Objections to a case, as fields; `Display` makes the words.

use std::fmt;

use railgauge_wire::{Bytes, Carrier, Failure, GpuPath, Transport};
use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::{Absent, Doubt, Impossible, WrongBytes};
use crate::words::count;

#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Objection {
    #[error("{0}")]
    WrongBytes(WrongBytes),
    /// The failure is without its remedy.
    #[error("{}", failed(.failure, .ends))]
    Failed { failure: Box<Failure>, ends: String },
    #[error("{0}")]
    NotRun(NotRun),
    #[error("{missing} of {} not measured", count(*.of, "repeat"))]
    RepeatsMissing { missing: usize, of: usize },
    /// With the verified bytes of the sample with the fewest.
    #[error(
        "the data was not verified although the plan asks for it{}",
        if .verified_bytes.is_zero() { String::new() } else { format!(", but for {verified_bytes} B") }
    )]
    Unverified { verified_bytes: Bytes },
    #[error("{0}")]
    Absent(Absent),
    #[error("cannot be true: {0}")]
    Impossible(Impossible),
    #[error("{0}")]
    OtherLink(OtherLink),
    #[error("contaminated: {0}")]
    Contaminated(Doubt),
}

fn failed(failure: &Failure, ends: &str) -> String {
    match &failure.host {
        Some(_) => failure.to_string(),
        None => format!("{ends}: {}: {}", failure.stage, failure.cause),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum NotRun {
    /// The failure is without its remedy.
    #[error("{failure}")]
    HostLost { host: String, failure: Box<Failure> },
    #[error("not run: {cause}")]
    Prevented { cause: String },
    #[error("not run: the run was interrupted before this case")]
    Interrupted,
    #[error("not run: the run broke off before this case")]
    BrokeOff,
    #[error("not run yet: the run is in progress")]
    StillRunning,
    #[error("not run: the time of the plan (`at_most`) was over")]
    TimeOver,
    #[error("not run: the run finished without an outcome of this case")]
    NoOutcome,
    /// Lines count from 1.
    #[error("no outcome of this case: line {line} of records.jsonl is damaged and may have held it")]
    Damaged { line: usize },
}

#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{host}: open: the plan asks for {what}")]
pub struct OtherLink {
    pub host: String,
    #[serde(flatten)]
    pub what: OtherThan,
}

/// `carrier` carried the bytes.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum OtherThan {
    #[error("{wanted}, but {carrier} carried the bytes")]
    Transport { wanted: Transport, carrier: Carrier },
    #[error("{wanted}, but {carrier} carried the bytes")]
    Carrier { wanted: Carrier, carrier: Carrier },
    #[error("the GPU path {wanted}, but it was {gpu_path}")]
    GpuPath { wanted: GpuPath, gpu_path: GpuPath },
}

/// All objections to a case, in the order of reporting.
///
/// Two fields in JSON: `error`, the words, and `against`, a list of objects with a `kind` and their values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Objections(pub Vec<Objection>);

impl Objections {
    /// `None` without objections.
    pub fn words(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.to_string())
    }
}

impl fmt::Display for Objections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut was_contaminated = false;
        for (at, objection) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { "; " } else { "" })?;
            // The word is said once for all repeats.
            match objection {
                Objection::Contaminated(doubt) if was_contaminated => doubt.fmt(f)?,
                objection => objection.fmt(f)?,
            }
            was_contaminated = matches!(objection, Objection::Contaminated(_));
        }
        Ok(())
    }
}

impl Serialize for Objections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Objections", 2)?;
        fields.serialize_field("error", &self.to_string())?;
        fields.serialize_field("against", &self.0)?;
        fields.end()
    }
}
