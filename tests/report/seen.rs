//! Pages in a real browser: sorted, filtered and tabbed through, on a desk and on a phone, light and dark, with scripts and
//! without. No request leaves a page.

use std::{collections::HashMap, fs, path::Path};

use railgauge_model::{journal::event::Event, plan::model::Pattern};
use serde_json::json;

use crate::kept::write;
use crate::{
    axe::{axe, breaches},
    browser,
    driver::Driver,
    skip::skipped,
    support::Scenario,
};

mod cells;
mod everywhere;
mod first;
mod kinds;
mod leads;
mod pictures;
mod printed;
mod sorted;
mod typed;

use kinds::pages;

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

/// A run of many hosts in leaves of so many, six random rounds, one size. One leaf has a slow uplink.
pub fn many_hosts(hosts: usize, rails: u32, leaf: usize, slow_leaf: Option<usize>) -> String {
    let scenario = Scenario {
        sizes: vec![1 << 20],
        repeats: 1,
        pattern: Some(Pattern::Random(6)),
        ..Scenario::healthy(hosts, rails)
    };
    let name = |at: usize| format!("gpu{:03}", at + 1);
    let leaf_of: HashMap<String, usize> = (0..hosts).map(|at| (name(at), at / leaf)).collect();
    let mut lines = scenario.lines();
    let mut cases = HashMap::new();
    for line in &mut lines {
        match &mut line.event {
            Event::Started { resolved, .. } => {
                resolved.tests.truncate(1);
                resolved.tests[0].expect.clear();
                let members = |at: usize| (at * leaf..((at + 1) * leaf).min(hosts)).map(name).collect();
                resolved.groups =
                    (0..hosts.div_ceil(leaf)).map(|at| (format!("leaf{:02}", at + 1), members(at))).collect();
            }
            Event::Planned { cases: planned } => {
                planned.retain(|case| &*case.test == "write-bw");
                cases = planned.iter().map(|case| (case.id, case.clone())).collect();
            }
            _ => {}
        }
    }
    lines.retain_mut(|line| {
        let Event::Outcome(outcome) = &mut line.event else { return true };
        let Some(case) = cases.get(&outcome.case) else { return false };
        let ends = [leaf_of[&*case.flow.from.host], leaf_of[&*case.flow.to.host]];
        if let (Some(slow), Ok(sample)) = (slow_leaf, &mut outcome.result)
            && ends[0] != ends[1]
            && ends.contains(&slow)
        {
            sample.initiator.elapsed = sample.initiator.elapsed * 2;
            sample.initiator.slices.iter_mut().for_each(|slice| *slice = *slice / 2);
        }
        true
    });
    crate::support::text(&lines)
}

/// Where the first cell of a look is in the window.
fn first_cell(driver: &mut Driver, path: &str) -> (f64, f64) {
    let place = driver.ask(&format!(
        "(() => {{ const s = document.querySelector('#test-1 svg.matrix'), p = s.querySelector('{path}'); \
         s.scrollIntoView({{ block: 'center' }}); const [, x, y] = /^M(\\d+) (\\d+)/.exec(p.getAttribute('d')); const r = \
         s.getBoundingClientRect(), k = r.width / s.viewBox.baseVal.width; return [r.x + k * x + 5, r.y + k * y + 5]; }})()"
    ));
    (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
}

fn drawn(dir: &Path, journal: &str) -> std::path::PathBuf {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("records.jsonl"), journal).unwrap();
    write(dir).unwrap().page
}

