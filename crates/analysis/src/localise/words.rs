//! All wording about parts is in this module.

use super::{DecidedBy, OpenReason};

impl OpenReason {
    pub const fn words(self) -> &'static str {
        match self {
            Self::TooFew => "too few further tests have a result",
            Self::TooFewToTell => "too few of them can be held against good pairs to tell it from chance",
            Self::Mixed => "some further results are bad and some are good",
            Self::Ways => "it is bad with some partners only: the paths to them may be bad, and not the end",
            Self::EndUnknown => "one of its ends was good with no other partner",
            Self::Unclear => "further results show it neither bad nor good",
            Self::UnderLoad => "a few pairs alone are good, so it is bad only beside other traffic, or no more",
            Self::NoControls => "no pair is known to be good that it could be held against",
            Self::ControlsUnsteady => "control pairs were as bad in the same rounds",
            Self::Undecided => {
                "it is bad, or something else explains the values as well, such as a fabric that carries less there by design"
            }
            Self::Busy => "its values were bad again, but a host was busy with something else",
            Self::VirtualMachine => {
                "its values were bad again, but a host is a virtual machine, which shares its machine with others"
            }
            Self::SharedMachine => {
                "its values were bad again, but several of these hosts are one machine and share what it has"
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
            Self::FurtherMeasurement => "further tests told it from what else it could be",
        }
    }
}
