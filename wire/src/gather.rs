//! Maps and sets of what an iterator gives.

use std::collections::BTreeMap;

pub trait Gather: Iterator + Sized {
    /// A map or set, filled one by one. `collect` sorts everything first, by 4 KB of code for each iterator that it is used with, and agents are
    /// sent to every host.
    fn gathered<C: Default + Extend<Self::Item>>(self) -> C {
        let mut all = C::default();
        all.extend(self);
        all
    }
}

impl<I: Iterator> Gather for I {}

/// The settings of a record.
pub fn named(entries: Vec<(&str, String)>) -> BTreeMap<String, String> {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).gathered()
}
