//! The class that colours a case.
//!
//! A case stands out from the threshold on, so that colours and list cannot disagree. Beyond it the colour depends on the
//! difference alone: the same difference has one colour at every size and in every test.

/// Differences of logarithms from which an outlier is [`Grade::Much`] and [`Grade::Far`]: −15 % and −33 % of a bandwidth.
pub const STEPS: [f64; 2] = [0.1625, 0.4005];

/// Worst first.
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
    /// `deviation` and `threshold` are differences of logarithms, the former negative where worse. `named`: it is evidence
    /// for a part that stands out.
    pub fn of(deviation: f64, threshold: f64, named: bool) -> Self {
        match -deviation / threshold {
            p if p > 1.0 && -deviation > STEPS[1] => Self::Worse(Grade::Far),
            p if p > 1.0 && -deviation > STEPS[0] => Self::Worse(Grade::Much),
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
        for (deviation, threshold, named, look) in [
            (-0.5, 0.05, false, Look::Worse(Grade::Far)),
            (-0.5, 0.45, false, Look::Worse(Grade::Far)),
            (-0.3, 0.05, true, Look::Worse(Grade::Much)),
            (-0.051, 0.05, true, Look::Worse(Grade::Clear)),
            (-0.05, 0.05, false, Look::Worse(Grade::Little)),
            (-0.5, 0.6, false, Look::Worse(Grade::Little)),
            (-0.01, 0.05, true, Look::Named),
            (0.04, 0.05, true, Look::Named),
            (-0.02, 0.05, false, Look::Usual),
            (0.04, 0.05, false, Look::Better),
        ] {
            assert_eq!(Look::of(deviation, threshold, named), look, "{deviation} of {threshold}");
            assert_eq!(look.stands_out(), deviation < -threshold);
        }
    }
}
