//! Pages in a real browser: sorted, filtered and tabbed through, on a desk and on a phone, light and dark, with scripts and
//! without. No request leaves a page.

use std::{fs, path::Path};

use railgauge::report::write;
use serde_json::json;

use crate::{browser, driver::Driver, skip::skipped, support::Scenario};

/// A browser, or none with the reason told.
fn driver() -> Option<Driver> {
    match browser::browser() {
        Ok(browser) => Some(Driver::start(browser)),
        Err(reason) => {
            skipped(&reason);
            None
        }
    }
}

/// Texts of a column of a table's rows that are shown.
fn column(driver: &mut Driver, table: &str, column: usize) -> Vec<String> {
    let shown = format!(
        "[...document.querySelector({table:?}).tBodies[0].rows].filter(r => !r.hidden).map(r => \
         r.cells[{column}].textContent.trim())"
    );
    serde_json::from_value(driver.ask(&shown)).unwrap()
}

#[test]
fn tables_sort_and_filter_under_pointer_and_keys() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    Scenario { sizes: vec![64, 65536, 1 << 20], repeats: 1, ..Scenario::troubled(16, 2) }.write(dir.path());
    driver.window(1440, 900, false);
    driver.open(&write(dir.path()).unwrap().page);
    let table = "#test-2 > .wide > table";
    let head = format!("{table} th:nth-child(1)");
    let sort = format!("document.querySelector('{head}').getAttribute('aria-sort')");
    let order = column(&mut driver, table, 0);
    assert!(order.len() > 1, "{order:?}");
    let mut reversed = order.clone();
    reversed.reverse();
    // Sizes rise in the page, by what they are and not by their letters.
    assert_eq!(driver.ask(&sort), "none");
    driver.click(&format!("{head} button"));
    assert_eq!((driver.ask(&sort), column(&mut driver, table, 0)), (json!("descending"), reversed));
    // The focus stays, so that keys go on.
    driver.press("Enter");
    assert_eq!((driver.ask(&sort), column(&mut driver, table, 0)), (json!("ascending"), order.clone()));
    driver.press("Enter");
    assert_eq!((driver.ask(&sort), column(&mut driver, table, 0)), (json!("none"), order));

    driver.ask("document.querySelectorAll('details').forEach(d => d.open = true)");
    let hosts = "#where details table";
    assert_eq!(column(&mut driver, hosts, 0).len(), 16);
    let input = "#where .filter input";
    let label = driver.ask(&format!("document.querySelector('{input}').labels[0].textContent"));
    assert!(label.as_str().is_some_and(|label| !label.is_empty()));
    driver.click(input);
    driver.type_text("GPU00 gpu003");
    assert_eq!(column(&mut driver, hosts, 0).len(), 1);
    assert_eq!(driver.ask("document.querySelector('#where .filter output').textContent"), "1 of 16 rows");
    driver.ask(&format!(
        "{{ const i = document.querySelector('{input}'); i.value = ''; i.dispatchEvent(new Event('input')); }}"
    ));
    assert_eq!(column(&mut driver, hosts, 0).len(), 16);
    assert!(
        driver.complaints.is_empty() && driver.requests.is_empty(),
        "{:?} {:?}",
        driver.complaints,
        driver.requests
    );
}

#[test]
fn a_page_is_walked_by_tab_and_every_stop_is_seen() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    Scenario { sizes: vec![65536], repeats: 1, ..Scenario::troubled(5, 1) }.write(dir.path());
    driver.window(1440, 900, false);
    driver.open(&write(dir.path()).unwrap().page);
    driver.press("Tab");
    assert_eq!(driver.ask("document.activeElement.getAttribute('href')"), "#main");
    let can = "document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]').length";
    let all = driver.ask(can).as_u64().unwrap();
    let mut stops = std::collections::BTreeSet::new();
    for _ in 0..=all {
        let state = driver.ask(
            "(() => { const e = document.activeElement, r = e.getBoundingClientRect(), s = getComputedStyle(e); \
             e.dataset.stop = e.dataset.stop || Math.random(); return [e.dataset.stop, e.tagName, r.width * r.height, \
             s.outlineStyle, r.bottom > 0 && r.top < innerHeight]; })()",
        );
        if state[1] == "BODY" {
            break;
        }
        assert!(state[2].as_f64().unwrap() > 0.0 && state[3] != "none" && state[4] == true, "{state}");
        stops.insert(state[0].as_str().unwrap().to_owned());
        driver.press("Tab");
    }
    assert!(stops.len() as u64 > 12 && stops.len() as u64 <= all, "{} of {all}", stops.len());
}

#[test]
fn a_phone_scrolls_no_page_sideways() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (at, scenario) in [
        Scenario { sizes: vec![65536, 1 << 20], repeats: 1, ..Scenario::troubled(16, 2) },
        Scenario { sizes: vec![65536, 1 << 20], repeats: 1, ..Scenario::healthy(4, 1) },
    ]
    .into_iter()
    .enumerate()
    {
        let run = dir.path().join(at.to_string());
        scenario.write(&run);
        driver.window(390, 844, at == 0);
        driver.open(&write(&run).unwrap().page);
        driver.ask("document.querySelectorAll('details').forEach(d => d.open = true)");
        let widest = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 391 && \
                      !e.closest('.wide, .matrices, .forest, svg')).slice(0, 5).map(e => e.outerHTML.slice(0, 120))";
        let (width, wide) = (driver.ask("document.documentElement.scrollWidth"), driver.ask(widest));
        assert!(width.as_u64().unwrap() <= 390, "{width}: {wide}");
    }
}

#[test]
fn without_scripts_the_page_is_whole() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    Scenario { sizes: vec![65536, 1 << 20], repeats: 1, ..Scenario::troubled(16, 2) }.write(dir.path());
    let page = write(dir.path()).unwrap().page;
    driver.window(1440, 900, false);
    let words = "(() => { document.querySelectorAll('details').forEach(d => d.open = true); const c = \
                 document.querySelector('main').cloneNode(true); c.querySelectorAll('.filter, .js').forEach(e => e.remove()); \
                 return c.textContent.replace(/\\s+/g, ' '); })()";
    driver.open(&page);
    let with = driver.ask(words);
    driver.scripts(false);
    driver.open(&page);
    assert_eq!(driver.ask("document.querySelectorAll('th button').length"), 0);
    assert_eq!(driver.ask(words), with);
}

/// What the policy does not name does not run, even where it became markup.
#[test]
fn another_script_does_not_run() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(2, 1) }.write(dir.path());
    let page = fs::read_to_string(write(dir.path()).unwrap().page).unwrap();
    let spoiled = dir.path().join("spoiled.html");
    let foreign = "<script>window.foreign = 1</script><img src=\"http://192.0.2.1/x.png\">";
    fs::write(&spoiled, page.replace("<footer", &format!("{foreign}<footer"))).unwrap();
    driver.open(Path::new(&spoiled));
    assert_eq!(driver.ask("typeof window.foreign"), "undefined");
    assert!(driver.ask("document.querySelectorAll('th button').length").as_u64().unwrap() > 0, "ours runs");
    assert!(!driver.complaints.is_empty());
}
