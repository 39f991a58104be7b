//! What tests on the lab share: one running lab per test program, its faults, and the difference between a product
//! that failed and a lab that failed.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    cell::Cell,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

pub use crate::skip::skipped;

/// Exit code of the lab tool where this machine cannot run a lab.
const UNAVAILABLE: i32 = 77;
/// Its exit code where the lab itself failed.
const FAILURE: i32 = 70;
/// The lab of the tests: not the one a developer may have up.
pub const BLOCK: &str = "79";

/// A running lab. It ends with this process, however that ends.
pub struct Lab {
    hosts: u32,
    nics: u32,
    // Programs of several test files may run at the same time; one of them has the lab.
    _alone: File,
}

/// A lab that belongs to one test until it is dropped.
pub struct Borrowed {
    lab: MutexGuard<'static, Lab>,
}

impl std::ops::Deref for Borrowed {
    type Target = Lab;
    fn deref(&self) -> &Lab {
        &self.lab
    }
}

thread_local! {
    /// Whether the test of this thread failed in a lab that failed itself.
    static LAB_FAILED: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Borrowed {
    /// Looks at the lab under a test that failed, before another test may have it: that one mends it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let status = self.run(&["status", "--clocks"]);
            if !status.status.success() {
                eprintln!("this failure is the lab's, not railgauge's: {}", text(&status.stderr));
            }
            // Whoever reads of a lost connection asks what the other end saw.
            let whole = if status.status.success() { self.hosts } else { 0 };
            for host in 1..=whole {
                let said = self.ssh(host, "tail -n 8 /run/lab/sshd.log; dmesg | tail -n 5");
                eprintln!("--- lab{host}: end of sshd's log, and of the kernel's\n{}", text(&said.stdout));
            }
            if status.status.code() == Some(FAILURE) {
                LAB_FAILED.set(true);
                boot_troubled();
            }
        }
    }
}

/// The lab of this test program with everything mended, or `None`, said and noted, where no lab can run. The first
/// call decides how many hosts and NICs it has.
pub fn borrow(hosts: u32, nics: u32) -> Option<Borrowed> {
    static LAB: OnceLock<Result<Mutex<Lab>, String>> = OnceLock::new();
    match LAB.get_or_init(|| Lab::up(hosts, nics).map(Mutex::new)) {
        Ok(lab) => {
            // A test that failed leaves the lab as it is; mending is what the next one begins with anyway.
            let lab = Borrowed { lab: lab.lock().unwrap_or_else(PoisonError::into_inner) };
            assert!(lab.hosts >= hosts && lab.nics >= nics, "tests of one program must ask for the same lab");
            lab.mend();
            Some(lab)
        }
        Err(reason) => {
            skipped(reason);
            None
        }
    }
}

/// How often a test is begun while the lab itself fails under it.
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
        eprintln!("the test begins anew");
    }
}

/// Boots every host anew that complains of itself; the dead are seen to by [`Lab::mend`].
fn boot_troubled() {
    let Ok(status) = tool(&["status", "--json", "--clocks"]).output() else { return };
    let hosts: Vec<serde_json::Value> = serde_json::from_slice(&status.stdout).unwrap_or_default();
    for host in hosts.iter().filter(|host| host["state"] == "running" && host["trouble"] != serde_json::json!([])) {
        let number = host["host"].as_str().unwrap().trim_start_matches("lab");
        for word in ["kill", "start"] {
            // A test panics already: what fails here is seen by the next one, whose lab must be whole.
            let _ = tool(&[word, number]).output();
        }
    }
}

impl Lab {
    fn up(hosts: u32, nics: u32) -> Result<Self, String> {
        let arm = ARM.get().map(u32::to_string);
        let mut check = tool(&["check"]);
        check.args(arm.as_ref().map(|_| "--arm"));
        let check = check.output().map_err(|error| format!("the lab tool does not start: {error}"))?;
        if check.status.code() == Some(UNAVAILABLE) {
            return Err(text(&check.stderr));
        }
        let alone = File::create(std::env::temp_dir().join("railgauge-lab-tests.lock")).unwrap();
        alone.lock().unwrap();
        // What an earlier, killed run may have left.
        expect(&["down"]);
        let (hosts_word, nics_word) = (hosts.to_string(), nics.to_string());
        let process = std::process::id().to_string();
        let mut up = vec!["up", &hosts_word, "--nics", &nics_word, "--while", &process];
        up.extend(arm.iter().flat_map(|host| ["--arm", host]));
        expect(&up);
        Ok(Self { hosts, nics, _alone: alone })
    }

    /// Brings every host up and every link to its full state.
    pub fn mend(&self) {
        let output = self.run(&["mend"]);
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "LAB FAILURE: lab mend: {}", text(&output.stderr));
    }

    /// Every host's state, as the tool tells it.
    pub fn status(&self) -> Vec<serde_json::Value> {
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
    /// Starts it with nothing to read and nobody to listen.
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

/// The series of the guests' kernels, where a test program wants another than usual.
static KERNEL: OnceLock<&str> = OnceLock::new();

/// Has the guests of this test program boot a kernel of this series, such as 6.1. To be called before the lab is borrowed.
#[allow(dead_code, reason = "most test programs take the usual kernel")]
pub fn with_kernel(series: &'static str) {
    assert_eq!(*KERNEL.get_or_init(|| series), series, "one test program boots one kernel");
}

/// The host that is an Arm host, where a test program wants one.
static ARM: OnceLock<u32> = OnceLock::new();

/// Makes one host of this test program's lab an Arm host. To be called before the lab is borrowed.
#[allow(dead_code, reason = "most test programs have hosts of one architecture")]
pub fn with_arm(host: u32) {
    assert_eq!(*ARM.get_or_init(|| host), host, "one test program has one lab");
}

/// The lab tool, about the lab of the tests.
pub fn tool(words: &[&str]) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("lab/lab"));
    command.args(words).stdin(Stdio::null());
    command.env("RAILGAUGE_LAB_BLOCK", BLOCK).env("RAILGAUGE_LAB_DIR", directory());
    command.envs(KERNEL.get().map(|series| ("RAILGAUGE_LAB_KERNEL", series)));
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
