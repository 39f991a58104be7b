//! Which metrics a test produces.

use railgauge_wire::terms::{Aim, Metric, Op};

/// The metrics a test with this loop and operation produces: what an expectation may be about.
///
/// `at_once` tests have the sums over a round beside the bandwidth of each flow.
pub const fn metrics_of(aim: Aim, op: Op, at_once: bool) -> &'static [Metric] {
    match (aim, op.is_collective()) {
        (Aim::Bandwidth, false) if at_once => &[
            Metric::Bandwidth,
            Metric::MessageRate,
            Metric::CpuTimePerGib,
            Metric::CpuTimePerGibRemote,
            Metric::IngressBandwidth,
            Metric::EgressBandwidth,
            Metric::TotalBandwidth,
        ],
        (Aim::Bandwidth, false) => {
            &[Metric::Bandwidth, Metric::MessageRate, Metric::CpuTimePerGib, Metric::CpuTimePerGibRemote]
        }
        (Aim::Latency, _) => &[
            Metric::LatencyMin,
            Metric::LatencyP50,
            Metric::LatencyP90,
            Metric::LatencyP99,
            Metric::LatencyP999,
            Metric::LatencyMax,
            Metric::LatencyStdev,
        ],
        (Aim::Bandwidth, true) => &[Metric::Busbw, Metric::Algbw],
        (Aim::Step, _) => &[Metric::StepTime, Metric::StepExposed, Metric::StepAlone, Metric::Algbw],
    }
}

/// Whether a metric is a sum over flows at once.
pub const fn is_sum(metric: Metric) -> bool {
    matches!(metric, Metric::IngressBandwidth | Metric::EgressBandwidth | Metric::TotalBandwidth)
}

/// The metric that speaks for a test in charts and headlines.
pub const fn headline(aim: Aim, op: Op) -> Metric {
    match (op.is_collective(), aim) {
        (_, Aim::Latency) => Metric::LatencyP50,
        (_, Aim::Step) => Metric::StepTime,
        (true, Aim::Bandwidth) => Metric::Busbw,
        (false, Aim::Bandwidth) => Metric::Bandwidth,
    }
}
