//! The first screen of a phone: what came of it, which part is bad and what to do first.

use serde_json::json;

use super::{drawn, driver, pages};

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
        // Whatever failed and is known by name is named there.
        if driver.ask("document.querySelector('.verdict.fail') && document.querySelector('.trouble, .causes')")
            != json!(null)
        {
            assert!(found.len() > 1, "{}: {found:?}", page.display());
            parts += 1;
        }
    }
    assert!(banners > 10 && parts > 4, "{banners} {parts}");
}
