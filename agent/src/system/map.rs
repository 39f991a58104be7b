//! Maps.

use std::collections::BTreeMap;

/// A map of these pairs. `collect` sorts the pairs first, with 5 KB of code for every type of iterator.
pub(crate) fn map<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(pairs);
    map
}
