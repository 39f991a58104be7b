use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use thin_vec::ThinVec;

use crate::unit::{self, Bytes, Nanoseconds, NanosecondsF64};

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// On this agent's monotonic clock.
    pub started: Nanoseconds,
    /// From the first post to the last completion.
    pub elapsed: Nanoseconds,
    pub operations: u64,
    /// Payload bytes of those operations.
    pub bytes: Bytes,
    /// Payload bytes that this end moved during the whole step, including warm-up and what followed the window, for comparison with wire
    /// counters around the step. `None` if not counted.
    pub moved: Option<Bytes>,
    /// Payload bytes from the other end, where both directions run at once and this end counts them: over TCP those of the same pass,
    /// over verbs those of the whole step, whose `moved` the other end counts.
    pub received: Option<Bytes>,
    /// Of matrix products.
    #[serde(skip_serializing_if = "unit::is_zero")]
    pub flops: u64,
    #[serde(skip_serializing_if = "unit::is_zero")]
    pub cpu: Nanoseconds,
    /// Payload bytes of each consecutive 100 ms of the window; an incomplete last slice is dropped.
    #[serde(skip_serializing_if = "ThinVec::is_empty")]
    pub slices: ThinVec<Bytes>,
    pub latency: Option<Box<Latency>>,
    /// Typical time of one operation in nanoseconds, for dependent operations timed in groups: the median, which other work of the
    /// processor does not shift.
    pub each: Option<Box<f64>>,
    /// Half width of the 95 % interval over its centre, for an adaptive window.
    pub interval: Option<Box<f64>>,
    /// By queue pair or stream, in order; for bandwidth passes of the initiator. Excludes what an unreliable service lost.
    #[serde(skip_serializing_if = "ThinVec::is_empty")]
    pub lanes: ThinVec<Lane>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lane {
    pub bytes: Bytes,
    /// `None` where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<SourcePort>,
}

/// The port that distinguishes lanes between the same two ends for switches with several equal paths (ECMP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourcePort {
    /// From the initiator's socket.
    Tcp(u16),
    /// Of a RoCE v2 queue pair, by the kernel's rule from flow label and queue pair numbers: drivers do not report it.
    PredictedUdp(u16),
}

/// Length of a slice in [`Measurement::slices`].
pub const SLICE: Nanoseconds = Nanoseconds::from_millis(100);

impl Measurement {
    /// Payload bytes of this end between two moments on its clock. Within a slice of 100 ms, and after the last whole one, bytes count as
    /// spread evenly.
    pub fn bytes_within(&self, from: Nanoseconds, until: Nanoseconds) -> f64 {
        let stop = self.started + self.elapsed;
        let edge = |slice: usize| (self.started + SLICE * slice as u64).min(stop);
        let whole = self.slices.len();
        let rest = self.slices.iter().fold(self.bytes, |rest, bytes| rest.saturating_sub(*bytes));
        let slices = self.slices.iter().enumerate().map(|(slice, bytes)| (edge(slice), edge(slice + 1), *bytes));
        let pieces = slices.chain([(edge(whole), stop, rest)]);
        pieces
            .map(|(begin, end, bytes)| {
                let common = end.min(until).saturating_sub(begin.max(from));
                if end > begin { bytes.as_f64() * common.as_f64() / (end - begin).as_f64() } else { 0.0 }
            })
            .sum()
    }
}

/// Distribution of per-operation times without dropped samples.
///
/// For ping-pong operations the samples are half round trips, for reads and atomics full round trips.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    pub samples: u64,
    pub min: Nanoseconds,
    pub p50: Nanoseconds,
    pub p90: Nanoseconds,
    pub p99: Nanoseconds,
    pub p999: Nanoseconds,
    pub max: Nanoseconds,
    pub mean: NanosecondsF64,
    pub stdev: NanosecondsF64,
    /// Time of one clock reading; contained in every sample, never subtracted.
    pub timer: Nanoseconds,
    /// (upper edge, samples), edges rising, without empty buckets.
    pub histogram: Vec<(Nanoseconds, u64)>,
}
