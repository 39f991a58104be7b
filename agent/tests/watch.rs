//! Watching ports through the real agent: the conversation, a real carrier that goes and comes, and what it costs.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use railgauge_agent::parts::clock;
use railgauge_wire::{Answer, Ask, Nanoseconds, PortSeen, PortState, Watched, WatchedPort};

use crate::{
    controller::{Agent, command, patiently},
    skip::skipped,
};

fn watch(agent: &mut Agent, devices: &[&str]) {
    let port = |device: &&str| WatchedPort { device: (*device).to_owned(), port: 1 };
    assert_eq!(agent.ask(Ask::Watch { ports: devices.iter().map(port).collect() }), Ok(Answer::Done));
}

fn watched(agent: &mut Agent) -> Watched {
    match agent.ask(Ask::Watched) {
        Ok(Answer::Watched(seen)) => *seen,
        other => panic!("{other:?}"),
    }
}

/// Answers until there is enough in them. Each begins where the one before it ended.
fn watched_until(agent: &mut Agent, enough: impl Fn(&[Watched]) -> bool) -> Vec<Watched> {
    let mut all = Vec::new();
    patiently("what is watched for", || {
        all.push(watched(agent));
        enough(&all).then_some(())
    });
    assert!(all.is_sorted_by(|one, next| one.from < one.until && one.until == next.from), "{all:?}");
    all
}

/// What was seen of the port with this number.
fn of_port(all: &[Watched], number: usize) -> impl Iterator<Item = &PortSeen> {
    all.iter().map(move |seen| &seen.ports[number])
}

/// The states that the first port had.
fn states(all: &[Watched]) -> Vec<&PortState> {
    of_port(all, 0).flat_map(|port| &port.states).collect()
}

fn is_up(all: &[Watched]) -> bool {
    states(all).last().is_some_and(|state| state.up)
}

#[test]
fn a_watch_answers_until_it_is_ended() {
    let mut agent = Agent::start();
    assert!(agent.ask(Ask::Watched).is_err(), "nothing is watched yet");
    let before = clock::now();
    watch(&mut agent, &["nowhere0", "lo"]);
    let looks = |all: &[Watched]| of_port(all, 1).map(|lo| lo.looks).sum::<u64>();
    let rows = |all: &[Watched]| of_port(all, 1).map(|lo| lo.rows.len()).sum::<usize>();
    let all = watched_until(&mut agent, |all| looks(all) >= 5 && rows(all) > 0);
    assert!(before < all[0].from && all[all.len() - 1].until < clock::now());
    assert!(of_port(&all, 0).all(|nowhere| nowhere.looks == 0));
    let names_it = |nowhere: &PortSeen| nowhere.failure.as_ref().is_some_and(|why| why.contains("nowhere0"));
    assert!(of_port(&all, 0).any(names_it), "{all:?}");
    assert!(of_port(&all, 1).all(|lo| lo.failure.is_none()), "{all:?}");
    assert_eq!(of_port(&all, 1).map(|lo| lo.states.len()).sum::<usize>(), 1, "nothing has changed: {all:?}");
    assert!(of_port(&all, 1).any(|lo| lo.longest_gap > Nanoseconds::ZERO), "{all:?}");
    assert!(all.iter().any(|seen| seen.cpu > Nanoseconds::ZERO), "{all:?}");
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
    let failure = agent.ask(Ask::Watch { ports: many }).unwrap_err();
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
            skipped("network namespaces take root and iproute2");
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

/// A change of the far end, and the time before and after it.
fn timed(cable: &Cable, to: &str) -> (Nanoseconds, Nanoseconds) {
    let before = clock::now();
    assert!(cable.set(1, to));
    (before, clock::now())
}

/// Changes between up and down behind the first state, which is up.
fn changes<'s>(states: &[&'s PortState]) -> Vec<&'s PortState> {
    let (first, later) = states.split_first().unwrap();
    assert!(first.up && first.rate_gbps.is_some(), "{first:?}");
    let mut up = true;
    later.iter().copied().filter(|state| std::mem::replace(&mut up, state.up) != state.up).collect()
}

