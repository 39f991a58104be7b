//! What is recorded of a soak's traffic.

use railgauge_wire::{
    failure::Failure,
    gpu_state::GpuSeen,
    step::Checked,
    unit::{self, Bytes, GigabitsPerSecond, Nanoseconds},
};
use serde::{Deserialize, Serialize};

/// A part of the soak: its traffic between two moments. Parts of one process of a run follow each other without a gap; the first one has
/// no length, and tells when the soak began.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Soaked {
    /// Begin, in nanoseconds since 1970 by the controller's clock.
    pub from: Nanoseconds,
    pub until: Nanoseconds,
    pub flows: Vec<SoakedFlow>,
    /// The state of the GPUs whose memory they used, over their measured windows; without readings over time. Empty where they used none,
    /// and in journals of versions before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<SoakedGpu>,
}

/// What was seen of a GPU in the windows of a part whose flows used its memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SoakedGpu {
    pub host: String,
    pub windows: u64,
    /// Those of them in which it was not read.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub unread: u64,
    /// Those in which its Xids could not be seen.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub without_xids: u64,
    /// All of them as one ([`GpuSeen::joined`]).
    #[serde(flatten)]
    pub seen: GpuSeen,
}

/// What came of one flow in a part of the soak. Its traffic is measured in windows that follow each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SoakedFlow {
    /// Number of the planned case that has its ends, size and queue pairs.
    pub case: u64,
    /// Device of the initiator, as last opened; `None` where it never was in this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_device: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_device: Option<String>,
    pub windows: u64,
    pub measured: Nanoseconds,
    pub bytes: Bytes,
    /// Rate of the slowest window; `None` where none was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<GigabitsPerSecond>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<GigabitsPerSecond>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fastest: Option<GigabitsPerSecond>,
    /// Bytes verified, and how many were wrong.
    pub checked: Checked,
    /// Times in which nothing of it arrived, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub failed: u64,
    /// Of these the ones that failed because wrong bytes arrived.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub corrupted: u64,
    /// The first failure of the part; one of wrong bytes before any other, then one of an ill GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// A time in which nothing of a flow arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stall {
    /// Begin, in nanoseconds since 1970 by the controller's clock.
    pub from: Nanoseconds,
    pub until: Nanoseconds,
    /// How far off the begin may be, and the end where nothing else is told of it.
    pub error: Nanoseconds,
    /// How far off the end may be; `None` in records of versions that did not tell them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_error: Option<Nanoseconds>,
    /// How far the whole of it may lie from there beside that: its length is known better than its place.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub loose: Nanoseconds,
    /// Whether a window failed in it, or could not begin; else the flow went on by itself.
    pub failed: bool,
}
