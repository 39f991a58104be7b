//! What is seen first: the verdict, the faulty component and the next step on a phone, and the first chart on a desk.

use serde_json::json;

use super::{drawn, driver, many_hosts, pages};
use crate::support::Scenario;

/// A phone.
const PHONE: (u32, u32) = (390, 844);

#[test]
fn verdict_part_and_step_are_in_the_first_screen_of_a_phone() {
    let dir = tempfile::tempdir().unwrap();
    let failing = drawn(dir.path(), &crate::support::text(&crate::causes::failing(64, 302)));
    let Some(mut driver) = driver() else { return };
    let (mut banners, mut parts) = (0, 0);
    for page in pages().iter().chain([&failing]) {
        driver.window(PHONE.0, PHONE.1, false);
        driver.open(page);
        let place = "(e => { const r = e.getBoundingClientRect(); return [e.textContent.slice(0, 60), r.bottom]; })";
        let found =
            driver.ask(&format!("[...document.querySelectorAll('.verdict .word, .verdict .first dd')].map({place})"));
        let found: Vec<(String, f64)> = serde_json::from_value(found).unwrap();
        for (text, bottom) in &found {
            assert!(*bottom <= f64::from(PHONE.1), "{}: {text} ends at {bottom} px", page.display());
        }
        banners += found.len().min(1);
        // Whatever failed and is known by name is named there. The answer of an A/B comparison is a change and no fault.
        let is_known = "document.querySelector('.verdict.fail') && !document.querySelector('#in-turn') && \
                        !!document.querySelector('.trouble, .causes')";
        if driver.ask(is_known) == json!(true) {
            assert!(found.len() > 1, "{}: {found:?}", page.display());
            parts += 1;
        }
    }
    assert!(banners > 10 && parts > 4, "{banners} {parts}");
}

/// Most pixels above the first chart of a report: a screen and a half of a desk.
const FIRST_CHART: f64 = 1_500.0;

#[test]
fn the_first_chart_of_a_report_is_near_its_top() {
    let dir = tempfile::tempdir().unwrap();
    let more = [
        drawn(&dir.path().join("failing"), &crate::support::text(&crate::causes::failing(64, 302))),
        drawn(&dir.path().join("large"), &many_hosts(1024, 1, 32, Some(5))),
        drawn(&dir.path().join("rails"), &many_hosts(64, 8, 16, Some(2))),
    ];
    let Some(mut driver) = driver() else { return };
    let mut maps = 0;
    for page in pages().iter().chain(&more) {
        driver.window(1440, 900, false);
        driver.open(page);
        let top = driver.ask("document.querySelector('#cluster svg')?.getBoundingClientRect().top ?? null");
        let Some(top) = top.as_f64() else { continue };
        assert!(top <= FIRST_CHART, "{}: {top}", page.display());
        maps += 1;
    }
    assert!(maps > 7, "{maps}");
}

#[test]
fn the_map_of_the_cluster_and_curves_answer_the_pointer() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario { sizes: vec![65536, 1 << 20], repeats: 1, slow: Some(2), ..Scenario::healthy(8, 2) };
    let page = drawn(dir.path(), &scenario.jsonl());
    let Some(mut driver) = driver() else { return };
    driver.window(1440, 900, false);
    driver.open(&page);
    let note = "document.querySelector('.note').textContent";
    driver.point("#cluster svg.matrix .outlined");
    let said = driver.ask(note).as_str().unwrap().to_owned();
    assert!(said.starts_with("gpu003, write-bw") && said.contains("Gb/s"), "{said}");
    driver.click("#cluster svg.matrix .outlined");
    let to = driver.ask("document.querySelector('#cluster .pane a').getAttribute('href')");
    assert_eq!(to, "#test-1");
    driver.point("#test-1 svg.chart .tip");
    let said = driver.ask(note).as_str().unwrap().to_owned();
    assert!(said.contains("median") && said.contains("Gb/s"), "{said}");
    assert!(driver.complaints.is_empty(), "{:?}", driver.complaints);
}
