//! Sort keys of table cells. Cells are texts for people, such as `64 KiB`, `4 min 05 s`, `−4.0 ms ± 4.4 ms` and `60/min`; the page sorts by
//! their value in bytes, seconds, events per second or bits per second.
//!
//! The grammar is that of the functions that print cells (`analysis::words`, `analysis::soak::span`). A number with a unit that is not
//! listed here is [`Worth::Unknown`] and never sorts as if it had no unit; debug builds make no page with it.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Worth<'t> {
    Words,
    /// The number in the unit of its kind, whether it has a unit, and whether the text has more.
    Number {
        /// In bytes, seconds, bits per second, events per second, percent, or as written without a unit.
        value: f64,
        /// Whether the number has a unit.
        unit: bool,
        /// Whether number and unit are the whole text.
        whole: bool,
    },
    /// A number with an unknown unit.
    Unknown(&'t str),
}

/// Words before a number that do not affect its order: `at least 20.5 s`, `a factor of 2.4`.
const BEFORE: [&str; 13] =
    ["at", "least", "most", "more", "than", "over", "under", "about", "up", "to", "a", "factor", "of"];

/// Factor to bytes, seconds, bits per second, operations or events per second, percent.
fn factor(unit: &str) -> Option<f64> {
    const KI: f64 = 1024.0;
    Some(match unit {
        "B" | "s" | "%" | "/s" | "b/s" | "msg/s" | "s/GiB" => 1.0,
        // Twice as much is 200 %: shares and differences are percentages up to there, and factors beyond.
        "times" => 100.0,
        "KiB" => KI,
        "MiB" => KI * KI,
        "GiB" => KI * KI * KI,
        "TiB" => KI * KI * KI * KI,
        "PiB" => KI * KI * KI * KI * KI,
        "ns" => 1e-9,
        "µs" | "µs/GiB" => 1e-6,
        "ms" | "ms/GiB" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        "/min" => 1.0 / 60.0,
        "/h" => 1.0 / 3600.0,
        "kb/s" => 1e3,
        "Mb/s" => 1e6,
        "Gb/s" => 1e9,
        "Tb/s" => 1e12,
        "B/s" => 8.0,
        "MB/s" => 8e6,
        "GB/s" => 8e9,
        "GFLOP/s" => 1e9,
        "TFLOP/s" => 1e12,
        "PFLOP/s" => 1e15,
        "kmsg/s" => 1e3,
        "Mmsg/s" => 1e6,
        _ => return None,
    })
}

/// Units of time that a smaller one may follow: `3 h 50 min`, `4 min 05 s`.
const TIMES: [&str; 3] = ["d", "h", "min"];

pub(super) fn worth(text: &str) -> Worth<'_> {
    let mut words = text.split_whitespace().peekable();
    let (mut alone, mut ratio) = (true, false);
    while let Some(word) = words.next_if(|word| BEFORE.contains(word)) {
        (alone, ratio) = (false, word == "factor" || ratio);
    }
    let Some((number, mut unit, mut ended)) = words.next().and_then(quantity) else { return Worth::Words };
    // An error or the other end of an interval has the unit of both: `7.00 ± 1.00 s`, `−41.0 to −39.2 %`.
    while unit.is_empty() && !ended && words.next_if(|word| matches!(*word, "±" | "to")).is_some() {
        alone = false;
        if let Some((_, behind, end)) = words.next_if(|word| quantity(word).is_some()).and_then(quantity) {
            (unit, ended) = (behind, end);
        }
    }
    if unit.is_empty() && !ended {
        // `3 of 40` and `5 + 5` count.
        unit = words.next_if(|word| !matches!(*word, "of" | "+")).unwrap_or_default().trim_end_matches([',', ';']);
    }
    if unit.is_empty() {
        let value = if ratio { 100.0 * number } else { number };
        return Worth::Number { value, unit: false, whole: alone && words.next().is_none() };
    }
    let Some(one) = factor(unit) else { return Worth::Unknown(unit) };
    let mut value = number * one;
    if TIMES.contains(&unit)
        && let Some((more, "", false)) = words.next_if(|word| quantity(word).is_some()).and_then(quantity)
    {
        let smaller = words.next().unwrap_or_default().trim_end_matches([',', ';']);
        let Some(one) = factor(smaller) else { return Worth::Unknown(smaller) };
        value += more * one;
    }
    Worth::Number { value, unit: true, whole: alone && words.next().is_none() }
}

