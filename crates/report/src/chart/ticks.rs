use railgauge_analysis::words::size;
use railgauge_wire::Bytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub title: String,
    pub range: (f64, f64),
    pub marks: Vec<(f64, String)>,
}

/// From 0 to a little over `most`, with about five marks at 1, 2 or 5 times a power of ten.
pub(crate) fn from_zero(title: String, most: f64) -> Axis {
    let most = if most > 0.0 && most.is_finite() { most * 1.06 } else { 1.0 };
    let step = step(most / 5.0);
    let marks = (0_i32..).map(|n| f64::from(n) * step).take_while(|mark| *mark <= most);
    Axis { title, range: (0.0, most), marks: marks.map(|mark| (mark, plain(mark))).collect() }
}

/// From `low` to `high` with a margin, and about six marks at 1, 2 or 5 times a power of ten.
pub(crate) fn around(title: String, low: f64, high: f64) -> Axis {
    let room = ((high - low) * 0.06).max(high.abs().max(low.abs()) * 1e-3).max(1e-9);
    let range = (low - room, high + room);
    let step = step((range.1 - range.0) / 6.0);
    let first = (range.0 / step).ceil() as i64;
    let marks = (first..).map(|n| n as f64 * step).take_while(|mark| *mark <= range.1);
    Axis { title, range, marks: marks.map(|mark| (mark, plain(mark))).collect() }
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| *step >= rough).unwrap_or(power * 10.0)
}

/// Logarithms to base ten, with marks at 1, 2 and 5 times every power of ten, or at the powers alone where the axis spans many.
pub(crate) fn decades(title: String, least: f64, most: f64) -> Axis {
    let (low, high) = (least.max(1e-9).log10(), most.max(1e-9).log10());
    let room = ((high - low) * 0.04).max(0.02);
    let range = (low - room, high + room);
    let steps: &[f64] = if high - low > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers = range.0.floor() as i32..=range.1.ceil() as i32;
    let marks = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    let marks = marks.map(|mark| (mark.log10(), plain(mark))).filter(|(at, _)| (range.0..=range.1).contains(at));
    Axis { title, range, marks: marks.collect() }
}

/// In days, with about eight marks a round number of days apart; `text` formats one.
pub(super) fn dates((first, last): (i64, i64), text: fn(i64) -> String) -> Axis {
    let span = (last - first).max(1);
    let step = [1, 2, 7, 14, 28, 56, 91, 182].into_iter().find(|step| span / step < 9).unwrap_or(365);
    let room = span as f64 * 0.015;
    // Counted from the last one, which readers look for.
    let shown: Vec<i64> = (0..).map(|n| last - n * step).take_while(|day| *day >= first).collect();
    Axis {
        title: String::new(),
        range: (first as f64 - room, last as f64 + room),
        marks: shown.into_iter().rev().map(|day| (day as f64, text(day))).collect(),
    }
}

pub(crate) fn sizes(title: String, list: &[Bytes]) -> Axis {
    let place = |bytes: Bytes| bytes.max(Bytes(1)).as_f64().log2();
    let (low, high) = (list.iter().min().copied().unwrap_or(Bytes(1)), list.iter().max().copied().unwrap_or(Bytes(2)));
    let room = ((place(high) - place(low)) * 0.03).max(0.1);
    Axis {
        title,
        range: (place(low) - room, place(high) + room),
        marks: list.iter().map(|bytes| (place(*bytes), size(*bytes))).collect(),
    }
}

/// Shares of a distribution in percent on a scale of nines: 50, 90, 99, … up to `most` (under 1), at most 99.999.
pub(crate) fn nines(title: String, most: f64) -> Axis {
    let top = nine(most).clamp(1.0, 5.0) + 0.12;
    let marks = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
    let marks = marks.into_iter().filter(|share| nine(*share) <= top);
    Axis {
        title,
        range: (0.0, top),
        marks: marks.map(|share| (nine(share), round(share * 100.0).to_string())).collect(),
    }
}

pub(crate) fn nine(share: f64) -> f64 {
    -(1.0 - share).max(1e-12).log10()
}

fn plain(value: f64) -> String {
    if value >= 1e6 { format!("{}M", round(value / 1e6)) } else { round(value).to_string() }
}

fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::{super::layers::fitting, *};

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.marks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!(texts(&from_zero(String::new(), 195.0)), ["0", "50", "100", "150", "200"]);
        assert_eq!(texts(&from_zero(String::new(), 0.021)), ["0", "0.005", "0.01", "0.015", "0.02"]);
        assert_eq!(texts(&decades(String::new(), 1.7, 21.0)), ["2", "5", "10", "20"]);
        assert_eq!(texts(&decades(String::new(), 0.5, 5000.0)), ["1", "10", "100", "1000"]);
        assert_eq!(texts(&around(String::new(), -12.0, 3.0)), ["-10", "-5", "0"]);
        assert_eq!(texts(&around(String::new(), 195.0, 195.0)), ["194.9", "195", "195.1"]);
        assert_eq!(texts(&nines(String::new(), 0.9995)), ["50", "90", "99", "99.9"]);
    }

    #[test]
    fn marks_that_would_overlap_are_thinned_from_the_last() {
        let list: Vec<Bytes> = (0..20).map(|n| Bytes(2 << n)).collect();
        let axis = sizes(String::new(), &list);
        for (across, shown) in [(10_000, 20), (460, 7), (240, 4), (1, 1)] {
            let marks = fitting(&axis.marks, across);
            assert_eq!((marks.len(), marks.last().unwrap().1.as_str()), (shown, "1 MiB"), "{across}");
        }
    }
}
