//! The class by which a case is coloured.
//!
//! Classes are steps of the threshold from which on a link stands out, so that the colour and the list of what stands out
//! cannot disagree: from [`Grade::Clear`] on a case stands out, below it does not.

/// How much worse than the centre, worst first, in parts of the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    Far,
    Much,
    Clear,
    Little,
}

/// How a case looks, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// Planned and not measured.
    Missing,
    /// Measured, but its data is wrong or it was disturbed.
    Doubtful,
    Worse(Grade),
    /// By itself not far from the centre, and yet among what speaks for a part that stands out.
    Named,
    /// At the centre, or nothing to hold it against.
    Usual,
    /// Better than the centre by more than half of the threshold.
    Better,
}

impl Look {
    /// The look of a distance in parts of the threshold, negative where worse. `named`: it speaks for a part that stands out.
    pub fn of(parts: f64, named: bool) -> Self {
        match -parts {
            p if p > 4.0 => Self::Worse(Grade::Far),
            p if p > 2.0 => Self::Worse(Grade::Much),
            p if p > 1.0 => Self::Worse(Grade::Clear),
            _ if named => Self::Named,
            p if p > 0.5 => Self::Worse(Grade::Little),
            p if p < -0.5 => Self::Better,
            _ => Self::Usual,
        }
    }

    /// Whether it shows that a case stands out by itself.
    pub const fn stands_out(self) -> bool {
        matches!(self, Self::Worse(Grade::Far | Grade::Much | Grade::Clear))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_out_and_what_is_named_is_never_grey() {
        for (parts, named, look) in [
            (-9.0, false, Look::Worse(Grade::Far)),
            (-1.01, true, Look::Worse(Grade::Clear)),
            (-1.0, false, Look::Worse(Grade::Little)),
            (-0.2, true, Look::Named),
            (0.7, true, Look::Named),
            (-0.5, false, Look::Usual),
            (0.7, false, Look::Better),
        ] {
            assert_eq!(Look::of(parts, named), look, "{parts}");
            assert_eq!(look.stands_out(), parts < -1.0);
        }
    }
}
