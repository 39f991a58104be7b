//! Pages on paper: all there is, nothing cut, and nothing to press.

use super::{driver, pages};

/// Width between the margins of A4 (210 mm less twice 14 mm) in CSS pixels of 1/96 inch.
const PAPER: u32 = 688;
/// A browser makes a page smaller on paper until its widest line fits, down to half (Chromium, `kPrintingMaximumShrinkFactor`).
const SHRINKS: f64 = 2.0;

#[test]
fn paper_has_all_rows_and_no_controls() {
    let all = pages();
    let Some(mut driver) = driver() else { return };
    for page in all {
        driver.window(1440, 900, true);
        driver.open(page);
        // A reader filters before printing: paper cannot be asked for the rest.
        driver.ask(
            "document.querySelectorAll('.filter input').forEach(i => { i.value = 'no such row'; i.dispatchEvent(new \
             Event('input')); })",
        );
        driver.paper(PAPER, 900);
        let name = page.display();
        let seen = "(e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; })";
        let unseen = format!(
            "[...document.querySelectorAll('main tbody tr, main details > *')].filter(e => !{seen}(e) && \
             !e.closest('.js, .filter') && e.textContent.trim()).map(e => e.outerHTML.slice(0, 120))"
        );
        assert_eq!(driver.ask(&unseen), serde_json::json!([]), "{name}: folded or filtered away");
        let controls = format!(
            "[...document.querySelectorAll('input, output, select, .filter, .js, nav, .skip')].filter(e => {seen}(e) && \
             getComputedStyle(e).clipPath === 'none').map(e => e.outerHTML.slice(0, 120))"
        );
        assert_eq!(driver.ask(&controls), serde_json::json!([]), "{name}: controls");
        let cut = "[...document.querySelectorAll('main *')].filter(e => e.scrollWidth > e.clientWidth + 1 && \
                   getComputedStyle(e).overflowX !== 'visible' && !e.closest('svg, .unseen, .js')).map(e => e.outerHTML.slice(0, \
                   120))";
        assert_eq!(driver.ask(cut), serde_json::json!([]), "{name}: cut");
        let width = driver.ask("document.documentElement.scrollWidth").as_f64().unwrap();
        assert!(width <= f64::from(PAPER) * SHRINKS, "{name}: {width} px on {PAPER} px of paper");
        // Black on white, also for a reader in the dark.
        assert_eq!(driver.ask("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)", "{name}");
    }
}
