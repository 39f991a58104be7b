//! What broke a demand leads from its verdict to its row.

use std::time::{Duration, Instant};

use serde_json::json;

use super::driver;
use crate::kept::write;
use crate::support::Scenario;

#[test]
fn an_offender_leads_to_the_row_of_its_link() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    Scenario { sizes: vec![64, 65536, 1 << 20], repeats: 1, ..Scenario::troubled(16, 2) }.write(dir.path());
    driver.window(1440, 900, false);
    driver.open(&write(dir.path()).unwrap().page);
    driver.ask("document.querySelectorAll('#verdicts details').forEach(d => d.open = true)");
    let all = "[...document.querySelectorAll('#verdicts a[data-link]')]";
    let many = driver.ask(&format!("{all}.length")).as_u64().unwrap();
    assert!(many > 2, "{many}");
    // Without a row it leads to its test, and so it does without scripts.
    let sections = format!("{all}.every(a => document.getElementById(a.hash.slice(1))?.closest('section'))");
    assert_eq!(driver.ask(&sections), json!(true));
    let mut rows = 0;
    for at in 0..many {
        // Not by the pointer: the page still moves to where the link before this one leads.
        driver.ask(&format!("{all}[{at}].click()"));
        let came = format!(
            "(() => {{ const a = {all}[{at}], to = document.getElementById(location.hash.slice(1)), \
             box = to?.getBoundingClientRect(), has = (value) => [...(to.cells ?? [])].some(c => value(c)); \
             const isThere = location.hash === a.hash && box && box.height > 0 && box.bottom > 0 && box.top < innerHeight; \
             return isThere ? [to.tagName, has(c => c.textContent.trim() === a.dataset.link)] : null; }})()"
        );
        // The browser goes there in its own time.
        let deadline = Instant::now() + Duration::from_secs(60);
        let came = loop {
            match driver.ask(&came) {
                serde_json::Value::Null => assert!(Instant::now() < deadline, "link {at} leads nowhere"),
                came => break came,
            }
        };
        if came[0] == "TR" {
            assert_eq!(came[1], json!(true), "{came}");
            rows += 1;
        }
    }
    assert!(rows > 2, "{rows} of {many}");
    assert!(driver.complaints.is_empty() && driver.requests.is_empty(), "{:?}", driver.complaints);
}
