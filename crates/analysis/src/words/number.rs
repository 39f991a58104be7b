//! Formats numbers with a sensible number of digits: values, differences and shares become text only here.
//!
//! | function | for | digits |
//! | --- | --- | --- |
//! | [`number`] | a value of unknown spread | four significant ones |
//! | [`with_unit`] | the same with its unit | four significant ones |
//! | [`spread`] | a value whose standard deviation is known | those that the deviation leaves, at least two |
//! | [`short`] | a value where there is little room | three significant ones |
//! | [`brief`] | a count of standard errors and the like | two significant ones |
//! | [`share`] | a part of something, in percent | one decimal from 1 % to 100 %, two below |
//! | [`scatter`] | a standard deviation in percent of its centre | as [`share`]; from 100 % on a factor |
//! | [`change`], [`between`] | a difference from something, with its sign | as [`share`]; from +100 % on a factor |

use railgauge_wire::Metric;

/// Four significant digits, never an exponent: `104.66667` → `104.7`, `0.012345` → `0.01235`, `12345.6` → `12346`.
pub fn number(value: f64) -> String {
    significant(value, 4)
}

/// Two significant digits, including those before the point: `24.59` → `25`, `8.575` → `8.6`, `7936` → `7900`.
pub fn brief(value: f64) -> String {
    let place = 10_f64.powi((exponent(value, 2) - 1).max(0));
    let rounded = if place > 1.0 { (value / place).round() * place } else { value };
    significant(rounded, 2)
}

/// A value and its unit: that of the metric, or for a rate of messages the largest one in which it is at least 1.
pub fn in_unit(metric: Metric, value: f64) -> (f64, &'static str) {
    match metric {
        Metric::MessageRate if value < 1e-3 => (value * 1e6, "msg/s"),
        Metric::MessageRate if value < 1.0 => (value * 1e3, "kmsg/s"),
        _ => (value, metric.unit()),
    }
}

/// `195.4 Gb/s`, `11.40 msg/s`.
pub fn with_unit(metric: Metric, value: f64) -> String {
    let (value, unit) = in_unit(metric, value);
    format!("{} {unit}", number(value))
}

pub fn short(value: f64) -> String {
    significant(value, 3)
}

/// No digit after the second one of the deviation, which the GUM (JCGM 100:2008, 7.2.6) keeps of an uncertainty; two to
/// four significant digits. Four if the deviation is zero or `None`, which means unknown.
pub fn spread(value: f64, deviation: Option<f64>) -> String {
    let known = deviation.filter(|deviation| *deviation > 0.0 && deviation.is_finite());
    let digits = known.map_or(4, |deviation| {
        let digits = exponent(value, 4) - exponent(deviation, 2) + 2;
        usize::try_from(digits.clamp(2, 4)).unwrap_or(4)
    });
    significant(value, digits)
}

fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let decimals = (digits as i32 - 1 - exponent(value, digits)).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

/// After rounding to `digits`: 9.9996 with four counts as 10.00.
fn exponent(value: f64, digits: usize) -> i32 {
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    scientific.rsplit('e').next().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Without the sign `%`: two decimals below ten, one above.
pub fn percent(value: f64) -> String {
    // Before rounding, so that 9.996 is `10.0`.
    let decimals = if value.abs() < 9.995 { 2 } else { 1 };
    format!("{value:.decimals$}")
}

pub fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(value.abs()))
}

/// Limit of what is less than all.
const NEARLY: f64 = 99.99;
/// Percent above which a ratio becomes a factor.
const TIMES: f64 = 200.0;

/// From a ratio: `73.8 %`, `0.42 %`, `4.7 times`. Never rounds up to the whole.
pub fn share(ratio: f64) -> String {
    let percent = 100.0 * ratio;
    match percent {
        p if !p.is_finite() => ratio.to_string(),
        p if p > TIMES => format!("{} times", brief(ratio)),
        p if (99.95..100.0).contains(&p) => format!("{:.2} %", p.min(NEARLY)),
        p if p.abs() < 0.995 && p != 0.0 => format!("{} %", significant(p, 2)),
        p => format!("{p:.1} %"),
    }
}

/// In front of the whole: `73.8 % of`, `4.7 times`.
pub fn share_of(ratio: f64) -> String {
    let times = ratio.is_finite() && 100.0 * ratio > TIMES;
    if times { share(ratio) } else { format!("{} of", share(ratio)) }
}

/// As [`share_of`], the unit once if it is the same: `73.8 to 97.4 % of`, `107.8 % to 2.3 times`.
pub fn shares_of(low: f64, high: f64) -> String {
    let unit = if 100.0 * low > TIMES { " times" } else { " %" };
    let is_one = (100.0 * low > TIMES) == (100.0 * high > TIMES);
    let (low, high) = (share(low), share_of(high));
    format!("{} to {high}", if is_one { low.trim_end_matches(unit) } else { &low })
}

/// A standard deviation in percent of its centre: `±0.60 %`, `a factor of 2.4`.
pub fn scatter(percent: f64) -> String {
    match percent {
        p if p < 100.0 => format!("±{}", share(p / 100.0)),
        p => format!("a factor of {}", brief(1.0 + p / 100.0)),
    }
}

