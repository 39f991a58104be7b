use railgauge_model::plan::per_end::PerEnd;
use railgauge_wire::{Bytes, Datatype, Memory, Metric, Op, Reduction, Service, TestMetric, Transport};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind {
    pub op: Option<Op>,
    pub metric: TestMetric,
    pub transport: Transport,
    pub service: Service,
    pub memory: PerEnd<Memory>,
    pub qps: u32,
    pub bidirectional: bool,
    pub elements: Option<Elements>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Elements {
    pub datatype: Datatype,
    pub reduction: Option<Reduction>,
    pub in_place: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub line: u64,
    pub kind: Kind,
    pub size: Bytes,
    pub metric: Metric,
    pub written: String,
    pub scale: (f64, f64),
    pub error: Option<String>,
    pub wrong: u64,
}

impl Said {
    pub(super) fn new(
        line: u64,
        kind: Kind,
        size: Bytes,
        metric: Metric,
        written: impl ToString,
        scale: (f64, f64),
    ) -> Self {
        let written = written.to_string();
        Self { line, kind, size, metric, written, scale, error: None, wrong: 0 }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    pub tool: &'static str,
    pub version: Option<String>,
    /// In seconds since 1970.
    pub seconds: Option<i64>,
    pub ends: [Option<String>; 2],
    pub ranks: Vec<String>,
    pub device: String,
    /// What carried the bytes, as the frame has it; empty where unknown.
    pub carrier: String,
    /// Empty where the file does not say.
    pub link_layer: String,
    pub notes: Vec<String>,
    pub said: Vec<Said>,
}

impl Output {
    pub(super) fn of(tool: &'static str) -> Self {
        Self { tool, ..Self::default() }
    }

    pub fn name(&self) -> String {
        self.version.as_ref().map_or_else(|| self.tool.to_owned(), |version| format!("{} {version}", self.tool))
    }
}

/// Gigabits per second of one MiB/s: 2^20 × 8 bits over 10^9 (perftest's `0x100000`).
pub(super) const MIB_TO_GIGABITS: (f64, f64) = (8_388_608.0, 1e9);
pub(crate) const SAME: (f64, f64) = (1.0, 1.0);
