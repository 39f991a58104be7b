//! Distributions of times that no samples can have.

use railgauge_wire::measure::Latency;

/// What is wrong with a distribution of times.
pub(super) fn distribution(latency: &Latency) -> Vec<String> {
    let Latency { samples, min, p50, p90, p99, p999, max, mean, stdev, histogram, .. } = latency;
    let mut found = Vec::new();
    if *min == 0 {
        found.push("an operation took 0 ns".to_owned());
    }
    let steps = [("minimum", min), ("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("maximum", max)];
    for pair in steps.windows(2) {
        let [(lower, low), (upper, high)] = [pair[0], pair[1]];
        if low > high {
            found.push(format!("a {lower} of {low} ns above a {upper} of {high} ns"));
        }
    }
    if !(mean.is_finite() && *mean >= *min as f64 && *mean <= *max as f64) {
        found.push(format!("a mean of {mean} ns outside of {min} to {max} ns"));
    }
    if *stdev == 0.0 && min < max {
        found.push(format!("a standard deviation of 0 of values from {min} to {max} ns"));
    }
    // No sample lies farther from the mean than the range is wide.
    if !(stdev.is_finite() && *stdev >= 0.0 && *stdev <= (max - min.min(max)) as f64) {
        found.push(format!("a standard deviation of {stdev} ns of values from {min} to {max} ns"));
    }
    let counted: u128 = histogram.iter().map(|(_, count)| u128::from(*count)).sum();
    if !histogram.is_empty() && counted != u128::from(*samples) {
        found.push(format!("{samples} samples, and {counted} in the histogram"));
    }
    if histogram.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        found.push("a histogram whose edges do not rise".to_owned());
    }
    found
}
