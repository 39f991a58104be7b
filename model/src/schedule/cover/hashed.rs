//! Number of flows needed where an unknown hash chooses among equal paths.
//!
//! A flow misses a certain one of m paths with probability (m − 1)/m, so n flows take it with 1 − ((m − 1)/m)ⁿ. The probability p that they
//! take all m is estimated as the m-th power of this: n = ⌈ln(1 − p^(1/m)) / ln((m − 1)/m)⌉. Source: R-Pingmesh (SIGCOMM 2024); for m = 16
//! and p = 0.9 it is 78. The power assumes independent paths. A flow on one path is on no other, so the true probability is lower, by less
//! than 0.01 for p = 0.9 and up to 256 paths.

/// Flows (queue pairs, source ports) that take all of `paths` equal paths with probability `p`. `None` if `paths` is 0, if `p` is 1 (no
/// number suffices) or not a probability, or if the number exceeds 2⁵³.
pub fn flows(paths: u64, p: f64) -> Option<u64> {
    if paths == 0 || !(0.0..1.0).contains(&p) {
        return None;
    }
    if paths == 1 || p == 0.0 {
        return Some(if paths == 1 { 1 } else { paths });
    }
    let m = paths as f64;
    // 1 − p^(1/m) and ln((m − 1)/m), without loss of digits near 1.
    let missed = -(p.ln() / m).exp_m1();
    let each = (-1.0 / m).ln_1p();
    let n = (missed.ln() / each).ceil();
    (n.is_finite() && n < 2_f64.powi(53)).then(|| (n as u64).max(paths))
}
