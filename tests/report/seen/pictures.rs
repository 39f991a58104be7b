//! Pages and pictures for the eye.

use std::{env, fs, path::PathBuf, time::Instant};

use super::{drawn, driver, kinds, many_hosts};
use crate::support::Scenario;

/// `RAILGAUGE_SAMPLES=DIR cargo test --test report -- --ignored --nocapture pictures`: all of them; `RAILGAUGE_SAMPLE=PART` those whose
/// name has it.
#[test]
#[ignore = "draws pages for the eye"]
fn by_hand_pictures() {
    let Some(mut driver) = driver() else { return };
    let dir = PathBuf::from(env::var("RAILGAUGE_SAMPLES").expect("a directory in RAILGAUGE_SAMPLES"));
    let only = env::var("RAILGAUGE_SAMPLE").unwrap_or_default();
    let healthy = || Scenario::healthy(4, 2).jsonl();
    let failing = || crate::support::text(&crate::causes::failing(64, 302));
    let many = || many_hosts(1024, 8, 32, Some(5));
    let large: [(&str, &dyn Fn() -> String); 3] =
        [("healthy-4", &healthy), ("failing-64", &failing), ("leaf-1024", &many)];
    let large = large.into_iter().filter(|(name, _)| name.contains(&only));
    let kinds = kinds::drawn_in(&dir).into_iter().filter(|page| page.to_string_lossy().contains(&only));
    // The large ones take long, and come one by one behind the others.
    for page in kinds.chain(large.map(|(name, journal)| drawn(&dir.join(name), &journal()))) {
        let name = page.strip_prefix(&dir).unwrap().with_extension("").to_string_lossy().replace('/', "-");
        println!("{name}: {} bytes", fs::metadata(&page).unwrap().len());
        for (width, dark) in [(1440, false), (1440, true), (390, false), (390, true)] {
            driver.window(width, 900, dark);
            let start = Instant::now();
            driver.open(&page);
            println!("  {width} {}: loaded in {:.2?}", if dark { "dark" } else { "light" }, start.elapsed());
            let picture = dir.join(format!("{name}-{width}-{}.png", if dark { "dark" } else { "light" }));
            driver.picture(&picture, true);
        }
        driver.print(&dir.join(format!("{name}.pdf")));
    }
}
