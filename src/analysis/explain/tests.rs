use super::*;
use crate::preflight::Severity;

fn plan() -> Plan {
    let text = "name = \"t\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"gpu[1-4]\"]\n[[test]]\nname = \"writes\"\nop = \
                \"write\"\nmetric = \"bandwidth\"\n";
    crate::plan::parse("t.toml", text, std::path::Path::new(".")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0
}

fn row(from: &str, to: &str, size: u64, value: Option<f64>) -> Row {
    Row {
        run_id: "r".into(),
        plan: "t".into(),
        test: "writes".into(),
        case: 0,
        round: 0,
        started_at: None,
        op: "write".into(),
        metric: Metric::Bandwidth,
        unit: "Gb/s".into(),
        value,
        better: Better::Higher,
        n: 1,
        size_bytes: size,
        ranks: 2,
        qps: 1,
        transport: "verbs-rc".into(),
        link_layer: "roce-v2".into(),
        memory: "host".into(),
        gpu_path: "none".into(),
        src_host: from.into(),
        src_device: "mlx5_0".into(),
        src_gpu: None,
        dst_host: to.into(),
        dst_device: "mlx5_0".into(),
        dst_gpu: None,
        rail: 0,
        ceiling: Some(400.0),
        verified_bytes: 1,
        wrong: 0,
        env: String::new(),
        error: value.is_none().then(|| "gpu3: measure: gone".into()),
        phase: Phase::Test,
    }
}

fn finding(check: &str, devices: &[&str]) -> Finding {
    Finding {
        check: check.into(),
        severity: Severity::Warning,
        waived: false,
        hosts: vec!["gpu3".into()],
        devices: devices.iter().map(|device| (*device).to_owned()).collect(),
        what: String::new(),
        meaning: String::new(),
        remedy: String::new(),
        source: String::new(),
    }
}

/// A tournament of four hosts in which links of gpu3 reach this much of what others do.
fn rows(share: f64) -> Vec<Row> {
    let pairs =
        [("gpu1", "gpu2"), ("gpu1", "gpu3"), ("gpu1", "gpu4"), ("gpu2", "gpu3"), ("gpu2", "gpu4"), ("gpu3", "gpu4")];
    let value = |from: &str, to: &str, size| {
        let full = if size == 1 << 20 { 394.0 } else { 200.0 };
        Some(if [from, to].contains(&"gpu3") { full * share } else { full })
    };
    let sizes = [1 << 16, 1 << 20];
    pairs.iter().flat_map(|(a, b)| sizes.map(|size| row(a, b, size, value(a, b, size)))).collect()
}

#[test]
fn a_slow_host_is_told_beside_the_finding() {
    let told = explained(&finding("mtu", &["mlx5_0"]), &plan(), &rows(0.94));
    assert_eq!(told, ["writes: bandwidth of gpu3 is 92.6 % of the ceiling, elsewhere 98.5 %"]);
    let without = |row: Row| Row { ceiling: None, ..row };
    let told = explained(&finding("mtu", &[]), &plan(), &rows(0.94).into_iter().map(without).collect::<Vec<_>>());
    assert_eq!(told, ["writes: bandwidth of gpu3 is 94.0 % of that of others"]);
}

#[test]
fn nothing_is_told_where_nothing_is_worse_or_nothing_could_be() {
    assert_eq!(explained(&finding("mtu", &["mlx5_0"]), &plan(), &rows(0.99)), [""; 0]);
    assert_eq!(explained(&finding("mtu", &["mlx5_1"]), &plan(), &rows(0.5)), [""; 0], "another device");
    assert_eq!(explained(&finding("clock", &[]), &plan(), &rows(0.5)), [""; 0], "a clock slows nothing");
    assert_eq!(explained(&finding("governor", &[]), &plan(), &rows(0.5)), [""; 0], "no latency was measured");
    let alone: Vec<Row> = rows(0.5).into_iter().filter(|row| row.dst_host == "gpu3").collect();
    assert_eq!(explained(&finding("mtu", &[]), &plan(), &alone), [""; 0], "nobody to compare with");
}

#[test]
fn cases_that_are_missing_are_told() {
    let mut rows = rows(1.0);
    rows[3] = row("gpu1", "gpu3", 1 << 20, None);
    assert_eq!(explained(&finding("locked-memory", &[]), &plan(), &rows), [""; 0], "a warning");
    let failure = Finding { severity: Severity::Failure, ..finding("locked-memory", &[]) };
    let told = explained(&failure, &plan(), &rows);
    assert_eq!(told, ["writes: bandwidth of gpu3 is missing in 1 of 6 cases"]);
}
