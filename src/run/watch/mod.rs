//! Asks the agents what they saw of their ports, whatever the traffic does.

mod joined;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use railgauge_model::journal::event::{Event, LinkRecord};
use railgauge_model::schedule::devices::devices;
use railgauge_wire::{
    Answer, Ask, HostFacts, Nanoseconds, NanosecondsI64, Transport, Watched, WatchedPort,
    facts::port_name,
    watch::{ANSWER_WITHIN, ASK_EVERY},
};
use tokio::{
    sync::{Notify, watch},
    task::{JoinHandle, JoinSet},
};

use self::joined::{bounded, join, moved};
use super::{clocks, hosts::Hosts, spine::Spine, work::Work};
use crate::cluster::{Agent, Asked};

/// Largest uncertainty of a well compared clock.
const CLOSE: Nanoseconds = Nanoseconds::from_millis(100);
const EARLY: u32 = 2_000;

/// Clocks of the hosts as of their last answers, shared for conversions of agents' times to times since 1970.
#[derive(Clone, Default)]
pub(crate) struct Clocks(Arc<Mutex<BTreeMap<String, Clock>>>);

/// An agent's monotonic clock relative to the time since 1970 by the controller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// The time since 1970 minus the agent's clock.
    offset: NanosecondsI64,
    error: Nanoseconds,
}

impl Clock {
    /// A moment of the agent's clock since 1970, with its uncertainty; `None` if out of range.
    pub(crate) fn convert(self, at: Nanoseconds) -> Option<(Nanoseconds, Nanoseconds)> {
        let shown = at.saturating_add_signed(self.offset);
        (!shown.is_zero()).then_some((shown, self.error))
    }
}

impl Clocks {
    pub(crate) fn of(&self, host: &str) -> Option<Clock> {
        self.0.lock().get(host).copied()
    }
}

type Ports = Arc<Mutex<BTreeMap<String, BTreeSet<WatchedPort>>>>;

#[derive(Clone, Default)]
pub(crate) struct Shared {
    pub(crate) clocks: Clocks,
    ports: Ports,
    news: Arc<Notify>,
}

impl Shared {
    #[cfg(test)]
    pub(crate) fn with_clocks(clocks: &[(&str, NanosecondsI64)]) -> Self {
        let of =
            |&(host, offset): &(&str, NanosecondsI64)| (host.to_owned(), Clock { offset, error: Nanoseconds::ZERO });
        let clocks = Clocks(Arc::new(Mutex::new(clocks.iter().map(of).collect())));
        Self { clocks, ..Self::default() }
    }

    /// A link of these two hosts is used: its ports are watched from now on.
    pub(crate) fn learn(&self, from: &str, to: &str, link: &LinkRecord) {
        self.add([(from, &link.from_device), (to, &link.to_device)]);
    }

    fn add(&self, used: [(&str, &str); 2]) {
        let mut ports = self.ports.lock();
        let mut is_news = false;
        for (host, device) in used {
            is_news |= ports.entry(host.to_owned()).or_default().insert(port_of(device));
        }
        drop(ports);
        if is_news {
            self.news.notify_waiters();
        }
    }

    fn told(&self) -> BTreeMap<String, BTreeSet<WatchedPort>> {
        self.ports.lock().clone()
    }
}

/// A port by its name in plans: `mlx5_0:2` is the second of a device.
fn port_of(name: &str) -> WatchedPort {
    let (device, port) = port_name(name);
    WatchedPort { device: device.to_owned(), port: port.unwrap_or(1) }
}

