//! Drivers that nobody of ours has run: said first, on the page, on the terminal, and in the document.

use std::{fs, sync::LazyLock};

use railgauge_model::journal::event::{Event, Line};
use railgauge_report::text;
use railgauge_report::text::Screen;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    terms::Carrier,
};
use serde_json::Value;

use crate::kept::write;
use crate::support::{self, Scenario};

/// Terminal, page and document of a run.
fn drawn(scenario: &Scenario) -> (String, String, Value) {
    let (terminal, page, document, _) = drawn_of(&scenario.lines());
    (terminal, page, document)
}

/// Terminal, page, document and JUnit of records.
pub fn drawn_of(lines: &[Line]) -> (String, String, Value, String) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("records.jsonl"), support::text(lines)).unwrap();
    let written = write(dir.path()).unwrap();
    let page = fs::read_to_string(&written.page).unwrap();
    let document = serde_json::from_str(&written.verdicts.json().unwrap()).unwrap();
    let junit = fs::read_to_string(dir.path().join("junit.xml")).unwrap();
    (
        text::summary(&written.view, "report.html".as_ref(), &Screen { verbose: true, ..Screen::PLAIN }),
        page,
        document,
        junit,
    )
}

/// Up to its command, which the page sets as code.
static WORDS: LazyLock<&str> =
    LazyLock::new(|| railgauge_analysis::proven::NOT_TESTED.split_once('`').map_or("", |(first, _)| first));

#[test]
fn a_driver_that_we_never_ran_is_named_on_the_first_screen() {
    let (terminal, page, document) = drawn(&Scenario::healthy(2, 1));
    let joined = terminal.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("driver mlx5_core (mlx5_0)") && joined.contains(*WORDS), "{terminal}");
    let header = &page[..page.find("</header>").unwrap()];
    assert!(header.contains("driver mlx5_core (mlx5_0)") && header.contains(*WORDS), "{header}");
    let [never] = document["drivers_never_run"].as_array().unwrap().as_slice() else { panic!("{document}") };
    assert_eq!(never["driver"], "mlx5_core");
    let devices = never["devices"].as_object().unwrap();
    assert_eq!(devices.len(), 2, "{never}");
    assert!(devices.values().all(|names| *names == serde_json::json!(["mlx5_0"])), "{never}");
}

#[test]
fn soft_roce_was_run_by_us() {
    let (terminal, page, document) = drawn(&Scenario { software: true, ..Scenario::healthy(2, 1) });
    assert!(!terminal.contains(*WORDS) && !page.contains(*WORDS), "{terminal}");
    assert!(document.get("drivers_never_run").is_none());
}

/// The same run with every outcome changed.
fn changed(mut lines: Vec<Line>, change: impl Fn(&mut railgauge_model::journal::event::Outcome)) -> Vec<Line> {
    for line in &mut lines {
        if let Event::Outcome(outcome) = &mut line.event {
            change(outcome);
        }
    }
    lines
}

#[test]
fn a_driver_is_named_all_the_more_where_every_case_failed() {
    let failure = || Failure::new(Stage::Open, Kind::Fabric, "no queue pair".to_owned());
    let with_link = changed(Scenario::healthy(2, 1).lines(), |outcome| outcome.result = Err(failure()));
    let without = changed(with_link.clone(), |outcome| outcome.link = None);
    for lines in [with_link, without] {
        let (terminal, page, document, _) = drawn_of(&lines);
        assert!(terminal.contains("driver mlx5_core (mlx5_0)") && page.contains(*WORDS), "{terminal}");
        assert_eq!(document["drivers_never_run"][0]["devices"].as_object().unwrap().len(), 2, "{document}");
    }
}

#[test]
fn the_devices_of_a_plugin_of_nccl_are_not_claimed() {
    let over = |carrier| {
        changed(Scenario::healthy(2, 1).lines(), |outcome| {
            let link = outcome.link.as_mut().unwrap();
            link.transport = carrier;
            link.settings = [("nics", "mlx5_0:1"), ("nics_remote", "mlx5_7:1")]
                .map(|(name, list)| (name.to_owned(), list.to_owned()))
                .into();
        })
    };
    assert!(drawn_of(&over(Carrier::NcclPlugin)).2.get("drivers_never_run").is_none());
}

#[test]
fn what_was_not_checked_is_said_everywhere() {
    // A driver without a counter that is known to count RDMA, and a run that says how much it moved.
    let lines = changed(Scenario::healthy(2, 1).lines(), |outcome| {
        if let Ok(sample) = &mut outcome.result {
            let streams = sample.initiator.latency.is_none();
            sample.initiator.moved = streams.then_some(sample.initiator.bytes);
        }
    });
    let (terminal, page, document, junit) = drawn_of(&lines);
    let end = "gpu001 mlx5_0";
    let verdicts = document["verdicts"].as_array().unwrap();
    let counters: Vec<&Value> =
        document["untested"].as_array().unwrap().iter().filter(|one| one["kind"] == "counters").collect();
    assert!(counters.iter().any(|one| one["names"][0] == end && one["count"] == 2), "{document}");
    assert!(terminal.contains("bytes on the wire") && junit.contains("bytes on the wire"), "{terminal}");
    assert!(page.contains(end));
    // It changes no answer.
    assert!(verdicts.iter().filter(|verdict| verdict["kind"] == "every-case").all(|one| one["status"] == "pass"));
}
