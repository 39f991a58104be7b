use railgauge_wire::{Family, Metric, Op, TestMetric};

use super::{AtOnce, Beside};

/// The metrics of a test with this loop and operation: what expectations may use.
///
/// Tests with flows `at_once` also have the sums over a round, and those with a victim its loss. Tests with traffic `beside` their flows
/// have the loss of each flow, and the rate of that traffic unless a command makes it. Collectives have their loss, and that of the other
/// operation.
pub fn metrics_of(metric: TestMetric, op: Op, at_once: Option<&AtOnce>, beside: Option<&Beside>) -> Vec<Metric> {
    let families: &[Family] = match (metric, op.is_collective()) {
        _ if op == Op::Matmul => &[Family::Compute],
        _ if op.within_host().is_some() && metric == TestMetric::Latency => &[Family::NodeLatency],
        _ if op.within_host().is_some() => &[Family::Node],
        (TestMetric::Bandwidth, false) => match at_once {
            Some(AtOnce::Victim(_)) => &[Family::Flow, Family::Round, Family::Victim],
            Some(_) => &[Family::Flow, Family::Round],
            None if beside.is_some() => &[Family::Flow, Family::Beside],
            None => &[Family::Flow],
        },
        (TestMetric::Latency, _) if op == Op::AllToAllV => &[Family::Latency, Family::Exchange],
        (TestMetric::Latency, _) => &[Family::Latency],
        (TestMetric::Bandwidth, true) if op == Op::AllToAllV => &[Family::Group, Family::Collective, Family::Exchange],
        (TestMetric::Bandwidth, true) if beside.is_some() => &[Family::Group, Family::Collective, Family::Overlap],
        (TestMetric::Bandwidth, true) => &[Family::Group, Family::Collective],
        (TestMetric::Step, _) => &[Family::Step, Family::Collective],
        (TestMetric::Compute, _) => &[],
    };
    let of = |family: Family| Metric::ALL.iter().copied().filter(move |metric| metric.family() == family);
    let is_known = |metric: &Metric| match metric {
        Metric::BesideBandwidth => beside.is_some_and(|one| one.command.is_none()),
        Metric::OverlapLossOther => beside.is_some_and(|one| one.op.is_some()),
        _ => true,
    };
    families.iter().copied().flat_map(of).filter(is_known).collect()
}

pub const fn headline(metric: TestMetric, op: Op) -> Metric {
    match (op.is_collective(), metric) {
        (_, TestMetric::Latency) if op.within_host().is_some() => Metric::MemoryLatency,
        (_, TestMetric::Latency) => Metric::LatencyP50,
        (_, TestMetric::Step) => Metric::StepTime,
        (_, TestMetric::Compute) => Metric::Compute,
        (true, TestMetric::Bandwidth) => Metric::Busbw,
        (false, TestMetric::Bandwidth) if op.within_host().is_some() => Metric::MemoryBandwidth,
        (false, TestMetric::Bandwidth) => Metric::Bandwidth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::model::Victim;

    /// The order is that of a case's rows in the frame.
    #[test]
    fn tests_have_their_metrics_in_one_order() {
        let words = |metric, op, at_once: Option<&AtOnce>| {
            metrics_of(metric, op, at_once, None).iter().map(|metric| metric.word()).collect::<Vec<_>>().join(" ")
        };
        let flow = "bandwidth message_rate cpu_time_per_gib cpu_time_per_gib_remote";
        let sums = "ingress_bandwidth egress_bandwidth total_bandwidth";
        let latency = "latency_min latency_p50 latency_p90 latency_p99 latency_p999 latency_max latency_stdev";
        assert_eq!(words(TestMetric::Bandwidth, Op::Write, None), flow);
        assert_eq!(words(TestMetric::Bandwidth, Op::Write, Some(&AtOnce::Ring)), format!("{flow} {sums}"));
        let victim = AtOnce::Victim(Victim { flow: None, to: None, draws: 1 });
        let with_loss = format!("{flow} {sums} victim_loss");
        assert_eq!(words(TestMetric::Bandwidth, Op::Write, Some(&victim)), with_loss);
        assert_eq!(words(TestMetric::Latency, Op::Read, None), latency);
        assert_eq!(words(TestMetric::Latency, Op::AllReduce, None), latency);
        assert_eq!(words(TestMetric::Bandwidth, Op::AllReduce, None), "busbw algbw nic_balance");
        assert_eq!(words(TestMetric::Bandwidth, Op::HostToGpu, None), "memory_bandwidth");
        assert_eq!(words(TestMetric::Latency, Op::MemoryRead, None), "memory_latency");
        assert_eq!(headline(TestMetric::Latency, Op::MemoryRead), Metric::MemoryLatency);
        assert_eq!(words(TestMetric::Compute, Op::Matmul, None), "compute");
        assert_eq!(headline(TestMetric::Compute, Op::Matmul), Metric::Compute);
        assert_eq!(words(TestMetric::Step, Op::AllReduce, None), "step_time step_exposed step_alone algbw nic_balance");
    }
}
