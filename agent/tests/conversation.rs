//! The real agent binary over pipes: hello, bad requests, and the ends of the process.

use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use railgauge_wire::{Answer, Ask, Endpoint, Kind, Nanoseconds, PROTOCOL, frame};

use crate::{
    controller::{self, Agent, command},
    skip::skipped,
};

#[test]
fn hello_clock_and_goodbye() {
    let mut agent = Agent::start();
    let Ok(Answer::Clock { monotonic: first, realtime }) = agent.ask(Ask::Clock) else { panic!() };
    let Ok(Answer::Clock { monotonic: second, .. }) = agent.ask(Ask::Clock) else { panic!() };
    assert!(second > first && realtime > Nanoseconds::from_secs(1_700_000_000));
    assert_eq!(agent.ask(Ask::Bye), Ok(Answer::Done));
    assert_eq!(agent.ended().code(), Some(0));
}

#[test]
fn another_protocol_is_refused_in_words_and_ends_the_agent() {
    let mut agent = Agent::spawn(&mut command());
    let hello = Ask::Hello { protocol: PROTOCOL + 1, run_id: "test".into(), host: "here".into() };
    let failure = agent.ask(hello).unwrap_err();
    assert!(failure.cause.contains(&format!("protocol {}", PROTOCOL + 1)), "{failure}");
    assert_eq!(failure.remedy.unwrap().id, "remove-old-agent");
    assert_eq!(agent.ended().code(), Some(2));
}

#[test]
fn a_hello_of_the_future_is_refused_by_its_protocol() {
    let mut agent = Agent::spawn(&mut command());
    let hello = serde_json::json!({ "id": 1, "ask": { "Hello": { "protocol": 99, "new": true } } });
    agent.write(&frame::encode(&hello).unwrap());
    let failure = agent.wait(1).unwrap_err();
    assert!(failure.cause.contains("protocol 99"), "{failure}");
    assert_eq!(agent.ended().code(), Some(2));
}

#[test]
fn nothing_comes_before_the_hello() {
    let mut agent = Agent::spawn(&mut command());
    let failure = agent.ask(Ask::Clock).unwrap_err();
    assert!(failure.cause.contains("hello"), "{failure}");
    assert_eq!(agent.ended().code(), Some(2));
}

#[test]
fn links_that_are_not_open_and_requests_that_are_not_known_are_failures() {
    let mut agent = Agent::start();
    let peer = Endpoint::Tcp(railgauge_wire::link::TcpEndpoint { address: "127.0.0.1".into(), port: 1 });
    for ask in [Ask::Join { link: 9, peer }, Ask::Stop { link: 9 }, Ask::Close { link: 9 }] {
        let failure = agent.ask(ask).unwrap_err();
        assert!(failure.cause.contains("link 9"), "{failure}");
    }
    let strange = serde_json::json!({ "id": 77, "ask": { "Dance": {} } });
    agent.write(&frame::encode(&strange).unwrap());
    assert_eq!(agent.wait(77).unwrap_err().kind, Kind::Internal);
    assert!(agent.ask(Ask::Clock).is_ok() && agent.is_quiet());
}

#[test]
fn a_stream_that_is_not_ours_ends_the_agent() {
    let mut agent = Agent::start();
    agent.write(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(agent.ended().code(), Some(3));
}

#[test]
fn the_agent_ends_with_its_stdin() {
    let mut agent = Agent::start();
    agent.close_stdin();
    assert_eq!(agent.ended().code(), Some(3));
}

#[test]
fn the_agent_ends_when_nobody_reads_its_stdout() {
    let mut child = command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    // stdin stays open: only stdout tells.
    let (status, mut words) = (controller::ended(&mut child), String::new());
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert!(status.code() == Some(3) && !words.is_empty(), "{status}: {words}");
}

#[test]
fn what_the_agent_started_ends_with_it() {
    // The shell leaves a child behind and becomes the agent, as if the agent had started it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 600 & echo $! >&2; exec \"$0\"", env!("CARGO_BIN_EXE_railgauge-agent")]);
    let mut agent = Agent::greeted(shell.process_group(0).stderr(Stdio::piped()));
    let mut stderr = std::io::BufReader::new(agent.child.stderr.take().unwrap());
    let mut pid = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut pid).unwrap();
    let child = std::path::PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let runs = || std::fs::read_to_string(&child).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(runs());
    agent.close_stdin();
    agent.ended();
    controller::patiently("the end of the agent's child", || (!runs()).then_some(()));
}

#[test]
fn facts_and_counters_of_this_host() {
    let mut agent = Agent::start();
    let Ok(Answer::Facts(facts)) = agent.ask(Ask::Facts) else { panic!() };
    assert!(!facts.kernel.is_empty() && facts.interfaces.iter().any(|interface| interface.name == "lo"), "{facts:?}");
    let Ok(Answer::Counters(before)) = agent.ask(Ask::Counters { device: "lo".into(), port: 1 }) else { panic!() };
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&[0; 100], socket.local_addr().unwrap()).unwrap();
    let Ok(Answer::Counters(after)) = agent.ask(Ask::Counters { device: "lo".into(), port: 1 }) else { panic!() };
    assert!(after["netdev/tx_bytes"] >= before["netdev/tx_bytes"] + 100);
    let failure = agent.ask(Ask::Counters { device: "nowhere0".into(), port: 1 }).unwrap_err();
    assert!(failure.cause.contains("nowhere0"), "{failure}");
}

#[test]
fn the_agent_starts_without_libibverbs_and_says_so() {
    // Hides the library from one process: the agent must not be linked to it.
    let hide = "for file in $(ldconfig -p | sed -n 's/.*libibverbs.so.1 .*=> //p'); do \
                mount --bind /dev/null \"$file\" || exit 9; done; exec \"$0\"";
    let mut hidden = Command::new("unshare");
    hidden.args(["--mount", "sh", "-c", hide, env!("CARGO_BIN_EXE_railgauge-agent")]);
    let possible = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        return skipped("hiding a library takes unshare and root");
    }
    let mut agent = Agent::greeted(&mut hidden);
    let Ok(Answer::Facts(facts)) = agent.ask(Ask::Facts) else { panic!() };
    let words = &facts.libraries["libibverbs.so.1"];
    assert!(!std::path::Path::new(words).exists(), "{words}");
    assert_eq!(agent.ask(Ask::Bye), Ok(Answer::Done));
}
