use railgauge_wire::{Bytes, Checked, Failure, GigabitsPerSecond, GpuSeen, Nanoseconds, unit};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A part of the soak: its traffic between two moments. Parts of one process follow each other without a gap; the first has no length and
/// marks the start of the soak.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Soaked {
    /// Nanoseconds since 1970 by the controller's clock.
    pub from: Nanoseconds,
    pub until: Nanoseconds,
    pub flows: Vec<SoakedFlow>,
    /// State of the GPUs whose memory was used, over the measured windows; without readings over time. Empty where none was used, and in
    /// older journals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<SoakedGpu>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SoakedGpu {
    pub host: String,
    pub windows: u64,
    /// Windows in which it was not read.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub unread: u64,
    /// Windows in which its Xids could not be read.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub without_xids: u64,
    /// All windows joined ([`GpuSeen::joined`]).
    #[serde(flatten)]
    pub seen: GpuSeen,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SoakedFlow {
    /// Number of the planned case with its ends, size and queue pairs.
    pub case: u64,
    /// Device of the initiator, as last opened; `None` where it was never opened in this part.
    pub from_device: Option<String>,
    pub to_device: Option<String>,
    pub windows: u64,
    pub measured: Nanoseconds,
    pub bytes: Bytes,
    pub slowest: Option<GigabitsPerSecond>,
    pub median: Option<GigabitsPerSecond>,
    pub fastest: Option<GigabitsPerSecond>,
    /// Bytes verified, and how many were wrong.
    pub checked: Checked,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub failed: u64,
    /// Those that failed because wrong bytes arrived.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub corrupted: u64,
    /// The first failure of the part; wrong bytes take precedence, then an ill GPU.
    pub failure: Option<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stall {
    /// Nanoseconds since 1970 by the controller's clock.
    pub from: Nanoseconds,
    pub until: Nanoseconds,
    /// Uncertainty of the start, and of the end unless `until_error` gives one.
    pub error: Nanoseconds,
    /// Uncertainty of the end; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_error: Option<Nanoseconds>,
    /// Additional uncertainty of its place as a whole: its length is known better than its place.
    #[serde(default, skip_serializing_if = "unit::is_zero")]
    pub loose: Nanoseconds,
    /// Whether a window failed in it or could not begin; otherwise the flow recovered by itself.
    pub failed: bool,
}
