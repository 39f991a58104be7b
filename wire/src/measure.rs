//! What came out of a timed step.

use serde::{Deserialize, Serialize};
use thin_vec::ThinVec;

use crate::unit::{self, Bytes, Nanoseconds, NanosecondsF64};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurement {
    /// Start of the window on this agent's monotonic clock.
    pub started: Nanoseconds,
    /// Length of the window: from the first post to the last completion.
    pub elapsed: Nanoseconds,
    /// Operations completed inside the window.
    pub operations: u64,
    /// Payload bytes of those operations.
    pub bytes: Bytes,
    /// Payload bytes of everything this end moved during the whole step, warm-up and what came after the window
    /// included: what the wire counters read around the step must have seen. `None` where it was not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<Bytes>,
    /// Payload bytes that arrived here from the other end, where both directions run at once and this end counts them: over TCP those of the
    /// same pass, over verbs those of the whole step, whose `moved` the other end counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Bytes>,
    /// Floating-point operations of those operations, where they are matrix products.
    #[serde(skip_serializing_if = "unit::is_zero")]
    pub flops: u64,
    /// CPU time this agent's measuring threads spent in the window.
    #[serde(skip_serializing_if = "unit::is_zero")]
    pub cpu: Nanoseconds,
    /// Payload bytes completed in each consecutive 100 ms of the window; the last slice is dropped if incomplete.
    #[serde(skip_serializing_if = "ThinVec::is_empty")]
    pub slices: ThinVec<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Box<Latency>>,
    /// Typical time of one operation in nanoseconds, where operations follow one another and are timed many at a time: the median of those
    /// times. What else the processor does in the window moves a mean, and not this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Box<f64>>,
    /// Half width of the 95 % interval over its centre, where an adaptive window computed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Box<f64>>,
    /// The part of every queue pair or stream, in their order; for bandwidth passes of the initiator. What an unreliable
    /// service lost is not in it.
    #[serde(skip_serializing_if = "ThinVec::is_empty")]
    pub lanes: ThinVec<Lane>,
}

/// One queue pair's or stream's part of a bandwidth pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lane {
    /// Payload bytes it moved.
    pub bytes: Bytes,
    /// Where in the fabric's choice of paths it stands; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<SourcePort>,
}

/// The port by which switches with several equal paths (ECMP) tell one lane from another between the same two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourcePort {
    /// TCP port of the initiator's socket, read from it.
    Tcp(u16),
    /// UDP source port of a RoCE v2 queue pair, by the kernel's rule from flow label and queue pair numbers: no driver
    /// tells it.
    PredictedUdp(u16),
}

/// Length of one entry of [`Measurement::slices`].
pub const SLICE: Nanoseconds = Nanoseconds::from_millis(100);

impl Measurement {
    /// Payload bytes that this end counted between two moments on its clock. Inside a slice of 100 ms, and inside what follows
    /// the last whole one, bytes are taken to be spread evenly.
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

/// Distribution of per-operation times: every sample counts, none is dropped.
///
/// For ping-pong operations the samples are half round trips, for reads and atomics full round trips.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    pub samples: u64,
    pub min: Nanoseconds,
    pub p50: Nanoseconds,
    /// 90th percentile.
    pub p90: Nanoseconds,
    /// 99th percentile.
    pub p99: Nanoseconds,
    /// 99.9th percentile.
    pub p999: Nanoseconds,
    pub max: Nanoseconds,
    pub mean: NanosecondsF64,
    pub stdev: NanosecondsF64,
    /// Time one reading of the clock takes; contained in every sample, never subtracted.
    pub timer: Nanoseconds,
    /// The distribution for drawing: (upper edge, samples), edges rising, empty buckets left out.
    pub histogram: Vec<(Nanoseconds, u64)>,
}
