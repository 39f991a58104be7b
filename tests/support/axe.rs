//! axe-core on the page that is open in a driven browser.

use std::{fs, path::Path};

use crate::{driver::Driver, skip::left_out};

/// Where axe-core is, as `./setup --tests` puts it there; `RAILGAUGE_AXE` names another file.
pub fn axe() -> Option<String> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/axe-core/package/axe.min.js");
    let path = std::env::var_os("RAILGAUGE_AXE").map_or(usual, Into::into);
    match fs::read_to_string(&path) {
        Ok(script) => Some(script),
        Err(error) => {
            left_out(&format!("axe-core looked at no page: {}: {error}", path.display()));
            None
        }
    }
}

/// Breaches of WCAG 2.2 A and AA that axe-core finds in the page that is open, each with its first element.
pub fn breaches(driver: &mut Driver, axe: &str) -> Vec<String> {
    driver.ask(&format!("{axe}; 0"));
    let run = "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }).then(r => \
               r.violations.map(v => v.id + ': ' + v.nodes.length + ' x ' + v.nodes[0].html.slice(0, 200) + ' ' + \
               v.nodes[0].failureSummary))";
    serde_json::from_value(driver.ask(run)).unwrap()
}
