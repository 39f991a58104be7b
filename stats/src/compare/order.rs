//! What the order of runs in time makes of runs that resemble their neighbours.

use super::Variant;

/// Correlation of neighbouring runs that must do no harm: what a fabric keeps from run to run (temperature, placement, a
/// neighbour's job).
const NEIGHBOURS: f64 = 0.6;

/// How much wider than computed the interval of two sets of runs is if neighbouring runs are correlated by 0.6 and the
/// runs were made in this order: the standard error of the difference of means over the one that the spread within the
/// sides suggests, both of a first-order autoregressive series. About 2, √((1 + r) / (1 − r)), where all runs of one side
/// lie before all of the other; 1 where they take turns, which is also the least.
pub fn clearance(order: &[Variant]) -> f64 {
    let count = |side: Variant| order.iter().filter(|one| **one == side).count() as f64;
    let (a, b) = (count(Variant::A), count(Variant::B));
    if a < 2.0 || b < 2.0 {
        return 1.0;
    }
    // Sums of correlations: over all pairs of runs of one side, and of both.
    let (mut within, mut across) = ([a, b], 0.0);
    for (i, one) in order.iter().enumerate() {
        let mut correlation = 1.0;
        for other in &order[i + 1..] {
            correlation *= NEIGHBOURS;
            match (one, other) {
                (Variant::A, Variant::A) => within[0] += 2.0 * correlation,
                (Variant::B, Variant::B) => within[1] += 2.0 * correlation,
                _ => across += correlation,
            }
        }
    }
    let truth = within[0] / (a * a) + within[1] / (b * b) - 2.0 * across / (a * b);
    // A sample's variance misses what its values have in common.
    let seen = |within: f64, n: f64| (n - within / n) / (n - 1.0);
    let computed = seen(within[0], a) / a + seen(within[1], b) / b;
    (truth / computed).sqrt().max(1.0)
}
