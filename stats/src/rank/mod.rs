//! Tests on ranks: what they find does not depend on how values are distributed.

mod mann_whitney;
mod normal;
mod null;
mod signed_rank;
mod ties;

pub use mann_whitney::{MannWhitney, mann_whitney, mann_whitney_asymptotic};
pub use normal::{normal_cdf, normal_quantile};
pub use null::{EXACT, EXACT_TIED, Null};
pub use signed_rank::{SignedRank, signed_rank, signed_rank_asymptotic};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// All arrangements of the ranks were counted; no values were equal.
    Exact,
    /// All arrangements of the midranks that occurred were counted.
    ExactTied,
    Normal,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PValues {
    /// Against "the first is shifted down".
    pub less: f64,
    /// Against "the first is shifted up".
    pub greater: f64,
    /// Against either: twice the smaller of both, at most 1.
    pub two_sided: f64,
    pub method: Method,
}

impl PValues {
    fn new(less: f64, greater: f64, method: Method) -> Self {
        Self { less, greater, two_sided: (2.0 * less.min(greater)).min(1.0), method }
    }
}