pub(crate) struct Watcher {
    shared: Shared,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Watcher {
    /// Watches the ports that the work uses, as far as known before links report them. `earlier` has those reported by earlier links of the
    /// same flows. A record is written when a state changed, and at the latest after `part`.
    pub(crate) fn start(work: &Work, hosts: &Hosts, part: Duration, earlier: &Shared, spine: &Spine) -> Self {
        let mut ports = known(work, hosts);
        earlier.told().into_iter().for_each(|(host, told)| ports.entry(host).or_default().extend(told));
        let shared = Shared { ports: Arc::new(Mutex::new(ports)), ..Shared::default() };
        let (stop, stopped) = watch::channel(false);
        let host = |(name, agent): (&String, &Agent)| Watch {
            host: name.clone(),
            agent: agent.clone(),
            shared: shared.clone(),
            part,
            spine: spine.clone(),
            asked: BTreeSet::new(),
            refused: false,
            pending: None,
            moved_by: NanosecondsI64(0),
            late: None,
            early: 0,
        };
        let hosts: Vec<Watch> = hosts.agents.iter().map(host).collect();
        let task = tokio::spawn(async move {
            let mut watching = JoinSet::new();
            for host in hosts {
                watching.spawn(host.run(stopped.clone()));
            }
            watching.join_all().await;
        });
        Self { shared, stop, task }
    }

    pub(crate) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    pub(crate) async fn end(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

fn known(work: &Work, hosts: &Hosts) -> BTreeMap<String, BTreeSet<WatchedPort>> {
    let mut ports: BTreeMap<String, BTreeSet<WatchedPort>> = BTreeMap::new();
    for case in &work.cases {
        for end in [&case.flow.from, &case.flow.to] {
            let Some(host) = work.plan.hosts.iter().find(|host| *host.name == *end.host) else { continue };
            let facts = hosts.facts.get(&host.name);
            let devices = devices(host, facts, case.cell.transport);
            let device = devices.get(end.rail as usize).map(String::as_str);
            // TCP can also be named by address. If the facts do not show the interface, the link does.
            let device = match (case.cell.transport, device) {
                (Transport::Tcp, Some(name)) => interface(name, facts),
                (Transport::Tcp, None) => only_interface(facts),
                _ => device,
            };
            ports.entry(host.name.clone()).or_default().extend(device.map(port_of));
        }
    }
    ports
}

fn interface<'f>(name: &str, facts: Option<&'f HostFacts>) -> Option<&'f str> {
    facts?.interfaces.iter().find(|interface| interface.is(name)).map(|interface| interface.name.as_str())
}

/// The interface that the agent chooses without a name in the plan, if there is only one with an address that others can reach.
fn only_interface(facts: Option<&HostFacts>) -> Option<&str> {
    let is_reachable = |address: &String| {
        let address: Option<IpAddr> = address.split('%').next().and_then(|address| address.parse().ok());
        address.is_some_and(|address| match address {
            IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
            IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
        })
    };
    let mut found = facts?.interfaces.iter().filter(|interface| interface.addresses.iter().any(is_reachable));
    found.next().filter(|_| found.next().is_none()).map(|interface| interface.name.as_str())
}

struct Watch {
    host: String,
    agent: Agent,
    shared: Shared,
    part: Duration,
    spine: Spine,
    asked: BTreeSet<WatchedPort>,
    refused: bool,
    /// What is not recorded yet, and the uncertainty of its times.
    pending: Option<(Watched, Nanoseconds)>,
    moved_by: NanosecondsI64,
    /// An unanswered question, and when it was asked: the agent has put what it saw into that answer.
    late: Option<(Nanoseconds, Asked)>,
    early: u32,
}

impl Watch {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            let due = tokio::time::Instant::now() + ASK_EVERY;
            let is_last = loop {
                let news = self.shared.news.clone();
                let mut told = std::pin::pin!(news.notified());
                // From here on no news is missed.
                told.as_mut().enable();
                self.watch_all().await;
                // Read the clock before anything can hang: a late answer says little about it.
                if self.shared.clocks.of(&self.host).is_none() {
                    self.ask().await;
                }
                tokio::select! {
                    () = tokio::time::sleep_until(due) => break false,
                    _ = stopped.wait_for(|stop| *stop) => break true,
                    () = told => {}
                }
            };
            self.ask().await;
            self.record(is_last);
            if is_last {
                let none = Ask::Watch { ports: Vec::new() };
                // An agent that is gone watches nothing either.
                let _ = self.agent.ask(none, ANSWER_WITHIN).await;
                return;
            }
        }
    }

    async fn watch_all(&mut self) {
        let wanted = self.shared.ports.lock().get(&self.host).cloned().unwrap_or_default();
        if wanted == self.asked {
            return;
        }
        self.ask().await;
        let ask = Ask::Watch { ports: wanted.iter().cloned().collect() };
        match self.agent.ask(ask, ANSWER_WITHIN).await {
            Ok(Answer::Done) => self.asked = wanted,
            Ok(_) => self.tell("its agent does not answer as it should".to_owned()),
            Err(failure) => self.tell(failure.to_string()),
        }
    }

    fn tell(&mut self, why: String) {
        if !std::mem::replace(&mut self.refused, true) {
            let text = format!("its ports are not watched: {why}");
            self.spine.emit(Event::Note { host: self.host.clone(), text });
        }
    }

    async fn ask(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        let (before, mut asked) =
            self.late.take().unwrap_or_else(|| (clocks::since_1970(), self.agent.send(Ask::Watched)));
        // The flows report an agent that is gone. A late one may still answer.
        let seen = match tokio::time::timeout(ANSWER_WITHIN, asked.answer()).await {
            Ok(Ok(Answer::Watched(seen))) => *seen,
            Ok(_) => return,
            Err(_) => {
                self.late = Some((before, asked));
                return;
            }
        };
        let after = clocks::since_1970();
        // Cristian's algorithm (1989): the reading belongs to the middle of the round trip, plus or minus half of it. A long round trip is
        // less accurate than an earlier short one.
        let error = after.saturating_sub(before) / 2;
        let offset = before.saturating_add(error).saturating_since(seen.until);
        let known = self.shared.clocks.of(&self.host).filter(|known| known.error < error && error > CLOSE);
        let Clock { offset, error } = known.unwrap_or(Clock { offset, error });
        self.shared.clocks.0.lock().insert(self.host.clone(), Clock { offset, error });
        let seen = moved(bounded(seen, &self.asked), offset);
        let (before, worst) = self.pending.take().unzip();
        let slip = NanosecondsI64(offset.0.saturating_sub(std::mem::replace(&mut self.moved_by, offset).0));
        self.pending = Some((join(before, seen, slip), worst.map_or(error, |worst| worst.max(error))));
    }

    /// Records what is pending if a state changed, if it is long enough, or if nothing follows.
    fn record(&mut self, is_last: bool) {
        let Some((seen, _)) = &self.pending else { return };
        let is_over = is_last || seen.until.saturating_sub(seen.from) >= self.part.into();
        // A flapping port must not fill the disk.
        let is_news = self.early < EARLY && seen.ports.iter().any(|port| !port.states.is_empty());
        if !is_over && !is_news {
            return;
        }
        self.early += u32::from(!is_over);
        if let Some((seen, error)) = self.pending.take() {
            self.spine.emit(Event::Watched { host: self.host.clone(), error, seen: Box::new(seen) });
        }
    }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::Interface;

    use super::*;

    #[test]
    fn an_address_of_tcp_is_watched_by_its_interface() {
        let addresses = vec!["10.84.0.1".to_owned(), "fe80::1".to_owned()];
        let eth0 = Interface { name: "eth0".into(), addresses, ..Interface::default() };
        let facts = HostFacts { interfaces: vec![eth0], ..HostFacts::default() };
        let found = ["eth0", "10.84.0.1", "fe80::1", "10.84.0.2"].map(|name| interface(name, Some(&facts)));
        assert_eq!(found, [Some("eth0"), Some("eth0"), Some("eth0"), None]);
        let with = |name: &str, address: &str| Interface {
            name: name.into(),
            addresses: vec![address.into()],
            ..Interface::default()
        };
        let only = |interfaces: Vec<Interface>| {
            only_interface(Some(&HostFacts { interfaces, ..HostFacts::default() })).map(str::to_owned)
        };
        let lo = || with("lo", "127.0.0.1");
        assert_eq!(only(vec![lo(), with("eth0", "10.84.0.1"), with("eth1", "fe80::1")]).as_deref(), Some("eth0"));
        assert_eq!(only(vec![lo(), with("eth0", "10.84.0.1"), with("eth1", "2001:db8::1")]), None);
        assert_eq!(only(vec![lo()]), None);
    }

    #[test]
    fn ports_are_named_as_plans_name_them() {
        let port = |device: &str, port| WatchedPort { device: device.into(), port };
        assert_eq!(port_of("mlx5_0"), port("mlx5_0", 1));
        assert_eq!(port_of("mlx5_0:2"), port("mlx5_0", 2));
        assert_eq!(port_of("bond0.7"), port("bond0.7", 1));
        assert_eq!(port_of("eth0:alias"), port("eth0:alias", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_that_a_link_tells_wakes_who_watches_and_is_known_to_who_watches_next() {
        let shared = Shared::default();
        let used = [("a", "eth0"), ("b", "eth1")];
        let news = shared.news.clone();
        let mut told = std::pin::pin!(news.notified());
        told.as_mut().enable();
        shared.add(used);
        tokio::time::timeout(Duration::from_secs(5), told).await.unwrap();
        let ports = shared.told();
        assert_eq!((&ports["a"], &ports["b"]), (&[port_of("eth0")].into(), &[port_of("eth1")].into()));
        let mut again = std::pin::pin!(news.notified());
        again.as_mut().enable();
        shared.add(used);
        assert!(tokio::time::timeout(Duration::from_millis(50), again).await.is_err());
    }
}
