//! Why a verdict is what it is: facts as fields. The words are made by `Display`, once, where somebody reads them.
//!
//! | file | grounds of |
//! | --- | --- |
//! | `run` | the verdicts on the run as a whole: its end, its records, its hosts, the cluster's configuration |
//! | `preflight` | the values that `[preflight]` wants |
//! | `cases` | the verdict that every case was measured |
//! | `expectation` | an expectation of the plan |
//! | `parts` | the verdict on parts, and that on flows at once |
//! | `soak`, `soak_event` | the verdicts on the soak |
//! | `place` | the case that a ground is about |
//! | `place_of_host` | where the hosts stand that a verdict names |
//! | `several` | the first of several things, with how many others there are |
//! | `step` | what is to be done about grounds that tell it |

mod cases;
mod degraded;
mod expectation;
mod links;
mod parts;
mod place;
mod place_of_host;
mod preflight;
mod run;
mod several;
mod soak;
mod soak_event;
mod step;

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeStruct};

pub use cases::{Among, MemoryPart, OfCases};
pub use degraded::Degraded;
pub use expectation::{Compared, FewerMembers, OfExpectation, Scope, Unlimited};
pub use links::OfLinks;
pub use parts::{Apart, OfParts};
pub(super) use parts::{NamedParts, ToName};
pub use place::{Blamed, Place};
pub use place_of_host::{OfPlaces, Placed};
pub use preflight::OfPreflight;
pub use run::OfRun;
pub use several::{flows_and_more, ports_were};
pub(super) use soak::Next;
pub use soak::{OfSoak, frequency};
pub use soak_event::{SoakEvent, What};
pub use step::Step;

/// Why a verdict is what it is: its grounds, in the order in which they are told.
///
/// In JSON it is two fields: `reason`, the words, and `grounds`, a list of objects with a `kind` and the values behind it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reason(Vec<Ground>);

/// One ground of a verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Ground {
    /// Of the run as a whole.
    Run(OfRun),
    /// Of a value that `[preflight]` wants.
    Preflight(OfPreflight),
    /// Of the verdict that every case was measured.
    Cases(OfCases),
    /// Of an expectation.
    Expectation(OfExpectation),
    /// Of the verdict on parts.
    Parts(OfParts),
    /// Of the verdict on links between switches.
    Links(OfLinks),
    /// Of a verdict on the soak.
    Soak(OfSoak),
    /// Where the hosts stand that it names.
    Where(OfPlaces),
}

impl Reason {
    /// A reason of one ground.
    pub fn new(ground: impl Into<Ground>) -> Self {
        Self(vec![ground.into()])
    }

    /// Adds a ground behind the others.
    pub fn push(&mut self, ground: impl Into<Ground>) {
        self.0.push(ground.into());
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The grounds, in the order in which they are told.
    pub fn grounds(&self) -> &[Ground] {
        &self.0
    }
}

impl<G: Into<Ground>> Extend<G> for Reason {
    fn extend<T: IntoIterator<Item = G>>(&mut self, grounds: T) {
        self.0.extend(grounds.into_iter().map(Into::into));
    }
}

impl<G: Into<Ground>> FromIterator<G> for Reason {
    fn from_iter<T: IntoIterator<Item = G>>(grounds: T) -> Self {
        Self(grounds.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, ground) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { "; " } else { "" })?;
            match ground {
                // Noise stands out in nothing: behind what does it is told as something else.
                Ground::Parts(OfParts::TooNoisy(_)) if at > 0 => write!(f, "beside that, {ground}")?,
                ground => write!(f, "{ground}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(ground) => ground.fmt(f),
            Self::Preflight(ground) => ground.fmt(f),
            Self::Cases(ground) => ground.fmt(f),
            Self::Expectation(ground) => ground.fmt(f),
            Self::Parts(ground) => ground.fmt(f),
            Self::Links(ground) => ground.fmt(f),
            Self::Soak(ground) => ground.fmt(f),
            Self::Where(ground) => ground.fmt(f),
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Reason", 2)?;
        fields.serialize_field("reason", &self.to_string())?;
        fields.serialize_field("grounds", &self.0)?;
        fields.end()
    }
}

impl From<OfRun> for Ground {
    fn from(ground: OfRun) -> Self {
        Self::Run(ground)
    }
}

impl From<OfPreflight> for Ground {
    fn from(ground: OfPreflight) -> Self {
        Self::Preflight(ground)
    }
}

impl From<OfLinks> for Ground {
    fn from(ground: OfLinks) -> Self {
        Self::Links(ground)
    }
}

impl From<OfSoak> for Ground {
    fn from(ground: OfSoak) -> Self {
        Self::Soak(ground)
    }
}

impl From<OfCases> for Ground {
    fn from(ground: OfCases) -> Self {
        Self::Cases(ground)
    }
}

impl From<OfExpectation> for Ground {
    fn from(ground: OfExpectation) -> Self {
        Self::Expectation(ground)
    }
}

impl From<OfParts> for Ground {
    fn from(ground: OfParts) -> Self {
        Self::Parts(ground)
    }
}

impl From<OfPlaces> for Ground {
    fn from(ground: OfPlaces) -> Self {
        Self::Where(ground)
    }
}