/// A number with an attached unit (`60/min`, `99%`), and whether a comma follows; `None` for a word.
fn quantity(word: &str) -> Option<(f64, &str, bool)> {
    let bare = word.trim_end_matches([',', ';']);
    let (negative, digits) = match bare.strip_prefix(['−', '-']) {
        Some(digits) => (true, digits),
        None => (false, bare.strip_prefix(['+', '±', '<', '≥', '>']).unwrap_or(bare)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let value: f64 = digits[..end].parse().ok()?;
    Some((if negative { -value } else { value }, &digits[end..], bare.len() < word.len()))
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{
        terms::Metric,
        unit::{Bytes, Nanoseconds},
    };

    use super::*;
    use railgauge_analysis::{
        reason::frequency,
        words::{self, lasting, lasting_about},
    };

    fn value(text: &str) -> f64 {
        match worth(text) {
            Worth::Number { value, .. } => value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn cells_sort_by_what_they_are_worth() {
        for (text, wanted) in [
            ("64 KiB", 65536.0),
            ("1 B", 1.0),
            ("−31.2 %", -31.2),
            ("3 of 40", 3.0),
            ("1.5 ms", 0.0015),
            ("195.4 ± 0.2", 195.4),
            ("195.4", 195.4),
            ("−4.0 ms ± 4.4 ms", -0.004),
            ("7.00 ± 1.00 s", 7.0),
            ("at least 20.5 s", 20.5),
            ("6.10 ± 0.10 s of 3, 12.0 s in all", 6.1),
            ("4 min 05 s ± 1.0 s", 245.0),
            ("60/min", 1.0),
            ("over 30/h", 30.0 / 3600.0),
            ("−41.0 to −39.2 %", -41.0),
            ("2.1 to 3.4 times", 210.0),
            ("−20.0 % to 3.4 times", -20.0),
            ("a factor of 2.4", 240.0),
            ("5 + 5", 5.0),
            ("64 KiB, 4 queue pairs", 65536.0),
        ] {
            assert!((value(text) - wanted).abs() <= 1e-12 * wanted.abs(), "{text}: {}", value(text));
        }
        for text in ["–", "", "failed", "never", "the first"] {
            assert_eq!(worth(text), Worth::Words, "{text}");
        }
    }

    #[test]
    fn a_unit_that_is_not_known_has_no_worth() {
        for (text, unit) in
            [("3 furlongs", "furlongs"), ("5/week", "/week"), ("3 h 5 weeks", "weeks"), ("1 to 2 dB", "dB")]
        {
            assert_eq!(worth(text), Worth::Unknown(unit), "{text}");
        }
    }

    #[test]
    fn every_unit_that_cells_have_is_known() {
        for metric in Metric::ALL {
            let text = format!("1.5 {}", metric.unit());
            assert!(
                matches!(worth(&text), Worth::Number { unit: true, whole: true, .. }),
                "{text}: {:?}",
                worth(&text)
            );
        }
        for shift in 0..62 {
            let bytes = Bytes(3 << shift);
            assert_eq!(value(&words::size(bytes)), bytes.as_f64());
            let rounded = value(&words::amount(bytes));
            assert!((rounded / bytes.as_f64() - 1.0).abs() < 0.1, "{}", words::amount(bytes));
        }
    }

    #[test]
    fn longer_times_and_higher_rates_and_shares_sort_behind() {
        let rising = |texts: &mut dyn Iterator<Item = String>| {
            let mut last: Option<(f64, String)> = None;
            for text in texts {
                let value = value(&text);
                if let Some((before, words)) = &last {
                    assert!(value >= *before, "{words}, {text}");
                }
                last = Some((value, text));
            }
        };
        let times = || (0..400).map(|step| Nanoseconds((1e8 * 1.05_f64.powi(step)) as u64));
        rising(&mut times().map(lasting));
        rising(&mut times().map(|time| lasting_about(time, Nanoseconds(100_000_000))));
        rising(&mut (0..400).map(|step| frequency(1e-4 * 1.05_f64.powi(step))));
        rising(&mut (-99..900).map(|percent| words::change(f64::from(percent))));
        rising(&mut (-99..900).map(|percent| words::between((f64::from(percent), 2000.0))));
        rising(&mut (1..900).map(|percent| words::share(f64::from(percent) / 100.0)));
        rising(&mut (1..900).map(|percent| words::scatter(f64::from(percent))));
    }
}
