//! Observations until they are asked for. The lock is never held while a file is read.
//!
//! Memory is bounded. When the rows of a port exceed its part of [`ROOM`], neighbours of the older half are joined in pairs, with their
//! peaks, so the oldest rows have the longest spans. When its state changes exceed its part of [`CHANGES`], later ones replace the last,
//! and the answer has the number missing.

use parking_lot::Mutex;
use railgauge_wire::{CounterRow, Gap, LONG_GAP, Nanoseconds, PortSeen, PortState, Watched, WatchedPort};

use super::counters::size;

/// Approximate bytes of all rows in an answer: half of the controller's limit for text.
const ROOM: usize = 512 << 10;
/// Most kept state changes of all ports, each of some 100 bytes.
const CHANGES: usize = 2000;
/// Most kept gaps of all ports, each of some 50 bytes.
const GAPS: usize = 2000;
const LONG: Nanoseconds = Nanoseconds::from_secs(1);

pub(super) struct Mailbox(Mutex<Kept>);

struct Kept {
    from: Nanoseconds,
    /// CPU time of the thread since it started, and as of the last answer.
    cpu: Nanoseconds,
    told: Nanoseconds,
    ports: Vec<Port>,
    /// The port being read, and since when.
    reading: Option<(usize, Nanoseconds)>,
    ended: Option<String>,
}

#[derive(Default)]
struct Port {
    name: WatchedPort,
    looks: u64,
    longest_gap: Nanoseconds,
    /// Start of the last look that counts; start of the watch before the first.
    last_look: Nanoseconds,
    gaps: Vec<Gap>,
    lost_gaps: u64,
    states: Vec<PortState>,
    missing: u64,
    rows: Vec<CounterRow>,
    statistics: Vec<CounterRow>,
    size: usize,
    failure: Option<String>,
}

pub(super) struct Look {
    pub(super) begun: Nanoseconds,
    pub(super) ended: Nanoseconds,
    /// The new state, if changed; before it a break between the two looks.
    pub(super) changes: Vec<PortState>,
    pub(super) failure: Option<String>,
}

impl Mailbox {
    pub(super) fn new(ports: Vec<WatchedPort>, begin: Nanoseconds) -> Self {
        let port = |name| Port { name, last_look: begin, ..Port::default() };
        let ports = ports.into_iter().map(port).collect();
        let zero = Nanoseconds::ZERO;
        Self(Mutex::new(Kept { from: begin, cpu: zero, told: zero, ports, reading: None, ended: None }))
    }

    pub(super) fn reading(&self, port: usize, begun: Nanoseconds) {
        self.0.lock().reading = Some((port, begun));
    }

    pub(super) fn sleeps(&self, cpu: Nanoseconds) {
        let mut kept = self.0.lock();
        (kept.cpu, kept.reading) = (cpu, None);
    }

    pub(super) fn ended(&self, why: String) {
        let mut kept = self.0.lock();
        (kept.ended, kept.reading) = (Some(why), None);
    }

    pub(super) fn looked(&self, port: usize, look: Look) {
        let mut kept = self.0.lock();
        let most = (CHANGES / kept.ports.len().max(1)).max(2);
        let most_gaps = (GAPS / kept.ports.len().max(1)).max(2);
        let Some(port) = kept.ports.get_mut(port) else { return };
        match look.failure {
            None => {
                port.looks += 1;
                port.longest_gap = port.longest_gap.max(look.ended.saturating_sub(port.last_look));
                port.gap(look.ended, most_gaps);
                port.last_look = look.begun;
            }
            failed => port.failure = failed,
        }
        for change in look.changes {
            if port.states.len() >= most {
                port.states.pop();
                port.missing += 1;
            }
            port.states.push(change);
        }
    }

    pub(super) fn counted(&self, port: usize, row: CounterRow) {
        let mut kept = self.0.lock();
        let room = ROOM / kept.ports.len().max(1);
        let Some(port) = kept.ports.get_mut(port) else { return };
        let rows = if row.is_of_statistics() { &mut port.statistics } else { &mut port.rows };
        port.size += size(&row);
        rows.push(row);
        while port.size > room && port.rows.len().max(port.statistics.len()) > 1 {
            port.shorten();
        }
    }

    pub(super) fn failed(&self, port: usize, why: String) {
        if let Some(port) = self.0.lock().ports.get_mut(port) {
            port.failure = Some(why);
        }
    }

    pub(super) fn take(&self, now: Nanoseconds) -> Watched {
        let mut kept = self.0.lock();
        let hangs = kept.reading.filter(|(_, begun)| now.saturating_sub(*begun) > LONG);
        let hangs = hangs.and_then(|(port, begun)| {
            let WatchedPort { device, port } = &kept.ports.get(port)?.name;
            let seconds = now.saturating_sub(begun).seconds();
            Some(format!("reading from {device}, port {port}, has taken {seconds:.1} s and continues"))
        });
        let common: Vec<String> = kept.ended.iter().cloned().chain(hangs).collect();
        let seen = kept.ports.iter_mut().map(|port| port.take(now, &common)).collect();
        let (from, cpu) = (kept.from, kept.cpu.saturating_sub(kept.told));
        (kept.from, kept.told) = (now, kept.cpu);
        Watched { from, until: now, cpu, ports: seen }
    }
}

impl Port {
    fn shorten(&mut self) {
        let rows = if self.rows.len() >= self.statistics.len() { &mut self.rows } else { &mut self.statistics };
        let newer = rows.split_off((rows.len() / 2).next_multiple_of(2));
        let mut older = std::mem::take(rows).into_iter();
        while let Some(row) = older.next() {
            rows.push(match older.next() {
                Some(next) => row.joined(next),
                None => row,
            });
        }
        rows.extend(newer);
        self.size = self.rows.iter().chain(&self.statistics).map(size).sum();
    }

    /// Keeps the time since the last look that counts if it is long.
    fn gap(&mut self, until: Nanoseconds, most: usize) {
        let gap = Gap { from: self.last_look, until };
        if gap.until.saturating_sub(gap.from) <= LONG_GAP.into() {
            return;
        }
        if self.gaps.len() < most { self.gaps.push(gap) } else { self.lost_gaps += 1 }
    }

    fn take(&mut self, now: Nanoseconds, common: &[String]) -> PortSeen {
        // Still open: reported as far as known, as this may be the last question.
        self.gap(now, usize::MAX);
        let mut rows: Vec<_> = self.rows.drain(..).chain(self.statistics.drain(..)).collect();
        rows.sort_by_key(|row| row.until);
        self.size = 0;
        let missing = std::mem::take(&mut self.missing);
        let missing =
            (missing > 0).then(|| format!("{missing} changes of its state before the last one were not kept"));
        let lost = std::mem::take(&mut self.lost_gaps);
        let lost = (lost > 0).then(|| format!("{lost} more times without a look were not kept"));
        let words: Vec<String> =
            self.failure.take().into_iter().chain(missing).chain(lost).chain(common.iter().cloned()).collect();
        let longest_gap = std::mem::take(&mut self.longest_gap).max(now.saturating_sub(self.last_look));
        PortSeen {
            device: self.name.device.clone(),
            port: self.name.port,
            looks: std::mem::take(&mut self.looks),
            longest_gap,
            gaps: std::mem::take(&mut self.gaps),
            states: std::mem::take(&mut self.states),
            rows,
            failure: (!words.is_empty()).then(|| words.join("; ")),
        }
    }
}

#[cfg(test)]
#[path = "tests/mailbox.rs"]
mod tests;
