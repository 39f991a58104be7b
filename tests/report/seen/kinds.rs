//! A page of every kind, for what must be true of all of them.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::LazyLock,
    time::SystemTime,
};

use railgauge::night;
use railgauge_model::journal::event::{Event, Line};
use railgauge_report as report;
use railgauge_wire::failure::{Failure, Kind, Stage};

use super::{drawn, many_hosts};
use crate::support::{Scenario, text};

/// Pages that all tests look at, and the lock that keeps them from being rendered again meanwhile.
struct Shared {
    pages: Vec<PathBuf>,
    _lock: File,
}

/// A page of every kind, at paths that say which. The first process of a build renders them for all others: nobody may write to
/// them.
pub fn pages() -> &'static [PathBuf] {
    static SHARED: LazyLock<Shared> = LazyLock::new(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages-of-every-kind");
        let lock = File::create(dir.with_extension("lock")).unwrap();
        let build = build();
        loop {
            lock.lock_shared().unwrap();
            if let Some(pages) = of_build(&dir, &build) {
                return Shared { pages, _lock: lock };
            }
            lock.unlock().unwrap();
            lock.lock().unwrap();
            if of_build(&dir, &build).is_none() {
                if dir.exists() {
                    fs::remove_dir_all(&dir).unwrap();
                }
                fs::create_dir(&dir).unwrap();
                let pages = drawn_in(&dir);
                fs::write(dir.join(LIST), serde_json::to_vec(&(&build, pages)).unwrap()).unwrap();
            }
            lock.unlock().unwrap();
        }
    });
    &SHARED.pages
}

/// File with the build that rendered the pages, and their paths.
const LIST: &str = "pages.json";

/// What tells this program from the same one after a change.
fn build() -> (PathBuf, SystemTime) {
    let program = env::current_exe().unwrap();
    let built = fs::metadata(&program).unwrap().modified().unwrap();
    (program, built)
}

/// The pages in a folder, if this build rendered them.
fn of_build(dir: &Path, build: &(PathBuf, SystemTime)) -> Option<Vec<PathBuf>> {
    let list = fs::read(dir.join(LIST)).ok()?;
    let (of, pages): ((PathBuf, SystemTime), Vec<PathBuf>) = serde_json::from_slice(&list).unwrap();
    (of == *build).then_some(pages)
}

/// Draws a page of every kind into a folder.
pub fn drawn_in(dir: &Path) -> Vec<PathBuf> {
    let troubled = Scenario { sizes: vec![65536, 1 << 20], repeats: 1, ..Scenario::troubled(16, 2) };
    let healthy = Scenario { sizes: vec![65536, 1 << 20], ..Scenario::healthy(4, 1) };
    let mut pages = vec![
        drawn(&dir.join("troubled"), &troubled.jsonl()),
        drawn(&dir.join("healthy"), &healthy.jsonl()),
        drawn(&dir.join("many"), &many_hosts(192, 2, 16, Some(3))),
        drawn(
            &dir.join("turns"),
            &Scenario { in_turn: Some(0.9), sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }.jsonl(),
        ),
        drawn(&dir.join("soak"), &crate::soak::faulty()),
        crate::compare::page(dir),
        crate::trend::page(dir),
    ];
    let signed = dir.join("signoff.html");
    report::signoff::write(&dir.join("troubled"), &signed).unwrap();
    pages.push(signed);
    pages.extend(crate::preflight::page(dir));
    pages.push(live(dir));
    pages.push(index(dir));
    pages
}

/// The report of a run that has not ended, with a host that was lost and cases that failed.
fn live(dir: &Path) -> PathBuf {
    let scenario = Scenario { sizes: vec![65536, 1 << 20], ..Scenario::troubled(16, 2) };
    let mut lines = scenario.lines();
    lines.truncate(lines.len() * 2 / 3);
    let at = lines.last().unwrap().at.clone();
    let gone = Failure::new(Stage::Measure, Kind::Lost, "the agent has not answered for 30 s");
    lines.push(Line { at: at.clone(), event: Event::HostLost { host: "gpu016".to_owned(), failure: gone } });
    let records = dir.join("going-on/records.jsonl");
    fs::create_dir_all(records.parent().unwrap()).unwrap();
    fs::write(&records, text(&lines)).unwrap();
    let page = dir.join("live.html");
    let course = "66 % measured, about 2 min left (write, round 3 of 4, repeat 1); 12 cases failed";
    fs::write(&page, report::live::page(&records, course, at.parse().unwrap()).unwrap()).unwrap();
    page
}

/// The index of runs that became different things.
fn index(dir: &Path) -> PathBuf {
    let runs = dir.join("runs");
    let small = |day| Scenario { sizes: vec![1 << 20], day, ..Scenario::healthy(4, 1) };
    for day in 0..12 {
        drawn(&runs.join(format!("night-{day:02}")), &small(day).jsonl());
    }
    drawn(&runs.join("slow"), &Scenario { slow: Some(2), day: 12, ..small(12) }.jsonl());
    drawn(&runs.join("stopped"), &Scenario { interrupted: true, ..small(13) }.jsonl());
    fs::create_dir(runs.join("foreign")).unwrap();
    fs::write(runs.join("foreign/records.jsonl"), "hello\n").unwrap();
    let now = "2026-11-26T06:00:00Z".parse().unwrap();
    let found = night::index(runs.to_str().unwrap(), None, Some(&runs), now).unwrap();
    let page = runs.join("index.html");
    report::index::write(&found, &page).unwrap();
    page
}
