/// The text if it is a number in these tools' format: digits, optionally a point and digits, optionally an exponent (`getFloatStr` of
/// nccl-tests, `%g`). Not `inf` or `nan`.
pub(super) fn real(text: &str) -> Option<&str> {
    let shaped = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    (shaped && text.parse::<f64>().is_ok_and(f64::is_finite)).then_some(text)
}

pub(super) fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
