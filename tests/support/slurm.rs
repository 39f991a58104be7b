//! A real Slurm on this machine, which `bench/on-slurm` sets up: gone with the test's process.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

pub use crate::skip::skipped;

/// A running Slurm. It ends when its standard input does, so also with a test that is killed.
pub struct Slurm {
    holder: Child,
    /// Daemons that were started again.
    revived: RefCell<Vec<Child>>,
    conf: String,
    place: PathBuf,
    /// By node, with `--cables`: its network namespace, and the other end of its cable.
    cables: BTreeMap<String, [String; 2]>,
}

impl Slurm {
    /// Sets a Slurm up; `None`, with the reason printed, where it cannot be installed.
    pub fn start(options: &[&str]) -> Option<Self> {
        let mut holder = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/on-slurm"))
            .args(options)
            .arg("--hold")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut why = String::new();
            holder.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            // 77: what is needed is not installed, or this is not root. All else is a fault of the test bed.
            assert_eq!(holder.wait().unwrap().code(), Some(77), "{why}");
            skipped(why.trim());
            return None;
        }
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        let text = |key: &str| told[key].as_str().unwrap().to_owned();
        let cables = serde_json::from_value(told["cables"].clone()).unwrap();
        Some(Self { holder, revived: RefCell::default(), conf: text("conf"), place: text("place").into(), cables })
    }

    /// A command that finds this Slurm and no other.
    pub fn on(&self, mut command: Command) -> Command {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SLURM_") {
                command.env_remove(name);
            }
        }
        command.env("SLURM_CONF", &self.conf);
        command
    }

    /// What a program of Slurm says on standard output.
    pub fn says(&self, words: &[&str]) -> String {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        let output = self.on(command).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Waits until a condition holds, and says which one never did.
    #[track_caller]
    pub fn until(&self, what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + limit;
        while !holds() {
            assert!(Instant::now() < end, "never: {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Holds the cable of a node to a rate, each way; `false` where this kernel cannot.
    pub fn limit(&self, node: &str, rate: &str) -> bool {
        let [space, port] = &self.cables[node];
        let inside = ["ip", "netns", "exec", space];
        let shaped = ["root", "tbf", "rate", rate, "burst", "64kb", "latency", "500ms"];
        [(&inside[..], "eth0"), (&[][..], port)].into_iter().all(|(inside, device)| {
            let words = [inside, &["tc", "qdisc", "replace", "dev", device], &shaped].concat();
            Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success())
        })
    }

    /// Nodes that are idle and not drained.
    pub fn idle(&self) -> usize {
        let states = self.says(&["sinfo", "-h", "-N", "-p", "main", "-o", "%T"]);
        states.lines().filter(|state| *state == "idle").count()
    }

    /// Processes of this Slurm whose command line holds a text.
    pub fn processes(&self, part: &str) -> Vec<u32> {
        let output = Command::new("pgrep").args(["-f", part]).output().unwrap();
        let ours = format!("SLURM_CONF={}", self.conf);
        let is_ours = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(ours.len()).any(|window| window == ours.as_bytes())
        };
        let pids = String::from_utf8_lossy(&output.stdout);
        pids.lines().filter_map(|line| line.trim().parse().ok()).filter(is_ours).collect()
    }

    /// Demands that no job, no step, no agent and no srun of a test is left.
    #[track_caller]
    pub fn is_clean(&self, limit: Duration) {
        self.until("no job and no step is left", limit, || {
            self.says(&["squeue", "-h", "-o", "%i %T"]).is_empty()
                && self.says(&["squeue", "-h", "-s", "-o", "%i"]).is_empty()
        });
        self.until("no agent and no srun is left", limit, || {
            self.processes("railgauge-agent").is_empty() && self.processes("^srun ").is_empty()
        });
    }

    /// Starts the slurmd of a node again, and waits until all nodes are idle.
    pub fn revive(&self, node: &str) {
        let mut slurmd = Command::new("/usr/sbin/slurmd");
        slurmd.args(["-D", "-N", node]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.revived.borrow_mut().push(self.on(slurmd).spawn().unwrap());
        self.resumed();
    }

    /// Waits until all nodes are idle, and resumes those that Slurm drained: on a busy machine it does so when a step's end takes too
    /// long, and the next job would wait for ever.
    #[track_caller]
    pub fn resumed(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let states = self.says(&["sinfo", "-h", "-N", "-p", "main", "-o", "%N %T %E"]);
            let nodes: Vec<(&str, &str)> = states.lines().filter_map(|line| line.split_once(' ')).collect();
            let is_idle = |state: &str| state.split(' ').next() == Some("idle");
            if !nodes.is_empty() && nodes.iter().all(|(_, state)| is_idle(state)) {
                return;
            }
            assert!(Instant::now() < end, "nodes never became idle: {nodes:?}");
            for (node, _) in nodes.iter().filter(|(_, state)| !is_idle(state)) {
                self.says(&["scontrol", "update", &format!("nodename={node}"), "state=resume"]);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A file in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    /// Ends it, and waits until it is gone.
    pub fn end(mut self) {
        assert!(self.close().success());
        assert!(!self.place.exists(), "the directory of the test bed is left");
    }

    fn close(&mut self) -> ExitStatus {
        for slurmd in self.revived.get_mut() {
            let _ = Command::new("kill").arg(slurmd.id().to_string()).status();
            let _ = slurmd.wait();
        }
        drop(self.holder.stdin.take());
        self.holder.wait().unwrap()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.close();
    }
}
