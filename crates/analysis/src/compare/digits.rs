//! Changes in percent with a sensible number of digits.

/// Without the sign `%`: two decimals below ten, one below a hundred, none below ten thousand. Beyond, percentages are
/// meaningless: a factor with two digits, `×170000`. The same for falls that would round to −100: `÷2500`.
pub fn percent(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value <= -99.95 => {
            // Below the smallest number a fall is one to nothing.
            let factor = 1.0 / (1.0 + value / 100.0).max(1e-9);
            format!("÷{}", two_digits(factor))
        }
        _ if size < 9.995 => format!("{value:.2}"),
        _ if size < 99.95 => format!("{value:.1}"),
        _ if size < 9_999.5 => format!("{value:.0}"),
        _ => format!("×{}", two_digits((1.0 + value / 100.0).abs())),
    }
}

fn two_digits(factor: f64) -> String {
    let unit = 10_f64.powf(factor.log10().floor() - 1.0).max(1.0);
    format!("{:.0}", (factor / unit).round() * unit)
}

pub fn signed(value: f64) -> String {
    match percent(value) {
        factor if is_factor(&factor) => factor,
        zero if zero.trim_start_matches('-') == "0.00" => "0.00".to_owned(),
        text => format!("{}{}", if value < 0.0 { "−" } else { "+" }, text.trim_start_matches('-')),
    }
}

/// Without its sign, with `%` for a percentage: `3.10 %`, `×170000`. `None` if all digits are 0.
pub fn share(value: f64) -> Option<String> {
    let text = signed(value);
    let size = text.trim_start_matches(['−', '+']);
    match size {
        "0.00" => None,
        factor if is_factor(factor) => Some(factor.to_owned()),
        size => Some(format!("{size} %")),
    }
}

/// With `%` where needed: `−18.0 to −17.4 %`, `÷2500 to ×40000`, `−50.0 % to ×170`. A single value if both have the same text.
pub fn range(low: f64, high: f64) -> String {
    let (from, to) = (signed(low), signed(high));
    let unit = |text: &str| if is_factor(text) { "" } else { " %" };
    match (is_factor(&from), is_factor(&to)) {
        _ if from == to => format!("{from}{}", unit(&from)),
        (false, false) => format!("{from} to {to} %"),
        _ => format!("{from}{} to {to}{}", unit(&from), unit(&to)),
    }
}

fn is_factor(text: &str) -> bool {
    text.starts_with(['×', '÷'])
}

/// The margin, without `%`: `±1.00` if both edges have the same text, otherwise `−48.5 to +94.0`.
pub fn margin(low: f64, high: f64) -> String {
    if high + low < 0.1 { format!("±{}", percent(high)) } else { format!("{} to {}", signed(low), signed(high)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_size() {
        let pairs = [
            (0.0, "0.00"),
            (-0.001, "0.00"),
            (-1.234, "−1.23"),
            (94.06, "+94.1"),
            (217.03, "+217"),
            (-99.9, "−99.9"),
            (-99.96, "÷2500"),
            (9_999.7, "×100"),
            (16_891_497.3, "×170000"),
        ];
        for (value, text) in pairs {
            assert_eq!(signed(value), text);
        }
    }

    #[test]
    fn percent_are_written_where_they_belong() {
        assert_eq!(share(-3.1).as_deref(), Some("3.10 %"));
        assert_eq!(share(16_891_497.3).as_deref(), Some("×170000"));
        assert_eq!(share(-0.004), None);
        assert_eq!(range(-18.0, -17.4), "−18.0 to −17.4 %");
        assert_eq!(range(-50.0, 16_891_497.3), "−50.0 % to ×170000");
        assert_eq!(range(0.001, -0.001), "0.00 %");
    }

    #[test]
    fn a_wide_margin_is_not_the_same_on_both_sides() {
        assert_eq!(margin(-0.990_099, 1.0), "±1.00");
        assert_eq!(margin(-48.453_608, 94.0), "−48.5 to +94.0");
        assert_eq!(margin(-68.454_259, 217.0), "−68.5 to +217");
    }
}
