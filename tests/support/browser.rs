//! A real browser without a screen, for pages as people see them.

use std::{
    path::Path,
    process::{Command, Stdio},
};

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/// What a browser made of a page.
#[allow(dead_code, reason = "tests that only drive a browser do not need it")]
pub struct Seen {
    /// The document after all scripts ran.
    pub dom: String,
    /// What scripts and the browser complained about.
    pub console: Vec<String>,
}

/// The browser of this machine, or why there is none.
pub fn browser() -> Result<&'static str, String> {
    let works = |name: &&str| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    NAMES.into_iter().find(works).ok_or_else(|| format!("no browser is installed ({})", NAMES.join(", ")))
}

/// Opens a file, with no network to be had, and saves a picture of it.
#[allow(dead_code, reason = "tests that only drive a browser do not need it")]
pub fn look(browser: &str, page: &Path, width: u32, picture: &Path) -> Seen {
    let profile = tempfile::tempdir().unwrap();
    let start = |more: &[&str]| {
        let output = Command::new("timeout")
            .args(["120", browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--enable-logging=stderr", "--v=0", "--host-resolver-rules=MAP * ~NOTFOUND"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},2400"))
            .args(more)
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{browser}: {}", String::from_utf8_lossy(&output.stderr));
        output
    };
    let drawn = start(&["--dump-dom", "--virtual-time-budget=5000"]);
    start(&[&format!("--screenshot={}", picture.display())]);
    let complaints = String::from_utf8_lossy(&drawn.stderr);
    let console = complaints.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    Seen { dom: String::from_utf8_lossy(&drawn.stdout).into_owned(), console }
}
