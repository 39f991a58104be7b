//! What a matrix tells under the pointer, and where it leads.

use railgauge_model::journal::event::Event;
use railgauge_wire::failure::{Failure, Kind, Stage};

use super::{column, drawn, driver};
use crate::kept::write;
use crate::{driver::Driver, support::Scenario};

/// Where the cell of two hosts is in the window, in the first matrix of a section, which has one for each pair.
fn place(driver: &mut Driver, section: &str, (one, other): (usize, usize)) -> (f64, f64) {
    let (row, column) = (one.min(other), one.max(other) - 1);
    let place = driver.ask(&format!(
        "(() => {{ const s = document.querySelector('{section} svg.matrix[data-half]'); s.scrollIntoView({{ block: 'center' }}); \
         const [l, t, c] = s.dataset.grid.split(' ').map(Number), r = s.getBoundingClientRect(), k = r.width / \
         s.viewBox.baseVal.width; return [r.x + k * (l + c * ({column} + 0.5)), r.y + k * (t + c * ({row} + 0.5))]; }})()"
    ));
    (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
}

/// What is told of a cell.
fn told(driver: &mut Driver, section: &str, cell: (usize, usize)) -> String {
    let (x, y) = place(driver, section, cell);
    driver.click_at(x, y);
    driver.ask("document.querySelector('.note').textContent").as_str().unwrap().to_owned()
}

#[test]
fn a_cell_tells_its_own_distance_and_not_where_its_class_begins() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::troubled(16, 1) }.write(dir.path());
    driver.window(1440, 900, false);
    driver.open(&write(dir.path()).unwrap().page);
    let table = "#test-1 .matrices ~ .wide table";
    let (links, differences) = (column(&mut driver, table, 0), column(&mut driver, table, 4));
    assert!(links.len() > 3, "{links:?}");
    let at = |end: &str| end.strip_prefix("gpu").unwrap().split(':').next().unwrap().parse::<usize>().unwrap() - 1;
    for (link, difference) in links.iter().zip(&differences) {
        let (from, to) = link.split_once(" → ").unwrap();
        let said = told(&mut driver, "#test-1", (at(from), at(to)));
        let lower = format!(" Gb/s, {} lower than the centre, outlier", difference.trim_start_matches('−'));
        assert!(said.starts_with(&format!("{link}: ")) && said.contains(&lower), "{said} is not {difference}");
    }
    assert_eq!(told(&mut driver, "#test-1", (15, 0)), "gpu001:0 → gpu016:0: not measured");
    assert!(driver.complaints.is_empty(), "{:?}", driver.complaints);
}

#[test]
fn a_cell_leads_to_the_failures_of_its_own_test_and_says_which() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario { sizes: vec![65536, 1 << 20], repeats: 1, ..Scenario::healthy(6, 1) };
    let mut lines = scenario.lines();
    let mut cases = Vec::new();
    for line in &mut lines {
        match &mut line.event {
            Event::Planned { cases: planned } => cases = planned.clone(),
            Event::Outcome(outcome) => {
                let case = cases.iter().find(|case| case.id == outcome.case).unwrap();
                let ends = (&*case.flow.from.host, &*case.flow.to.host);
                if &*case.test == "write-lat" && ends == ("gpu001", "gpu003") {
                    // One cause at the smallest size, another at the rest.
                    let cause = if case.cell.size.0 == 2 { "no RoCE v2 GID" } else { "no answer of the peer" };
                    outcome.result = Err(Failure::new(Stage::Join, Kind::Configuration, cause).at("gpu001"));
                }
            }
            _ => {}
        }
    }
    driver.window(1440, 900, false);
    driver.open(&drawn(dir.path(), &crate::support::text(&lines)));
    let links = |driver: &mut Driver, section: &str| -> Vec<String> {
        let links = format!("[...document.querySelectorAll('{section} .pane a')].map(a => a.textContent)");
        serde_json::from_value(driver.ask(&links)).unwrap()
    };
    told(&mut driver, "#test-1", (0, 2));
    assert_eq!(links(&mut driver, "#test-1"), [""; 0], "write-bw has no failure");
    told(&mut driver, "#test-2", (0, 2));
    let named = links(&mut driver, "#test-2");
    assert!(named.iter().any(|one| one.starts_with("failed at 2 B: ") && one.contains("GID")), "{named:?}");
    assert!(named.iter().any(|one| one.starts_with("failed at 64 B") && one.contains("no answer")), "{named:?}");
    driver.click("#test-2 .pane a");
    let target = driver.ask("document.getElementById(location.hash.slice(1)).textContent");
    let target = target.as_str().unwrap();
    assert!(target.contains("write-lat") && target.contains("gpu001:0 → gpu003:0"), "{target}");
}

/// Names of rows and columns lie inside the drawing, also the bold ones of a bad host.
#[test]
fn no_name_of_a_matrix_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let slow = Scenario { slow: Some(7), sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(24, 1) };
    let page = drawn(dir.path(), &slow.jsonl());
    let Some(mut driver) = driver() else { return };
    driver.window(1440, 900, false);
    driver.open(&page);
    let cut = driver.ask(
        "[...document.querySelectorAll('svg.matrix')].flatMap(s => { const r = s.getBoundingClientRect(); return \
         [...s.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect(); return b.left < r.left || b.top < \
         r.top; }).map(t => t.textContent); })",
    );
    assert_eq!(cut, serde_json::json!([]));
    assert!(driver.ask("document.querySelectorAll('svg.matrix text.f-bad').length").as_u64().unwrap() > 0);
}
