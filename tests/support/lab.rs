//! What tests on the lab share: one running lab for all of them, its faults, and the difference between a product that
//! failed and a lab that failed.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    cell::{Cell, RefCell},
    fs::{self, File},
    os::unix::process::parent_id,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Mutex,
};

use serde_json::{Value, json};

pub use crate::skip::{left_out, skipped};

/// Exit code of the lab tool where this machine cannot run a lab.
const UNAVAILABLE: i32 = 77;
/// Its exit code where the lab itself failed.
const FAILURE: i32 = 70;
/// The lab of the tests, which is not the one a developer may have up.
pub const BLOCK: &str = "79";

/// Which hosts a lab has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub hosts: u32,
    pub nics: u32,
    /// Number of the Arm host; the others are x86.
    pub arm: Option<u32>,
    /// Series of the guests' kernels, such as 6.1, if not the usual one.
    pub kernel: Option<&'static str>,
}

/// The lab of almost all tests.
const USUAL: Shape = Shape { hosts: 4, nics: 2, arm: None, kernel: None };

/// Kernel series of the lab that this process uses: the tool builds another image for each.
static KERNEL: Mutex<Option<&'static str>> = Mutex::new(None);

/// A lab that belongs to one test until it is dropped.
pub struct Borrowed {
    shape: Shape,
    /// Hosts that a test reconfigures, and how that is undone.
    changed: RefCell<Vec<(u32, String)>>,
    // Tests run in processes of their own or in threads of one; either way one of them has the lab.
    _alone: File,
}

thread_local! {
    /// Whether the test of this thread failed in a lab that failed itself.
    static LAB_FAILED: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Borrowed {
    /// Checks the lab after a test that failed, before another test gets it and repairs it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let status = self.run(&["status", "--clocks"]);
            if !status.status.success() {
                eprintln!("this failure is the lab's, not railgauge's: {}", text(&status.stderr));
            }
            // Whoever reads of a lost connection asks what the other end saw.
            let whole = if status.status.success() { self.shape.hosts } else { 0 };
            for host in 1..=whole {
                let said = self.ssh(host, "tail -n 8 /run/lab/sshd.log; dmesg | tail -n 5");
                eprintln!("--- lab{host}: end of sshd's log, and of the kernel's\n{}", text(&said.stdout));
            }
            if status.status.code() == Some(FAILURE) {
                LAB_FAILED.set(true);
                boot_troubled();
            }
        }
        for (host, undo) in self.changed.take() {
            // A host that is not what it was is booted for the next test.
            if std::thread::panicking() || !self.ssh(host, &undo).status.success() {
                let _ = self.run(&["kill", &host.to_string()]);
            }
        }
    }
}

/// The lab of four hosts with two NICs each, whole; `None`, reported and noted, where no lab can run.
pub fn borrow() -> Option<Borrowed> {
    borrow_shaped(USUAL)
}

/// A lab of this shape, whole. A lab that is up and has another shape is replaced.
pub fn borrow_shaped(shape: Shape) -> Option<Borrowed> {
    let alone = File::create(std::env::temp_dir().join("railgauge-lab-tests.lock")).unwrap();
    alone.lock().unwrap();
    *KERNEL.lock().unwrap() = shape.kernel;
    let arm = shape.arm.map(|_| "--arm");
    let check = tool(&["check"]).args(arm).output().unwrap();
    if check.status.code() == Some(UNAVAILABLE) {
        skipped(&text(&check.stderr));
        return None;
    }
    let lab = Borrowed { shape, changed: RefCell::default(), _alone: alone };
    // An earlier run that was killed may have left half a lab.
    if !(lab.is_up() && lab.mend()) {
        lab.boot();
    }
    Some(lab)
}

/// How often a test is started while the lab itself fails under it.
const TRIES: u32 = 3;

/// Runs a test, and runs it again if a host of the lab died by itself meanwhile or has a clock that runs wrong: such a
/// failure says nothing about railgauge. Any other failure, and a lab that fails every time, fails the test.
pub fn sound(test: impl Fn()) {
    for tried in 1..=TRIES {
        LAB_FAILED.set(false);
        let Err(cause) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&test)) else { return };
        if tried == TRIES || !LAB_FAILED.get() {
            std::panic::resume_unwind(cause);
        }
        eprintln!("the test starts again");
    }
}

