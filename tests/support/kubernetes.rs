//! Pods of Kubernetes that are folders of this machine: behind a double of kubectl, or behind a double of the API server that a
//! real kubectl talks to.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

pub use crate::skip::{left_out, skipped};

/// Through which kubectl the pods are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// The double in tests/kubernetes/bin.
    Double,
    /// The one on the PATH, with tests/kubernetes/api_server.py behind it.
    Real,
}

/// The fronts that this machine has. kubectl speaks WebSockets from 1.31 on, and the double of the API server nothing else.
pub fn fronts() -> Vec<Front> {
    let version = Command::new("kubectl").args(["version", "--client", "--output=json"]).output();
    let version: Option<Value> = version.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
    let minor = version.and_then(|told| {
        let minor: String = told["clientVersion"]["minor"].as_str()?.chars().take_while(char::is_ascii_digit).collect();
        minor.parse::<u32>().ok()
    });
    if minor.is_some_and(|minor| minor >= 31) {
        return vec![Front::Double, Front::Real];
    }
    left_out("containers: no kubectl 1.31 or newer here: its double alone is tried");
    vec![Front::Double]
}

/// A cluster of such pods.
pub struct Cluster {
    pub front: Front,
    folder: tempfile::TempDir,
    server: Option<Child>,
}

impl Cluster {
    /// Pods by name and node, all of them with the label `app=rg`.
    pub fn start(front: Front, pods: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // What runs "in" a pod finds a home that nobody else may write to.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut cluster = Self { front, folder, server: None };
        cluster.pods(pods);
        if front == Front::Real {
            cluster.serve();
        }
        cluster
    }

    fn serve(&mut self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubernetes");
        let mut server = Command::new("python3")
            .arg(root.join("api_server.py"))
            .env("PODS", self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        self.server = Some(server);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{}", port.trim())}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        });
        fs::write(self.kubeconfig(), config.to_string()).unwrap();
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn write(&self, name: &str, value: &Value) {
        // Whoever looks at it sees it whole.
        let new = self.folder.path().join(format!("{name}.new"));
        fs::write(&new, value.to_string()).unwrap();
        fs::rename(new, self.folder.path().join(name)).unwrap();
    }

    /// Sets the pods anew, all of them running.
    pub fn pods(&self, pods: &[(&str, &str)]) {
        self.statuses(
            &pods.iter().map(|(name, node)| (*name, *node, json!({ "phase": "Running" }))).collect::<Vec<_>>(),
        );
    }

    /// Sets the pods anew, with their status.
    pub fn statuses(&self, pods: &[(&str, &str, Value)]) {
        let pod = |(name, node, status): &(&str, &str, Value)| {
            json!({
                "metadata": {"name": name, "namespace": "default", "labels": {"app": "rg"}},
                "spec": {"nodeName": node, "containers": [{"name": "agent"}]},
                "status": status,
            })
        };
        self.write("pods.json", &Value::Array(pods.iter().map(pod).collect()));
    }

    /// Makes the API server go away, and with it the streams that it passes on.
    pub fn goes_down(&mut self) {
        match self.server.take() {
            Some(mut server) => {
                server.kill().unwrap();
                server.wait().unwrap();
            }
            None => self.write("pods.json", &json!({ "down": true })),
        }
    }

    /// Sets what goes wrong, by pod: tests/kubernetes/pods.py says what there is.
    pub fn ways(&self, ways: &Value) {
        self.write("ways.json", ways);
    }

    /// A command that finds this cluster and no other.
    pub fn on(&self, mut command: Command) -> Command {
        command.env("PODS", self.folder.path());
        match self.front {
            Front::Real => command.env("KUBECONFIG", self.kubeconfig()),
            Front::Double => {
                let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubernetes/bin");
                let path = std::env::var_os("PATH").unwrap_or_default();
                let all = [own].into_iter().chain(std::env::split_paths(&path));
                command.env("PATH", std::env::join_paths(all).unwrap())
            }
        };
        command
    }

    /// Copies the agent to a place from which it may not run: it has to be sent to every pod.
    pub fn agent_to_send(&self) -> PathBuf {
        let place = self.folder.path().join("agent");
        fs::create_dir(&place).unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_railgauge")).with_file_name("../agent/railgauge-agent");
        let copy = place.join("railgauge-agent");
        fs::copy(built, &copy).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        copy
    }

    /// Demands that every process in a pod ends.
    #[track_caller]
    pub fn is_left_empty(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.processes().is_empty() {
            assert!(Instant::now() < end, "processes are left in pods: {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What agents left in the home of a pod.
    pub fn left_in(&self, pod: &str) -> Vec<String> {
        let cache = self.folder.path().join("home").join(pod).join(".cache/railgauge");
        fs::read_dir(cache)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// Processes that run in pods of this cluster.
    pub fn processes(&self) -> Vec<u32> {
        let home = format!("HOME={}", self.folder.path().join("home").display());
        let is_ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(home.len()).any(|window| window == home.as_bytes())
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            drop(server.stdin.take());
            let _ = server.wait();
        }
    }
}
