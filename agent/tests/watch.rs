//! Watching ports through the real agent: the conversation, a real carrier that goes and comes, and what it costs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod controller;
use controller::{Agent, command};

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use railgauge_agent::parts::clock;
use railgauge_wire::{
    message::{Answer, Ask},
    unit::Nanoseconds,
    watch::{PortState, Watched, WatchedPort},
};

fn watch(agent: &mut Agent, devices: &[&str]) {
    let port = |device: &&str| WatchedPort { device: (*device).to_owned(), port: 1 };
    assert_eq!(agent.ask(Ask::Watch { ports: devices.iter().map(port).collect(), every: None }), Ok(Answer::Done));
}

fn watched(agent: &mut Agent) -> Watched {
    match agent.ask(Ask::Watched) {
        Ok(Answer::Watched(seen)) => *seen,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_watch_answers_until_it_is_ended() {
    let mut agent = Agent::start();
    assert!(agent.ask(Ask::Watched).is_err(), "nothing is watched yet");
    let before = clock::now();
    watch(&mut agent, &["nowhere0", "lo"]);
    sleep(Duration::from_millis(1_400));
    let first = watched(&mut agent);
    assert!(before < first.from && first.from < first.until && first.until < clock::now());
    let [nowhere, lo] = &first.ports[..] else { panic!("{first:?}") };
    assert!(nowhere.looks == 0 && nowhere.failure.as_ref().is_some_and(|why| why.contains("nowhere0")), "{nowhere:?}");
    assert!(lo.looks >= 5 && lo.failure.is_none() && lo.states.len() == 1, "{lo:?}");
    assert!(lo.longest_gap > Nanoseconds::ZERO && !lo.rows.is_empty(), "{lo:?}");
    assert!(first.cpu > Nanoseconds::ZERO);
    let second = watched(&mut agent);
    assert_eq!(second.from, first.until);
    assert!(second.ports[1].states.is_empty(), "nothing has changed: {second:?}");
    // Another watch takes its place.
    watch(&mut agent, &["lo"]);
    assert_eq!(watched(&mut agent).ports.len(), 1);
    watch(&mut agent, &[]);
    assert!(agent.ask(Ask::Watched).is_err(), "the watch has ended");
    assert!(agent.ask(Ask::Clock).is_ok() && agent.is_quiet());
}

#[test]
fn more_ports_than_a_host_has_are_refused() {
    let mut agent = Agent::start();
    watch(&mut agent, &["lo"]);
    let many = (0..1000).map(|n| WatchedPort { device: format!("mlx5_{n}"), port: 1 }).collect();
    let failure = agent.ask(Ask::Watch { ports: many, every: None }).unwrap_err();
    assert!(failure.cause.contains("1000"), "{failure}");
    assert_eq!(watched(&mut agent).ports.len(), 1, "the first watch goes on");
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Two namespaces with a cable between them; gone when dropped.
struct Cable([String; 2]);

impl Cable {
    fn new(name: &str) -> Option<Self> {
        let cable = Self(["a", "b"].map(|end| format!("rgw{}{name}{end}", std::process::id())));
        let [a, b] = &cable.0;
        let made = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&["-n", a, "link", "add", "rg0", "type", "veth", "peer", "name", "rg0", "netns", b])
            && cable.set(0, "up")
            && cable.set(1, "up");
        if !made {
            eprintln!("skipped: network namespaces take root and iproute2");
        }
        made.then_some(cable)
    }

    /// Sets one end up or down. The other one has a carrier only while both are up.
    fn set(&self, end: usize, to: &str) -> bool {
        ip(&["-n", &self.0[end], "link", "set", "rg0", to])
    }

    fn agent(&self) -> Agent {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.0[0]]).arg(command().get_program());
        Agent::greeted(&mut inside)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&["netns", "del", name]);
        }
    }
}

/// How far a change that was seen may be from what was done: a look every 0.1 s, and a busy machine.
const NEAR: Nanoseconds = Nanoseconds::from_millis(200);

/// Whether a change was done in the time that it was seen in, more or less.
fn is_near(seen: &PortState, done: (Nanoseconds, Nanoseconds)) -> bool {
    seen.at + NEAR > done.0 && seen.at.saturating_sub(done.1) < NEAR && done.0.saturating_sub(seen.after) < NEAR
}

#[test]
fn breaks_of_a_real_carrier_are_found_with_begin_and_length() {
    let Some(cable) = Cable::new("f") else { return };
    let mut agent = cable.agent();
    watch(&mut agent, &["rg0"]);
    sleep(Duration::from_millis(600));
    let timed = |to: &str| {
        let before = clock::now();
        assert!(cable.set(1, to));
        (before, clock::now())
    };
    let mut done = Vec::new();
    for length in [300, 1_000, 600] {
        done.push(timed("down"));
        sleep(Duration::from_millis(length));
        done.push(timed("up"));
        sleep(Duration::from_millis(700));
    }
    let seen = watched(&mut agent);
    let port = &seen.ports[0];
    let mut changes = port.states.iter();
    assert!(changes.next().is_some_and(|state| state.up && state.rate_gbps.is_some()), "{port:?}");
    let mut up = true;
    let changes: Vec<_> = changes.filter(|state| std::mem::replace(&mut up, state.up) != state.up).collect();
    assert_eq!(changes.len(), done.len(), "{port:?}");
    for (seen, done) in changes.iter().zip(&done) {
        assert!(is_near(seen, *done), "{seen:?}, done {done:?}");
    }
    for (seen, done) in changes.chunks(2).zip(done.chunks(2)) {
        let (seen, done) = (seen[1].at - seen[0].at, done[1].0 - done[0].0);
        assert!(seen.saturating_since(done).distance() < NEAR, "{seen} ns, not {done}");
    }
    let breaks: u64 = port.rows.iter().filter_map(|row| row.counted.get("netdev/carrier_down_count")).sum();
    assert!((2..=3).contains(&breaks), "the last second has no row yet: {breaks} of 3");
}