/// For a column with the sign `%`: `97.4`.
pub fn percent_of(part: f64, whole: f64) -> String {
    let text = share(part / whole);
    text.strip_suffix(" %").map_or(format!("{:.0}", 100.0 * part / whole), str::to_owned)
}

/// Signed percentage of the reference: `−31.2 %`, `+0.42 %`. From twice on a factor: `4.7 times`; a loss of nearly
/// everything keeps the digits that distinguish it from everything: `−99.97 %`.
pub fn change(percent: f64) -> String {
    if percent >= 100.0 {
        return format!("{} times", brief(1.0 + percent / 100.0));
    }
    format!("{} %", difference(percent))
}

/// An interval of differences in percent, the smaller end first: `−41.0 to −39.2 %`, `2.1 to 3.4 times`.
pub fn between((low, high): (f64, f64)) -> String {
    match (low >= 100.0, high >= 100.0) {
        // Two digits would often give both ends the same number.
        (true, true) => format!("{} to {} times", short(1.0 + low / 100.0), short(1.0 + high / 100.0)),
        (false, true) => format!("{} to {}", change(low), change(high)),
        _ => format!("{} to {} %", difference(low), difference(high)),
    }
}

/// Below 100 %, with its sign, without `%`.
fn difference(percent: f64) -> String {
    let size = percent.abs();
    let text = match size {
        s if s == 0.0 || s < 0.005 => return "0".to_owned(),
        s if s < 0.995 => format!("{s:.2}"),
        s if percent < 0.0 && (99.95..100.0).contains(&s) => format!("{:.2}", s.min(NEARLY)),
        s => format!("{s:.1}"),
    };
    format!("{}{text}", if percent < 0.0 { '−' } else { '+' })
}

/// From a difference of logarithms, negative where worse: `31.2 % lower`, `4.7 times as high`. `higher` says whether
/// more is better.
pub fn worse(log: f64, higher: bool) -> String {
    let ratio = if higher { log.exp() } else { (-log).exp() };
    match ratio {
        r if r >= 2.0 => format!("{} times as high", brief(r)),
        r if r < 1.0 => format!("{} % lower", difference(100.0 * (r - 1.0)).trim_start_matches('−')),
        r => format!("{} % higher", difference(100.0 * (r - 1.0)).trim_start_matches('+')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_unit_once_where_both_ends_have_the_same() {
        assert_eq!(shares_of(0.738, 0.974), "73.8 to 97.4 % of");
        assert_eq!(shares_of(1.078, 2.3), "107.8 % to 2.3 times");
        assert_eq!(shares_of(2.1, 2.3), "2.1 to 2.3 times");
    }

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
        let rates = [(2.1, "2.100 Mmsg/s"), (0.0021, "2.100 kmsg/s"), (0.000_011_4, "11.40 msg/s"), (0.0, "0 msg/s")];
        for (value, text) in rates {
            assert_eq!(with_unit(Metric::MessageRate, value), text);
        }
        assert_eq!(with_unit(Metric::Bandwidth, 0.001), "0.001000 Gb/s");
        assert_eq!((brief(24.59).as_str(), brief(8.575).as_str(), brief(371.5).as_str()), ("25", "8.6", "370"));
    }

    #[test]
    fn a_spread_takes_digits_away_and_never_adds_any() {
        for (value, deviation, text) in [
            (195.432, 1.17, "195.4"),
            (195.432, 12.0, "195"),
            (10.234, 4.1, "10.2"),
            (10.234, 41.0, "10"),
            (1834.5, 300.0, "1834"),
            (0.012345, 0.004, "0.0123"),
            (104.66667, 1e-9, "104.7"),
            (104.66667, 0.0, "104.7"),
        ] {
            assert_eq!(spread(value, Some(deviation)), text, "{value} ± {deviation}");
        }
        assert_eq!(spread(104.66667, None), "104.7");
    }

    #[test]
    fn changes_have_a_sign_and_two_decimals() {
        let pairs = [(0.0, "+0.00"), (-1.234, "−1.23"), (9.996, "+10.0"), (-99.96, "−100.0")];
        for (value, text) in pairs {
            assert_eq!(signed(value), text);
        }
    }

    #[test]
    fn large_differences_are_factors_and_a_loss_is_never_all() {
        let pairs = [(0.0, "0 %"), (-31.24, "−31.2 %"), (0.423, "+0.42 %"), (85.0, "+85.0 %"), (371.5, "4.7 times")];
        for (value, text) in pairs {
            assert_eq!(change(value), text);
        }
        assert_eq!(change(-99.97), "−99.97 %");
        assert_eq!(between((-41.0, -39.24)), "−41.0 to −39.2 %");
        assert_eq!(between((110.0, 240.0)), "2.10 to 3.40 times");
        assert_eq!(between((-20.0, 240.0)), "−20.0 % to 3.4 times");
        assert_eq!(
            (share(0.738).as_str(), share(4.7).as_str(), share(0.99998).as_str()),
            ("73.8 %", "4.7 times", "99.99 %")
        );
    }

    #[test]
    fn worse_has_a_direction() {
        assert_eq!(worse((0.69_f64).ln(), true), "31.0 % lower");
        assert_eq!(worse(-(4.7_f64).ln(), false), "4.7 times as high");
        assert_eq!(worse((0.07_f64).ln(), true), "93.0 % lower");
        assert_eq!(worse(-(1.31_f64).ln(), false), "31.0 % higher");
    }
}
