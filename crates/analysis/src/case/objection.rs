//! Objections to a case, as fields; `Display` makes the words.

use std::fmt;

use railgauge_wire::{Bytes, Carrier, Failure, GpuPath, Transport};
use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::{Absent, Doubt, Impossible, WrongBytes};
use crate::words::count;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Objection {
    WrongBytes(WrongBytes),
    Failed {
        /// Without its remedy.
        failure: Box<Failure>,
        ends: String,
    },
    NotRun(NotRun),
    RepeatsMissing {
        missing: usize,
        of: usize,
    },
    Unverified {
        /// Verified bytes of the sample with the fewest.
        verified_bytes: Bytes,
    },
    Absent(Absent),
    Impossible(Impossible),
    OtherLink(OtherLink),
    Contaminated(Doubt),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum NotRun {
    HostLost {
        host: String,
        /// Without its remedy.
        failure: Box<Failure>,
    },
    Prevented {
        cause: String,
    },
    Interrupted,
    BrokeOff,
    StillRunning,
    TimeOver,
    NoOutcome,
    Damaged {
        /// From 1.
        line: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherLink {
    pub host: String,
    #[serde(flatten)]
    pub what: OtherThan,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OtherThan {
    Transport {
        wanted: Transport,
        carrier: Carrier,
    },
    Carrier {
        wanted: Carrier,
        /// What carried the bytes.
        carrier: Carrier,
    },
    GpuPath {
        wanted: GpuPath,
        gpu_path: GpuPath,
    },
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongBytes(wrong) => wrong.fmt(f),
            Self::Failed { failure, ends } => match &failure.host {
                Some(_) => failure.fmt(f),
                None => write!(f, "{ends}: {}: {}", failure.stage, failure.cause),
            },
            Self::NotRun(why) => why.fmt(f),
            Self::RepeatsMissing { missing, of } => write!(f, "{missing} of {} not measured", count(*of, "repeat")),
            Self::Unverified { verified_bytes } => {
                f.write_str("the data was not verified although the plan asks for it")?;
                match verified_bytes {
                    &Bytes::ZERO => Ok(()),
                    verified => write!(f, ", but for {verified} B"),
                }
            }
            Self::Absent(absent) => absent.fmt(f),
            Self::Impossible(what) => write!(f, "cannot be true: {what}"),
            Self::OtherLink(other) => other.fmt(f),
            Self::Contaminated(doubt) => write!(f, "contaminated: {doubt}"),
        }
    }
}

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostLost { failure, .. } => failure.fmt(f),
            Self::Prevented { cause } => write!(f, "not run: {cause}"),
            Self::Interrupted => f.write_str("not run: the run was interrupted before this case"),
            Self::BrokeOff => f.write_str("not run: the run broke off before this case"),
            Self::StillRunning => f.write_str("not run yet: the run is in progress"),
            Self::TimeOver => f.write_str("not run: the time of the plan (`at_most`) was over"),
            Self::NoOutcome => f.write_str("not run: the run finished without an outcome of this case"),
            Self::Damaged { line } => {
                write!(f, "no outcome of this case: line {line} of records.jsonl is damaged and may have held it")
            }
        }
    }
}

impl fmt::Display for OtherLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match &self.what {
            OtherThan::Transport { wanted, carrier } => {
                write!(f, "{host}: open: the plan asks for {wanted}, but {carrier} carried the bytes")
            }
            OtherThan::Carrier { wanted, carrier } => {
                write!(f, "{host}: open: the plan asks for {wanted}, but {carrier} carried the bytes")
            }
            OtherThan::GpuPath { wanted, gpu_path } => {
                write!(f, "{host}: open: the plan asks for the GPU path {wanted}, but it was {gpu_path}")
            }
        }
    }
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
