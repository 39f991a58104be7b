//! How sure the mean of a window is while it runs.
//!
//! Method of batch means: consecutive slices are correlated, so they are joined into 20 to 39 batches that grow with
//! the window; the batches are then nearly independent, and the mean has a Student interval with batches − 1 degrees
//! of freedom (Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30, 1982:
//! 10 to 30 batches are enough, more gain little).

pub(super) const BATCHES: usize = 20;

/// Half width of the 95 % interval of the mean over the mean; `None` while there are fewer than [`BATCHES`] slices or
/// nothing was completed.
pub(super) fn interval(slices: &[u64]) -> Option<f64> {
    let per_batch = slices.len() / BATCHES;
    if per_batch == 0 {
        return None;
    }
    // The oldest slices are left out if the batches do not come out even.
    let uneven = slices.len() % per_batch;
    let batches: Vec<f64> = slices[uneven..].chunks(per_batch).map(|batch| batch.iter().sum::<u64>() as f64).collect();
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean > 0.0).then(|| t975(n - 1.0) * (variance / n).sqrt() / mean)
}

/// 97.5 % quantile of Student's t, by the expansion of Abramowitz and Stegun 26.7.5; for 19 or more degrees of
/// freedom it is exact to 0.0001.
fn t975(degrees: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let power = |n| Z.powi(n);
    let g1 = (power(3) + Z) / 4.0;
    let g2 = (5.0 * power(5) + 16.0 * power(3) + 3.0 * Z) / 96.0;
    let g3 = (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * Z) / 384.0;
    Z + g1 / degrees + g2 / degrees.powi(2) + g3 / degrees.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_printed_tables() {
        for (degrees, wanted) in [(19.0, 2.0930), (24.0, 2.0639), (29.0, 2.0452), (38.0, 2.0244)] {
            assert!((t975(degrees) - wanted).abs() < 1e-4, "{degrees}: {}", t975(degrees));
        }
    }

    #[test]
    fn too_few_slices_or_none_completed_give_no_interval() {
        assert_eq!(interval(&[5; BATCHES - 1]), None);
        assert_eq!(interval(&[0; 50]), None);
        assert_eq!(interval(&[5; 50]), Some(0.0));
    }

    #[test]
    fn the_interval_of_known_numbers() {
        // 1 to 20: mean 10.5, standard deviation 5.9161, so 2.0930 × 5.9161 / √20 / 10.5 = 0.26370.
        let slices: Vec<u64> = (1..=20).collect();
        assert!((interval(&slices).unwrap() - 0.26370).abs() < 1e-4);
    }

    #[test]
    fn slow_waves_are_not_taken_for_certainty() {
        // One wave over the whole window: neighbouring slices are almost equal, the mean is not known.
        let slices: Vec<u64> = (0..400).map(|i| (1000.0 + 500.0 * (f64::from(i) / 63.7).sin()) as u64).collect();
        assert!(interval(&slices).unwrap() > 0.1);
    }
}
