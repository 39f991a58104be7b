//! Agents over a real sshd on loopback: deployment, and every way in which a host does not come up or goes away.
//! Without sshd each test says that it is skipped and why.

use std::{fs, os::unix::fs::PermissionsExt, process::Command, time::Duration};

use crate::{
    cluster::{Log, comes, ends, failing, host, launch, one},
    sshd::{self, Sshd, listing},
};
use railgauge::cluster::{AgentBinary, bring_up};
use railgauge_model::plan::model::{HostKeys, Launcher, Ssh};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    message::{Answer, Ask},
    remedy::Place,
};

const SOON: Duration = Duration::from_secs(60);

macro_rules! sshd {
    ($more:expr) => {
        match Sshd::start($more) {
            Some(sshd) => sshd,
            None => return,
        }
    };
}

/// The failure of one host that must not come up.
async fn refused(via: Launcher) -> Failure {
    let failure = one(launch(via), host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap_err();
    assert_eq!(failure.host.as_deref(), Some("gpu3"), "{failure}");
    failure
}

#[tokio::test]
async fn the_agent_is_sent_started_and_taken_away() {
    let sshd = sshd!("");
    let log = Log::default();
    let mut launch = launch(sshd.launcher());
    launch.env.insert("NAME".to_owned(), "it's $HOME; \"quoted\" \\ and * 50%".to_owned());
    let agent = one(launch, host("gpu1", "127.0.0.1"), &log).await.unwrap();
    let Ok(Answer::Facts(facts)) = agent.ask(Ask::Facts, SOON).await else { panic!("no facts") };
    assert_eq!(facts.hostname, "it's $HOME; \"quoted\" \\ and * 50%", "values arrive as they are");
    // What stands on a command line every user of the host can read.
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let shown = lines.filter(|line| String::from_utf8_lossy(line).contains("and * 50%")).count();
    assert_eq!(shown, 0, "processes show a value of [launch] env");
    let left = sshd.left();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].starts_with("agent-") && left[1].starts_with("use-"), "{left:?}");
    // The name is held by the shell that waits for the agent and takes it away.
    assert!(left[1].ends_with(&format!("-{}", ancestors(agent.pid())[1].0)), "{left:?}");
    let mode = fs::metadata(sshd.path("cache/railgauge")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(log.text().contains("gpu1: fake agent"), "{}", log.text());
    assert!(!log.text().contains("@railgauge"), "{}", log.text());
    agent.close().await;
    assert!(ends(agent.pid()).await);
    assert_eq!(sshd.left(), [""; 0]);
}

#[tokio::test]
async fn a_kept_agent_is_used_again() {
    let sshd = sshd!("");
    let directory = sshd.path("agents");
    let mut launch = launch(sshd.launcher());
    launch.keep_agent = true;
    launch.agent_dir = Some(directory.display().to_string());
    let mut written = Vec::new();
    for _ in 0..2 {
        let agent = one(launch.clone(), host("gpu1", "127.0.0.1"), &Log::default()).await.unwrap();
        agent.close().await;
        let left = listing(&directory);
        assert_eq!(left.len(), 1, "{left:?}");
        written.push(fs::metadata(directory.join(&left[0])).unwrap().modified().unwrap());
    }
    assert_eq!(written[0], written[1], "sent once");
    // A damaged file is sent again.
    let file = directory.join(&listing(&directory)[0]);
    fs::write(&file, "damaged").unwrap();
    let agent = one(launch, host("gpu1", "127.0.0.1"), &Log::default()).await.unwrap();
    agent.close().await;
    assert!(fs::metadata(&file).unwrap().len() > 1000);
}

