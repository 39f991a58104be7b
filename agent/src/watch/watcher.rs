//! The thread that looks and reads within the budget of [`Pace`]. Looks come first: long rounds (counters, statistics, optics) run port
//! by port, so a look is late by at most one port. A port whose files are gone or changed, as for a bond with new members, is searched
//! again: a second later, or when the CPU time of the search is paid for.

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
};

use railgauge_wire::{Nanoseconds, PortState, STATISTICS, WatchedPort};

use super::{
    counters::{Series, Values},
    mailbox::{Look, Mailbox},
    module,
    pace::{Pace, Work},
    state::{Files, State},
};
use crate::{
    bench::clock,
    counters::{self, Places},
    system::{
        ethtool,
        netlink::{self, Part},
        tree::Tree,
    },
};

/// How long after a change the contradicting files of a port are read at every look.
const SETTLING: Nanoseconds = Nanoseconds::from_secs(5);

/// Interval of searches for the interface of a port without one: each reads many files.
const AGAIN: Nanoseconds = Nanoseconds::from_secs(60);

/// Answers of drivers that are in no file, and clocks.
pub(super) trait Drivers {
    fn now(&self) -> Nanoseconds {
        clock::now()
    }
    fn used(&self) -> Nanoseconds {
        clock::cpu()
    }
    fn statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>>;
    fn module(&self, interface: &str, part: Part) -> io::Result<Vec<u8>>;
}

pub(super) struct Here;

impl Drivers for Here {
    fn statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>> {
        ethtool::statistics(interface)
    }

    fn module(&self, interface: &str, part: Part) -> io::Result<Vec<u8>> {
        netlink::read_module(interface, part)
    }
}

#[derive(Default)]
struct Port {
    name: WatchedPort,
    found: Option<(Places, Files)>,
    interfaces: Option<Vec<String>>,
    /// Time of the search, and whether the interfaces may have changed since.
    sought: Nanoseconds,
    moved: bool,
    /// Why it was not found.
    lost: String,
    state: Option<State>,
    looked: Nanoseconds,
    settles: Nanoseconds,
    counters: Series,
    statistics: Series,
    without: BTreeSet<(Work, String)>,
}

pub(super) struct Watcher<D> {
    tree: Tree,
    drivers: D,
    ports: Vec<Port>,
    pace: Pace,
    mailbox: Arc<Mailbox>,
    /// CPU time of the thread at its start, and the part accounted for.
    began: Nanoseconds,
    accounted: Nanoseconds,
    /// A round in progress: the next port, its start, its cost so far.
    under_way: Option<(Work, usize, Nanoseconds, Nanoseconds)>,
    /// The last work was a look.
    looked: bool,
}

impl<D: Drivers> Watcher<D> {
    pub(super) fn new(tree: Tree, drivers: D, ports: Vec<WatchedPort>, mailbox: Arc<Mailbox>) -> Self {
        let port = |name| Port { name, ..Port::default() };
        let began = drivers.used();
        let ports = ports.into_iter().map(port).collect();
        Self {
            tree,
            drivers,
            ports,
            pace: Pace::default(),
            mailbox,
            began,
            accounted: began,
            under_way: None,
            looked: false,
        }
    }

