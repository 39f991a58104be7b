//! What agents saw of their ports while tests ran, by port and time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_model::{journal::event::Sample, schedule::Flow};
use railgauge_wire::{
    unit::{Nanoseconds, NanosecondsI64},
    watch::CounterRow,
};

use crate::analysis::{
    journal::{Journal, Seen},
    soak::{ports::PortName, span::Span},
};

/// Rows of one port.
#[derive(Debug)]
pub struct PortRows<'j> {
    /// The port.
    pub name: PortName,
    /// Its rows of counters in files, and of drivers' statistics, each in the order of time.
    pub rows: [Vec<&'j CounterRow>; 2],
    /// How far off its times may be.
    pub error: Nanoseconds,
    /// Why something of it could not be read, the last time that it could not.
    pub failure: Option<&'j str>,
}

impl<'j> PortRows<'j> {
    /// The rows that reach into a time.
    pub fn within(&self, time: &Span) -> impl Iterator<Item = &'j CounterRow> + '_ {
        let (from, until) = (time.from, time.until);
        self.rows.iter().flat_map(move |rows| {
            let first = rows.partition_point(|row| row.until <= from);
            rows[first..].iter().copied().take_while(move |row| row.from < until)
        })
    }

    /// Every counter of which any row tells, with what it rose by.
    pub fn names(&self) -> impl Iterator<Item = &'j str> + '_ {
        self.rows.iter().flatten().flat_map(|row| row.counted.keys()).map(String::as_str)
    }
}

/// The window of an end of a flow on the controller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    /// What is added to the initiator's times.
    pub here: NanosecondsI64,
    /// The same of the responder's, where it is known.
    pub there: Option<NanosecondsI64>,
    /// How far off that may be.
    pub error: Nanoseconds,
}

/// What agents saw during the tests.
#[derive(Debug)]
pub struct Watch<'j> {
    seen: HashMap<&'j str, Vec<&'j Seen>>,
    ports: BTreeMap<&'j str, Vec<PortRows<'j>>>,
}

impl<'j> Watch<'j> {
    /// Of a journal; `None` where nothing was watched during its tests.
    pub fn of(journal: &'j Journal) -> Option<Self> {
        let mut seen: HashMap<&str, Vec<&Seen>> = HashMap::new();
        let mut ports: BTreeMap<PortName, PortRows<'_>> = BTreeMap::new();
        for one in journal.watched.iter().filter(|one| !one.soak) {
            seen.entry(&one.host).or_default().push(one);
            for port in &one.seen.ports {
                let name = PortName { host: one.host.clone(), device: port.device.clone(), port: port.port };
                let known = ports.entry(name.clone()).or_insert_with(|| PortRows {
                    name,
                    rows: Default::default(),
                    error: Nanoseconds::ZERO,
                    failure: None,
                });
                known.failure = port.failure.as_deref().or(known.failure);
                known.error = known.error.max(one.error);
                for row in &port.rows {
                    known.rows[usize::from(row.is_of_statistics())].push(row);
                }
            }
        }
        if seen.is_empty() {
            return None;
        }
        let mut of_host: BTreeMap<&str, Vec<PortRows<'_>>> = BTreeMap::new();
        for (_, mut port) in ports {
            // Those of two processes of a run may overlap by what their clocks are off.
            port.rows.iter_mut().for_each(|rows| rows.sort_by_key(|row| (row.until, row.from)));
            let Some((host, _)) = seen.get_key_value(port.name.host.as_str()) else { continue };
            of_host.entry(host).or_default().push(port);
        }
        Some(Self { seen, ports: of_host })
    }

    /// The watched ports of hosts.
    pub fn ports_of(&self, hosts: &BTreeSet<String>) -> impl Iterator<Item = &PortRows<'j>> {
        hosts.iter().filter_map(|host| self.ports.get(host.as_str())).flatten()
    }

    /// When a flow ran: by the clocks of the records of its hosts, else by the planned start of flows at once, which journals of versions
    /// before tell too. `None` where neither is known.
    pub(super) fn place(&self, flow: &Flow, sample: &Sample) -> Option<Placed> {
        let there = sample.responder.as_deref().and_then(|end| self.clock(&flow.to.host, end.started));
        if let Some((here, error)) = self.clock(&flow.from.host, sample.initiator.started) {
            let error = error.max(there.map_or(Nanoseconds::ZERO, |(_, error)| error));
            return Some(Placed { here, there: there.map(|(clock, _)| clock), error });
        }
        let together = sample.together.as_deref()?;
        if together.from.at.is_zero() || sample.initiator.started.is_zero() {
            return None;
        }
        let offset = |at: Nanoseconds| together.start.saturating_since(at);
        let there = (!together.to.at.is_zero()).then(|| offset(together.to.at));
        Some(Placed { here: offset(together.from.at), there, error: together.from.error.max(together.to.error) })
    }

    /// What a record of a host near a moment of its clock adds to it, and how far off that is.
    fn clock(&self, host: &str, at: Nanoseconds) -> Option<(NanosecondsI64, Nanoseconds)> {
        if at.is_zero() {
            return None;
        }
        let far = |seen: &Seen, clock: NanosecondsI64| {
            let shown = at.saturating_add_signed(clock);
            seen.seen.from.saturating_sub(shown).max(shown.saturating_sub(seen.seen.until))
        };
        let known = self.seen.get(host)?.iter().filter_map(|seen| Some((seen, seen.clock?)));
        let (seen, clock) = known.min_by_key(|(seen, clock)| far(seen, *clock))?;
        Some((clock, seen.error))
    }

    /// How many ports of these hosts have no reading of drivers' statistics that reaches into the passes of their host.
    pub(super) fn without_statistics(&self, hosts: &BTreeSet<String>, times: &[(Span, BTreeSet<String>)]) -> usize {
        let is_read = |port: &PortRows<'_>| {
            let own = times.iter().filter(|(_, hosts)| hosts.contains(&port.name.host));
            own.into_iter().any(|(time, _)| port.within(time).any(CounterRow::is_of_statistics))
        };
        self.ports_of(hosts).filter(|port| !is_read(port)).count()
    }

    /// Largest share of a processor that watching took of one of these hosts, and which one.
    pub(super) fn cost(&self, hosts: &BTreeSet<String>) -> Option<(f64, String)> {
        let share = |host: &String| {
            let seen = self.seen.get(host.as_str())?;
            let time = seen.iter().fold(0.0, |sum, one| sum + one.seen.until.saturating_sub(one.seen.from).as_f64());
            let cpu = seen.iter().fold(0.0, |sum, one| sum + one.seen.cpu.as_f64());
            (time > 0.0).then(|| (cpu / time, host.clone()))
        };
        hosts.iter().filter_map(share).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Mean time between two readings of either kind that reach into these times, as far as something rose in one: others may have been
    /// joined. `None` where none did.
    pub(super) fn paces(&self, times: &[(Span, BTreeSet<String>)]) -> [Option<Nanoseconds>; 2] {
        let mut sums = [(0.0, 0_u64); 2];
        for (time, hosts) in times {
            let rows = self.ports_of(hosts).flat_map(|port| port.within(time));
            let is_one = |row: &&CounterRow| row.counted.values().any(|rise| *rise > 0) && row.peaks.is_empty();
            for row in rows.filter(is_one) {
                let (length, rows) = &mut sums[usize::from(row.is_of_statistics())];
                *length += row.until.saturating_sub(row.from).as_f64();
                *rows += 1;
            }
        }
        sums.map(|(length, rows)| (rows > 0).then(|| Nanoseconds((length / rows as f64) as u64)))
    }
}
