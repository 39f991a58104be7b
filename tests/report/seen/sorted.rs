//! Columns sort by what their cells are worth, on every page.

use railgauge_model::journal::event::Event;
use railgauge_wire::unit::NanosecondsI64;

use super::{column, drawn, driver, pages};
use crate::support::Scenario;

#[test]
fn the_worst_clock_is_found_by_its_column() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(4, 1) };
    let mut lines = scenario.lines();
    let mut clocks = [-900_000, -4_000_000, 12_300_000, -1_100_000].into_iter();
    for line in &mut lines {
        if let Event::HostUp { wall, .. } = &mut line.event {
            *wall = clocks.next().map(NanosecondsI64);
        }
    }
    driver.window(1440, 900, false);
    driver.open(&drawn(dir.path(), &crate::support::text(&lines)));
    driver.ask("document.querySelectorAll('details').forEach(d => d.open = true)");
    driver.click("#where details th:nth-child(4) button");
    let hosts: Vec<String> = column(&mut driver, "#where details table", 3);
    let first = |text: &String| text.split(' ').next().unwrap().to_owned();
    assert_eq!(hosts.iter().map(first).collect::<Vec<_>>(), ["+12.3", "−0.9", "−1.1", "−4.0"]);
}

#[test]
fn every_number_of_every_page_has_a_worth() {
    let all = pages();
    let Some(mut driver) = driver() else { return };
    let mut numbers = 0;
    for page in all {
        driver.open(page);
        driver.ask("document.querySelectorAll('th.n button').forEach(b => b.click())");
        let cells = "[...document.querySelectorAll('table')].filter(t => t.querySelector('th button')).flatMap(t => \
                     [...t.tBodies[0].rows].flatMap(r => [...r.cells])).filter(c => c.classList.contains('n') && \
                     /[0-9]/.test(c.textContent))";
        numbers += driver.ask(&format!("{cells}.length")).as_u64().unwrap();
        let without = format!("{cells}.filter(c => isNaN(Number(c.dataset.value ?? NaN))).map(c => c.textContent)");
        assert_eq!(driver.ask(&without), serde_json::json!([]), "{}", page.display());
    }
    assert!(numbers > 300, "{numbers}");
}

/// Levels of a text column are decimals: 54.10 Gb/s is less than 54.9 Gb/s.
#[test]
fn a_column_of_texts_with_units_sorts_by_value() {
    let dir = tempfile::tempdir().unwrap();
    let page = crate::trend::page(dir.path());
    let Some(mut driver) = driver() else { return };
    driver.window(1440, 900, false);
    driver.open(&page);
    driver.ask("document.querySelectorAll('details').forEach(d => d.open = true)");
    let table = "article.trouble table";
    let head = format!("[...document.querySelectorAll('{table}')][0].tHead.rows[0].cells");
    let at = driver.ask(&format!("[...{head}].findIndex(h => h.textContent.trim() === 'now')")).as_i64().unwrap();
    assert!(at >= 0);
    driver.ask(&format!("{head}[{at}].querySelector('button').click()"));
    let shown = column(&mut driver, table, usize::try_from(at).unwrap());
    let worth: Vec<Option<f64>> = serde_json::from_value(driver.ask(&format!(
        "[...document.querySelector('{table}').tBodies[0].rows].map(r => Number(r.cells[{at}].dataset.value ?? NaN))"
    )))
    .unwrap();
    // What has no value stands last.
    let (values, rest) = worth.split_at(worth.iter().flatten().count());
    assert!(values.len() > 3 && values.is_sorted_by(|a, b| a >= b) && rest.iter().all(Option::is_none), "{shown:?}");
}
