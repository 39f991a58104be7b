//! Groups low flows that fill one path together.

/// Largest ratio of shares on a path. Congestion control serves flows of the same age within less than this over seconds.
const UNEVEN: f64 = 1.7;

/// The same for two remaining flows. TCP serves two streams of different age within this over a few seconds.
const UNEVEN_PAIR: f64 = 2.5;

/// Most flows on a path: the shares of more are too small to distinguish.
const MOST: usize = 8;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Groups {
    /// Indices of two or more flows that fill a path together.
    pub paths: Vec<Vec<usize>>,
    pub left: Vec<usize>,
}

/// Groups the shares of low flows, in parts of a path, with as few as possible left over. Flows fill a path if their shares sum to it
/// within `full`.
pub fn groups(shares: &[f64], full: f64) -> Groups {
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
    let sorted: Vec<f64> = order.iter().map(|at| shares[*at]).collect();
    let mut rest = order.iter().copied();
    let parts = partition(&sorted, full).into_iter().map(|size| rest.by_ref().take(size).collect());
    let (left, mut paths): (Vec<Vec<usize>>, Vec<Vec<usize>>) = parts.partition(|group: &Vec<usize>| group.len() == 1);
    let (paired, left): (Vec<Vec<usize>>, Vec<Vec<usize>>) =
        pairs(shares, &left.concat(), full).into_iter().partition(|group| group.len() > 1);
    paths.extend(paired);
    Groups { paths, left: left.concat() }
}

/// As many pairs as possible that fill a path, from falling shares; the rest each alone.
fn pairs(shares: &[f64], falling: &[usize], full: f64) -> Vec<Vec<usize>> {
    let mut groups = Vec::new();
    let mut rest = falling;
    // The largest share is paired with the smallest one, or with none.
    while let [large, between @ .., small] = rest {
        let (high, low) = (shares[*large], shares[*small]);
        let gap = high + low - 1.0;
        if gap.abs() <= full && high <= UNEVEN_PAIR * low {
            groups.push(vec![*large, *small]);
            rest = between;
        } else if gap > 0.0 {
            groups.push(vec![*large]);
            rest = &rest[1..];
        } else {
            groups.push(vec![*small]);
            rest = &rest[..rest.len() - 1];
        }
    }
    groups.extend(rest.iter().map(|at| vec![*at]));
    groups
}

/// Sizes of adjacent groups of falling shares with the fewest left over; a size of one is left over.
fn partition(sorted: &[f64], full: f64) -> Vec<usize> {
    // From each index on: flows left over, distance of the groups from full, size of the first group.
    let mut best = vec![(0_usize, 0.0_f64, 0_usize); sorted.len() + 1];
    for from in (0..sorted.len()).rev() {
        let (left, off, _) = best[from + 1];
        let mut here = (left + 1, off, 1);
        for size in 2..=MOST.min(sorted.len() - from) {
            let group = &sorted[from..from + size];
            let gap = (group.iter().sum::<f64>() - 1.0).abs();
            if gap > full || group[0] > UNEVEN * group[size - 1] {
                continue;
            }
            let (left, off, _) = best[from + size];
            if (left, off + gap) < (here.0, here.1) {
                here = (left, off + gap, size);
            }
        }
        best[from] = here;
    }
    let mut sizes = Vec::new();
    let mut at = 0;
    while at < sorted.len() {
        sizes.push(best[at].2);
        at += best[at].2;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of flows on each flow's path; `None` for one left over.
    fn sizes(shares: &[f64]) -> Vec<Option<usize>> {
        let found = groups(shares, 0.05);
        let of = |at: usize| found.paths.iter().find(|path| path.contains(&at)).map(Vec::len);
        let sizes: Vec<Option<usize>> = (0..shares.len()).map(of).collect();
        assert_eq!(found.left.len(), sizes.iter().filter(|size| size.is_none()).count());
        sizes
    }

    #[test]
    fn shares_that_fill_paths_are_grouped() {
        let third = 1.0 / 3.0;
        assert_eq!(sizes(&[]), []);
        assert_eq!(sizes(&[0.5, third, third, 0.5, third]), [2, 3, 3, 2, 3].map(Some));
        assert_eq!(sizes(&[0.25; 4]), [Some(4); 4]);
        assert_eq!(sizes(&[0.48, 0.5, 0.52, 0.5]), [Some(2); 4]);
        // Measured: two pairs of TCP streams, both uneven.
        assert_eq!(sizes(&[0.62, 0.39, 0.69, 0.32]), [Some(2); 4]);
    }

    #[test]
    fn what_fills_no_path_is_left_over() {
        assert_eq!(sizes(&[0.7]), [None]);
        assert_eq!(sizes(&[0.5, 0.5, 0.5]).iter().flatten().count(), 2);
        let third = 1.0 / 3.0;
        assert_eq!(sizes(&[0.7, third, third, third, 0.1]), [None, Some(3), Some(3), Some(3), None]);
        // A slow path at half with two flows on it: a quarter each fills nothing. At 90 % neither.
        assert_eq!(sizes(&[0.25, 0.25]), [None; 2]);
        assert_eq!(sizes(&[0.45, 0.45]), [None; 2]);
    }
}
