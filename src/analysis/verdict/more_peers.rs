//! What to do where values have too few others to be held against.

use railgauge_model::plan::model::{Expectation, Limit};
use railgauge_wire::{
    remedy::{self, Remedy},
    terms::Better,
};

use super::peers::AT_LEAST;
use crate::analysis::words::number;

/// The remedy for trusted values of an expectation that have too few peers, with a limit to begin with; `None` without such a value.
pub(super) fn remedy(wanted: &Expectation, values: impl Iterator<Item = f64>) -> Option<Remedy> {
    let Limit::WithinPercentOfPeers(percent) = wanted.limit else { return None };
    let (metric, unit) = (wanted.metric, wanted.metric.unit());
    let (worst, key, share) = match metric.better() {
        Better::Higher => (values.reduce(f64::min)?, "at_least", 1.0 - percent / 100.0),
        Better::Lower => (values.reduce(f64::max)?, "at_most", 1.0 + percent / 100.0),
    };
    let limit = format!("`{key} = \"{} {unit}\"`", number(worst * share));
    Some(remedy::MORE_PEERS.with([
        ("needed", AT_LEAST.to_string()),
        ("limit", limit),
        ("percent", percent.to_string()),
        ("value", format!("{} {unit}", number(worst))),
    ]))
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
        remedy(&wanted, values.iter().copied()).unwrap().values["limit"].clone()
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

    #[test]
    fn without_a_value_or_for_another_demand_there_is_none() {
        let of_peers = wanted(Metric::Bandwidth, Limit::WithinPercentOfPeers(5.0));
        assert_eq!(remedy(&of_peers, [].into_iter()), None);
        assert_eq!(remedy(&wanted(Metric::Bandwidth, Limit::AtLeast(9.0)), [1.0].into_iter()), None);
    }
}
