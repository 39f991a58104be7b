//! Agents behind a command template.

use std::{process::Command, time::Duration};

use crate::{
    cluster::{Log, ends, failing, fake_agent, host, launch, one},
    sshd::{self, Sshd, listing},
};
use railgauge::cluster::{AgentBinary, bring_up};
use railgauge_model::plan::model::Launcher;
use railgauge_wire::{
    failure::{Kind, Stage},
    message::{Answer, Ask},
};

const SOON: Duration = Duration::from_secs(60);

fn command(words: &[&str]) -> Launcher {
    Launcher::Command(words.iter().map(|word| (*word).to_owned()).collect())
}

#[tokio::test]
async fn a_command_that_shares_our_files_runs_the_agent_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let mut launch = launch(command(&["sh", "-c", "exec \"$@\"", "{host} {name}"]));
    launch.agent_dir = Some(directory.path().join("unused").display().to_string());
    launch.env.insert("NAME".to_owned(), "two 'words' $HOME".to_owned());
    let agent = one(launch, host("gpu1", "nowhere"), &Log::default()).await.unwrap();
    let Ok(Answer::Facts(facts)) = agent.ask(Ask::Facts, SOON).await else { panic!("no facts") };
    assert_eq!(facts.hostname, "two 'words' $HOME");
    assert!(!directory.path().join("unused").exists(), "nothing is written where nothing is needed");
    agent.close().await;
    assert!(ends(agent.pid()).await);
}

#[tokio::test]
async fn a_command_that_does_not_share_our_files_gets_the_agent() {
    let hidden = fake_agent().parent().unwrap().display().to_string();
    // A mount namespace in which the agent's directory is empty.
    let hide = format!("mount -t tmpfs none '{hidden}' && exec \"$@\"");
    let can = Command::new("unshare").args(["-m", "sh", "-c", &hide, "x", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        sshd::skipped("no mount namespace can be made here (root?)");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let agents = directory.path().join("agents");
    let mut launch = launch(command(&["unshare", "-m", "sh", "-c", &hide, "{name}"]));
    launch.agent_dir = Some(agents.display().to_string());
    let agent = one(launch, host("gpu1", "nowhere"), &Log::default()).await.unwrap();
    assert!(agent.ask(Ask::Clock, SOON).await.is_ok());
    let left = listing(&agents);
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().to_owned();
    assert!(left.len() == 2 && left[1].ends_with(&format!("-{parent}")), "{left:?}");
    agent.close().await;
    assert_eq!(listing(&agents), [""; 0]);
}

#[tokio::test]
async fn a_network_namespace_is_a_host() {
    let name = format!("rg-test-{}", std::process::id());
    let ip = |words: &[&str]| Command::new("ip").args(words).output().is_ok_and(|output| output.status.success());
    if !ip(&["netns", "add", &name]) {
        sshd::skipped("no network namespace can be made here (root, iproute2?)");
        return;
    }
    let result = one(launch(command(&["ip", "netns", "exec", "{host}"])), host("gpu1", &name), &Log::default()).await;
    let inside = match &result {
        Ok(agent) => {
            let space = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
            let inside = space(&agent.pid().to_string()) != space("self");
            agent.close().await;
            inside
        }
        Err(_) => false,
    };
    assert!(ip(&["netns", "del", &name]));
    result.unwrap();
    assert!(inside, "the agent is in a network namespace of its own");
}

#[tokio::test]
async fn a_command_that_joins_its_words_is_told() {
    let Some(sshd) = Sshd::start("") else { return };
    let path = |name: &str| sshd.path(name).display().to_string();
    let hosts = format!("UserKnownHostsFile={}", path("known_hosts"));
    let port = sshd.port.to_string();
    let words = ["ssh", "-F", &path("ssh_config"), "-p", &port, "-i", &path("user_key"), "-o", &hosts, "{host}"];
    let failure = one(launch(command(&words)), host("gpu1", "127.0.0.1"), &Log::default()).await.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Deploy, Kind::Configuration));
    assert!(failure.cause.contains("does not pass words on as they are"), "{failure}");
}

