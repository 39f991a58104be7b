//! Numbers and sizes as people write them.

use railgauge_wire::group::Training;

/// A value with as many digits as it deserves: four significant ones, never an exponent, no trailing noise.
/// `104.66667` → `104.7`, `0.012345` → `0.01235`, `12345.6` → `12346`.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    // The exponent after rounding to four digits, so that 9.9996 counts as 10.00.
    let scientific = format!("{value:.3e}");
    let exponent: i32 = scientific.rsplit('e').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let decimals = (3 - exponent).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

/// A share in percent, without the sign `%`: two decimals below ten, one above.
pub fn percent(value: f64) -> String {
    // Before rounding, so that 9.996 is `10.0`.
    let decimals = if value.abs() < 9.995 { 2 } else { 1 };
    format!("{value:.decimals$}")
}

/// [`percent`] of a change: with its sign.
pub fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(value.abs()))
}

/// A size in bytes with the largest binary unit that divides it, or that leaves a short number: `64 KiB`, `1500 B`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// A range of sizes, both ends included: `64 KiB to 8 MiB`, `64 KiB and up`, `up to 4 KiB`.
pub fn sizes((from, to): (u64, u64)) -> String {
    match (from, to) {
        (0 | 1, u64::MAX) => "all sizes".to_owned(),
        (0 | 1, to) => format!("up to {}", size(to)),
        (from, u64::MAX) => format!("{} and up", size(from)),
        (from, to) if from == to => size(from),
        (from, to) => format!("{} to {}", size(from), size(to)),
    }
}

/// A large amount of bytes, rounded: `1.5 GiB`.
pub fn amount(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] =
        [("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// The training step around a collective, as pairs of a plan's key and its value.
pub fn step(training: &Training) -> String {
    let model = training.model.as_ref().map_or_else(String::new, |model| format!("model={model} "));
    let (bucket, first, compute) = (training.bucket, training.first_bucket, number(training.compute as f64 / 1e6));
    format!("{model}bucket={bucket} first_bucket={first} compute={compute}ms")
}

/// A count and its noun: `1 case`, `3 cases`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        let pairs = [
            (0.0, "0"),
            (104.66667, "104.7"),
            (0.012345, "0.01235"),
            (12345.6, "12346"),
            (9.9996, "10.00"),
            (99.996, "100.0"),
            (1.0, "1.000"),
            (-2.71849, "-2.718"),
            (999.96, "1000"),
        ];
        for (value, text) in pairs {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn changes_have_a_sign_and_two_decimals() {
        let pairs = [(0.0, "+0.00"), (-1.234, "−1.23"), (9.996, "+10.0"), (-99.96, "−100.0")];
        for (value, text) in pairs {
            assert_eq!(signed(value), text);
        }
    }

    #[test]
    fn sizes_use_units_that_divide_them() {
        assert_eq!(size(8), "8 B");
        assert_eq!(size(1500), "1500 B");
        assert_eq!(size(65536), "64 KiB");
        assert_eq!(size(8 << 20), "8 MiB");
        assert_eq!(amount(1_610_612_736), "1.5 GiB");
    }

    #[test]
    fn open_ends_of_a_range_are_not_printed() {
        assert_eq!(sizes((65536, u64::MAX)), "64 KiB and up");
        assert_eq!(sizes((0, 4096)), "up to 4 KiB");
        assert_eq!(sizes((8, 8)), "8 B");
        assert_eq!(sizes((8, 64)), "8 B to 64 B");
    }
}
