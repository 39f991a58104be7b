//! The limits of a plan, in its own units and spelling.

use railgauge_model::plan::model::{Expectation, Limit, Written};

use super::{number, with_unit};

/// As written in the plan: `1 s`, `90 Gb/s`. Percentages have none.
pub fn limit(wanted: &Expectation) -> Option<String> {
    let (Limit::AtLeast(value) | Limit::AtMost(value)) = wanted.limit else { return None };
    Some(match &wanted.written {
        Some(Written { number, unit, .. }) => format!("{number} {unit}"),
        None => format!("{value} {}", wanted.metric.unit()),
    })
}

/// Range in the plan's unit: values outside would be zeros or digits only.
const READABLE: std::ops::Range<f64> = 0.01..10_000.0;

/// In the unit of the plan's limit: `0.2134 s`. A value that is unreadable in that unit (`0.000006423 s`) is in the metric's own.
pub fn held_against(wanted: &Expectation, value: f64) -> String {
    match &wanted.written {
        Some(Written { unit, factor, .. }) if READABLE.contains(&(value / factor)) => {
            format!("{} {unit}", number(value / factor))
        }
        _ => with_unit(wanted.metric, value),
    }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::Metric;

    use super::*;

    fn expectation(limit: Limit, written: Option<Written>) -> Expectation {
        let metric = Metric::LatencyP50;
        Expectation { metric, limit, written, sizes: None, rails: Vec::new(), group: None, source: None, line: 1 }
    }

    #[test]
    fn a_limit_keeps_the_plans_unit() {
        let written = Written { number: "1".into(), unit: "s".into(), factor: 1e6 };
        let wanted = expectation(Limit::AtMost(1e6), Some(written));
        assert_eq!(limit(&wanted).as_deref(), Some("1 s"));
        assert_eq!(held_against(&wanted, 213_400.0), "0.2134 s");
        assert_eq!(held_against(&wanted, 6.423), "6.423 µs");
        let bare = expectation(Limit::AtMost(12.0), None);
        assert_eq!((limit(&bare).as_deref(), held_against(&bare, 3.0).as_str()), (Some("12 µs"), "3.000 µs"));
        assert_eq!(limit(&expectation(Limit::WithinPercentOfPeers(10.0), None)), None);
    }
}
