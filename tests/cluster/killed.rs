//! A controller ended with SIGKILL: nothing of it stays on the hosts, and little here.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    cluster::{Log, comes, fake, fake_agent, host, is_alive, launch, one},
    sshd::Sshd,
};
use railgauge::cluster::bring_up;
use railgauge_model::plan::model::{Launcher, Ssh};

/// Time within which what is to end ends, on however busy a machine.
const ENDED: Duration = Duration::from_secs(60);
/// How many agents the killed controller had.
const AGENTS: usize = 3;
/// In the environment of the process that is killed: `local`, or the launcher as JSON.
const PART: &str = "RAILGAUGE_TEST_KILLED";

/// Not a test by itself: the process that is killed. Brings agents up, prints their numbers, and waits.
#[tokio::test]
#[ignore = "started by the tests of this file"]
async fn controller() {
    let Ok(part) = std::env::var(PART) else { return };
    let launcher =
        if part == "local" { Launcher::Local } else { Launcher::Ssh(serde_json::from_str::<Ssh>(&part).unwrap()) };
    let hosts = (0..AGENTS).map(|i| host(&format!("h{i}"), "127.0.0.1")).collect();
    let mut results = bring_up(launch(launcher), hosts, "killed".into(), fake(), Log::default().sink());
    let mut agents = Vec::new();
    while let Some((_, result)) = results.recv().await {
        let agent = result.unwrap();
        println!("\nagent {}", agent.pid());
        agents.push(agent);
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
}

/// Starts the controller and reads its agents' numbers.
fn start(part: &str, temporary: &Path) -> (Child, Vec<u32>) {
    fake_agent();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::controller", "--ignored", "--nocapture"])
        .env(PART, part)
        .env("TMPDIR", temporary)
        .env_remove("XDG_RUNTIME_DIR")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let agents: Vec<u32> =
        lines.filter_map(|line| line.strip_prefix("agent ").and_then(|pid| pid.parse().ok())).take(AGENTS).collect();
    assert_eq!(agents.len(), AGENTS, "the controller did not bring its agents up");
    assert!(agents.iter().all(|pid| is_alive(*pid)));
    (child, agents)
}

/// Kills the controller, and waits until no agent is left.
async fn kill(mut child: Child, agents: &[u32]) {
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(comes(ENDED, || !agents.iter().any(|pid| is_alive(*pid))).await, "agents are left");
}

#[tokio::test]
async fn local_agents_end() {
    let temporary = tempfile::tempdir().unwrap();
    let (child, agents) = start("local", temporary.path());
    kill(child, &agents).await;
}

#[tokio::test]
async fn agents_over_ssh_end_and_so_does_ssh() {
    let Some(sshd) = Sshd::start("") else { return };
    let temporary = sshd.path("t");
    fs::create_dir(&temporary).unwrap();
    let (child, agents) = start(&serde_json::to_string(&sshd.ssh()).unwrap(), &temporary);
    assert_eq!(masters(&temporary), AGENTS, "one ssh process per host");
    kill(child, &agents).await;
    // The masters keep their connections for ControlPersist, which nobody can use any more, and go.
    assert!(comes(ENDED, || masters(&temporary) == 0).await, "an ssh process is left");
    assert_eq!(sshd.left(), [""; 0]);
    let agent = one(launch(sshd.launcher()), host("h0", "127.0.0.1"), &Log::default()).await.unwrap();
    agent.close().await;
    assert_eq!(sshd.left(), [""; 0]);
}

/// Ssh processes whose control socket is below a directory.
fn masters(directory: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let wanted = directory.display().to_string();
    lines.filter(|line| line.starts_with(b"ssh") && String::from_utf8_lossy(line).contains(&wanted)).count()
}
