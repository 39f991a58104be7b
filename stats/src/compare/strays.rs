//! Runs that are far from the others of their side.

use crate::student::t_tail;

/// Share of cells with a false stray, for normal noise.
const LEVEL: f64 = 0.001;
/// Largest share of strays; with more, the side has two states.
const MOST: f64 = 0.3;
/// No value is a stray below this many standard deviations: among five values normal noise exceeds it in 1 %.
const NEAR: f64 = 3.0;
/// Fewest degrees of freedom that the other values must leave.
const FREEDOM: usize = 3;

/// Indices, by side, of the values farther than `least` from the mean of the others of their side, and so far that normal noise of the
/// others' spread reaches it in one cell of a thousand.
///
/// The generalised test for many outliers (Rosner 1983) with the spread of both sides pooled: the farthest value is removed, then the
/// next, up to 30 % of each side; all up to the last one whose distance is significant by itself are strays. So two bad runs do not hide
/// each other.
pub fn strays<const N: usize>(sides: [&[f64]; N], least: f64) -> [Vec<usize>; N] {
    let mut left: [Vec<usize>; N] = sides.map(|side| (0..side.len()).collect());
    let mut aside: Vec<(usize, usize)> = Vec::new();
    let mut significant = 0;
    while let Some((side, at, p)) = farthest(&sides, &left) {
        let taken = sides[side].len() - left[side].len();
        if taken >= (MOST * sides[side].len() as f64) as usize {
            break;
        }
        left[side].retain(|&one| one != at);
        aside.push((side, at));
        if p <= LEVEL {
            significant = aside.len();
        }
    }
    // Those removed after the last significant one are ordinary.
    aside.drain(significant..).for_each(|(side, at)| left[side].push(at));
    let centre = |side: usize| mean(sides[side], &left[side]);
    let mut found = [const { Vec::new() }; N];
    for (side, at) in aside {
        if (sides[side][at] - centre(side)).abs() > least {
            found[side].push(at);
        }
    }
    found.iter_mut().for_each(|of_side| of_side.sort_unstable());
    found
}

fn mean(side: &[f64], left: &[usize]) -> f64 {
    left.iter().map(|&at| side[at]).sum::<f64>() / left.len() as f64
}

/// Side and index of the farthest value from the others of its side, and the chance that normal noise moves any value as far: Student's t
/// of its distance over the spread of all others, times the number of values (Bonferroni).
fn farthest<const N: usize>(sides: &[&[f64]; N], left: &[Vec<usize>; N]) -> Option<(usize, usize, f64)> {
    let n: usize = left.iter().map(Vec::len).sum();
    let freedom = n.checked_sub(left.iter().filter(|side| !side.is_empty()).count() + 1)?;
    if freedom < FREEDOM {
        return None;
    }
    let mut all = 0.0;
    let mut worst = (0, 0, 0.0);
    for (number, (side, left)) in sides.iter().zip(left).enumerate() {
        let mean = mean(side, left);
        let count = left.len() as f64;
        for &at in left {
            let square = (side[at] - mean).powi(2);
            all += square;
            // Reduction of the sum of squares without this value; alone in its side it is zero.
            let without = if left.len() > 1 { square / (1.0 - 1.0 / count) } else { 0.0 };
            if without > worst.2 {
                worst = (number, at, without);
            }
        }
    }
    let (side, at, square) = worst;
    if square <= 0.0 {
        return None;
    }
    // If the others are equal to the last digits, nothing is too far.
    let others = ((all - square) / freedom as f64).max(f64::EPSILON * square);
    let t = (square / others).sqrt();
    // Nothing nearer is significant, and the tail takes time.
    let tail = if t < NEAR { 1.0 } else { t_tail(t, freedom as f64) };
    Some((side, at, (2.0 * n as f64 * tail).min(1.0)))
}
