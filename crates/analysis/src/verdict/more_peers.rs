//! The remedy for values with too few peers.

use std::collections::BTreeMap;

use railgauge_model::plan::model::{Expectation, Limit};
use railgauge_wire::{
    remedy::{self, Remedy},
    terms::Better,
    unit::Bytes,
};

use crate::{
    limits::AT_LEAST,
    words::{self, number},
};

/// For trusted values of an expectation that have too few peers, each with its size: proposes a limit. `None` without
/// such a value, and if the demand is too loose for any limit. Of several sizes it uses the metric's main one: the
/// largest for a bandwidth, the smallest for a latency.
pub(super) fn remedy(wanted: &Expectation, values: impl Iterator<Item = (Bytes, f64)>) -> Option<Remedy> {
    let Limit::WithinPercentOfPeers(percent) = wanted.limit else { return None };
    let (metric, unit) = (wanted.metric, wanted.metric.unit());
    let mut by_size: BTreeMap<Bytes, Vec<f64>> = BTreeMap::new();
    values.for_each(|(size, value)| by_size.entry(size).or_default().push(value));
    let several = by_size.len() > 1;
    let higher = metric.better() == Better::Higher;
    let (size, values) = if higher { by_size.pop_last() } else { by_size.pop_first() }?;
    let values = values.into_iter();
    let (worst, key, share) = match higher {
        true => (values.reduce(f64::min)?, "at_least", 1.0 - percent / 100.0),
        false => (values.reduce(f64::max)?, "at_most", 1.0 + percent / 100.0),
    };
    if worst * share <= 0.0 {
        return None;
    }
    let of_size = match several {
        true => format!(", with `sizes = \"{}\"` and one for each other size,", written(size)),
        false => String::new(),
    };
    let limit = format!("`{key} = \"{} {unit}\"`{of_size}", number(worst * share));
    Some(remedy::MORE_PEERS.with([
        ("needed", AT_LEAST.to_string()),
        ("limit", limit),
        ("percent", percent.to_string()),
        ("value", format!("{} {unit}", number(worst))),
    ]))
}

fn written(size: Bytes) -> String {
    if size.0.is_multiple_of(1024) { words::size(size).replace(' ', "") } else { size.0.to_string() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_model::plan::parse;
    use railgauge_wire::terms::Metric;

    use super::*;

    fn wanted(metric: Metric, limit: Limit) -> Expectation {
        Expectation { metric, limit, written: None, sizes: None, rails: Vec::new(), group: None, line: 1 }
    }

    fn limit(metric: Metric, values: &[f64]) -> String {
        let wanted = wanted(metric, Limit::WithinPercentOfPeers(10.0));
        remedy(&wanted, values.iter().map(|value| (Bytes(64), *value))).unwrap().values["limit"].clone()
    }

    #[test]
    fn the_limit_to_begin_with_is_that_of_the_worst_value_and_a_plan_takes_it() {
        for (op, metric, of_test, values, told) in [
            ("host_to_gpu", Metric::MemoryBandwidth, "bandwidth", [55.2, 54.0], "`at_least = \"48.60 GB/s\"`"),
            ("matmul", Metric::Compute, "compute", [796.4, 801.0], "`at_least = \"716.8 TFLOP/s\"`"),
            ("write", Metric::LatencyP50, "latency", [2.0, 3.0], "`at_most = \"3.300 µs\"`"),
        ] {
            assert_eq!(limit(metric, &values), told);
            let plan = format!(
                "name = \"p\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\n[[test]]\nop = \"{op}\"\n\
                 metric = \"{of_test}\"\n[[test.expect]]\nmetric = \"{metric}\"\n{}\n",
                told.trim_matches('`')
            );
            parse("p.toml", &plan, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        }
    }

    /// A limit for a small size would let a large one pass at a tenth of its value.
    #[test]
    fn of_several_sizes_the_limit_is_that_of_one_and_says_so() {
        let values = [(Bytes(64), 1.2), (Bytes(4 << 20), 12.0), (Bytes(65_536), 24.0)];
        let limit = |metric| {
            let wanted = wanted(metric, Limit::WithinPercentOfPeers(10.0));
            remedy(&wanted, values.into_iter()).unwrap().values["limit"].clone()
        };
        for (metric, of_test, key, value, size) in [
            (Metric::Bandwidth, "bandwidth", "at_least", "10.80 Gb/s", "4MiB"),
            (Metric::LatencyP50, "latency", "at_most", "1.320 µs", "64"),
        ] {
            let (key, sizes) = (format!("{key} = \"{value}\""), format!("sizes = \"{size}\""));
            assert!(limit(metric).starts_with(&format!("`{key}`, with `{sizes}`")), "{}", limit(metric));
            let plan = format!(
                "name = \"p\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\n[[test]]\nop = \"write\"\n\
                 metric = \"{of_test}\"\nsizes = [64, \"64KiB\", \"4MiB\"]\n[[test.expect]]\nmetric = \"{metric}\"\n{key}\n{sizes}\n"
            );
            parse("p.toml", &plan, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        }
    }

    #[test]
    fn where_everything_is_allowed_there_is_no_limit() {
        let wanted = wanted(Metric::Bandwidth, Limit::WithinPercentOfPeers(100.0));
        assert_eq!(remedy(&wanted, [(Bytes(8), 1.0)].into_iter()), None);
    }

    #[test]
    fn without_a_value_or_for_another_demand_there_is_none() {
        let of_peers = wanted(Metric::Bandwidth, Limit::WithinPercentOfPeers(5.0));
        assert_eq!(remedy(&of_peers, [].into_iter()), None);
        assert_eq!(remedy(&wanted(Metric::Bandwidth, Limit::AtLeast(9.0)), [(Bytes(8), 1.0)].into_iter()), None);
    }
}