#[test]
fn a_cell_tells_its_link_and_value_and_leads_to_its_row() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::troubled(16, 2) }.write(dir.path());
    let page = write(dir.path()).unwrap().page;
    driver.window(1440, 900, false);
    driver.open(&page);
    // The slow host's rows are listed; a cell of it is outlined.
    driver.point("#test-1 svg.matrix .outlined");
    let note = driver.ask("document.querySelector('.note').textContent");
    let note = note.as_str().unwrap().to_owned();
    assert!(note.contains(" → ") && note.contains("Gb/s"), "{note}");
    let value = note.split(": ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(value.parse::<f64>().is_ok(), "{note}");
    driver.click("#test-1 svg.matrix .outlined");
    let pane = driver.ask("document.querySelector('#test-1 .pane').textContent");
    assert!(pane.as_str().unwrap().contains(note.split(": ").next().unwrap()), "{pane}");
    // A link that is missing leads to its failure, by keys as well.
    let (x, y) = first_cell(&mut driver, "path.m-missing");
    driver.click_at(x, y);
    let pane = "document.querySelector('#test-1 .pane').textContent";
    let missing = driver.ask(pane);
    let link = missing.as_str().unwrap().split(": ").next().unwrap().to_owned();
    assert!(link.contains("gpu016:0") && missing.as_str().unwrap().contains("not run at "), "{missing}");
    driver.ask("document.querySelector('#test-1 svg.matrix').focus()");
    driver.press("ArrowLeft");
    driver.press("Enter");
    assert_ne!(driver.ask(pane), missing);
    driver.press("ArrowRight");
    driver.press("Enter");
    assert_eq!(driver.ask(pane), missing);
    driver.click("#test-1 .pane a");
    let target = driver.ask("[location.hash, document.getElementById(location.hash.slice(1)).textContent]");
    assert!(target[1].as_str().unwrap().contains(&link), "{target}");
    let open = "document.getElementById(location.hash.slice(1)).closest('details').open";
    assert_eq!(driver.ask(open), true);
    assert!(driver.complaints.is_empty(), "{:?}", driver.complaints);
}

#[test]
fn many_hosts_are_blocks_then_hosts() {
    let Some(mut driver) = driver() else { return };
    let dir = tempfile::tempdir().unwrap();
    let page = drawn(dir.path(), &many_hosts(192, 2, 16, Some(3)));
    driver.window(1440, 900, false);
    driver.open(&page);
    let names = driver.ask(
        "[...document.querySelectorAll('#test-1 svg.matrix')[0].querySelectorAll('text')].map(t => t.textContent)",
    );
    assert!(names.as_array().unwrap().contains(&json!("leaf04")), "{names}");
    let figures = driver.ask("document.querySelectorAll('#test-1 svg.matrix').length");
    assert_eq!(figures, 2);
    // Each fills a screen: one is open, and what is said of the other tells whether to open it.
    let rails = "[...document.querySelectorAll('#test-1 .matrices > details')]";
    let open = driver.ask(&format!("{rails}.map(d => d.open)"));
    assert!(open == json!([true, false]) || open == json!([false, true]), "{open}");
    let said = driver.ask(&format!("{rails}.map(d => d.querySelector('summary').textContent)"));
    assert!(said.as_array().unwrap().iter().all(|said| said.as_str().unwrap().contains("outliers")), "{said}");
    driver.ask(&format!("{rails}.forEach(d => d.open = true)"));
    // A block with links: the first cell that is drawn.
    let (x, y) = first_cell(&mut driver, "path.m-usual");
    driver.click_at(x, y);
    let inner = "#test-1 .pane svg.matrix";
    let hosts = driver.ask(&format!("[...document.querySelectorAll('{inner} text')].map(t => t.textContent)"));
    assert_eq!(hosts.as_array().unwrap().len(), 32, "{hosts}");
    driver.ask(&format!("document.querySelector('{inner} rect[class]:not(.m-none):not(.cursor)').id = 'one'"));
    driver.click("#one");
    let pane = driver.ask("document.querySelector('#test-1 .pane').textContent");
    assert!(pane.as_str().unwrap().contains("Gb/s"), "{pane}");
    assert!(driver.complaints.is_empty() && driver.requests.is_empty(), "{:?}", driver.complaints);
}

#[test]
fn axe_finds_no_breach() {
    let Some(axe) = axe() else { return };
    let all = pages();
    let Some(mut driver) = driver() else { return };
    let mut breached = Vec::new();
    for page in all {
        for (width, dark) in [(1440, false), (390, true)] {
            driver.window(width, 900, dark);
            driver.open(page);
            driver.ask("document.querySelectorAll('details').forEach(d => d.open = true)");
            let found = breaches(&mut driver, &axe);
            breached.extend(found.into_iter().map(|one| format!("{} at {width}, dark {dark}: {one}", page.display())));
        }
    }
    assert!(breached.is_empty(), "{breached:#?}");
}
