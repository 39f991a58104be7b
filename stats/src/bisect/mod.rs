//! Which host, or which boundary between hosts, makes a collective slow, found by running it on ever smaller groups.
//!
//! For use where pairs are clean but the collective is not, or where only collectives can be measured: a pair test is
//! cheaper by far. [`Search`] measures nothing itself: [`Search::next_group`] says on which hosts to run the collective,
//! [`Search::answer`] takes the result.
//!
//! 1. *Screen*: groups of about √N neighbours, each once. What good groups reach is the robust centre of all.
//! 2. A group that fails is measured up to three times; two of three decide.
//! 3. *Across*: one host of each good group, as a group of the same size. If it is good, nothing is slow between them, and a
//!    healthy cluster costs nothing more. Else the good groups are sorted, pair by pair of hosts, into *sides*: hosts
//!    that good groups chain together.
//! 4. *Halves* of a failing group, against the reference of their size, because the bandwidth of a collective depends on
//!    the group's size. References are measured on parts of groups that passed, so that none of them crosses a slow
//!    boundary. A single host is measured together with a good one.
//! 5. Both halves pass: each is tied to a side. If they are of one side, two mixes of half of each, and if both pass the two
//!    crosswise ones, find what is slow between them; if both of two fail it is the whole boundary, if all four pass it was
//!    transient.
//! 6. *Confirmation*: a host that failed beside a good one is measured beside good ones of every side, two at least, and
//!    beside the other hosts that failed. It is at fault only if no group with it was good. Those that are good together are
//!    a side of their own.
//! 7. Two sides are a *boundary*. Which hosts it has is measured from both: a group that is good beside the other side's
//!    hosts is left out.
//!
//! (Hwang 1972 on splitting; the votes and mixes as in the fault isolation of large training clusters.) A host at fault is
//! assumed to slow down every group that it is in, and a boundary every group with hosts of both its sides; part of a good
//! group is then good.

mod course;
mod known;
mod screen;
mod search;
mod sides;
mod unlike;

pub use search::{Found, Search, Setting};
pub use unlike::{Repeats, unlike};
