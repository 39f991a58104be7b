//! The class that colours a case.
//!
//! Classes are steps of the threshold for links that stand out, so that colours and list cannot disagree: a case stands
//! out from [`Grade::Clear`] on.

/// Distance from the centre in parts of the threshold, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    Far,
    Much,
    Clear,
    Little,
}

/// Worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    Missing,
    Doubtful,
    Worse(Grade),
    /// Not far from the centre by itself, but evidence for a part that stands out.
    Named,
    Usual,
    Better,
}

impl Look {
    /// `parts`: distance in parts of the threshold, negative where worse. `named`: it is evidence for a part that stands out.
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
