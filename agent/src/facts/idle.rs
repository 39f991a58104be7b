//! How idle the host is: two looks at what the kernel counts, some time apart.

use std::{
    collections::BTreeMap,
    sync::mpsc::Receiver,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::{
    facts::{HostFacts, Load, Traffic},
    unit::BitsPerSecond,
};

use crate::{system::tree::Tree, worker};

/// Shortest time between both looks: shorter ones mistake a single packet for traffic.
const APART: Duration = Duration::from_millis(200);
/// Oldest first look that is still used: what it saw then should be what the run is about to meet.
const OLDEST: Duration = Duration::from_secs(5);
/// Words of four bytes are what InfiniBand's data counters count.
const WORD: u64 = 4;

/// Received and sent bytes.
type Bytes = (u64, u64);

/// What processors did since the host booted, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Times {
    all: u64,
    idle: u64,
    /// Of these: this process, and processes that it started and that have ended. `None` where that cannot be told.
    own: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Look {
    at: Instant,
    processors: Option<Times>,
    interfaces: BTreeMap<String, Bytes>,
    ports: BTreeMap<(String, u8), Bytes>,
}

/// The first look of this process, until somebody has taken it.
static FIRST: Mutex<Option<Receiver<Look>>> = Mutex::new(None);

/// Looks for the first time, in a thread of its own: the time apart passes while the controller and the agent greet each other. A
/// device whose counters cannot be read holds up who asks for the facts, not the greeting.
pub(crate) fn begin() {
    *FIRST.lock() = Some(worker::ask("look", || Look::now(&Tree::host())));
}

/// The look that [`begin`] has taken; one of now where there is none, or an old one.
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

    /// Looks again, not too early, and writes what happened in between into the facts.
    pub(crate) fn again(self, tree: &Tree, facts: &mut HostFacts) {
        thread::sleep(APART.saturating_sub(self.at.elapsed()));
        let later = Self::now(tree);
        let seconds = (later.at - self.at).as_secs_f64();
        // Some drivers gather statistics once a second: then nothing moves in between, or a second's worth does.
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

/// Average number of processes that ran or wanted to, over a minute.
fn average(tree: &Tree) -> Option<f64> {
    let text = tree.text("proc/loadavg")?;
    text.split_whitespace().next()?.parse::<f64>().ok().filter(|load| load.is_finite())
}

impl Times {
    /// Now, from `/proc/stat` and `/proc/self/stat`.
    fn now(tree: &Tree) -> Option<Self> {
        let text = tree.text("proc/stat")?;
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        // user, nice, system, idle, iowait, irq, softirq, steal; the guests' time behind them is part of user's.
        let times: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let idle = times.get(3)?.checked_add(times.get(4).copied().unwrap_or(0))?;
        let all = times.iter().try_fold(0, |sum: u64, time| sum.checked_add(*time))?;
        Some(Self { all, idle, own: own(tree) })
    }

    /// Share of all processors' time until `later` that something else than this process took, from 0 to 1: collecting facts
    /// keeps a small host busy by itself.
    fn taken_by_others(self, later: Self) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        // Where it cannot be told in one of both, nothing is taken off: a whole life is not what happened in between.
        let own = self.own.zip(later.own).map_or(0, |(before, after)| after.saturating_sub(before));
        let not_others = later.idle.saturating_sub(self.idle).saturating_add(own);
        Some(1.0 - (not_others as f64 / all as f64).min(1.0))
    }
}

/// Time of this process and of its children that ended, from `/proc/self/stat`.
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
        // A child that ends brings along what it took before the first look.
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
