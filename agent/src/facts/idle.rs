//! How idle the host is: two looks at what the kernel counts, some time apart.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use railgauge_wire::{
    facts::{HostFacts, Load, Traffic},
    unit::BitsPerSecond,
};

use crate::system::tree::Tree;

/// Shortest time between both looks: shorter ones mistake a single packet for traffic.
const APART: Duration = Duration::from_millis(200);
/// Words of four bytes are what InfiniBand's data counters count.
const WORD: u64 = 4;

/// Received and sent bytes.
type Bytes = (u64, u64);

/// One look.
#[derive(Debug)]
pub(crate) struct Look {
    at: Instant,
    /// Time of all processors: idle, and all of it.
    processors: Option<(u64, u64)>,
    interfaces: BTreeMap<String, Bytes>,
    ports: BTreeMap<(String, u8), Bytes>,
}

impl Look {
    /// Reads the counters now.
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
        Self { at: Instant::now(), processors: processors(tree), interfaces, ports }
    }

    /// Looks again, not too early, and writes what happened in between into the facts.
    pub(crate) fn again(self, tree: &Tree, facts: &mut HostFacts) {
        std::thread::sleep(APART.saturating_sub(self.at.elapsed()));
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
        let busy = self.processors.zip(later.processors).and_then(|(before, after)| {
            let all = after.1.checked_sub(before.1).filter(|all| *all > 0)?;
            Some(1.0 - (after.0.saturating_sub(before.0) as f64 / all as f64).min(1.0))
        });
        facts.load = Load { average: average(tree), busy };
    }
}

/// Average number of processes that ran or wanted to, over a minute.
fn average(tree: &Tree) -> Option<f64> {
    let text = tree.text("proc/loadavg")?;
    text.split_whitespace().next()?.parse::<f64>().ok().filter(|load| load.is_finite())
}

/// Idle time (waiting for disks included) and all time of all processors, from the first line of `/proc/stat`.
fn processors(tree: &Tree) -> Option<(u64, u64)> {
    let text = tree.text("proc/stat")?;
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    // user, nice, system, idle, iowait, irq, softirq, steal; the guests' time behind them is part of user's.
    let times: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let idle = times.get(3)?.checked_add(times.get(4).copied().unwrap_or(0))?;
    Some((idle, times.iter().try_fold(0, |sum: u64, time| sum.checked_add(*time))?))
}
