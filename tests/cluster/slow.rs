//! Hosts whose sshd is slow or lets few in at a time: they come up all the same, or are told with the step they were at.
//! Without sshd each test says that it is skipped and why.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::{
    cluster::{Log, fake, host, launch, one},
    sshd::Sshd,
};
use railgauge::cluster::{Agent, bring_up};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    message::Ask,
};

/// Hosts that come at once, behind an sshd that has room for one login at a time.
const CROWD: usize = 8;

/// A login shell that takes so long before it does anything.
fn slow(seconds: u32) -> String {
    format!("ForceCommand sleep {seconds}; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"")
}

#[tokio::test]
async fn a_host_that_is_slow_at_every_step_comes_up() {
    let Some(sshd) = Sshd::start(&slow(1)) else { return };
    let started = Instant::now();
    let agent = one(launch(sshd.launcher()), host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
    assert!(agent.ask(Ask::Clock, Duration::from_secs(10)).await.is_ok());
    agent.close().await;
    assert_eq!(sshd.left(), [""; 0]);
}

/// A start-up file of a login shell may take a second: it is read once for each host.
#[tokio::test]
async fn an_agent_takes_one_login_from_its_look_to_its_end() {
    let place = tempfile::tempdir().unwrap();
    let logins = place.path().join("logins");
    let counted = format!("ForceCommand echo login >> {}; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"", logins.display());
    let Some(sshd) = Sshd::start(&counted) else { return };
    let count = || fs::read_to_string(&logins).unwrap().lines().count();
    let agent = one(launch(sshd.launcher()), host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap();
    assert_eq!(count(), 1, "to bring it up");
    agent.close().await;
    assert_eq!(count(), 1, "to take it away");
    assert_eq!(sshd.left(), [""; 0]);
}

#[tokio::test]
async fn a_host_that_is_slower_than_its_time_is_told_with_its_step() {
    let Some(sshd) = Sshd::start(&slow(20)) else { return };
    let mut launch = launch(sshd.launcher());
    launch.timeout = Duration::from_secs(5);
    let failure = one(launch, host("gpu3", "127.0.0.1"), &Log::default()).await.unwrap_err();
    assert_eq!((failure.stage, failure.kind), (Stage::Deploy, Kind::Deadline), "{failure}");
    assert_eq!(failure.host.as_deref(), Some("gpu3"));
    let cause = "no result within 5.0 s while looking for the agent on the host";
    assert!(failure.cause.starts_with(cause), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "raise-deploy-timeout");
}

/// Brings the crowd up, with so many further tries for each host.
async fn crowd(sshd: &Sshd, retries: u32) -> Vec<Result<Agent, Failure>> {
    let mut launch = launch(sshd.launcher());
    (launch.in_flight, launch.retries) = (CROWD, retries);
    let hosts = (0..CROWD).map(|i| host(&format!("h{i}"), "127.0.0.1")).collect();
    let mut results = bring_up(launch, hosts, "run-1".to_owned(), fake(), Log::default().sink());
    let mut all = Vec::new();
    while let Some((_, result)) = results.recv().await {
        all.push(result);
    }
    all
}

#[tokio::test]
async fn hosts_that_maxstartups_turns_away_come_up_later() {
    let Some(sshd) = Sshd::start("MaxStartups 1:100:2") else { return };
    // Without a further try some are lost.
    let (mut up, mut lost) = (Vec::new(), Vec::new());
    for result in crowd(&sshd, 0).await {
        match result {
            Ok(agent) => up.push(agent),
            Err(failure) => lost.push(failure),
        }
    }
    assert!(!lost.is_empty(), "all {CROWD} came in: {}", fs::read_to_string(sshd.path("sshd.log")).unwrap());
    for failure in &lost {
        assert_eq!((failure.stage, failure.kind), (Stage::Connect, Kind::Lost), "{failure}");
        assert_eq!(failure.remedy.as_ref().unwrap().id, "ssh-by-hand", "{failure:?}");
    }
    for agent in up {
        agent.close().await;
    }
    // With some they all come.
    for result in crowd(&sshd, 10).await {
        result.unwrap().close().await;
    }
    assert_eq!(sshd.left(), [""; 0]);
}
