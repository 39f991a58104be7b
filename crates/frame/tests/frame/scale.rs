//! Half a million rows: what every stage costs. Prints; asserts only that it ends with everything in place.

use std::{path::Path, time::Instant};

use railgauge_analysis::{frames::FrameFile, journal, results::results, rows::rows, verdict::verdicts};
use railgauge_frame as frame;
use railgauge_report::draw;

use crate::support::Scenario;

/// `cargo test -p railgauge-frame --test frame -- --ignored --nocapture scale`
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
    let file = std::fs::File::create(&parquet).unwrap();
    frame::Parquet.write(&mut std::iter::once(rows.clone()), &file, &parquet).unwrap();
    lap("frame and parquet");
    assert_eq!(frame::read_parquet(&dir.path().join("x.parquet"), &["value"]).unwrap().height(), rows.len());
    lap("parquet back");
    verdicts(&journal, &results, &rows, Vec::new());
    lap("verdicts");
    draw(&journal, path).unwrap();
    lap("all of it and the view");
}
