//! Agents as child processes: conversations, and every way in which they end.

use std::time::Duration;

use crate::cluster::{Log, ends, failing, fake, host, launch, one};
use railgauge::cluster::bring_up;
use railgauge_model::plan::model::Launcher;
use railgauge_wire::{
    PROTOCOL,
    failure::{Kind, Stage},
    message::{Answer, Ask},
};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn several_hosts_come_up_answer_and_go() {
    let hosts = (0..6).map(|i| host(&format!("h{i}"), "")).collect();
    let log = Log::default();
    let mut results = bring_up(launch(Launcher::Local), hosts, "run-1".to_owned(), fake(), log.sink());
    let mut agents = Vec::new();
    while let Some((name, result)) = results.recv().await {
        let agent = result.unwrap();
        assert_eq!(agent.host(), name);
        agents.push(agent);
    }
    assert_eq!(agents.len(), 6);
    for agent in &agents {
        let (facts, clock) = tokio::join!(agent.ask(Ask::Facts, SOON), agent.ask(Ask::Clock, SOON));
        assert!(matches!(facts, Ok(Answer::Facts(_))), "{facts:?}");
        assert!(matches!(clock, Ok(Answer::Clock { .. })), "{clock:?}");
        assert_eq!(agent.lost(), None);
        assert!(log.text().contains(&format!("{}: fake agent {} started", agent.host(), agent.pid())));
    }
    for agent in &agents {
        agent.close().await;
        assert!(ends(agent.pid()).await);
        let after = agent.ask(Ask::Clock, SOON).await.unwrap_err();
        assert_eq!(after.host.as_deref(), Some(agent.host()), "{after}");
        agent.close().await;
    }
}

#[tokio::test]
async fn a_killed_agent_is_lost_at_once_for_everybody_who_waits() {
    let log = Log::default();
    let agent = one(failing(Launcher::Local, "mute"), host("gpu7", ""), &log).await.unwrap();
    let waiting = tokio::spawn({
        let agent = agent.clone();
        async move { agent.ask(Ask::Facts, SOON).await }
    });
    // It has asked by then.
    tokio::task::yield_now().await;
    kill(agent.pid());
    let failure = waiting.await.unwrap().unwrap_err();
    // And not that its time ran out.
    assert_eq!((failure.stage, failure.kind), (Stage::Converse, Kind::Lost));
    assert_eq!(failure.host.as_deref(), Some("gpu7"));
    assert!(failure.cause.starts_with("the agent is gone: killed by signal 9"), "{failure}");
    assert!(failure.cause.contains("fake agent"), "last words are told: {failure}");
    assert_eq!(agent.lost(), Some(failure.clone()));
    assert_eq!(agent.gone().await, failure);
    assert_eq!(agent.ask(Ask::Clock, SOON).await, Err(failure));
    agent.close().await;
}

#[tokio::test]
async fn an_agent_that_dies_by_itself_tells_its_status_and_words() {
    let agent = one(failing(Launcher::Local, "dies"), host("gpu1", ""), &Log::default()).await.unwrap();
    let failure = agent.ask(Ask::Facts, SOON).await.unwrap_err();
    assert_eq!(failure.kind, Kind::Lost);
    assert!(failure.cause.contains("exit status 3"), "{failure}");
    assert!(failure.cause.contains("was told to die"), "{failure}");
}

#[tokio::test]
async fn a_foreign_stream_breaks_the_conversation_and_not_the_controller() {
    let agent = one(failing(Launcher::Local, "babbles"), host("gpu1", ""), &Log::default()).await.unwrap();
    let failure = agent.ask(Ask::Facts, SOON).await.unwrap_err();
    assert_eq!(failure.kind, Kind::Lost);
    assert!(failure.cause.contains("not this protocol"), "{failure}");
    agent.close().await;
    assert!(ends(agent.pid()).await);
}

#[tokio::test]
async fn time_running_out_names_host_request_and_time() {
    let agent = one(failing(Launcher::Local, "mute"), host("gpu9", ""), &Log::default()).await.unwrap();
    let failure = agent.ask(Ask::Close { link: 4 }, Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(failure.kind, Kind::Deadline);
    assert_eq!(failure.host.as_deref(), Some("gpu9"));
    assert_eq!(failure.cause, "no answer to `close link 4` within 0.2 s");
    assert_eq!(agent.lost(), None);
    agent.close().await;
}

#[tokio::test]
async fn a_stubborn_agent_is_ended_by_force() {
    let agent = one(failing(Launcher::Local, "stubborn"), host("gpu1", ""), &Log::default()).await.unwrap();
    agent.close().await;
    assert!(ends(agent.pid()).await);
}

#[tokio::test]
async fn dropping_an_agent_closes_its_input() {
    let agent = one(launch(Launcher::Local), host("gpu1", ""), &Log::default()).await.unwrap();
    let pid = agent.pid();
    drop(agent);
    assert!(ends(pid).await);
}

#[tokio::test]
async fn another_protocol_is_told_as_such() {
    let failure = one(failing(Launcher::Local, "skew"), host("gpu1", ""), &Log::default()).await.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Start, Kind::Configuration));
    assert_eq!(failure.host.as_deref(), Some("gpu1"));
    let skewed = format!("the agent (version 0.0.0-fake) speaks protocol {}", PROTOCOL + 1);
    assert!(failure.cause.contains(&skewed), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "rebuild-both");
}

#[tokio::test]
async fn an_agent_that_never_greets_runs_out_of_time() {
    let mut launch = failing(Launcher::Local, "silent");
    launch.timeout = Duration::from_secs(1);
    launch.retries = 1;
    let failure = one(launch, host("gpu1", ""), &Log::default()).await.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Start, Kind::Deadline));
    assert!(failure.cause.contains("within 1.0 s while waiting for the agent's greeting (tried 2 times)"), "{failure}");
}

/// Ends a process of this test by force.
fn kill(pid: u32) {
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn many_hosts_raise_the_limit_of_open_files() {
    let (_, hard) = rlimit::getrlimit(rlimit::Resource::NOFILE).unwrap();
    rlimit::setrlimit(rlimit::Resource::NOFILE, 150, hard).unwrap();
    let hosts = (0..60).map(|i| host(&format!("h{i}"), "")).collect();
    let mut results = bring_up(launch(Launcher::Local), hosts, "run-1".to_owned(), fake(), Log::default().sink());
    let mut agents = Vec::new();
    while let Some((_, result)) = results.recv().await {
        agents.push(result.unwrap());
    }
    assert_eq!(agents.len(), 60);
    assert!(rlimit::Resource::NOFILE.get_soft().unwrap() >= 340);
}

#[tokio::test]
async fn no_process_of_a_try_that_was_given_up_stays() {
    // It hangs before its greeting, in a process that it started itself.
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("child");
    let hang = format!("sleep 600 & echo $! > {}; wait", path.display());
    let words = vec!["sh".to_owned(), "-c".to_owned(), hang, "{host}".to_owned()];
    let mut launch = launch(Launcher::Command(words.into_iter().collect()));
    launch.timeout = Duration::from_secs(2);
    let failure = one(launch, host("gpu1", "x"), &Log::default()).await.unwrap_err();
    assert_eq!(failure.kind, Kind::Deadline, "{failure}");
    let child = std::fs::read_to_string(&path).unwrap().trim().parse().unwrap();
    assert!(ends(child).await, "process {child} outlives the try");
}
