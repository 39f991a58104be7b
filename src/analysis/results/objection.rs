//! What speaks against a case, as fields. The words are made by `Display`.

use std::fmt;

use railgauge_wire::{
    failure::Failure,
    terms::{Carrier, GpuPath, Transport},
    unit::Bytes,
};
use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::wrong::WrongBytes;
use crate::analysis::{
    plausible::{Absent, Impossible},
    truth::Doubt,
    words::count,
};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Objection {
    /// Bytes arrived that were not sent.
    WrongBytes(WrongBytes),
    /// It was tried and not measured.
    Failed {
        /// The failure, without its remedy.
        failure: Box<Failure>,
        ends: String,
    },
    /// Repeats were not run.
    NotRun(NotRun),
    RepeatsMissing {
        missing: usize,
        of: usize,
    },
    /// The data was not verified although the plan asks for it.
    Unverified {
        /// Bytes that were, in the sample with the fewest.
        verified_bytes: Bytes,
    },
    Absent(Absent),
    /// A sample says what cannot be true.
    Impossible(Impossible),
    /// What carried the bytes is not what the plan asks for.
    OtherLink(OtherLink),
    Contaminated(Doubt),
}

/// Why repeats of a case were not run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum NotRun {
    HostLost {
        host: String,
        /// Why it was lost, without the remedy.
        failure: Box<Failure>,
    },
    /// The run could not go on.
    Prevented {
        cause: String,
    },
    /// The run was interrupted.
    Interrupted,
    BrokeOff,
    StillRunning,
    TimeOver,
    /// The run finished without an outcome of it.
    NoOutcome,
    /// A line of the journal that may have held its outcome is damaged.
    Damaged {
        /// The line, counted from 1.
        line: usize,
    },
}

/// A link that the plan did not ask for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherLink {
    pub host: String,
    #[serde(flatten)]
    pub what: OtherThan,
}

/// In what a link is not as the plan asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OtherThan {
    Transport {
        wanted: Transport,
        /// What carried the bytes.
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
            Self::StillRunning => f.write_str("not run yet: the run is still going on"),
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

/// Everything that speaks against a case, in the order in which it is told.
///
/// In JSON it is two fields: `error`, the words, and `against`, a list of objects with a `kind` and the values behind it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Objections(pub Vec<Objection>);

impl Objections {
    /// The words; `None` if nothing speaks against it.
    pub fn words(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.to_string())
    }
}

impl fmt::Display for Objections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, objection) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { "; " } else { "" })?;
            objection.fmt(f)?;
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
