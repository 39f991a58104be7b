//! Numbers with units: sizes in bytes, durations in nanoseconds, rates and times of expectations.
//!
//! Sizes and durations are exact: `1.5KiB` is 1536 bytes, `1.5B` is an error.

use std::ops::Range;

use railgauge_wire::{Bytes, Metric, Nanoseconds};
use serde::{Deserialize, Serialize};

use super::wrong::{Wrong, nearest};

/// A limit as the plan writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    pub number: String,
    pub unit: String,
    /// Factor to the metric's own unit.
    pub factor: f64,
}

/// Units in bytes: binary with an `i`, decimal without.
pub const SIZES: &[(&str, u128)] = &[
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Units in nanoseconds.
pub const TIMES: &[(&str, u128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Largest message, and largest part of a memory, that is measured: more than any GPU has.
pub const LARGEST: Bytes = Bytes::from_gib(1024);

/// A size, from 1 byte to [`LARGEST`].
///
/// # Errors
/// No number, no known unit, not whole bytes, or out of range.
pub fn size(text: &str) -> Result<Bytes, Wrong> {
    let help = "sizes are bytes: \"64\", \"4KiB\", \"8MiB\", \"1GiB\" (binary) or \"4kB\", \"8MB\", \"1GB\" (decimal)";
    let (number, unit, at) = split(text, help)?;
    // perftest and nccl-tests write `8M` for 8 MiB.
    let binary = matches!(unit, "K" | "k" | "M" | "m" | "G" | "g");
    if binary {
        let meant = unit.to_uppercase();
        let help = format!("write {number}{meant}iB for the binary unit of perftest and nccl-tests");
        return Err(Wrong::new(at, format!("the unit `{unit}` has two meanings"), help));
    }
    let factor = factor(text, unit, at, SIZES, help)?;
    let bytes = exact(number, factor)
        .map_err(|fault| Wrong::new(0..text.len(), format!("`{text}` {}", fault.words("bytes")), help))?;
    in_bounds(bytes, text)
}

/// [`size`] for a number without quotes.
pub fn in_bounds(bytes: i128, text: &str) -> Result<Bytes, Wrong> {
    match u64::try_from(bytes).map(Bytes) {
        Ok(size) if (Bytes(1)..=LARGEST).contains(&size) => Ok(size),
        _ if bytes < 1 => {
            Err(Wrong::new(0..text.len(), format!("a size of {text} bytes"), "the smallest size is 1 byte"))
        }
        _ => Err(Wrong::new(0..text.len(), format!("a size of {text} is too large"), "the largest size is 1024GiB")),
    }
}

/// A duration in whole nanoseconds below 2^64.
pub fn duration(text: &str) -> Result<Nanoseconds, Wrong> {
    let help = "durations have a unit: \"500us\", \"200ms\", \"2s\", \"1min\", \"1h\"";
    let (number, unit, at) = split(text, help)?;
    let factor = factor(text, unit, at, TIMES, help)?;
    exact(number, factor)
        .and_then(|nanoseconds| u64::try_from(nanoseconds).map(Nanoseconds).map_err(|_| Fault::TooLarge))
        .map_err(|fault| Wrong::new(0..text.len(), format!("`{text}` {}", fault.words("nanoseconds")), help))
}

/// Occurrences per second, `0` or at least one. Only whole counts per second are accepted.
pub fn frequency(text: &str) -> Result<f64, Wrong> {
    let help = "write how often in a second: \"10/s\"; \"0/s\" allows no rise at all";
    let (number, unit, at) = split(text, help)?;
    match unit {
        "/s" => {}
        "" => return Err(Wrong::new(0..text.len(), format!("`{text}` does not say in which time"), help)),
        _ => return Err(Wrong::new(at, format!("`{unit}` is not a time to count in"), help)),
    }
    match float(number, text, help)? {
        part if part > 0.0 && part < 1.0 => {
            Err(Wrong::new(0..text.len(), format!("`{text}` is less than one in a second"), help))
        }
        rate => Ok(rate),
    }
}

pub fn percent(text: &str) -> Result<f64, Wrong> {
    let help = "write a percentage such as \"2%\" or 2";
    let (number, unit, at) = split(text, help)?;
    match unit {
        "" | "%" => float(number, text, help),
        _ => Err(Wrong::new(at, format!("`{unit}` is not a unit of a percentage"), help)),
    }
}

/// Units in bits and their bits per second.
const BITS: &[(&str, f64)] = &[
    ("b/s", 1.0),
    ("kb/s", 1e3),
    ("Mb/s", 1e6),
    ("Gb/s", 1e9),
    ("Tb/s", 1e12),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("Tbps", 1e12),
    ("Gbit/s", 1e9),
];

/// Units in bytes and their bits per second.
const BYTES: &[(&str, f64)] = &[
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
    ("TB/s", 8e12),
    ("KiB/s", 8.0 * 1024.0),
    ("MiB/s", 8.0 * 1_048_576.0),
    ("GiB/s", 8.0 * 1_073_741_824.0),
];

const MESSAGES: &[(&str, f64)] = &[("Mmsg/s", 1.0), ("kmsg/s", 1e-3), ("msg/s", 1e-6)];
const OPERATIONS: &[(&str, f64)] =
    &[("TFLOP/s", 1.0), ("GFLOP/s", 1e-3), ("PFLOP/s", 1e3), ("TFLOPS", 1.0), ("PFLOPS", 1e3)];
const LATENCIES: &[(&str, f64)] = &[("us", 1.0), ("µs", 1.0), ("ns", 1e-3), ("ms", 1e3), ("s", 1e6)];
const CPU_TIMES: &[(&str, f64)] = &[("s/GiB", 1.0), ("ms/GiB", 1e-3), ("us/GiB", 1e-6), ("µs/GiB", 1e-6)];

/// Units for a limit on this metric, each with its factor to [`Metric::unit`].
pub fn units(metric: Metric) -> Vec<(&'static str, f64)> {
    match metric.unit() {
        "Gb/s" => BITS.iter().chain(BYTES).map(|(unit, bits)| (*unit, bits / 1e9)).collect(),
        "GB/s" => BYTES.iter().chain(BITS).map(|(unit, bits)| (*unit, bits / 8e9)).collect(),
        "Mmsg/s" => MESSAGES.to_vec(),
        "s/GiB" => CPU_TIMES.to_vec(),
        "TFLOP/s" => OPERATIONS.to_vec(),
        "%" => vec![("%", 1.0)],
        "ns" => LATENCIES.iter().map(|(unit, microseconds)| (*unit, microseconds * 1e3)).collect(),
        _ => LATENCIES.to_vec(),
    }
}

/// A limit on a metric: its value in the metric's own unit, and how it is written.
pub fn limit(text: &str, metric: Metric) -> Result<(f64, Written), Wrong> {
    let units = units(metric);
    let help = format!("write it in the unit of {metric}, such as \"5 {}\"", metric.unit());
    let (number, unit, at) = split(text, &help)?;
    let value = float(number, text, &help)?;
    match units.iter().find(|(known, _)| *known == unit) {
        Some((_, factor)) => {
            Ok((value * factor, Written { number: number.to_owned(), unit: unit.to_owned(), factor: *factor }))
        }
        None if unit.is_empty() => {
            let help = format!("write it in a unit of {metric}, such as \"{number} {}\"", metric.unit());
            Err(Wrong::new(0..text.len(), format!("`{text}` has no unit"), help))
        }
        None => {
            let help = match nearest(unit, units.iter().map(|(unit, _)| *unit)) {
                Some(near) => format!("did you mean \"{number} {near}\"?"),
                None => help,
            };
            Err(Wrong::new(at, format!("`{unit}` is not a unit of {metric}"), help))
        }
    }
}

fn split<'a>(text: &'a str, help: &str) -> Result<(&'a str, &'a str, Range<usize>), Wrong> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let unit = rest.trim_start();
    let at = text.len() - unit.len()..text.len();
    let digits = number.strip_prefix('.').is_none() && !number.ends_with('.') && number.matches('.').count() <= 1;
    if number.is_empty() || !digits {
        let message = match text {
            "" => "an empty string instead of a number".to_owned(),
            _ if text.starts_with('-') => format!("`{text}` is negative"),
            _ => format!("`{text}` does not start with a number"),
        };
        return Err(Wrong::new(0..text.len(), message, help));
    }
    Ok((number, unit, at))
}

fn factor(text: &str, unit: &str, at: Range<usize>, known: &[(&str, u128)], help: &str) -> Result<u128, Wrong> {
    if let Some((_, factor)) = known.iter().find(|(name, _)| *name == unit) {
        return Ok(*factor);
    }
    if unit.is_empty() {
        return Err(Wrong::new(0..text.len(), format!("`{text}` has no unit"), help));
    }
    let help = match nearest(unit, known.iter().map(|(name, _)| *name).filter(|name| !name.is_empty())) {
        Some(near) => format!("did you mean `{near}`? {help}"),
        None => help.to_owned(),
    };
    Err(Wrong::new(at, format!("`{unit}` is not a known unit"), help))
}

/// Why a decimal number times a factor is not a whole number.
enum Fault {
    TooLarge,
    Broken,
}

impl Fault {
    fn words(&self, unit: &str) -> String {
        match self {
            Self::TooLarge => "is too large".to_owned(),
            Self::Broken => format!("is not a whole number of {unit}"),
        }
    }
}

fn exact(number: &str, factor: u128) -> Result<i128, Fault> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    // More digits cannot be whole for any factor of the tables.
    let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= 20).ok_or(Fault::Broken)?;
    let scaled: u128 = format!("{whole}{fraction}").parse().map_err(|_| Fault::TooLarge)?;
    let product = scaled.checked_mul(factor).ok_or(Fault::TooLarge)?;
    let scale = 10_u128.pow(places);
    if product % scale == 0 { i128::try_from(product / scale).map_err(|_| Fault::TooLarge) } else { Err(Fault::Broken) }
}

