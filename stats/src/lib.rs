//! railgauge's statistics: pure functions over slices. No clock, no I/O, no global state; random functions take a seed.
//!
//! | module | answers | source |
//! | --- | --- | --- |
//! | [`robust`] | where is the centre, how wide is the spread, when some values are bad | Tukey 1977; Andrews et al. 1972; Hyndman & Fan 1996 |
//! | [`rank`] | are two samples, or the differences of pairs, shifted against each other | Wilcoxon 1945; Mann & Whitney 1947 |
//! | [`shift`] | by how much, with an interval of known level | Hodges & Lehmann 1963; Bauer 1972 |
//! | [`student`] | the mean of differences that were measured in pairs | Student 1908 |
//! | [`multiple`] | what remains when many cells are looked at | Benjamini & Hochberg 1995 |
//! | [`localise`] | which host, NIC, rail, switch or path is bad | see there |
//! | [`fabric`] | which link, cable or switch between the hosts is bad | see there |
//! | [`collide`] | do low flows collide on a path, or is something damaged | see there |
//! | [`bisect`] | which host makes a collective slow | Hwang 1972 |
//! | [`compare`] | did it change between two sets of runs, or is it shown that it did not | Schuirmann 1987; Kalibera & Jones 2013 |
//! | [`changepoint`] | when did a series of nights change, and which changed together | Jackson et al. 2005; Fearnhead & Rigaill 2019 |
//!
//! Values that are not finite are refused. Too few values are a [`Refusal`]. Nothing is rounded.
//!
//! Bandwidths and latencies are compared on the scale of natural logarithms, so that a difference is a ratio: a
//! difference of 0.01 is 1.005 %. Functions that expect logarithms say so.
#![forbid(unsafe_code)]

pub mod bisect;
pub mod changepoint;
pub mod collide;
pub mod compare;
pub mod course;
pub mod fabric;
pub mod lists;
pub mod localise;
pub mod multiple;
pub mod rank;
pub mod refusal;
pub mod robust;
pub mod shift;
pub mod student;

pub use refusal::Refusal;
