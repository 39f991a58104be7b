//! Drivers that nobody of ours has run: said first, on the page, on the terminal, and in the document.

use std::fs;

use railgauge::report::{text, write};
use serde_json::Value;

use crate::support::Scenario;

/// Terminal, page and document of a run.
fn drawn(scenario: &Scenario) -> (String, String, Value) {
    let dir = tempfile::tempdir().unwrap();
    scenario.write(dir.path());
    let written = write(dir.path()).unwrap();
    let page = fs::read_to_string(&written.page).unwrap();
    let document = serde_json::from_str(&written.verdicts.json().unwrap()).unwrap();
    (text::summary(&written.view, "report.html".as_ref(), false), page, document)
}

const WORDS: &str = railgauge::analysis::proven::NOT_TESTED;

#[test]
fn a_driver_that_we_never_ran_is_named_in_the_first_lines() {
    let (terminal, page, document) = drawn(&Scenario::healthy(2, 1));
    let head: Vec<&str> = terminal.lines().take_while(|line| !line.is_empty()).collect();
    let joined = head.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    assert!(joined.contains("driver mlx5_core (mlx5_0)") && joined.contains(WORDS), "{terminal}");
    let header = &page[..page.find("</header>").unwrap()];
    assert!(header.contains("driver mlx5_core (mlx5_0)") && header.contains(WORDS), "{header}");
    let [never] = document["drivers_never_run"].as_array().unwrap().as_slice() else { panic!("{document}") };
    assert_eq!(never["driver"], "mlx5_core");
    let devices = never["devices"].as_object().unwrap();
    assert_eq!(devices.len(), 2, "{never}");
    assert!(devices.values().all(|names| *names == serde_json::json!(["mlx5_0"])), "{never}");
}

#[test]
fn soft_roce_was_run_by_us() {
    let (terminal, page, document) = drawn(&Scenario { software: true, ..Scenario::healthy(2, 1) });
    assert!(!terminal.contains(WORDS) && !page.contains(WORDS), "{terminal}");
    assert!(document.get("drivers_never_run").is_none());
}
