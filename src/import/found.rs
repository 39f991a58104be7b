//! What a file says.

use railgauge_wire::{
    terms::{Datatype, Memory, Metric, Op, Reduction, Service, TestMetric, Transport},
    unit::Bytes,
};

/// What is measured, as far as the file says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Operation; `None` where the file does not name it.
    pub op: Option<Op>,
    pub metric: TestMetric,
    /// What a test of ours would be carried by; `None` where the file does not say.
    pub transport: Option<Transport>,
    pub service: Service,
    pub memory: Memory,
    pub qps: u32,
    /// Whether both directions ran at once.
    pub bidirectional: bool,
    /// Elements of a collective; `None` for pairs.
    pub elements: Option<Elements>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Elements {
    pub datatype: Datatype,
    pub reduction: Option<Reduction>,
    /// Whether the result takes the place of the input.
    pub in_place: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// Its line, from 1.
    pub line: u64,
    pub kind: Kind,
    /// Message size; `None` where the file does not say it.
    pub size: Option<Bytes>,
    /// Whether the size is that of one rank's part, which the frame counts for all ranks together.
    pub size_per_rank: bool,
    pub metric: Metric,
    pub written: String,
    /// What it is multiplied with for the metric's unit, then divided by: both are exact.
    pub scale: (f64, f64),
    pub error: Option<String>,
    pub wrong: u64,
}

impl Said {
    pub(super) fn new(
        line: u64,
        kind: Kind,
        size: Option<Bytes>,
        metric: Metric,
        written: impl ToString,
        scale: (f64, f64),
    ) -> Self {
        let written = written.to_string();
        Self { line, kind, size, size_per_rank: false, metric, written, scale, error: None, wrong: 0 }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    pub tool: &'static str,
    pub version: Option<String>,
    /// When it ran, in seconds since 1970, where the file says it.
    pub seconds: Option<i64>,
    /// Ends of a pair, where the file names them: who sends, who receives.
    pub ends: [Option<String>; 2],
    /// Hosts of the ranks, by rank, where the file names them.
    pub ranks: Vec<String>,
    pub device: String,
    /// What carried the bytes, as the frame has it; empty where the file does not say.
    pub carrier: String,
    /// The layer below; empty where the file does not say.
    pub link_layer: String,
    /// What was not read, and what is not known.
    pub notes: Vec<String>,
    /// The numbers, in the order of the lines.
    pub said: Vec<Said>,
}

impl Output {
    /// The output of a tool that says nothing yet.
    pub(super) fn of(tool: &'static str) -> Self {
        Self { tool, ..Self::default() }
    }

    pub fn name(&self) -> String {
        self.version.as_ref().map_or_else(|| self.tool.to_owned(), |version| format!("{} {version}", self.tool))
    }
}

/// Gigabits per second of one MiB/s: 2^20 × 8 bits over 10^9 (perftest's `0x100000`, iperf3's units of bytes).
pub(super) const MIB_TO_GIGABITS: (f64, f64) = (8_388_608.0, 1e9);
/// Gigabits per second of one MB/s: 8 bits over 10^3.
pub(super) const MB_TO_GIGABITS: (f64, f64) = (8.0, 1e3);
/// The number is in the unit of the metric already.
pub(super) const SAME: (f64, f64) = (1.0, 1.0);
