//! Which low flows fill one path together.

/// A path counts as filled by flows whose shares add up to it within this: headers, acknowledgements and windows cost a little of it.
const FULL: f64 = 0.1;

/// The largest share on a path over the smallest: how unevenly it may be shared. Congestion control serves flows of the same age alike
/// within less than this over seconds.
const UNEVEN: f64 = 1.7;

/// The same of two flows that are left over by themselves. TCP serves two streams of different age by up to this over a few seconds.
const UNEVEN_PAIR: f64 = 2.5;

/// All groups of a pass together are off from full paths by no more than this. One slow path among good ones is off by what it lacks,
/// and in many groups each could take a little of that.
const TOGETHER: f64 = 0.25;

/// Most flows on a path that are looked for: shares of more are too small to be told apart.
const MOST: usize = 8;

/// A flow beside these has a share that may be of its path just as well.
const NEAR: f64 = 1.25;

/// Where a low flow belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouped {
    /// To flows that fill a path.
    Path {
        /// So many, itself among them.
        flows: usize,
    },
    /// Nobody knows.
    Open,
}

/// Groups the shares of the low flows of every pass, each in parts of a path: as few as possible are left over. Where some are, the
/// groups of about the same share are open as well, in every pass: any of their flows may be the one that does not belong, and
/// two slow paths that look like a full one in one pass do not in the next.
pub fn groups(passes: &[Vec<f64>]) -> Vec<Vec<Grouped>> {
    let passes: Vec<Pass<'_>> = passes.iter().map(|shares| Pass::new(shares)).collect();
    let left: Vec<f64> = passes.iter().flat_map(Pass::left).collect();
    passes.iter().map(|pass| pass.grouped(&left)).collect()
}

/// The low flows of one pass.
struct Pass<'s> {
    shares: &'s [f64],
    /// Positions of groups, the largest shares first.
    groups: Vec<Vec<usize>>,
}

impl<'s> Pass<'s> {
    fn new(shares: &'s [f64]) -> Self {
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
        let sorted: Vec<f64> = order.iter().map(|at| shares[*at]).collect();
        let mut rest = order.iter().copied();
        let groups = partition(&sorted).into_iter().map(|size| rest.by_ref().take(size).collect());
        let (left, mut groups): (Vec<Vec<usize>>, Vec<Vec<usize>>) =
            groups.partition(|group: &Vec<usize>| group.len() == 1);
        groups.extend(pairs(shares, &left.concat()));
        let sum = |group: &Vec<usize>| group.iter().map(|at| shares[*at]).sum::<f64>() - 1.0;
        let excess: f64 = groups.iter().filter(|group| group.len() > 1).map(sum).sum();
        if excess.abs() > TOGETHER {
            groups = order.into_iter().map(|at| vec![at]).collect();
        }
        Self { shares, groups }
    }

    /// Shares that are left over.
    fn left(&self) -> impl Iterator<Item = f64> {
        self.groups.iter().filter(|group| group.len() == 1).flatten().map(|at| self.shares[*at])
    }

    /// Where each flow belongs, where these are left over anywhere.
    fn grouped(&self, left: &[f64]) -> Vec<Grouped> {
        let mut found = vec![Grouped::Open; self.shares.len()];
        for group in self.groups.iter().filter(|group| group.len() > 1) {
            let shares = group.iter().map(|at| self.shares[*at]);
            let (low, high) =
                shares.fold((f64::INFINITY, 0.0_f64), |(low, high), share| (low.min(share), high.max(share)));
            if !left.iter().any(|share| *share < high * NEAR && *share > low / NEAR) {
                group.iter().for_each(|at| found[*at] = Grouped::Path { flows: group.len() });
            }
        }
        found
    }
}

/// As many pairs that fill a path as there are among flows of falling shares, and the rest each by itself.
fn pairs(shares: &[f64], falling: &[usize]) -> Vec<Vec<usize>> {
    let mut groups = Vec::new();
    let mut rest = falling;
    // The largest share goes with the smallest one, or with none.
    while let [large, between @ .., small] = rest {
        let (high, low) = (shares[*large], shares[*small]);
        let gap = high + low - 1.0;
        if gap.abs() <= FULL && high <= UNEVEN_PAIR * low {
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

/// Sizes of neighbouring groups of falling shares with the fewest left over; a size of one is left over.
fn partition(sorted: &[f64]) -> Vec<usize> {
    // From each place on: how many are left over, how far the groups are from full, and the size of the first group.
    let mut best = vec![(0_usize, 0.0_f64, 0_usize); sorted.len() + 1];
    for from in (0..sorted.len()).rev() {
        let (left, off, _) = best[from + 1];
        let mut here = (left + 1, off, 1);
        for size in 2..=MOST.min(sorted.len() - from) {
            let group = &sorted[from..from + size];
            let gap = (group.iter().sum::<f64>() - 1.0).abs();
            if gap > FULL || group[0] > UNEVEN * group[size - 1] {
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

    fn groups(shares: &[f64]) -> Vec<Grouped> {
        super::groups(&[shares.to_vec()]).remove(0)
    }

    fn path(flows: usize) -> Grouped {
        Grouped::Path { flows }
    }

    #[test]
    fn shares_that_fill_paths_are_grouped() {
        let third = 1.0 / 3.0;
        assert_eq!(groups(&[]), []);
        assert_eq!(groups(&[0.5, third, third, 0.5, third]), [path(2), path(3), path(3), path(2), path(3)]);
        assert_eq!(groups(&[0.25; 4]), [path(4); 4]);
        assert_eq!(groups(&[0.48, 0.5, 0.52, 0.5]), [path(2); 4]);
        // Measured: two pairs of TCP streams, of which neither shares evenly.
        assert_eq!(groups(&[0.62, 0.39, 0.69, 0.32]), [path(2); 4]);
    }

    #[test]
    fn what_is_left_over_opens_its_like_and_no_others() {
        assert_eq!(groups(&[0.7]), [Grouped::Open]);
        assert_eq!(groups(&[0.5, 0.5, 0.5]), [Grouped::Open; 3]);
        let third = 1.0 / 3.0;
        let mixed = groups(&[0.7, third, third, third, 0.1]);
        assert_eq!(mixed, [Grouped::Open, path(3), path(3), path(3), Grouped::Open]);
        // A slow path at half with two flows on it: a quarter each fills nothing.
        assert_eq!(groups(&[0.25, 0.25]), [Grouped::Open; 2]);
        // What is left over in one pass opens its like in another.
        let third = 1.0 / 3.0;
        let two = super::groups(&[vec![0.5, 0.5, third, third, third], vec![0.5]]);
        assert_eq!(two, [vec![Grouped::Open, Grouped::Open, path(3), path(3), path(3)], vec![Grouped::Open]]);
    }
}
