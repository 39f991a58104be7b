//! Which host, or which boundary between hosts, makes a collective slow, found by running it on ever smaller groups.
//!
//! For use where pairs are clean but the collective is not, or where only collectives can be measured: a pair test is
//! cheaper by far. [`Search`] is a state machine and measures nothing itself: [`Search::next_group`] says on which hosts to
//! run the collective, [`Search::answer`] takes the result.
//!
//! 1. *Screen*: groups of about √N hosts, each once. What good groups reach is the robust centre of all; a healthy cluster
//!    costs nothing more.
//! 2. A group that fails is measured up to three times; two of three decide.
//! 3. *Halves* of a failing group, against the reference of their size, measured on hosts of groups that passed, because
//!    the bandwidth of a collective depends on the group's size. A single host is measured together with a known-good one.
//! 4. Both halves pass: the fault lies *between* them. Two mixes of half of each, and if both pass the two crosswise ones,
//!    find where; if both of two fail it is the whole boundary, if all four pass it was transient.
//! 5. *Confirmation*: each suspect host with another known-good one.
//!
//! (Hwang 1972 on splitting; the votes and mixes as in the fault isolation of large training clusters.) A host at fault is
//! assumed to slow down every group that it is in.

mod job;
mod search;

pub use search::{Found, Search, Setting};
