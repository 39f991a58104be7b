//! Tables of thousands of rows under keys: the first rows are shown, any can be found, and paper has all.

use std::fs;

use serde_json::json;

use super::{column, drawn, driver};
use crate::support::Scenario;

const ROWS: usize = 5_000;
const TABLE: &str = "#many table";

/// A page with a table of so many rows, of which the first is the least.
fn page(dir: &std::path::Path) -> std::path::PathBuf {
    let drawn = drawn(dir, &Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(4, 1) }.jsonl());
    let row = |at: usize| format!("<tr id=\"at-{at}\"><td>host{at}</td><td class=\"n\">{at}</td></tr>");
    let rows: String = (0..ROWS).map(row).collect();
    let table = format!(
        "<section id=\"many\"><h2>Many</h2><div class=\"wide\"><table><thead><tr><th scope=\"col\">name</th><th scope=\"col\" \
         class=\"n\">number</th></tr></thead><tbody>{rows}</tbody></table></div></section><footer"
    );
    let text = fs::read_to_string(&drawn).unwrap().replacen("<footer", &table, 1);
    fs::write(&drawn, text).unwrap();
    drawn
}

#[test]
fn the_first_rows_are_shown_and_any_can_be_found() {
    let dir = tempfile::tempdir().unwrap();
    let page = page(dir.path());
    let Some(mut driver) = driver() else { return };
    driver.window(1440, 900, false);
    driver.open(&page);
    let told = "document.querySelector('#many output').textContent";
    let few = column(&mut driver, TABLE, 0).len();
    assert!(few < 500, "{few} rows are laid out");
    assert_eq!(driver.ask(told), format!("the first {few} of {ROWS} rows"));
    // Sorted, the largest are shown, in their order; filtered, all that are left.
    driver.click("#many th:nth-child(2) button");
    assert_eq!(column(&mut driver, TABLE, 1)[..2], ["4999", "4998"]);
    driver.click("#many input");
    driver.type_text("host123");
    let found = column(&mut driver, TABLE, 0);
    assert_eq!((found.len(), found[0].as_str(), found[10].as_str()), (11, "host1239", "host123"));
    assert_eq!(driver.ask(told), format!("11 of {ROWS} rows"));
    driver
        .ask("{ const i = document.querySelector('#many input'); i.value = ''; i.dispatchEvent(new Event('input')); }");
    assert_eq!(column(&mut driver, TABLE, 0).len(), few);
    // A link leads to a row that is not shown.
    driver.ask("location.hash = 'at-2500'; new Promise(done => setTimeout(done, 100))");
    assert_eq!(driver.ask("document.getElementById('at-2500').getBoundingClientRect().height > 0"), true);
    // Paper has all, in the order that was chosen.
    driver.ask("dispatchEvent(new Event('beforeprint'))");
    driver.paper(688, 900);
    let printed = "(() => { const rows = [...document.querySelectorAll('#many tbody tr')]; return [rows.filter(r => \
                   r.getBoundingClientRect().height > 0).length, rows[0].id, rows.at(-1).id]; })()";
    assert_eq!(driver.ask(printed), json!([ROWS, "at-4999", "at-0"]));
    driver.window(1440, 900, false);
    driver.click("#many .filter button");
    assert_eq!(column(&mut driver, TABLE, 1).len(), ROWS);
}
