//! Numbers and sizes as people write them.

mod limit;
mod number;

use railgauge_wire::group::Training;

pub use limit::{held_against, limit};
pub use number::{
    between, brief, change, number, percent, percent_of, scatter, share, share_of, short, signed, spread, worse,
};
pub use railgauge_model::plan::count::{are, be, count, have, were};

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
    let (bucket, first, compute) = (training.bucket, training.first_bucket, number(training.compute.milliseconds()));
    format!("{model}bucket={bucket} first_bucket={first} compute={compute}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

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
