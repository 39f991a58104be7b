//! The first of several things, with how many others there are.

use crate::analysis::words::count;

/// `a → b and 3 more flows`; only the first where it is the only one.
pub fn flows_and_more(first: &str, all: usize) -> String {
    first_of(first, all, "more flow")
}

/// `gpu01 mlx5_0 was`, `gpu01 mlx5_0 and 7 more ports were`.
pub fn ports_were(first: &str, all: usize) -> String {
    let verb = if all > 1 { "were" } else { "was" };
    format!("{} {verb}", first_of(first, all, "more port"))
}

fn first_of(first: &str, all: usize, more: &str) -> String {
    match all {
        0 | 1 => first.to_owned(),
        _ => format!("{first} and {}", count(all - 1, more)),
    }
}
