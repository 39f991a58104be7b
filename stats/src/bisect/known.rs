//! Hosts known to be good by groups that passed.

use std::collections::{BTreeMap, BTreeSet};

/// Groups that passed, and their sides. A host in a passed group is good. Hosts that groups chain together are on one side: no passed
/// group has hosts of both sides of a slow boundary.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// In the order in which they passed.
    groups: Vec<Vec<u32>>,
    side: BTreeMap<u32, usize>,
}

impl Known {
    pub(super) fn pass(&mut self, group: &[u32]) {
        let own = self.groups.len();
        let joined: BTreeSet<usize> = group.iter().filter_map(|host| self.side.get(host).copied()).collect();
        self.side.values_mut().filter(|side| joined.contains(side)).for_each(|side| *side = own);
        self.side.extend(group.iter().map(|&host| (host, own)));
        self.groups.push(group.to_vec());
    }

    pub(super) fn is_good(&self, host: u32) -> bool {
        self.side.contains_key(&host)
    }

    /// Whether two hosts are the same or good and on one side.
    pub(super) fn together(&self, a: u32, b: u32) -> bool {
        a == b || self.side.get(&a).zip(self.side.get(&b)).is_some_and(|(a, b)| a == b)
    }

    /// By their first hosts, each in the order of its hosts.
    pub(super) fn sides(&self) -> Vec<Vec<u32>> {
        let mut sides: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (&host, &side) in &self.side {
            sides.entry(side).or_default().push(host);
        }
        let mut sides: Vec<Vec<u32>> = sides.into_values().collect();
        sides.sort_unstable_by_key(|side| side[0]);
        sides
    }

    pub(super) fn holds(&self, group: &[u32]) -> bool {
        self.groups.iter().any(|known| group.iter().all(|host| known.contains(host)))
    }

    /// The first group that passed with this host.
    pub(super) fn home(&self, host: u32) -> &[u32] {
        self.groups.iter().find(|group| group.contains(&host)).map_or(&[], Vec::as_slice)
    }

    /// Up to `wanted` groups of a size within passed ones, from all over the cluster.
    pub(super) fn parts(&self, size: usize, wanted: usize) -> Vec<Vec<u32>> {
        let mut parts: Vec<Vec<u32>> = Vec::new();
        let most = self.groups.iter().map(Vec::len).max().unwrap_or_default();
        for start in 0..(most + 1).saturating_sub(size) {
            let of_start = self.groups.iter().filter_map(|group| group.get(start..start + size));
            for part in of_start {
                if !parts.iter().any(|known| known == part) {
                    parts.push(part.to_vec());
                }
            }
            // Neighbours overlap with these, so they are a fallback.
            if parts.len() >= wanted {
                break;
            }
        }
        let all = parts.len();
        (0..wanted.min(all)).map(|at| parts[at * all / wanted.min(all)].clone()).collect()
    }
}