#[tokio::test]
async fn runs_on_one_host_do_not_take_each_others_agent_away() {
    let sshd = sshd!("");
    let first = one(launch(sshd.launcher()), host("gpu1", "127.0.0.1"), &Log::default()).await.unwrap();
    let second = one(launch(sshd.launcher()), host("gpu1", "127.0.0.1"), &Log::default()).await.unwrap();
    first.close().await;
    let left = sshd.left();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(second.ask(Ask::Clock, SOON).await.is_ok());
    second.close().await;
    assert_eq!(sshd.left(), [""; 0]);
}

#[tokio::test]
async fn an_unknown_host_key_is_an_error_that_says_how_to_accept_it() {
    let sshd = sshd!("");
    let ssh = Ssh { known_hosts: Some(sshd.path("empty")), ..sshd.ssh() };
    let failure = refused(Launcher::Ssh(ssh.clone())).await;
    assert_eq!((failure.stage, failure.kind), (Stage::Connect, Kind::Configuration));
    let name = format!("[127.0.0.1]:{}", sshd.port);
    assert!(failure.cause.contains(&format!("does not know the host key of {name}")), "{failure}");
    // The command it tells works.
    let commands = failure.remedy.unwrap().commands();
    let accept = commands.iter().find(|one| one.changes && one.on == Place::Controller).unwrap();
    assert!(Command::new("sh").args(["-c", &accept.command]).status().unwrap().success());
    let agent = one(launch(Launcher::Ssh(ssh)), host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap();
    agent.close().await;
    // So does the other way it tells.
    let ssh = Ssh { known_hosts: Some(sshd.path("new")), host_keys: HostKeys::AcceptNew, ..sshd.ssh() };
    let agent = one(launch(Launcher::Ssh(ssh)), host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap();
    agent.close().await;
}

#[tokio::test]
async fn a_changed_host_key_is_never_accepted() {
    let sshd = sshd!("");
    let other = fs::read_to_string(sshd.path("other_key.pub")).unwrap();
    fs::write(sshd.path("known_hosts"), format!("[127.0.0.1]:{} {other}", sshd.port)).unwrap();
    for host_keys in [HostKeys::Strict, HostKeys::AcceptNew] {
        let failure = refused(Launcher::Ssh(Ssh { host_keys, ..sshd.ssh() })).await;
        assert_eq!((failure.stage, failure.kind), (Stage::Connect, Kind::Configuration));
        assert!(failure.cause.contains("is not the one in"), "{failure}");
        let commands = failure.remedy.unwrap().commands();
        assert!(commands[0].command.starts_with("ssh-keygen -R"), "{commands:?}");
    }
}

#[tokio::test]
async fn a_closed_port_is_tried_again_and_told() {
    let sshd = sshd!("");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut launch = launch(Launcher::Ssh(Ssh { port: Some(port), ..sshd.ssh() }));
    launch.retries = 1;
    let failure = one(launch, host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Connect, Kind::Lost));
    assert!(failure.cause.contains("Connection refused") && failure.cause.contains("tried 2 times"), "{failure}");
}

#[tokio::test]
async fn a_port_that_accepts_and_says_nothing_runs_out_of_time() {
    let sshd = sshd!("");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut launch = launch(Launcher::Ssh(Ssh { port: Some(silent.local_addr().unwrap().port()), ..sshd.ssh() }));
    launch.timeout = Duration::from_millis(2500);
    let failure = one(launch, host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap_err();
    assert_eq!(failure.stage, Stage::Connect);
    assert!(failure.cause.contains("timed out") || failure.cause.contains("within 2.5 s"), "{failure}");
}

#[tokio::test]
async fn a_wrong_key_is_told_and_not_tried_again() {
    let sshd = sshd!("");
    let mut launch = launch(Launcher::Ssh(Ssh { identity: Some(sshd.path("other_key")), ..sshd.ssh() }));
    launch.retries = 5;
    let failure = one(launch, host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Connect, Kind::Configuration));
    assert!(failure.cause.contains("Permission denied") && !failure.cause.contains("tried"), "{failure}");
}

#[tokio::test]
async fn an_address_is_never_an_option() {
    let sshd = sshd!("");
    let bad = host("gpu3", "-oProxyCommand=touch /tmp/owned");
    let failure = one(launch(sshd.launcher()), bad, &Log::default()).await.unwrap_err();
    assert!(failure.cause.contains("is not an address"), "{failure}");
}

#[tokio::test]
async fn a_jump_host_is_passed_and_its_key_is_judged_too() {
    let (bastion, sshd) = (sshd!(""), sshd!(""));
    // What ssh is told of the jump host comes from ssh_config alone.
    let config = |known: &str| {
        let (key, known) = (bastion.path("user_key"), bastion.path(known));
        let about = format!("IdentityFile {}\nUserKnownHostsFile {}\n", key.display(), known.display());
        let file = sshd.path("jump_config");
        fs::write(&file, format!("IdentityAgent none\nGlobalKnownHostsFile /dev/null\n{about}")).unwrap();
        Ssh { config: Some(file), jump: vec![format!("127.0.0.1:{}", bastion.port)], ..sshd.ssh() }
    };
    let agent = one(launch(Launcher::Ssh(config("known_hosts"))), host("gpu3", "127.0.0.1"), &Log::default()).await;
    agent.unwrap().close().await;
    let failure = refused(Launcher::Ssh(config("empty"))).await;
    assert!(failure.cause.contains("Host key verification failed"), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "accept-jump-key");
}

#[tokio::test]
async fn an_agent_killed_by_hand_is_lost_with_its_hosts_name() {
    let sshd = sshd!("");
    let agent = one(failing(sshd.launcher(), "mute"), host("gpu7", "127.0.0.1"), &Log::default()).await.unwrap();
    let waiting = tokio::spawn({
        let agent = agent.clone();
        async move { agent.ask(Ask::Facts, SOON).await }
    });
    // It has asked by then.
    tokio::task::yield_now().await;
    assert!(Command::new("kill").args(["-9", &agent.pid().to_string()]).status().unwrap().success());
    let failure = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap().unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Converse, Kind::Lost));
    assert_eq!(failure.host.as_deref(), Some("gpu7"));
    assert!(failure.cause.starts_with("the agent is gone: killed by a signal"), "{failure}");
    agent.close().await;
    assert_eq!(sshd.left(), [""; 0], "its file is taken away all the same");
}

