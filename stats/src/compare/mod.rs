//! Compares before and after: a change and its size, or equivalence.
//!
//! The unit is a run (or a block of an interleaved run), never an iteration within a run: iterations share the run's luck, and counting
//! them as independent is the main source of false changes (Kalibera & Jones 2013). All values are natural logarithms, so effects are
//! ratios.
//!
//! [`unpaired`] compares two sets of runs, whose neighbours may be correlated, so that their [`Order`] in time matters ([`RunSet`] does
//! all of it). [`paired`] uses the differences of interleaved blocks ([`block_difference`]), in which linear drift cancels. Either gives
//! a [`Comparison`]; [`verdicts`] judges many together and controls the share of false discoveries.

mod blocks;
mod cell;
mod floor;
mod headline;
mod means;
mod order;
mod runs;
mod strays;
mod verdict;

pub use blocks::{Variant, block_difference, block_orders};
pub use cell::{Comparison, LEVEL, paired, unpaired};
pub use floor::{Margin, WIDEST, margin, noise_floor};
pub use headline::{Headline, paired_headline, unpaired_headline};
pub use order::{NEIGHBOURS, Order, Turns};
pub use runs::RunSet;
pub use strays::strays;
pub use verdict::{Judged, Obstacle, Verdict, verdict, verdicts};
