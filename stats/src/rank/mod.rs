//! Tests on ranks: what they find does not depend on how values are distributed.

mod mann_whitney;
mod normal;
mod null;
mod signed_rank;
mod ties;

pub use mann_whitney::mann_whitney;
pub use normal::{normal_cdf, normal_quantile};
pub use null::{EXACT, EXACT_TIED, Null};
pub use signed_rank::signed_rank;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PValues {
    /// Against "the first is shifted down".
    pub less: f64,
    /// Against "the first is shifted up".
    pub greater: f64,
    /// Against either: twice the smaller of both, at most 1.
    pub two_sided: f64,
}

impl PValues {
    fn new(less: f64, greater: f64) -> Self {
        Self { less, greater, two_sided: (2.0 * less.min(greater)).min(1.0) }
    }

    /// Of a distance from the expected value with standard deviation `s`, with continuity correction.
    fn normal(away: f64, s: f64) -> Self {
        Self::new(normal_cdf((away + 0.5) / s), normal_cdf(-(away - 0.5) / s))
    }
}