#[test]
fn breaks_of_a_real_carrier_are_found_with_begin_and_length() {
    let Some(cable) = Cable::new("f") else { return };
    let mut agent = cable.agent();
    watch(&mut agent, &["rg0"]);
    let mut all = watched_until(&mut agent, is_up);
    let mut done = Vec::new();
    for _ in 0..3 {
        done.push(timed(&cable, "down"));
        all.extend(watched_until(&mut agent, |all| !states(all).is_empty() && !is_up(all)));
        done.push(timed(&cable, "up"));
        all.extend(watched_until(&mut agent, is_up));
    }
    let states = states(&all);
    let changes = changes(&states);
    assert_eq!(changes.len(), done.len(), "{states:?}");
    for (seen, done) in changes.iter().zip(&done) {
        // The last look that found the old state began before the change was over, the first that found the new one ended later.
        assert!(seen.after < done.1 && seen.at > done.0, "{seen:?}, done {done:?}");
    }
    let breaks = |all: &[Watched]| {
        let rows = of_port(all, 0).flat_map(|port| &port.rows);
        rows.filter_map(|row| row.counted.get("netdev/carrier_down_count")).sum::<u64>()
    };
    let counted = breaks(&all);
    watched_until(&mut agent, |later| counted + breaks(later) == 3);
}

/// How far a change that was seen may be from what was done: a look every 0.1 s, and some more.
const NEAR: Nanoseconds = Nanoseconds::from_millis(200);

/// Whether a change was done in the time that it was seen in, more or less.
fn is_near(seen: &PortState, done: (Nanoseconds, Nanoseconds)) -> bool {
    seen.at + NEAR > done.0 && seen.at.saturating_sub(done.1) < NEAR && done.0.saturating_sub(seen.after) < NEAR
}

#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn breaks_are_found_to_a_fifth_of_a_second() {
    let Some(cable) = Cable::new("r") else { return };
    let mut agent = cable.agent();
    watch(&mut agent, &["rg0"]);
    sleep(Duration::from_millis(600));
    let mut done = Vec::new();
    for length in [300, 1_000, 600] {
        done.push(timed(&cable, "down"));
        sleep(Duration::from_millis(length));
        done.push(timed(&cable, "up"));
        sleep(Duration::from_millis(700));
    }
    let seen = [watched(&mut agent)];
    let states = states(&seen);
    let changes = changes(&states);
    assert_eq!(changes.len(), done.len(), "{states:?}");
    for (seen, done) in changes.iter().zip(&done) {
        assert!(is_near(seen, *done), "{seen:?}, done {done:?}");
    }
    for (seen, done) in changes.chunks(2).zip(done.chunks(2)) {
        let (seen, done) = (seen[1].at - seen[0].at, done[1].0 - done[0].0);
        assert!(seen.saturating_since(done).distance() < NEAR, "{seen} ns, not {done}");
    }
}

#[test]
fn an_interface_that_is_taken_down_or_away_is_not_up() {
    let Some(cable) = Cable::new("v") else { return };
    let mut agent = cable.agent();
    watch(&mut agent, &["rg0"]);
    watched_until(&mut agent, is_up);
    assert!(cable.set(0, "down"));
    let all = watched_until(&mut agent, |all| !states(all).is_empty() && !is_up(all));
    let last = *states(&all).last().unwrap();
    assert!(last.words.contains("down") && of_port(&all, 0).all(|port| port.failure.is_none()), "{all:?}");
    assert!(ip(&["-n", &cable.0[0], "link", "del", "rg0"]));
    let failure = |port: &PortSeen| port.failure.as_ref().is_some_and(|why| why.contains("rg0"));
    watched_until(&mut agent, |all| of_port(all, 0).any(failure));
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

/// Figures of a watch of some seconds. `cargo test --profile agent -p railgauge-agent --test agent by_hand_cost -- --ignored --nocapture`
#[test]
#[ignore = "takes 30 s, and measures where nothing else should run"]
fn by_hand_cost() {
    let root = tempfile::tempdir().unwrap();
    host(root.path(), 8);
    let eight: Vec<String> = (0..8).map(|n| format!("rxe{n}")).collect();
    let eight: Vec<&str> = eight.iter().map(String::as_str).collect();
    let mut recorded = command();
    recorded.env("RAILGAUGE_ROOT", root.path());
    costs("lo", &mut Agent::start(), &["lo"]);
    costs("8 ports of 60 counters, recorded", &mut Agent::greeted(&mut recorded), &eight);
    let Some(cable) = Cable::new("c") else { return };
    let names: Vec<String> = (1..8).map(|n| format!("rg{n}")).collect();
    for name in &names {
        assert!(ip(&["-n", &cable.0[0], "link", "add", name, "type", "veth", "peer", "name", &format!("{name}p")]));
        assert!(ip(&["-n", &cable.0[0], "link", "set", name, "up"]));
    }
    let real: Vec<&str> = ["rg0"].into_iter().chain(names.iter().map(String::as_str)).collect();
    costs("8 interfaces of the kernel", &mut cable.agent(), &real);
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
