use crate::case::Contradiction;

/// `None` if the number is in the range that `by` gives.
pub(super) fn outside(
    what: &'static str,
    (value, unit): (f64, &'static str),
    by: &'static str,
    range: (f64, f64),
) -> Option<Contradiction> {
    let is_inside = (range.0..=range.1).contains(&value);
    (!is_inside).then_some(Contradiction::Outside { what, value, unit, by, range })
}