fn float(number: &str, text: &str, help: &str) -> Result<f64, Wrong> {
    number
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(|| Wrong::new(0..text.len(), format!("`{text}` cannot be read as a number"), help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact() {
        for (text, bytes) in [
            ("64", 64),
            ("64B", 64),
            ("4KiB", 4096),
            ("4 KiB", 4096),
            ("1.5KiB", 1536),
            ("8MiB", 8 << 20),
            ("1GB", 1_000_000_000),
            ("1024GiB", LARGEST.0),
        ] {
            assert_eq!(size(text), Ok(Bytes(bytes)), "{text}");
        }
        for text in
            ["", "0", "-1", "1.5B", "1..2", ".5KiB", "5.", "8M", "64kb", "1025GiB", "1180591620717411303424", "x"]
        {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("1.5 ms"), Ok(Nanoseconds(1_500_000)));
        assert_eq!(duration("2s"), Ok(Nanoseconds::from_secs(2)));
        for text in ["2", "2 sec", "0.5ns", "99999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_come_out_in_the_unit_of_the_metric() {
        let close = |text, metric, value: f64| (limit(text, metric).unwrap().0 - value).abs() < 1e-9 * value;
        assert!(close("90 Gb/s", Metric::Bandwidth, 90.0));
        assert!(close("90Gbps", Metric::Bandwidth, 90.0));
        assert!(close("12.5 GB/s", Metric::Bandwidth, 100.0));
        assert!(close("400 Gb/s", Metric::Busbw, 50.0));
        assert!(close("5us", Metric::LatencyP99, 5.0));
        assert!(close("1500 ns", Metric::LatencyP99, 1.5));
        assert!(close("200 kmsg/s", Metric::MessageRate, 0.2));
        let written = limit("1s", Metric::LatencyP50).unwrap().1;
        assert_eq!((written.number.as_str(), written.unit.as_str(), written.factor), ("1", "s", 1e6));
        for (text, metric) in [
            ("90", Metric::Bandwidth),
            ("90 us", Metric::Bandwidth),
            ("5 Gb/s", Metric::LatencyP50),
            ("5 gb/s", Metric::Bandwidth),
        ] {
            assert!(limit(text, metric).is_err(), "{text}");
        }
    }
}