#[tokio::test]
async fn a_command_that_is_not_there_or_fails_is_told() {
    let missing = command(&["no-such-program", "{host}"]);
    let failure = one(launch(missing), host("gpu1", "x"), &Log::default()).await.unwrap_err();
    assert_eq!(failure.stage, Stage::Connect);
    assert_eq!(failure.host.as_deref(), Some("gpu1"));
    assert!(failure.cause.contains("cannot start no-such-program"), "{failure}");
    let fails = command(&["sh", "-c", "echo \"no such pod: {host}\" >&2; exit 1"]);
    let failure = one(launch(fails), host("gpu1", "pod-7"), &Log::default()).await.unwrap_err();
    assert!(failure.cause.contains("exit status 1: no such pod: pod-7"), "{failure}");
    // Behind a command there is no sshd, and what helps is the command itself.
    for (silent, remedy) in [("exit 1", "launch-command"), ("exit 127", "launch-command-program")] {
        let failure =
            one(launch(command(&["sh", "-c", silent])), host("gpu1", "x"), &Log::default()).await.unwrap_err();
        assert_eq!(failure.remedy.unwrap().id, remedy);
    }
}

/// A launcher's command on whose hosts the agent's start ends in this way; everything else works.
fn start_ends(with: &str) -> Launcher {
    let start = "for w; do case $w in *\"exec \\\"\\$1\\\"\"*) w=$RG_START;; esac; shift; set -- \"$@\" \"$w\"; done";
    let set = format!("RG_START={}", railgauge_wire::shell::quoted(with));
    command(&["sh", "-c", &format!("{set}; {start}; exec \"$@\""), "{host}"])
}

#[tokio::test]
async fn a_host_whose_libc_is_too_old_is_told() {
    let says = "echo \"agent: /lib64/libc.so.6: version \\`GLIBC_2.34' not found (required by agent)\" >&2; exit 1";
    let failure = one(launch(start_ends(says)), host("gpu1", "x"), &Log::default()).await.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Start, Kind::Configuration));
    let beginning = "the host's C library is too old: this agent needs glibc 2.34; ";
    assert!(failure.cause.starts_with(beginning), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "build-for-oldest-glibc");
}

#[tokio::test]
async fn a_host_without_a_loader_is_told() {
    // The agent itself, with the name of a loader that no system has.
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(fake_agent()).unwrap();
    let name = b"/ld-linux-";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("a loader of glibc");
    bytes[at + 1] = b'x';
    let path = directory.path().join("railgauge-agent");
    std::fs::write(&path, bytes).unwrap();
    let mut launch = launch(command(&["sh", "-c", "exec \"$@\"", "{host}"]));
    launch.agent_dir = Some(directory.path().join("agents").display().to_string());
    let agent = AgentBinary::open(&path).unwrap();
    let mut results = bring_up(launch, vec![host("gpu1", "x")], "run-1".to_owned(), agent, Log::default().sink());
    let failure = results.recv().await.unwrap().1.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Start, Kind::Configuration));
    assert!(failure.cause.starts_with("the host has no loader for the agent"), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "use-glibc-host");
}

#[tokio::test]
async fn a_host_of_an_architecture_without_agent_is_told() {
    // Words that a fake `uname` in front of the others answers.
    let directory = tempfile::tempdir().unwrap();
    let uname = directory.path().join("uname");
    std::fs::write(&uname, "#!/bin/sh\necho riscv64\n").unwrap();
    std::fs::set_permissions(&uname, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script = format!("PATH={}:$PATH exec \"$@\"", directory.path().display());
    let failure =
        one(launch(command(&["sh", "-c", &script, "{host}"])), host("gpu1", "x"), &Log::default()).await.unwrap_err();
    assert!(failure.cause.contains("the host is riscv64"), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "build-agent-for");
}

#[tokio::test]
async fn a_stubborn_agent_behind_a_command_is_ended_by_force() {
    let words = command(&["sh", "-c", "exec \"$@\"", "{host}"]);
    let agent = one(failing(words, "stubborn"), host("gpu1", "x"), &Log::default()).await.unwrap();
    agent.close().await;
    assert!(ends(agent.pid()).await);
}

/// As behind `docker exec`: what runs there is not a child of the command, and the end of the command does not reach it.
#[tokio::test]
async fn a_stopped_agent_behind_a_command_that_died_is_ended() {
    let script = "set -o pipefail; cat | setsid -w \"$@\" | cat";
    let agent =
        one(launch(command(&["bash", "-c", script, "{host}"])), host("gpu1", "x"), &Log::default()).await.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", agent.pid())).unwrap();
    // proc_pid_stat(5): state, parent; the parent leads the group of the command.
    let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().to_owned();
    for words in [["-STOP", "--", &agent.pid().to_string()], ["-KILL", "--", &format!("-{parent}")]] {
        assert!(Command::new("kill").args(words).status().unwrap().success());
    }
    agent.gone().await;
    agent.close().await;
    assert!(ends(agent.pid()).await, "a stopped agent outlives the run");
}
