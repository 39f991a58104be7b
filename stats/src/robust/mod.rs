//! Centre and spread that a minority of bad values cannot move.

mod level;
pub(crate) mod outlier;
mod quantile;

pub use level::Level;
pub(crate) use level::SMALLEST;
pub use outlier::outlier_cut;
pub use quantile::{MAD_TO_SIGMA, mad, median, median_in_place, quantile, quantile_sorted};
