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

pub use search::{Found, Search, Setting};
pub use unlike::{Repeats, unlike};
