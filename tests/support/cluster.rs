//! What tests of `cluster` share: the fake agent, launches, hosts, and a log that can be looked at.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

mod example;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, Instant},
};

use railgauge::cluster::{Agent, AgentBinary, LogSink, bring_up};
use railgauge_model::plan::model::{Host, Launch, Launcher};
use railgauge_wire::failure::Failure;

/// The fake agent's file.
pub fn fake_agent() -> PathBuf {
    static FILE: LazyLock<PathBuf> = LazyLock::new(|| example::folder_with("fake_agent").join("fake_agent"));
    FILE.clone()
}

/// The fake agent as a binary to deploy.
pub fn fake() -> AgentBinary {
    AgentBinary::open(&fake_agent()).unwrap()
}

/// A launch with short times and no further tries.
pub fn launch(via: Launcher) -> Launch {
    Launch {
        via,
        in_flight: 8,
        retries: 0,
        timeout: Duration::from_secs(20),
        keep_agent: false,
        agent_dir: None,
        env: BTreeMap::new(),
        send_env: Vec::new(),
    }
}

/// A launch whose agents go wrong in one way.
pub fn failing(via: Launcher, fake: &str) -> Launch {
    let mut launch = launch(via);
    launch.env.insert("FAKE".to_owned(), fake.to_owned());
    launch
}

/// A host.
pub fn host(name: &str, address: &str) -> Host {
    Host { name: name.to_owned(), address: address.to_owned(), user: None, port: None, devices: vec![], tcp: vec![] }
}

/// A log that can be looked at.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Where agents write.
    pub fn sink(&self) -> LogSink {
        let lines = Arc::clone(&self.0);
        LogSink::new(move |host, line| lines.lock().unwrap().push(format!("{host}: {line}")))
    }

    /// Everything written, as one text.
    pub fn text(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}

/// Brings one host up.
pub async fn one(launch: Launch, host: Host, log: &Log) -> Result<Agent, Failure> {
    let mut results = bring_up(launch, vec![host.clone()], "run-1".to_owned(), fake(), log.sink());
    let (name, result) = results.recv().await.expect("one result for one host");
    assert_eq!(name, host.name);
    assert!(results.recv().await.is_none(), "only one result for one host");
    result
}

/// Whether a process is there and not a zombie.
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// Whether a process ends within a minute: a signal has its effect only when the kernel runs the process again.
pub async fn ends(pid: u32) -> bool {
    comes(Duration::from_secs(60), || !is_alive(pid)).await
}

/// Waits until something is so, at most `limit`; tells whether it came.
pub async fn comes(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !so() {
        if Instant::now() > end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}