    /// Watches until the other end of `end` is gone.
    pub(super) fn run(mut self, end: &Receiver<()>) {
        loop {
            let wait = self.work(self.drivers.now());
            self.mailbox.sleeps(self.drivers.used().saturating_sub(self.began));
            if end.recv_timeout(wait.into()) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Does the most urgent work, and returns the idle time until the next.
    fn work(&mut self, now: Nanoseconds) -> Nanoseconds {
        self.pace.settle(now);
        let due = |work| self.pace.due(work) <= now;
        let rounds = [Work::Counters, Work::Statistics, Work::Modules];
        let look = due(Work::CloseLook) || due(Work::Look);
        let closely = due(Work::CloseLook);
        let begins = || Some((rounds.into_iter().find(|work| due(*work))?, 0, now, Nanoseconds::ZERO));
        let reading = self.under_way.take().or_else(begins);
        match reading {
            // Looks that take longer than their interval leave room for a part of a reading.
            Some((work, port, begun, cost)) if !look || self.looked => {
                self.looked = false;
                self.read(work, port);
                let cost = cost.saturating_add(self.spent());
                if port + 1 < self.ports.len() {
                    self.under_way = Some((work, port + 1, begun, cost));
                } else {
                    self.pace.done(work, begun, cost);
                }
            }
            reading if look => {
                (self.under_way, self.looked) = (reading, true);
                self.look(now, closely);
            }
            _ => self.looked = false,
        }
        if self.under_way.is_some() {
            return Nanoseconds::ZERO;
        }
        let all = [Work::Look, Work::CloseLook].into_iter().chain(rounds);
        let next = all.map(|work| self.pace.due(work)).min().unwrap_or_default();
        next.saturating_sub(self.drivers.now())
    }

    fn spent(&mut self) -> Nanoseconds {
        let before = std::mem::replace(&mut self.accounted, self.drivers.used());
        self.accounted.saturating_sub(before)
    }

    /// Also searches for ports whose files are not found.
    fn look(&mut self, begun: Nanoseconds, closely: bool) {
        let searches = self.pace.due(Work::Places) <= begun;
        let mut searched = Nanoseconds::ZERO;
        for (at, port) in self.ports.iter_mut().enumerate() {
            let begun = self.drivers.now();
            self.mailbox.reading(at, begun);
            if port.moved && searches {
                searched += port.find(&self.tree, &self.drivers);
            }
            let mut found = port.look_at_files(&self.tree, closely, begun);
            if port.found.is_none() && searches {
                searched += port.find(&self.tree, &self.drivers);
                found = port.look_at_files(&self.tree, closely, begun);
            }
            self.mailbox.looked(at, port.seen((begun, self.drivers.now()), found));
        }
        let cost = self.spent().saturating_sub(searched);
        if searched > Nanoseconds::ZERO {
            self.pace.done(Work::Places, begun, searched);
        }
        match closely {
            true => {
                self.pace.done(Work::CloseLook, begun, cost);
                self.pace.included(Work::Look, begun);
            }
            false => self.pace.done(Work::Look, begun, cost),
        }
    }

    fn read(&mut self, work: Work, at: usize) {
        let Some(port) = self.ports.get_mut(at) else { return };
        let Some((places, _)) = port.found.clone() else { return };
        // An RDMA port without an interface may have one by now.
        let begun = self.drivers.now();
        let incomplete = places.interface.is_none() && begun.saturating_sub(port.sought) > AGAIN;
        self.mailbox.reading(at, begun);
        match work {
            Work::Statistics => {
                if let Err(why) = port.statistics(&places, &self.drivers, (&self.mailbox, at)) {
                    self.mailbox.failed(at, why.to_string());
                }
            }
            Work::Modules => port.modules(&places, &self.drivers),
            _ if !places.are_there(&self.tree) => port.moved = true,
            _ => {
                port.moved |= incomplete;
                let values = counters::in_files(&self.tree, &places);
                if values.is_empty() && port.counters.had_counters() {
                    return self.mailbox.failed(at, "none of its counters can be read any more".to_owned());
                }
                if let Some(row) = port.counters.read(self.drivers.now(), values) {
                    self.mailbox.counted(at, row);
                }
            }
        }
    }
}

impl Port {
    /// Returns the CPU time that this took.
    fn find(&mut self, tree: &Tree, clocks: &impl Drivers) -> Nanoseconds {
        let begun = clocks.used();
        let WatchedPort { device, port } = &self.name;
        (self.sought, self.moved) = (clocks.now(), false);
        match counters::lasting(tree, device, *port) {
            Ok(places) => {
                let files = Files::of(tree, device, &places);
                let interfaces = places.interfaces().map(|(name, _)| name.to_owned()).collect();
                let before = self.interfaces.replace(interfaces);
                if before.is_some() && before != self.interfaces {
                    // Those of another interface have the same names.
                    self.counters.forget();
                    self.statistics.forget();
                }
                self.found = Some((places, files));
                self.without.clear();
            }
            Err(failure) => (self.lost, self.found) = (failure.cause, None),
        }
        clocks.used().saturating_sub(begun)
    }

    fn look_at_files(&mut self, tree: &Tree, closely: bool, now: Nanoseconds) -> io::Result<State> {
        let Some((_, files)) = &self.found else { return Err(io::Error::other(self.lost.clone())) };
        let unsettled = self.state.as_ref().is_some_and(|state| state.unsettled) && now < self.settles;
        let found = files.look(tree, self.state.as_ref(), closely || unsettled);
        if let Err(unreadable) = &found
            && unreadable.is_gone()
        {
            // It may come back, under other names too.
            (self.lost, self.found) = (unreadable.to_string(), None);
        }
        found.map_err(io::Error::other)
    }

    fn seen(&mut self, (begun, ended): (Nanoseconds, Nanoseconds), found: io::Result<State>) -> Look {
        let (state, failure) = match found {
            Ok(state) => (state, None),
            Err(unseen) => (State::unreadable(unseen.to_string()), Some(unseen.to_string())),
        };
        let changed = !self.state.as_ref().is_some_and(|before| before.same(&state));
        let after = if self.state.is_some() { self.looked } else { ended };
        let now = || PortState {
            after,
            at: ended,
            up: state.up,
            rate_gbps: state.rate,
            lanes: state.lanes,
            words: state.words.clone(),
        };
        let hidden = self.state.as_ref().map_or(0, |before| state.hidden_breaks(before));
        let changes = match (hidden, changed) {
            (0, false) => Vec::new(),
            (0, true) => vec![now()],
            (breaks, _) => {
                let words = format!("carrier_down_count rose by {breaks} between two looks");
                vec![PortState { up: false, rate_gbps: None, lanes: None, words, ..now() }, now()]
            }
        };
        if changed {
            self.settles = ended.saturating_add(SETTLING);
        }
        self.state = Some(state);
        self.looked = begun;
        Look { begun, ended, changes, failure }
    }

    fn statistics(
        &mut self,
        places: &Places,
        drivers: &impl Drivers,
        (mailbox, at): (&Mailbox, usize),
    ) -> io::Result<()> {
        let mut values = Values::new();
        for (interface, prefix) in places.interfaces() {
            let key = (Work::Statistics, interface.to_owned());
            if self.without.contains(&key) {
                continue;
            }
            let refused = |error| io::Error::other(format!("the statistics of {interface} cannot be read: {error}"));
            let read = drivers.statistics(interface).map_err(refused)?;
            if read.is_empty() {
                self.without.insert(key);
            }
            values.extend(counters::named(&prefix, read));
        }
        if values.is_empty() {
            return Ok(());
        }
        self.statistics.gauge([(STATISTICS.to_owned(), values.len() as f64)]);
        if let Some(row) = self.statistics.read(drivers.now(), values) {
            mailbox.counted(at, row);
        }
        Ok(())
    }

    fn modules(&mut self, places: &Places, drivers: &impl Drivers) {
        for (interface, prefix) in places.interfaces() {
            let key = (Work::Modules, interface.to_owned());
            if self.without.contains(&key) {
                continue;
            }
            match module::read(|part| drivers.module(interface, part)) {
                Ok(gauges) => {
                    let named = gauges.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value));
                    self.counters.gauge(named);
                }
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    self.without.insert(key);
                }
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                    crate::system::log!("the module of {interface} is not watched: {error}");
                    self.without.insert(key);
                }
                // No module in the port, or it does not answer now.
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "tests/watcher.rs"]
mod tests;
