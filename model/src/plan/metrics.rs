//! Which metrics a test produces.

use railgauge_wire::terms::{Metric, Op, TestMetric};

/// The metrics a test with this loop and operation produces: what an expectation may be about.
///
/// `at_once` tests have the sums over a round beside the bandwidth of each flow.
pub const fn metrics_of(metric: TestMetric, op: Op, at_once: bool) -> &'static [Metric] {
    match (metric, op.is_collective()) {
        (TestMetric::Bandwidth, false) if at_once => &[
            Metric::Bandwidth,
            Metric::MessageRate,
            Metric::CpuTimePerGib,
            Metric::CpuTimePerGibRemote,
            Metric::IngressBandwidth,
            Metric::EgressBandwidth,
            Metric::TotalBandwidth,
        ],
        (TestMetric::Bandwidth, false) => {
            &[Metric::Bandwidth, Metric::MessageRate, Metric::CpuTimePerGib, Metric::CpuTimePerGibRemote]
        }
        (TestMetric::Latency, _) => &[
            Metric::LatencyMin,
            Metric::LatencyP50,
            Metric::LatencyP90,
            Metric::LatencyP99,
            Metric::LatencyP999,
            Metric::LatencyMax,
            Metric::LatencyStdev,
        ],
        (TestMetric::Bandwidth, true) => &[Metric::Busbw, Metric::Algbw],
        (TestMetric::Step, _) => &[Metric::StepTime, Metric::StepExposed, Metric::StepAlone, Metric::Algbw],
    }
}

/// The metric that speaks for a test in charts and headlines.
pub const fn headline(metric: TestMetric, op: Op) -> Metric {
    match (op.is_collective(), metric) {
        (_, TestMetric::Latency) => Metric::LatencyP50,
        (_, TestMetric::Step) => Metric::StepTime,
        (true, TestMetric::Bandwidth) => Metric::Busbw,
        (false, TestMetric::Bandwidth) => Metric::Bandwidth,
    }
}
