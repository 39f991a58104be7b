/// Twice the midrank of every value: equal values share the mean of their ranks, and twice a midrank is a whole number.
/// Ranks count from 1, the smallest value first. The second result is the length of every group of equal values.
pub(super) fn doubled_midranks(values: &[f64]) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut groups = Vec::with_capacity(values.len());
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        // Compared by value, so that 0 and −0 are equal.
        while end < order.len() && values[order[end]] == values[order[start]] {
            end += 1;
        }
        for &at in &order[start..end] {
            ranks[at] = start + end + 1;
        }
        groups.push(end - start);
        start = end;
    }
    (ranks, groups)
}

/// Σ (t³ − t) over groups of t equal values.
pub(super) fn tie_sum(groups: &[usize]) -> f64 {
    groups.iter().map(|&t| (t * t * t - t) as f64).sum()
}
