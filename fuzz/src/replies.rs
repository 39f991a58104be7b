//! What an agent says it measured, up to the drawn page.

use std::{fs, path::PathBuf, sync::LazyLock};

use railgauge_frame::Parquet;
use railgauge_model::{
    border,
    journal::{
        event::{Event, Line, Sample},
        line,
    },
};
use railgauge_report as report;
use tempfile::TempDir;

// Runs of the report's own tests.
#[path = "../../tests/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "the report's tests use it too"
)]
mod support;

/// A run directory of this process, in memory where there is such a place, and the lines of an honest run.
struct Scene {
    _place: TempDir,
    run: PathBuf,
    lines: Vec<Line>,
}

static SCENE: LazyLock<Scene> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let place = place.unwrap_or_else(|error| panic!("no temporary directory: {error}"));
    let run = place.path().join("run");
    fs::create_dir(&run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
    let scenario = support::Scenario { sizes: vec![65536], repeats: 1, ..support::Scenario::healthy(3, 1) };
    Scene { _place: place, run, lines: scenario.lines() }
});

/// One sample, in place of that of every case of an honest journal.
pub(crate) fn run(data: &[u8]) {
    let Ok(sample) = border::read::<Sample>(data) else { return };
    let Some(Event::Started { run_id, .. }) = SCENE.lines.first().map(|line| &line.event) else { return };
    let line = |(n, honest): (u64, &Line)| {
        let mut event = honest.event.clone();
        if let Event::Outcome(outcome) = &mut event {
            outcome.result = Ok(sample.clone());
        }
        line::encode(run_id, n, &honest.at, &event).unwrap_or_default()
    };
    let journal: Vec<u8> = (1..).zip(&SCENE.lines).flat_map(line).collect();
    if fs::write(SCENE.run.join("records.jsonl"), journal).is_ok() {
        let _ = report::write(&SCENE.run, &Parquet);
    }
}
