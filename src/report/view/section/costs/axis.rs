//! The values of a test on an axis.

use crate::report::chart::ticks::Axis;

/// Largest number over the smallest above zero from which on the axis is logarithmic.
const WIDE: f64 = 30.0;

/// Where each value stands on the horizontal axis, in their order, and the axis.
///
/// Where every value begins with a number, and all have one unit (zero may have another), the axis is that number: `0%`, `0.1%`. It is
/// logarithmic where the numbers span a wide range, and zero stands by itself at its left then. All others are categories in the plan's
/// order: also values of which two begin with the same number.
pub(super) fn places(values: &[&str]) -> (Vec<f64>, Axis) {
    let marked = |places: Vec<f64>, title: String| {
        let (low, high) = places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), at| (a.min(*at), b.max(*at)));
        let room = ((high - low) * 0.05).max(1e-9);
        let marks = spaced(&places, values, high - low);
        (places, Axis { title, range: (low - room, high + room), marks })
    };
    let Some((numbers, unit)) = numbers(values) else {
        return marked((0..values.len()).map(|at| at as f64).collect(), "value".to_owned());
    };
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let least = numbers.iter().copied().filter(|number| *number > 0.0).fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    if most < WIDE * least {
        return marked(numbers, format!("value{unit}"));
    }
    // Zero has no logarithm: it stands as far from the least as is a tenth of the whole, at least half a decade.
    let (low, high) = (least.log10(), most.log10());
    let zero = low - ((high - low) * 0.1).max(0.5);
    let at = |number: &f64| if *number > 0.0 { number.log10() } else { zero };
    let aside = if numbers.contains(&0.0) { "; zero stands aside" } else { "" };
    marked(numbers.iter().map(at).collect(), format!("value{unit} (logarithmic{aside})"))
}

/// Marks that do not cover one another: the first, and each that has room behind the one before.
fn spaced(places: &[f64], values: &[&str], span: f64) -> Vec<(f64, String)> {
    let mut all: Vec<(f64, String)> =
        places.iter().copied().zip(values.iter().map(|value| (*value).to_owned())).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut marks: Vec<(f64, String)> = Vec::new();
    for (at, text) in all {
        // About a hundred characters fit below a chart.
        let room = |before: &str| span * (before.chars().count() + text.chars().count() + 2) as f64 / 2.0 / 100.0;
        if marks.last().is_none_or(|(last, before)| at - last >= room(before)) {
            marks.push((at, text));
        }
    }
    marks
}

/// The numbers that the values begin with, and their unit.
fn numbers<'v>(values: &[&'v str]) -> Option<(Vec<f64>, &'v str)> {
    let all: Vec<(f64, &str)> = values.iter().map(|value| leading(value)).collect::<Option<_>>()?;
    let unit = all.iter().find(|(number, _)| *number != 0.0).map_or("", |(_, unit)| *unit);
    let alike = all.iter().all(|(number, own)| *own == unit || *number == 0.0);
    let mut numbers: Vec<f64> = all.iter().map(|(number, _)| *number).collect();
    let in_order = numbers.clone();
    numbers.sort_by(f64::total_cmp);
    let differ = numbers.windows(2).all(|two| two[0] < two[1]);
    (alike && differ).then_some((in_order, unit))
}

/// The number that a value begins with, not below zero, and what follows it up to a space.
fn leading(value: &str) -> Option<(f64, &str)> {
    let word = value.split_whitespace().next()?;
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    // `1.2.3` and `4x4` are names.
    let is_unit = unit.chars().all(|c| c.is_alphabetic() || "%/".contains(c));
    let number: f64 = number.parse().ok()?;
    (is_unit && number.is_finite()).then_some((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_begin_with_numbers_of_one_unit_stand_at_them() {
        let (at, axis) = places(&["0us", "50us 10us", "100us 20us"]);
        assert_eq!((at, axis.title.as_str()), (vec![0.0, 50.0, 100.0], "value, us"));
        assert_eq!(axis.marks.last().unwrap().1, "100us 20us");
        let (at, axis) = places(&["9000", "1500"]);
        assert_eq!((at, axis.title.as_str()), (vec![9000.0, 1500.0], "value"));
    }

    #[test]
    fn a_wide_range_is_logarithmic_with_zero_aside() {
        let (at, axis) = places(&["0", "0.01%", "0.1%", "1%"]);
        assert!(at[0] < at[1] && (at[2] - at[1] - 1.0).abs() < 1e-9 && (at[3] - at[2] - 1.0).abs() < 1e-9, "{at:?}");
        assert!(axis.title.contains('%') && axis.title.contains("logarithmic"), "{}", axis.title);
        assert_eq!(axis.marks.len(), 4);
    }

    #[test]
    fn other_values_are_categories_in_their_order() {
        for values in [
            &["cubic", "bbr"][..],
            &["1ms", "500us"],
            &["50us", "50us 10us"],
            &["4x4", "8x8"],
            &["-1", "1"],
            &["1.2.3", "1.2.4"],
        ] {
            let (at, axis) = places(values);
            assert_eq!((at, axis.title.as_str()), (vec![0.0, 1.0], "value"), "{values:?}");
        }
    }

    #[test]
    fn marks_do_not_cover_one_another() {
        let long = "a value of very many words that stands below".to_owned();
        let names: Vec<String> = (0..12).map(|n| format!("{long} {n}")).collect();
        let (at, axis) = places(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(at.len() == 12 && axis.marks.len() < 6, "{:?}", axis.marks);
    }
}
