//! Agents' observations of their ports during tests, by port and time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_model::{journal::event::Sample, schedule::Flow};
use railgauge_wire::{
    unit::{Nanoseconds, NanosecondsI64},
    watch::CounterRow,
};

use crate::{
    journal::{Journal, Seen},
    soak::{ports::PortName, span::Span},
};

#[derive(Debug)]
pub struct PortRows<'j> {
    pub name: PortName,
    /// Its rows of counters in files, and of drivers' statistics, each in order of time.
    pub rows: [Vec<&'j CounterRow>; 2],
    pub error: Nanoseconds,
}

impl<'j> PortRows<'j> {
    pub fn within(&self, time: &Span) -> impl Iterator<Item = &'j CounterRow> + '_ {
        let (from, until) = (time.from, time.until);
        self.rows.iter().flat_map(move |rows| {
            let first = rows.partition_point(|row| row.until <= from);
            rows[first..].iter().copied().take_while(move |row| row.from < until)
        })
    }

    pub fn names(&self) -> impl Iterator<Item = &'j str> + '_ {
        self.rows.iter().flatten().flat_map(|row| row.counted.keys()).map(String::as_str)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    pub here: NanosecondsI64,
    pub there: Option<NanosecondsI64>,
    pub error: Nanoseconds,
}

#[derive(Debug)]
pub struct Watch<'j> {
    seen: HashMap<&'j str, Vec<&'j Seen>>,
    ports: BTreeMap<&'j str, Vec<PortRows<'j>>>,
}

impl<'j> Watch<'j> {
    /// `None` where nothing was watched during its tests.
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
                });
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
            // Those of two processes of a run may overlap by the error of their clocks.
            port.rows.iter_mut().for_each(|rows| rows.sort_by_key(|row| (row.until, row.from)));
            let Some((host, _)) = seen.get_key_value(port.name.host.as_str()) else { continue };
            of_host.entry(host).or_default().push(port);
        }
        Some(Self { seen, ports: of_host })
    }

    pub fn ports_of(&self, hosts: &BTreeSet<String>) -> impl Iterator<Item = &PortRows<'j>> {
        hosts.iter().filter_map(|host| self.ports.get(host.as_str())).flatten()
    }

    /// By the clocks of the records of its hosts; `None` if unknown.
    pub(super) fn place(&self, flow: &Flow, sample: &Sample) -> Option<Placed> {
        let there = sample.responder.as_deref().and_then(|end| self.clock(&flow.to.host, end.started));
        let (here, error) = self.clock(&flow.from.host, sample.initiator.started)?;
        let error = error.max(there.map_or(Nanoseconds::ZERO, |(_, error)| error));
        Some(Placed { here, there: there.map(|(clock, _)| clock), error })
    }

    /// Offset of a host's record near a moment of its clock, and its error.
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
}
