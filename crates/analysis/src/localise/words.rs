//! All wording about parts is in this module.

use super::{DecidedBy, OpenReason};

impl OpenReason {
    pub const fn words(self) -> &'static str {
        match self {
            Self::TooFew => "too few further tests have a result",
            Self::TooFewToTell => "too few of them can be compared with good pairs to rule out chance",
            Self::Mixed => "some further results are bad and some are good",
            Self::Ways => "it is bad with some partners only: the paths to them may be bad, and not the end",
            Self::EndUnknown => "one of its ends was good with no other partner",
            Self::Unclear => "further results show it as neither bad nor good",
            Self::UnderLoad => "a few pairs alone are good, so it is bad only under other traffic, or no longer",
            Self::NoControls => "no known-good pair to compare it with",
            Self::ControlsUnsteady => "control pairs were as bad in the same rounds",
            Self::Undecided => {
                "it is bad, or something else explains the values as well, such as a fabric that carries less there by design"
            }
            Self::Busy => "its values were bad again, but a host ran other work",
            Self::VirtualMachine => {
                "its values were bad again, but a host is a virtual machine, which shares its machine with others"
            }
            Self::SharedMachine => {
                "its values were bad again, but several of these hosts are one machine and share its parts"
            }
            Self::SharedGpu => "its values were bad again, but another program used its GPU",
        }
    }
}

impl DecidedBy {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ceiling => "the good side reaches its ceiling",
            Self::Floor => "only the bad side is below what the plan demands",
            Self::Peers => "pairs of the same kind are better",
            Self::FurtherMeasurement => "further tests excluded what else it could be",
        }
    }
}
