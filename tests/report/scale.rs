//! Half a million rows: what every stage costs. Prints; asserts only that it ends with everything in place.

use std::{path::Path, time::Instant};

use railgauge::{
    analysis::{frame, journal, results::results, row::Row, rows::rows, verdict::verdicts},
    report::draw,
};
use railgauge_wire::terms::Metric;

use crate::support::Scenario;

/// `cargo test --test report -- --ignored --nocapture scale`
#[test]
#[ignore = "slow: takes long without optimisation"]
fn half_a_million_rows() {
    let scenario = Scenario { repeats: 1, sizes: vec![65536, 1 << 20, 1 << 24], ..Scenario::troubled(128, 2) };
    let text = scenario.jsonl();
    println!("journal: {} MiB", text.len() >> 20);
    let mut start = Instant::now();
    let mut lap = |what: &str| {
        println!("{what}: {:.2?}", start.elapsed());
        start = Instant::now();
    };
    let path = Path::new("records.jsonl");
    let journal = journal::parse(text.as_bytes(), path).unwrap();
    lap("journal");
    let results = results(&journal).unwrap();
    lap("results");
    let rows = rows(&journal, &results);
    lap("rows");
    println!("{} cases, {} rows", results.len(), rows.len());
    let dir = tempfile::tempdir().unwrap();
    let parquet = dir.path().join("x.parquet");
    frame::write_rows(&rows, &std::fs::File::create(&parquet).unwrap(), &parquet).unwrap();
    lap("frame and parquet");
    assert_eq!(frame::read_parquet(&dir.path().join("x.parquet"), &["value"]).unwrap().height(), rows.len());
    lap("parquet back");
    let valued = |row: &Row| frame::Valued {
        case: row.case,
        size_bytes: row.size_bytes,
        mark: frame::Mark { variant: 0, trusted: true },
        value: row.value,
        ceiling: row.ceiling,
    };
    frame::spreads("all", Metric::Bandwidth, rows.iter().map(valued)).unwrap();
    lap("spreads");
    verdicts(&journal, &results, &rows, Vec::new());
    lap("verdicts");
    draw(&journal, path).unwrap();
    lap("all of it and the view");
}
