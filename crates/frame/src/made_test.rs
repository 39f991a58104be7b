//! A row for tests.

use railgauge_analysis::row::{CaseColumns, CellColumns, Phase, Row};
use railgauge_wire::{Better, Bytes, Metric};

pub(crate) fn made(case: u64) -> Row {
    let of = CellColumns {
        run_id: "night-1".into(),
        plan: "nightly".into(),
        test: "write-bw".into(),
        op: "write".into(),
        size_bytes: Bytes(65536 << case),
        ranks: 2,
        qps: 1,
        transport: "verbs-rc".into(),
        link_layer: "infiniband".into(),
        src_memory: "host".into(),
        dst_memory: "host".into(),
        gpu_path: "none".into(),
        src_device: "mlx5_0".into(),
        src_gpu: None,
        dst_device: "mlx5_0".into(),
        dst_gpu: None,
        env: "".into(),
        phase: Phase::Test,
        tool: "railgauge 0.1.0".into(),
    };
    let of = CaseColumns {
        of: of.into(),
        case,
        round: 0,
        started_at: None.into(),
        src_host: format!("gpu{:02}", case + 1).into(),
        dst_host: "gpu09".into(),
        rail: 0,
        verified_bytes: 0,
        wrong: 0,
    };
    Row {
        of: of.into(),
        metric: Metric::Bandwidth,
        value: Some(390.0),
        value_min: Some(390.0).into(),
        value_max: Some(392.0).into(),
        better: Better::Higher,
        n: 3,
        ceiling: Some(400.0),
        error: None,
    }
}
