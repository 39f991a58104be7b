//! How idle the host is: two readings of the kernel's counters, some time apart.

use std::{
    collections::BTreeMap,
    sync::mpsc::Receiver,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::{BitsPerSecond, HostFacts, Load, Traffic};

use crate::{system::tree::Tree, worker};

/// Shortest time between the readings: shorter ones take a single packet for traffic.
const APART: Duration = Duration::from_millis(200);
/// Oldest first reading still in use: it should reflect the state that the run meets.
const OLDEST: Duration = Duration::from_secs(5);
const WORD: u64 = 4;

type Bytes = (u64, u64);

/// Since boot, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Times {
    all: u64,
    idle: u64,
    /// Part of this process and its ended children; `None` if unknown.
    own: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Look {
    at: Instant,
    processors: Option<Times>,
    interfaces: BTreeMap<String, Bytes>,
    ports: BTreeMap<(String, u8), Bytes>,
}

/// The first reading of this process, until it is taken.
static FIRST: Mutex<Option<Receiver<Look>>> = Mutex::new(None);

/// First reading, on a separate thread, during the handshake of controller and agent. A device with unreadable counters delays the facts,
/// not the handshake.
pub(crate) fn begin() {
    *FIRST.lock() = Some(worker::ask("look", || Look::now(&Tree::host())));
}

pub(crate) fn first(tree: &Tree) -> Look {
    let begun = FIRST.lock().take().and_then(|look| look.recv_timeout(OLDEST).ok());
    begun.filter(|look| look.at.elapsed() <= OLDEST).unwrap_or_else(|| Look::now(tree))
}

impl Look {
    pub(crate) fn now(tree: &Tree) -> Self {
        let mut interfaces = BTreeMap::new();
        for name in tree.names("sys/class/net") {
            let count = |file| tree.text(format!("sys/class/net/{name}/statistics/{file}"))?.parse().ok();
            if let Some(bytes) = count("rx_bytes").zip(count("tx_bytes")) {
                interfaces.insert(name, bytes);
            }
        }
        let mut ports = BTreeMap::new();
        for device in tree.names("sys/class/infiniband") {
            for port in tree.names(format!("sys/class/infiniband/{device}/ports")) {
                let at = format!("sys/class/infiniband/{device}/ports/{port}/counters");
                let count = |file| tree.text(format!("{at}/{file}"))?.parse::<u64>().ok()?.checked_mul(WORD);
                let bytes = count("port_rcv_data").zip(count("port_xmit_data"));
                if let Some((bytes, number)) = bytes.zip(port.parse().ok()) {
                    ports.insert((device.clone(), number), bytes);
                }
            }
        }
        Self { at: Instant::now(), processors: Times::now(tree), interfaces, ports }
    }

    /// Second reading, not too early; adds the difference to the facts.
    pub(crate) fn again(self, tree: &Tree, facts: &mut HostFacts) {
        thread::sleep(APART.saturating_sub(self.at.elapsed()));
        let later = Self::now(tree);
        let seconds = (later.at - self.at).as_secs_f64();
        // Some drivers update statistics once a second: a difference is then zero, or a second's worth.
        let rate = |before: Option<&Bytes>, after: Option<&Bytes>| {
            let (before, after) = before.zip(after)?;
            let bits = |before: u64, after: u64| after.saturating_sub(before) as f64 * 8.0 / seconds;
            Some(Traffic {
                received: BitsPerSecond(bits(before.0, after.0)),
                sent: BitsPerSecond(bits(before.1, after.1)),
            })
        };
        for interface in &mut facts.interfaces {
            interface.traffic = rate(self.interfaces.get(&interface.name), later.interfaces.get(&interface.name));
        }
        for device in &mut facts.rdma {
            for port in &mut device.ports {
                let key = (device.name.clone(), port.number);
                port.traffic = rate(self.ports.get(&key), later.ports.get(&key));
            }
        }
        let busy = self.processors.zip(later.processors).and_then(|(before, after)| before.taken_by_others(after));
        facts.load = Load { average: average(tree), busy };
    }
}

/// Processes that ran or wanted to, averaged over a minute.
fn average(tree: &Tree) -> Option<f64> {
    let text = tree.text("proc/loadavg")?;
    text.split_whitespace().next()?.parse::<f64>().ok().filter(|load| load.is_finite())
}

impl Times {
    /// From `/proc/stat` and `/proc/self/stat`.
    fn now(tree: &Tree) -> Option<Self> {
        let text = tree.text("proc/stat")?;
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        // user, nice, system, idle, iowait, irq, softirq, steal; the guests' time after them is part of user's.
        let times: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let idle = times.get(3)?.checked_add(times.get(4).copied().unwrap_or(0))?;
        let all = times.iter().try_fold(0, |sum: u64, time| sum.checked_add(*time))?;
        Some(Self { all, idle, own: own(tree) })
    }

    /// Share of all processors' time until `later` used by other processes, from 0 to 1: collecting facts keeps a small host busy by
    /// itself.
    fn taken_by_others(self, later: Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        // If unknown in either, nothing is subtracted: a total is not a difference.
        let own = self.own.zip(later.own).map_or(0, |(before, after)| after.saturating_sub(before));
        let not_others = later.idle.saturating_sub(self.idle).saturating_add(own);
        Some(1.0 - (not_others as f64 / all as f64).min(1.0))
    }
}

/// This process and its ended children, from `/proc/self/stat`.
fn own(tree: &Tree) -> Option<u64> {
    let text = tree.text("proc/self/stat")?;
    // The second word is the name, in parentheses, and may have spaces and parentheses itself.
    let (_, words) = text.rsplit_once(')')?;
    // utime, stime, cutime and cstime are the words 14 to 17 of the whole line.
    let times = words.split_whitespace().skip(11).take(4).map(|word| word.parse::<u64>().ok());
    times.sum()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_look_that_was_begun_is_used_once() {
        let begun = Instant::now();
        begin();
        let (answer, answered) = channel();
        let look = FIRST.lock().take().unwrap().recv().unwrap();
        answer.send(look).unwrap();
        *FIRST.lock() = Some(answered);
        let asked = Instant::now();
        let tree = Tree::host();
        let at = first(&tree).at;
        assert!(at >= begun && at < asked, "{:?} after it began", at - begun);
        assert!(first(&tree).at >= asked);
    }

    #[test]
    fn what_the_agent_itself_takes_is_not_something_else() {
        let before = Times { all: 1_000, idle: 500, own: Some(40) };
        // Of 100 ticks 10 were idle, and 80 of the agent.
        let after = Times { all: 1_100, idle: 510, own: Some(120) };
        assert!((before.taken_by_others(after).unwrap() - 0.1).abs() < 1e-9);
        // A child that ends adds what it used before the first reading.
        assert_eq!(before.taken_by_others(Times { own: Some(400), ..after }), Some(0.0));
        for (first, second) in [(None, Some(120)), (Some(40), None)] {
            let share = Times { own: first, ..before }.taken_by_others(Times { own: second, ..after });
            assert!((share.unwrap() - 0.9).abs() < 1e-9, "nothing is taken off that is not known: {share:?}");
        }
        assert_eq!(before.taken_by_others(before), None, "no time has passed");
    }

    #[test]
    fn the_own_time_is_read_whatever_the_name_of_the_process() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let line = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 100 20 3 4 20 0 1 0 300 1000 200";
        std::fs::write(root.path().join("proc/self/stat"), line).unwrap();
        assert_eq!(own(&Tree::new(root.path())), Some(127));
    }
}
