//! Durations and moments.

use jiff::Timestamp;
use railgauge_wire::Nanoseconds;

/// `0.30 s`, `12.4 s`, `4 min 05 s`, `72 h 00 min`.
pub fn lasting(time: Nanoseconds) -> String {
    let seconds = time.seconds();
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 99.95 => format!("{s:.1} s"),
        s if s < 3599.5 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// [`lasting`] with its error: `0.30 ± 0.10 s`. A non-zero error is never rounded to zero.
pub fn lasting_about(time: Nanoseconds, error: Nanoseconds) -> String {
    let at_least = |least: f64| if error.is_zero() { 0.0 } else { error.seconds().max(least) };
    match time.seconds() {
        s if s < 99.95 => format!("{s:.2} ± {:.2} s", at_least(0.01)),
        _ => format!("{} ± {:.1} s", lasting(time), at_least(0.1)),
    }
}

/// `2026-11-22 03:04:05.3 UTC`.
pub fn moment(at: Nanoseconds) -> String {
    let tenths = i128::from(at.0 / 100_000_000) * 100_000_000;
    Timestamp::from_nanosecond(tenths)
        .map_or_else(|_| format!("{at} ns after 1970"), |time| time.strftime("%Y-%m-%d %H:%M:%S%.1f UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_do() {
        let words = |milliseconds| lasting(Nanoseconds::from_millis(milliseconds));
        assert_eq!([words(300), words(12_400), words(245_000)], ["0.30 s", "12.4 s", "4 min 05 s"]);
        assert_eq!(words(72 * 3_600_000), "72 h 00 min");
        assert_eq!(lasting_about(Nanoseconds::from_millis(300), Nanoseconds::from_millis(100)), "0.30 ± 0.10 s");
        assert_eq!(lasting_about(Nanoseconds::from_millis(300), Nanoseconds::from_millis(1)), "0.30 ± 0.01 s");
        assert_eq!(lasting_about(Nanoseconds::from_secs(245), Nanoseconds::from_millis(1)), "4 min 05 s ± 0.1 s");
        assert_eq!(moment(Nanoseconds(1_763_780_645_349_000_000)), "2025-11-22 03:04:05.3 UTC");
        assert!(moment(Nanoseconds::MAX).contains("UTC"));
    }
}
