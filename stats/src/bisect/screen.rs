use std::collections::BTreeSet;

/// Fewer groups do not show what is usual.
pub(super) const FEWEST_GROUPS: usize = 3;

pub(super) fn in_order(hosts: &[u32], leaves: &[Vec<u32>]) -> Vec<u32> {
    let mut order: Vec<u32> = leaves.iter().flatten().filter(|host| hosts.contains(host)).copied().collect();
    let mut seen = BTreeSet::new();
    order.retain(|host| seen.insert(*host));
    order.extend(hosts.iter().filter(|host| !seen.contains(host)));
    order
}

/// Run lengths of leaves in this order; hosts without a leaf are one.
pub(super) fn leaves(order: &[u32], leaves: &[Vec<u32>]) -> Vec<usize> {
    let leaf = |host: &u32| leaves.iter().position(|leaf| leaf.contains(host));
    order.chunk_by(|a, b| leaf(a) == leaf(b)).map(<[u32]>::len).collect()
}

pub(super) fn size(hosts: usize) -> usize {
    ((hosts as f64).sqrt().ceil() as usize).clamp(2, (hosts / FEWEST_GROUPS).max(2))
}

/// Groups of this size that cover an order of hosts. None crosses the border of a leaf with as many hosts as a group; smaller leaves are
/// grouped with their neighbours. The last group of a leaf overlaps with the one before, so that all have one size and one reference, and
/// no host is measured with distant ones.
pub(super) fn groups(leaves: &[usize], size: usize) -> Vec<Vec<u32>> {
    let mut groups = Vec::new();
    let (mut start, mut end) = (0, 0);
    for &leaf in leaves {
        let own = leaf >= size;
        // Small leaves before it that are enough for a group.
        if own && end - start >= size {
            cut(start, end, size, &mut groups);
            start = end;
        }
        end += leaf;
        if own {
            cut(start, end, size, &mut groups);
            start = end;
        }
    }
    if start < end {
        cut(end.saturating_sub(size).min(start), end, size, &mut groups);
    }
    groups
}

/// `end - start` is at least `size`.
fn cut(start: usize, end: usize, size: usize, groups: &mut Vec<Vec<u32>>) {
    let whole = (start..end).step_by(size).map(|first| first.min(end - size));
    groups.extend(whole.map(|first| (first as u32..(first + size) as u32).collect()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_to_leaves() {
        assert_eq!(groups(&[7], 3), [vec![0, 1, 2], vec![3, 4, 5], vec![4, 5, 6]]);
        assert_eq!(groups(&[4, 4], 4), [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert_eq!(groups(&[5, 4], 3), [vec![0, 1, 2], vec![2, 3, 4], vec![5, 6, 7], vec![6, 7, 8]]);
        // Leaves of two are grouped; a small one next to a large one joins it.
        assert_eq!(groups(&[2, 2, 2], 3), [vec![0, 1, 2], vec![3, 4, 5]]);
        assert_eq!(groups(&[1, 5], 3), [vec![0, 1, 2], vec![3, 4, 5]]);
        assert_eq!(groups(&[5, 1], 3), [vec![0, 1, 2], vec![2, 3, 4], vec![3, 4, 5]]);
    }

    #[test]
    fn every_host_stands_in_a_group_of_the_size() {
        for hosts in 6..=60_usize {
            let size = size(hosts);
            for leaf in 1..=hosts {
                let leaves: Vec<usize> = (0..hosts).step_by(leaf).map(|start| leaf.min(hosts - start)).collect();
                let groups = groups(&leaves, size);
                let held: BTreeSet<u32> = groups.iter().flatten().copied().collect();
                assert_eq!(held.len(), hosts, "{hosts} hosts in leaves of {leaf}");
                assert!(groups.iter().all(|group| group.len() == size), "{hosts} hosts in leaves of {leaf}");
            }
        }
    }
}
