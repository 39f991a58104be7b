//! Centre and spread that a minority of bad values cannot move.

mod level;
pub(crate) mod outlier;
mod polish;
mod quantile;
mod shorth;

pub use level::Level;
pub(crate) use level::SMALLEST;
pub use outlier::outlier_cut;
pub use polish::{Polish, median_polish};
pub use quantile::{MAD_TO_SIGMA, mad, median, median_in_place, quantile, quantile_sorted};
pub use shorth::{Shorth, shorth, shorth_sorted};
