//! What is measured: every metric with its unit and its better direction.

use serde::{Deserialize, Serialize};

words! {
    /// Whether a larger or a smaller value is the better one.
    Better {
        /// Larger is better.
        Higher = "higher",
        /// Smaller is better.
        Lower = "lower",
    }
}

words! {
    /// A metric column value of the frame. The unit and direction belong to the metric, never to a caller.
    Metric {
        /// Payload bits per second of one flow.
        Bandwidth = "bandwidth",
        /// Operations per second.
        MessageRate = "message_rate",
        /// Payload bits per second that all flows of a round bring to one NIC.
        IngressBandwidth = "ingress_bandwidth",
        /// Payload bits per second that all flows of a round take from one NIC.
        EgressBandwidth = "egress_bandwidth",
        /// Payload bits per second of all flows of a round.
        TotalBandwidth = "total_bandwidth",
        /// Smallest latency of the window.
        LatencyMin = "latency_min",
        /// Median latency.
        LatencyP50 = "latency_p50",
        /// 90th percentile.
        LatencyP90 = "latency_p90",
        /// 99th percentile.
        LatencyP99 = "latency_p99",
        /// 99.9th percentile.
        LatencyP999 = "latency_p999",
        /// Largest latency of the window.
        LatencyMax = "latency_max",
        /// Standard deviation of the latency.
        LatencyStdev = "latency_stdev",
        /// Bus bandwidth of a collective (nccl-tests' definition).
        Busbw = "busbw",
        /// Algorithm bandwidth of a collective: size over time.
        Algbw = "algbw",
        /// Median time of a training step: its backward pass, which is a timer, and what of its communication is left then.
        StepTime = "step_time",
        /// What of [`Metric::StepTime`] is communication that the backward pass did not hide.
        StepExposed = "step_exposed",
        /// Median time of the same buckets one after another, without a backward pass.
        StepAlone = "step_alone",
        /// CPU time spent per GiB of payload, at the initiator.
        CpuTimePerGib = "cpu_time_per_gib",
        /// CPU time spent per GiB of payload, at the responder.
        CpuTimePerGibRemote = "cpu_time_per_gib_remote",
    }
}

impl Metric {
    /// The unit every value of this metric is in.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Bandwidth | Self::IngressBandwidth | Self::EgressBandwidth | Self::TotalBandwidth => "Gb/s",
            Self::MessageRate => "Mmsg/s",
            Self::Busbw | Self::Algbw => "GB/s",
            Self::CpuTimePerGib | Self::CpuTimePerGibRemote => "s/GiB",
            Self::LatencyMin
            | Self::LatencyP50
            | Self::LatencyP90
            | Self::LatencyP99
            | Self::LatencyP999
            | Self::LatencyMax
            | Self::LatencyStdev
            | Self::StepTime
            | Self::StepExposed
            | Self::StepAlone => "µs",
        }
    }

    /// Which percentile of single operations it is, in thousandths.
    pub const fn permille(self) -> Option<u64> {
        match self {
            Self::LatencyP50 => Some(500),
            Self::LatencyP90 => Some(900),
            Self::LatencyP99 => Some(990),
            Self::LatencyP999 => Some(999),
            _ => None,
        }
    }

    /// Whether it sums up several flows of one round.
    pub const fn is_sum(self) -> bool {
        matches!(self, Self::IngressBandwidth | Self::EgressBandwidth | Self::TotalBandwidth)
    }

    /// Whether a ceiling can be computed for it where the link is known.
    pub const fn has_ceiling(self) -> bool {
        self.is_sum() || matches!(self, Self::Bandwidth | Self::Busbw)
    }

    /// Whether higher or lower values are better.
    pub const fn better(self) -> Better {
        match self {
            Self::Bandwidth
            | Self::IngressBandwidth
            | Self::EgressBandwidth
            | Self::TotalBandwidth
            | Self::MessageRate
            | Self::Busbw
            | Self::Algbw => Better::Higher,
            Self::LatencyMin
            | Self::LatencyP50
            | Self::LatencyP90
            | Self::LatencyP99
            | Self::LatencyP999
            | Self::LatencyMax
            | Self::LatencyStdev
            | Self::StepTime
            | Self::StepExposed
            | Self::StepAlone
            | Self::CpuTimePerGib
            | Self::CpuTimePerGibRemote => Better::Lower,
        }
    }
}
