//! Changes in percent with as many digits as they deserve.

/// A share in percent without its sign `%`: two decimals below ten, one below a hundred, none below ten thousand. Beyond,
/// percent say nothing any more: a factor with two digits, `×170000`.
pub fn percent(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size < 9.995 => format!("{value:.2}"),
        _ if size < 99.95 => format!("{value:.1}"),
        _ if size < 9_999.5 => format!("{value:.0}"),
        _ => {
            let factor = 1.0 + value / 100.0;
            let unit = 10_f64.powf(factor.abs().log10().floor() - 1.0).max(1.0);
            format!("×{:.0}", (factor / unit).round() * unit)
        }
    }
}

/// [`percent`] of a change: with its sign.
pub fn signed(value: f64) -> String {
    match percent(value.abs()) {
        factor if factor.starts_with('×') && value > 0.0 => percent(value),
        text => format!("{}{text}", if value < 0.0 { "−" } else { "+" }),
    }
}

/// Changes that count as none, from the lower to the upper edge, without `%`: `±1.00` where both are as far from zero, as
/// far as one reads it, else `−48.5 to +94.0`.
pub fn margin(low: f64, high: f64) -> String {
    if high + low < 0.1 { format!("±{}", percent(high)) } else { format!("{} to {}", signed(low), signed(high)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_size() {
        let pairs = [
            (0.0, "+0.00"),
            (-1.234, "−1.23"),
            (94.06, "+94.1"),
            (217.03, "+217"),
            (-99.96, "−100"),
            (9_999.7, "×100"),
            (16_891_497.3, "×170000"),
        ];
        for (value, text) in pairs {
            assert_eq!(signed(value), text);
        }
    }

    #[test]
    fn a_wide_margin_is_not_the_same_on_both_sides() {
        assert_eq!(margin(-0.990_099, 1.0), "±1.00");
        assert_eq!(margin(-48.453_608, 94.0), "−48.5 to +94.0");
        assert_eq!(margin(-68.454_259, 217.0), "−68.5 to +217");
    }
}
