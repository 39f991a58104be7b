//! Finds the host, or the boundary between hosts, that makes a collective slow, by running it on ever smaller groups.
//!
//! Use it where pairs are clean but the collective is not, or where only collectives can be measured: a pair test is far cheaper.
//! [`Search::next_group`] returns the hosts for the next collective, [`Search::answer`] takes its result.
//!
//! 1. *Screen*: groups of about √N neighbours, each once. The level of good groups is the robust centre of all.
//! 2. A failing group is measured up to three times; two of three decide.
//! 3. *Across*: one host of each good group, as a group of the same size. If it is good, nothing is slow between them, and a healthy
//!    cluster needs no further tests. Else the good groups are sorted, by pairs of hosts, into *sides*: hosts that good groups chain
//!    together.
//! 4. *Halves* of a failing group, against the reference of their size, because bandwidth depends on the group's size. References use
//!    parts of groups that passed, so that none crosses a slow boundary. A single host is measured together with a good one.
//! 5. Both halves pass: each is tied to a side. If they are of one side, two mixes of half of each, and if both pass the two crosswise
//!    ones, find what is slow between them; if both of two fail it is the whole boundary, if all four pass it was transient.
//! 6. *Confirmation*: a host that failed with a good one is measured with good ones of every side, two at least, and with the other
//!    failed hosts. It is at fault only if no group with it was good. Those that are good together are a side of their own.
//! 7. Two sides are a *boundary*. Its hosts are measured from both: a group that is good with the other side's hosts is excluded.
//!
//! (Hwang 1972 on splitting; the votes and mixes as in the fault isolation of large training clusters.) Assumes that a host at fault
//! slows down every group it is in, and a boundary every group with hosts of both its sides; so part of a good group is good.

mod course;
mod known;
mod screen;
mod search;
mod sides;
mod unlike;

pub use search::Search;
pub use unlike::{Repeats, unlike};

use std::collections::BTreeMap;

use crate::robust::Level;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setting {
    pub least: f64,
    /// Standard deviation of repeated results on the scale of logarithms. 0 if not known.
    pub noise: f64,
    pub references: BTreeMap<usize, Level>,
    /// Hosts that are near one another, such as those of a leaf; empty if not known. Groups of the screen follow them.
    pub leaves: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Hosts in no good group, and low with good hosts of every side.
    pub hosts: Vec<u32>,
    /// Pairs of sides that are good by themselves and low together, as narrow as could be found.
    pub boundaries: Vec<(Vec<u32>, Vec<u32>)>,
    /// Three sides or more that are good by themselves, any two being low together; empty otherwise. A shared level of the fabric causes
    /// that: which one is at fault, if any, is unknown.
    pub parted: Vec<Vec<u32>>,
    /// Groups that failed twice and passed when taken apart, or a host that passed when confirmed.
    pub transient: Vec<Vec<u32>>,
    /// Failing groups that could not be taken apart, because too few known good hosts give a reference.
    pub open: Vec<Vec<u32>>,
    pub tests: usize,
}