#[tokio::test]
async fn a_host_that_goes_away_is_lost_in_sshs_words() {
    let sshd = sshd!("");
    let agent = one(launch(sshd.launcher()), host("gpu7", "127.0.0.1"), &Log::default()).await.unwrap();
    // The server process of this connection.
    let server = ancestors(agent.pid()).into_iter().find(|(_, name)| name.starts_with("sshd")).unwrap();
    assert!(Command::new("kill").args(["-9", &server.0.to_string()]).status().unwrap().success());
    let failure = tokio::time::timeout(SOON, agent.gone()).await.unwrap();
    assert_eq!(failure.host.as_deref(), Some("gpu7"));
    assert!(failure.cause.starts_with("the agent is gone: ssh lost the host: "), "{failure}");
    assert!(ends(agent.pid()).await, "no agent outlives its controller");
}

/// The processes above a process, nearest first: number and name.
fn ancestors(pid: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut at = pid;
    while at > 1 {
        let status = fs::read_to_string(format!("/proc/{at}/status")).unwrap();
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_owned()).unwrap()
        };
        found.push((at, field("Name:")));
        at = field("PPid:").parse().unwrap();
    }
    found
}

#[tokio::test]
async fn a_chatty_login_shell_is_no_trouble() {
    let sshd = sshd!(
        "ForceCommand printf 'Welcome to the machine\\nNo newline: '; echo careful >&2; exec /bin/sh -c \
         \"$SSH_ORIGINAL_COMMAND\""
    );
    let log = Log::default();
    let agent = one(launch(sshd.launcher()), host("gpu1", "127.0.0.1"), &log).await.unwrap();
    assert!(agent.ask(Ask::Clock, SOON).await.is_ok());
    assert!(log.text().contains("gpu1: Welcome to the machine"), "{}", log.text());
    agent.close().await;
    assert_eq!(sshd.left(), [""; 0]);
}