#[test]
fn an_interface_that_is_taken_down_or_away_is_not_up() {
    let Some(cable) = Cable::new("v") else { return };
    let mut agent = cable.agent();
    watch(&mut agent, &["rg0"]);
    sleep(Duration::from_millis(500));
    assert!(cable.set(0, "down"));
    sleep(Duration::from_millis(500));
    let seen = watched(&mut agent);
    let last = seen.ports[0].states.last().unwrap();
    assert!(!last.up && last.words.contains("down") && seen.ports[0].failure.is_none(), "{seen:?}");
    assert!(ip(&["-n", &cable.0[0], "link", "del", "rg0"]));
    sleep(Duration::from_millis(500));
    let seen = watched(&mut agent);
    assert!(seen.ports[0].failure.as_ref().is_some_and(|why| why.contains("rg0")), "{seen:?}");
}

/// A host with ports like those of a NIC: 60 counters each, and an interface.
fn host(root: &Path, ports: usize) {
    let write = |path: String, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for n in 0..ports {
        let (port, interface) = (format!("sys/class/infiniband/rxe{n}/ports/1"), format!("sys/class/net/eth{n}"));
        for (file, text) in [("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("rate", "100 Gb/sec (4X EDR)")] {
            write(format!("{port}/{file}"), text);
        }
        write(format!("sys/class/infiniband/rxe{n}/parent"), &format!("eth{n}"));
        write(format!("{port}/gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0001");
        write(format!("{port}/gid_attrs/ndevs/0"), &format!("eth{n}"));
        for (file, text) in [("carrier", "1"), ("operstate", "up"), ("speed", "100000"), ("carrier_down_count", "0")] {
            write(format!("{interface}/{file}"), text);
        }
        for counter in 0..20 {
            write(format!("{port}/counters/counter_{counter}"), "123456");
            write(format!("{port}/hw_counters/counter_{counter}"), "123456");
            write(format!("{interface}/statistics/counter_{counter}"), "123456");
        }
    }
}

/// Figures of a watch of some seconds. `cargo test --profile agent -p railgauge-agent --test watch -- --ignored --nocapture cost`
#[test]
#[ignore = "takes 30 s, and measures where nothing else should run"]
fn cost() {
    let root = tempfile::tempdir().unwrap();
    host(root.path(), 8);
    let eight: Vec<String> = (0..8).map(|n| format!("rxe{n}")).collect();
    let eight: Vec<&str> = eight.iter().map(String::as_str).collect();
    let mut recorded = command();
    recorded.env("RAILGAUGE_ROOT", root.path());
    costs("lo", &mut Agent::start(), &["lo"]);
    asked("lo, every 100 ms", &mut Agent::start(), &["lo"]);
    costs("8 ports of 60 counters, recorded", &mut Agent::greeted(&mut recorded), &eight);
    asked("8 ports of 60 counters, recorded, every 100 ms", &mut Agent::greeted(&mut recorded), &eight);
    let Some(cable) = Cable::new("c") else { return };
    let names: Vec<String> = (1..8).map(|n| format!("rg{n}")).collect();
    for name in &names {
        assert!(ip(&["-n", &cable.0[0], "link", "add", name, "type", "veth", "peer", "name", &format!("{name}p")]));
        assert!(ip(&["-n", &cable.0[0], "link", "set", name, "up"]));
    }
    let real: Vec<&str> = ["rg0"].into_iter().chain(names.iter().map(String::as_str)).collect();
    costs("8 interfaces of the kernel", &mut cable.agent(), &real);
    asked("8 interfaces of the kernel, every 100 ms", &mut cable.agent(), &real);
}

/// The same with all counters read every 100 ms, statistics too.
fn asked(what: &str, agent: &mut Agent, devices: &[&str]) {
    let ports = devices.iter().map(|device| WatchedPort { device: (*device).to_owned(), port: 1 }).collect();
    let every = Some(Nanoseconds::from_millis(100));
    assert_eq!(agent.ask(Ask::Watch { ports, every }), Ok(Answer::Done));
    told(what, agent, 0.1);
}

fn costs(what: &str, agent: &mut Agent, devices: &[&str]) {
    watch(agent, devices);
    told(what, agent, 0.01);
}

fn told(what: &str, agent: &mut Agent, largest: f64) {
    sleep(Duration::from_secs(10));
    let seen = watched(agent);
    let seconds = (seen.until - seen.from).seconds();
    let share = 100.0 * seen.cpu.seconds() / seconds;
    let (looks, rows) = (seen.ports[0].looks, seen.ports[0].rows.len());
    let gap = seen.ports.iter().map(|port| port.longest_gap).max().unwrap().milliseconds();
    eprintln!(
        "{what}: {share:.3} % of a processor in {seconds:.1} s; {looks} looks, {rows} rows, longest gap {gap:.0} ms"
    );
    assert!(seen.cpu.seconds() < largest * seconds, "{what}: {share} %");
}
