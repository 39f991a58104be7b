use std::time::Duration;

use railgauge_wire::Bytes;

/// A time in its two largest units: `3 min 20 s`, `2 h`, `7 s`.
pub fn lasting(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    let (big, name, small, rest) = match seconds {
        0 if !time.is_zero() => return format!("{:.1} s", time.as_secs_f64().max(0.1)),
        0..60 => return format!("{seconds} s"),
        60..3_600 => (seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => (seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => (seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    };
    if small == 0 { format!("{big} {name}") } else { format!("{big} {name} {small} {rest}") }
}

/// With the largest binary unit that divides it, or that leaves a short number: `64 KiB`, `1500 B`.
pub fn size(bytes: Bytes) -> String {
    const UNITS: [(&str, Bytes); 4] = [
        ("TiB", Bytes::from_gib(1024)),
        ("GiB", Bytes::from_gib(1)),
        ("MiB", Bytes::from_mib(1)),
        ("KiB", Bytes::from_kib(1)),
    ];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", bytes / *unit),
        None => format!("{bytes} B"),
    }
}

/// `1 case`, `3 cases`, `2 entries`, `2 batches`. Only the last word of a noun is inflected.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {}", plural(noun)) }
}

pub fn are(n: usize, noun: &str) -> String {
    format!("{} {}", count(n, noun), be(n))
}

pub fn be(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

pub fn was(n: usize) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

pub fn have(n: usize, noun: &str) -> String {
    format!("{} {}", count(n, noun), if n == 1 { "has" } else { "have" })
}

/// `1 window was`, `3 windows were`.
pub fn were(n: usize, noun: &str) -> String {
    format!("{} {}", count(n, noun), was(n))
}

pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn plural(noun: &str) -> String {
    let vowel = |c: char| "aeiou".contains(c);
    if noun.ends_with("series") {
        return noun.to_owned();
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(vowel) => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_two_largest_units() {
        let words = [0, 60, 7_199_600, 12_000_000, 90_000_000, 90].map(|ms| lasting(Duration::from_millis(ms)));
        assert_eq!(words, ["0 s", "0.1 s", "2 h", "3 h 20 min", "1 d 1 h", "0.1 s"]);
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([count(0, "case"), count(1, "case"), count(2, "case")], ["0 cases", "1 case", "2 cases"]);
        assert_eq!([count(2, "entry"), count(2, "batch"), count(2, "way")], ["2 entries", "2 batches", "2 ways"]);
        assert_eq!([have(1, "cell"), have(2, "cell")], ["1 cell has", "2 cells have"]);
        assert_eq!([are(1, "series"), are(2, "series")], ["1 series is", "2 series are"]);
        assert_eq!([are(1, "byte"), are(8, "byte"), were(1, "window")], ["1 byte is", "8 bytes are", "1 window was"]);
    }
}