#[tokio::test]
async fn every_login_shell_will_do() {
    for shell in ["/bin/dash", "/bin/bash", "/bin/busybox sh", "/bin/zsh", "/bin/ksh", "/bin/tcsh", "/usr/bin/fish"] {
        let program = shell.split(' ').next().unwrap();
        if !std::path::Path::new(program).exists() {
            sshd::left_out(&format!("{program} is not installed"));
            continue;
        }
        let sshd = sshd!(&format!("ForceCommand exec {shell} -c \"$SSH_ORIGINAL_COMMAND\""));
        let mut launch = launch(sshd.launcher());
        let value = "it's $HOME `id` \\ ~ * (x) {a,b} 50% ; & | < > \"quoted\" #";
        launch.env.insert("NAME".to_owned(), value.to_owned());
        launch.agent_dir = Some(sshd.path("a directory (with) 'signs' $x").display().to_string());
        let agent = one(launch.clone(), host("gpu1", "127.0.0.1"), &Log::default()).await;
        let agent = agent.unwrap_or_else(|failure| panic!("{shell}: {failure}"));
        let Ok(Answer::Facts(facts)) = agent.ask(Ask::Facts, SOON).await else { panic!("{shell}: no facts") };
        assert_eq!(facts.hostname, value, "{shell}");
        agent.close().await;
        assert_eq!(listing(&sshd.path("a directory (with) 'signs' $x")), [""; 0], "{shell}");
    }
}

#[tokio::test]
async fn another_protocol_is_told_and_leaves_nothing() {
    let sshd = sshd!("");
    let failure = one(failing(sshd.launcher(), "skew"), host("gpu1", "127.0.0.1"), &Log::default()).await.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Start, Kind::Configuration));
    assert!(failure.cause.contains("speaks protocol"), "{failure}");
    assert!(comes(SOON, || sshd.left().is_empty()).await, "{:?}", sshd.left());
}

#[tokio::test]
async fn an_agent_for_another_processor_is_not_even_sent() {
    let sshd = sshd!("");
    let (machine, name) = if cfg!(target_arch = "x86_64") { (183_u16, "aarch64") } else { (62, "x86_64") };
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    elf.resize(64, 0);
    elf[18..20].copy_from_slice(&machine.to_le_bytes());
    fs::write(sshd.path("railgauge-agent"), elf).unwrap();
    let binary = AgentBinary::open(&sshd.path("railgauge-agent")).unwrap();
    let hosts = vec![host("gpu3", "127.0.0.1")];
    let mut results = bring_up(launch(sshd.launcher()), hosts, "run-1".into(), binary, Log::default().sink());
    let failure = results.recv().await.unwrap().1.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Deploy, Kind::Configuration));
    assert!(failure.cause.contains(&format!("the agent was built for {name} only")), "{failure}");
    assert_eq!(sshd.left(), [""; 0]);
}

