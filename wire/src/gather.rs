//! Maps and sets of what an iterator gives.
//!
//! `collect` sorts all of it first, by 4 KB of code for each place that does so: a thirtieth of an agent. Inserting one after the other
//! shares its code.

use std::collections::{BTreeMap, BTreeSet};

/// What every iterator can do.
pub trait Gather: Iterator + Sized {
    /// A map of pairs; of two with the same key the last one.
    fn into_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: Iterator<Item = (K, V)>,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }

    /// A set.
    fn into_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }
}

impl<I: Iterator> Gather for I {}