/// Boots every host again that reports trouble of its own; dead hosts are booted by [`Borrowed::mend`].
fn boot_troubled() {
    let Ok(status) = tool(&["status", "--json", "--clocks"]).output() else { return };
    let hosts: Vec<Value> = serde_json::from_slice(&status.stdout).unwrap_or_default();
    for host in hosts.iter().filter(|host| host["state"] == "running" && host["trouble"] != json!([])) {
        let number = host["host"].as_str().unwrap().trim_start_matches("lab");
        for word in ["kill", "start"] {
            // A test panics already: what fails here fails the next one, whose lab must be whole.
            let _ = tool(&[word, number]).output();
        }
    }
}

impl Borrowed {
    /// Whether a lab of this shape is up, dead hosts or not.
    fn is_up(&self) -> bool {
        let Ok(found) = fs::read(directory().join("shape")) else { return false };
        let found: Value = serde_json::from_slice(&found).unwrap_or_default();
        let Shape { hosts, nics, arm, kernel } = self.shape;
        let wanted =
            json!({ "hosts": hosts, "nics": nics, "arm": Vec::from_iter(arm), "kernel": kernel.unwrap_or_default() });
        wanted.as_object().unwrap().iter().all(|(key, value)| found[key] == *value)
    }

    /// Boots the lab. It ends with the process that runs the tests, however that ends.
    fn boot(&self) {
        expect(&["down"]);
        let Shape { hosts, nics, arm, .. } = self.shape;
        let (hosts, nics, runner) = (hosts.to_string(), nics.to_string(), parent_id().to_string());
        let arm = arm.map(|host| host.to_string());
        let mut up = vec!["up", &hosts, "--nics", &nics, "--while", &runner];
        up.extend(arm.iter().flat_map(|host| ["--arm", host]));
        expect(&up);
    }

    /// Brings every host up and every link to its full state; `false`, reported, where that fails.
    #[must_use]
    pub fn mend(&self) -> bool {
        let output = self.run(&["mend"]);
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        output.status.success()
    }

    /// Reconfigures a host until the end of the test; `$I` is its number. Where `undo` fails, as `false` does, the next test
    /// boots the host.
    #[track_caller]
    pub fn change(&self, host: u32, make: &str, undo: &str) {
        self.changed.borrow_mut().push((host, undo.to_owned()));
        let done = self.ssh(host, &format!("set -e; I={host}; {make}"));
        assert!(done.status.success(), "lab{host}: {}{}", text(&done.stdout), text(&done.stderr));
    }

    /// Every host's state, as the tool reports it.
    pub fn status(&self) -> Vec<Value> {
        let output = self.run(&["status", "--json"]);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("LAB FAILURE: no status ({error}): {}", text(&output.stderr)))
    }

    /// One command of the lab tool.
    pub fn run(&self, words: &[&str]) -> Output {
        tool(words).output().unwrap()
    }

    /// One command of the lab tool that must work.
    pub fn expect(&self, words: &[&str]) {
        expect(words);
    }

    /// A shell command on a host, and what it printed.
    pub fn ssh(&self, host: u32, command: &str) -> Output {
        self.run(&["ssh", &host.to_string(), command])
    }

    /// Where plans find their way to the hosts.
    pub fn ssh_config(&self) -> PathBuf {
        self.directory().join("ssh_config")
    }

    /// Folder of the running lab.
    pub fn directory(&self) -> PathBuf {
        directory()
    }
}

/// A command in the background that is ended with the guard.
pub struct Background(std::process::Child);

impl Background {
    /// Starts it without input, and without a reader of its output.
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn directory() -> PathBuf {
    PathBuf::from(format!("/var/tmp/railgauge-lab-{BLOCK}"))
}

/// The lab tool, about the lab of the tests.
pub fn tool(words: &[&str]) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/lab"));
    command.args(words).stdin(Stdio::null());
    command.env("RAILGAUGE_LAB_BLOCK", BLOCK).env("RAILGAUGE_LAB_DIR", directory());
    command.envs(KERNEL.lock().unwrap().map(|series| ("RAILGAUGE_LAB_KERNEL", series)));
    command
}

fn expect(words: &[&str]) {
    let output = tool(words).output().unwrap();
    assert!(output.status.success(), "LAB FAILURE: lab {}: {}", words.join(" "), text(&output.stderr));
}

/// Bytes a program printed, as text without the last line's end.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// Content of a file as text.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
