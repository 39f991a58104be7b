//! What must be true of pages of every kind: on a phone, by keys, without scripts, and without a network.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{driver, pages};
use crate::driver::Driver;

/// What reaches out of the screen and does not scroll by itself.
const WIDE: &str = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 391 && \
                    !e.closest('.wide, .matrices, svg, .unseen')).slice(0, 5).map(e => \
                    e.outerHTML.slice(0, 120))";
/// Sentences in a column of a few letters.
const NARROW: &str = "[...document.querySelectorAll('td')].filter(e => e.textContent.trim().length > 40 && e.clientWidth > 0 && e.clientWidth < \
                      60).slice(0, 5).map(e => e.clientWidth + ': ' + e.textContent)";
/// Words of charts that are off the screen or too small to read.
const CHARTS: &str = "[...document.querySelectorAll('svg.chart text, svg.timeline text')].filter(t => { const s = t.ownerSVGElement, b = \
                      s.getBoundingClientRect(); return b.width > 0 && (b.right > 391 || b.width * \
                      parseFloat(getComputedStyle(t).fontSize) / s.viewBox.baseVal.width < 10); }).slice(0, 5).map(t => \
                      t.textContent)";
/// All words of a page but those of its controls.
const WORDS: &str = "(() => { document.querySelectorAll('details').forEach(d => d.open = true); const c = \
                     document.querySelector('main').cloneNode(true); c.querySelectorAll('.filter, .js, .unseen, svg \
                     title').forEach(e => e.remove()); return c.textContent.replace(/\\s+/g, ' '); })()";
/// Most stops that are walked of one page.
const STOPS: usize = 60;

/// Walks by Tab: every stop is seen and shows that it has the focus.
fn walk(driver: &mut Driver, page: &str) -> usize {
    let mut stops = BTreeSet::new();
    for _ in 0..STOPS {
        driver.press("Tab");
        let state = driver.ask(
            "(() => { const e = document.activeElement, r = e.getBoundingClientRect(), s = getComputedStyle(e); \
             e.dataset.stop = e.dataset.stop || Math.random(); return [e.dataset.stop, e.tagName, r.width * r.height, \
             s.outlineStyle, r.bottom > 0 && r.top < innerHeight, e.outerHTML.slice(0, 100)]; })()",
        );
        if state[1] == "BODY" || !stops.insert(state[0].to_string()) {
            break;
        }
        assert!(state[2].as_f64().unwrap() > 0.0 && state[3] != "none" && state[4] == true, "{page}: {state}");
    }
    stops.len()
}

#[test]
fn a_page_of_any_kind_is_read_on_a_phone_by_keys_and_without_scripts() {
    let all = pages();
    let Some(mut driver) = driver() else { return };
    for page in all {
        let name = page.display().to_string();
        driver.scripts(true);
        driver.window(390, 844, true);
        driver.open(page);
        assert!(walk(&mut driver, &name) > 1, "{name}");
        let words: Value = driver.ask(WORDS);
        let (width, wide) = (driver.ask("document.documentElement.scrollWidth"), driver.ask(WIDE));
        assert!(width.as_u64().unwrap() <= 390, "{name}: {width}: {wide}");
        assert_eq!((driver.ask(NARROW), driver.ask(CHARTS)), (json!([]), json!([])), "{name}");
        driver.scripts(false);
        driver.open(page);
        assert_eq!(driver.ask("document.querySelectorAll('th button, .filter').length"), json!(0), "{name}");
        let without = driver.ask(WORDS);
        assert!(words == without, "{name}: what is read differs without scripts");
        assert!(driver.requests.is_empty() && driver.complaints.is_empty(), "{name}: {:?}", driver.complaints);
    }
}
