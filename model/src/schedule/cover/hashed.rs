//! How many flows it takes where a hash chooses among equal paths, and nobody knows which.
//!
//! A flow misses a certain one of m paths with probability (m − 1)/m, so n flows take it with 1 − ((m − 1)/m)ⁿ. That they take all m with
//! probability p is asked of the m-th power of this: n = ⌈ln(1 − p^(1/m)) / ln((m − 1)/m)⌉. Source: R-Pingmesh (SIGCOMM 2024); for
//! m = 16 and p = 0.9 it is 78. The power takes the m paths as independent. They are not quite: a flow on one path is on no other,
//! so the true probability is lower, for p = 0.9 and up to 256 paths by less than 0.01.

/// Flows (queue pairs, source ports) that take all of `paths` equal paths with probability `p`. `None` if `paths` is 0, if `p` is
/// not below 1 (no number is enough) or not a probability, or if the number is beyond 2⁵³.
pub fn flows(paths: u64, p: f64) -> Option<u64> {
    if paths == 0 || !(0.0..1.0).contains(&p) {
        return None;
    }
    if paths == 1 || p == 0.0 {
        return Some(if paths == 1 { 1 } else { paths });
    }
    let m = paths as f64;
    // 1 − p^(1/m) and ln((m − 1)/m), without the loss of digits near 1.
    let missed = -(p.ln() / m).exp_m1();
    let each = (-1.0 / m).ln_1p();
    let n = (missed.ln() / each).ceil();
    (n.is_finite() && n < 2_f64.powi(53)).then(|| (n as u64).max(paths))
}

/// Probability that `flows` flows take all of `paths` equal paths, by the same formula; 0 where there are fewer flows than paths.
pub fn probability(paths: u64, flows: u64) -> f64 {
    if paths == 0 || flows < paths {
        return 0.0;
    }
    if paths == 1 {
        return 1.0;
    }
    let m = paths as f64;
    let missed = ((-1.0 / m).ln_1p() * flows as f64).exp();
    ((-missed).ln_1p() * m).exp()
}