#[tokio::test]
async fn a_full_disk_is_told_and_left_clean() {
    let sshd = sshd!("");
    let small = sshd.path("small");
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k,mode=700", "none"])
        .arg(&small)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        sshd::skipped("a small file system cannot be mounted here (root?)");
        return;
    }
    let mut launch = launch(sshd.launcher());
    launch.agent_dir = Some(small.display().to_string());
    let result = one(launch, host("gpu3", "127.0.0.1"), &Log::default()).await;
    let left = listing(&small);
    assert!(Command::new("umount").arg(&small).status().unwrap().success());
    let failure = result.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Deploy, Kind::Configuration));
    assert!(failure.cause.contains("No space left on device"), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "agent-dir-space");
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn a_directory_that_others_may_write_to_is_refused() {
    let sshd = sshd!("");
    let open = sshd.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let mut launch = launch(sshd.launcher());
    launch.agent_dir = Some(open.display().to_string());
    let failure = one(launch, host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap_err();
    assert!(failure.cause.contains("others may write"), "{failure}");
}

#[tokio::test]
async fn a_directory_below_one_that_others_may_write_to_is_refused() {
    let sshd = sshd!("");
    let above = sshd.path("above");
    let agents = above.join("agents");
    fs::create_dir_all(&agents).unwrap();
    fs::set_permissions(&agents, fs::Permissions::from_mode(0o700)).unwrap();
    // Who may write above can put another directory in its place; the sticky bit takes that right from all but the owner.
    for (mode, refused) in [(0o777, true), (0o1777, false), (0o755, false)] {
        fs::set_permissions(&above, fs::Permissions::from_mode(mode)).unwrap();
        let mut launch = launch(sshd.launcher());
        launch.agent_dir = Some(agents.display().to_string());
        let result = one(launch, host("gpu3", "127.0.0.1"), &Log::default()).await;
        match result {
            Err(failure) => {
                assert!(refused && failure.stage == Stage::Deploy, "{mode:o}: {failure}");
                assert!(failure.cause.contains(&above.display().to_string()), "{failure}");
                assert_eq!(listing(&agents), [""; 0]);
            }
            Ok(agent) => {
                assert!(!refused, "{mode:o}");
                agent.close().await;
            }
        }
    }
}

#[tokio::test]
async fn a_stopped_agent_is_ended_with_the_run() {
    let sshd = sshd!("");
    let agent = one(launch(sshd.launcher()), host("gpu1", "127.0.0.1"), &Log::default()).await.unwrap();
    let pid = agent.pid();
    assert!(Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap().success());
    agent.close().await;
    assert!(ends(pid).await, "a stopped agent outlives the run");
    assert_eq!(sshd.left(), [""; 0]);
}

/// Processes that run a file below a directory.
fn running_below(directory: &std::path::Path) -> Vec<u32> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let runs = |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|file| file.starts_with(directory));
    fs::read_dir("/proc").unwrap().filter_map(|entry| number(entry.ok()?)).filter(runs).collect()
}

#[tokio::test]
async fn an_agent_that_hangs_before_its_greeting_is_ended() {
    let sshd = sshd!("");
    let mut launch = failing(sshd.launcher(), "silent");
    launch.timeout = Duration::from_secs(4);
    let cache = sshd.path("cache");
    let trying = tokio::spawn(async move { one(launch, host("gpu1", "127.0.0.1"), &Log::default()).await });
    let started = comes(Duration::from_secs(20), || !running_below(&cache).is_empty()).await;
    assert!(started, "the agent was not started");
    assert!(trying.await.unwrap().is_err());
    railgauge::cluster::cleared(Duration::from_secs(30)).await;
    assert!(running_below(&cache).is_empty(), "an agent that never greeted outlives its try");
    assert_eq!(sshd.left(), [""; 0]);
}

#[tokio::test]
async fn names_of_dead_processes_are_swept() {
    let sshd = sshd!("");
    let node = String::from_utf8(Command::new("uname").arg("-n").output().unwrap().stdout).unwrap();
    let dead = Command::new("true").spawn().and_then(|mut child| child.wait().map(|_| child.id())).unwrap();
    let directory = sshd.path("cache/railgauge");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("new-abc-{}-{dead}", node.trim())), "half").unwrap();
    fs::write(directory.join(format!("use-abc-another-machine-{dead}")), "not ours to judge").unwrap();
    let agent = one(launch(sshd.launcher()), host("gpu1", "127.0.0.1"), &Log::default()).await.unwrap();
    agent.close().await;
    assert_eq!(sshd.left(), [format!("use-abc-another-machine-{dead}")]);
}
