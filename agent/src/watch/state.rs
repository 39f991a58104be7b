//! Whether traffic can pass a port, from its files.
//!
//! | file | of | read |
//! | --- | --- | --- |
//! | `carrier` | the interface, and each member of a bond | at every look: the kernel keeps it |
//! | `carrier_down_count` | the interface | at every look: breaks between two looks show in it |
//! | `state` | an RDMA port without an interface, or whose interface does not report a carrier | at every look |
//! | `state`, `phys_state`, `rate`, `operstate`, `speed` | all | at a close look: drivers ask their firmware |
//!
//! A look is close once a second, after a change of a carrier or of the port's state, and for some seconds after a change while the files
//! contradict each other, as when a driver reports one event in two places.
//!
//! * An RDMA port is up while its state is ACTIVE (4) and its interface has a carrier. For InfiniBand only the port's own state counts:
//!   IPoIB's interface may be unused while RDMA passes.
//! * An interface is up while it has a carrier. One that is administratively down answers EINVAL: it has none. The operational state is
//!   only reported: that of `lo` is "unknown".
//! * A bond has a carrier while one of its members has one. The loss of another shows in the rate, which is the sum of the members',
//!   and in the words.
//! * An unreadable port is not up, since nothing shows that it is: a change, whose words name the file and the error. Such a look does
//!   not count as one.
//! * The rate is that of the RDMA port. Where its driver has no true one ([`RateOrigin`]) it is the interface's `speed`; an emulation has
//!   none. Lanes are reported only with a rate of the RDMA port.

use std::io;

use railgauge_wire::{GigabitsPerSecond, MegabitsPerSecond, RateOrigin};

use crate::{counters::Places, facts::rdma, system::tree::Tree};

/// Longest file that is read, in bytes: a page, which is the most that such a file has.
const LONGEST: u64 = 4096;

/// Number of the state ACTIVE (InfiniBand Architecture Specification, volume 1, PortInfo: PortState).
const ACTIVE: &str = "4";

#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be read: {error}")]
pub(super) struct Unreadable {
    pub(super) path: String,
    pub(super) error: io::Error,
}

impl Unreadable {
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENOTDIR))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RateFrom {
    Port,
    Interface,
    Members,
    Nowhere,
}

#[derive(Debug, Clone)]
pub(super) struct Files {
    port: Option<String>,
    infiniband: bool,
    interface: Option<String>,
    members: Vec<String>,
    rate: RateFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Yes,
    No,
    Down,
    Gone,
}

impl std::fmt::Display for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Yes => "1",
            Self::No => "0",
            Self::Down => "none, as the interface is down",
            Self::Gone => "none, as the interface is gone",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Quick {
    /// Breaks of the interface's link so far; `None` where the kernel does not count them (before Linux 4.16).
    breaks: Option<u64>,
    carrier: Option<Carrier>,
    members: Vec<Carrier>,
    state: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Close {
    state: Option<String>,
    physical: Option<String>,
    operational: Option<String>,
    rate: Option<GigabitsPerSecond>,
    lanes: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct State {
    quick: Quick,
    close: Close,
    /// As [`railgauge_wire::watch::PortState::up`].
    pub(super) up: bool,
    /// As [`railgauge_wire::watch::PortState::rate_gbps`].
    pub(super) rate: Option<GigabitsPerSecond>,
    /// As [`railgauge_wire::watch::PortState::lanes`].
    pub(super) lanes: Option<u8>,
    /// As [`railgauge_wire::watch::PortState::words`].
    pub(super) words: String,
    /// Files contradict each other, or do not have a rate yet: another look will show more.
    pub(super) unsettled: bool,
}

impl State {
    pub(super) fn unreadable(why: String) -> Self {
        Self { words: why, ..Self::default() }
    }

    /// Breaks of the link since a look that found this port up, as this one does; 0 where a state shows it.
    pub(super) fn hidden_breaks(&self, before: &Self) -> u64 {
        let counted = self.quick.breaks.zip(before.quick.breaks);
        let rise = counted.map_or(0, |(now, then)| now.saturating_sub(then));
        if before.up && self.up { rise } else { 0 }
    }

    /// Whether both are the same to the reader of changes. The operational state follows the carrier later and does not count.
    pub(super) fn same(&self, other: &Self) -> bool {
        let told = |state: &Self| {
            let Self { up, rate, lanes, quick, close, .. } = state.clone();
            (up, rate, lanes, quick.carrier, quick.members, close.state.or(quick.state), close.physical)
        };
        // Words name what cannot be read, and nothing else is known then.
        let nothing = |state: &Self| state.quick == Quick::default() && state.close == Close::default();
        told(self) == told(other) && (!nothing(self) || self.words == other.words)
    }
}

impl Files {
    pub(super) fn of(tree: &Tree, device: &str, places: &Places) -> Self {
        let link_layer = places.port.as_ref().and_then(|port| tree.text(format!("{port}/link_layer")));
        let origin = || match rdma::rate_origin(tree, device) {
            Some(RateOrigin::Device) => RateFrom::Port,
            Some(RateOrigin::InterfaceInSteps | RateOrigin::Constant) => RateFrom::Interface,
            None => RateFrom::Nowhere,
        };
        Self {
            rate: match (&places.port, places.members.len()) {
                (_, 2..) => RateFrom::Members,
                (Some(_), _) => origin(),
                (None, _) => RateFrom::Interface,
            },
            port: places.port.clone(),
            infiniband: link_layer.is_some_and(|layer| layer == "InfiniBand"),
            interface: places.interface.clone(),
            members: places.members.clone(),
        }
    }

    /// Close if asked for, or if something has changed since the look before.
    pub(super) fn look(&self, tree: &Tree, before: Option<&State>, closely: bool) -> Result<State, Unreadable> {
        let quick = self.quick(tree)?;
        let known = before.filter(|before| !closely && before.quick == quick);
        let close = match known {
            Some(before) => before.close.clone(),
            None => self.close(tree, &quick)?,
        };
        Ok(self.judged(quick, close))
    }

    fn quick(&self, tree: &Tree) -> Result<Quick, Unreadable> {
        // Before the carrier: a break in between then counts as one that lasts, and not twice.
        let breaks = self.interface.as_ref().and_then(|name| breaks_of(tree, name));
        let carrier = match self.interface.as_ref().map(|name| carrier_of(tree, name)).transpose() {
            Err(unreadable) if self.tells_nothing(tree, &unreadable) => None,
            carrier => carrier?,
        };
        // A missing member has left the bond, which `places` detects.
        let members = self.members.iter().map(|name| carrier_of(tree, name).unwrap_or(Carrier::Gone)).collect();
        let told = carrier.is_some() && !(self.infiniband && carrier != Some(Carrier::Yes));
        let state = self.port.as_ref().filter(|_| !told).map(|port| text(tree, format!("{port}/state"))).transpose()?;
        Ok(Quick { breaks, carrier, members, state })
    }

    /// Whether the interface of an RDMA port is there without a carrier, as in recorded hosts.
    fn tells_nothing(&self, tree: &Tree, unreadable: &Unreadable) -> bool {
        let there = |name: &String| tree.has(format!("{INTERFACES}/{name}"));
        self.port.is_some() && unreadable.is_gone() && self.interface.as_ref().is_some_and(there)
    }

    fn close(&self, tree: &Tree, quick: &Quick) -> Result<Close, Unreadable> {
        let mut found = Close::default();
        if let Some(port) = &self.port {
            found.state = match &quick.state {
                Some(state) => Some(state.clone()),
                None => Some(text(tree, format!("{port}/state"))?),
            };
            found.physical = text(tree, format!("{port}/phys_state")).ok();
        }
        if let Some(name) = &self.interface {
            found.operational = text(tree, format!("{INTERFACES}/{name}/operstate")).ok();
        }
        match self.rate {
            RateFrom::Port => {
                let words = self.port.as_ref().and_then(|port| text(tree, format!("{port}/rate")).ok());
                (found.rate, found.lanes) = words.map(|words| rate(&words)).unwrap_or_default();
            }
            RateFrom::Interface => found.rate = self.interface.as_ref().and_then(|name| speed(tree, name)),
            RateFrom::Members => {
                let carrying = self.members.iter().zip(&quick.members).filter(|(_, carrier)| **carrier == Carrier::Yes);
                let speeds: Option<Vec<_>> = carrying.map(|(name, _)| speed(tree, name)).collect();
                let sum = speeds.map(|speeds| speeds.iter().map(|speed| speed.0).sum());
                found.rate = sum.map(GigabitsPerSecond).filter(|rate| rate.is_rate());
            }
            RateFrom::Nowhere => {}
        }
        Ok(found)
    }

    fn judged(&self, quick: Quick, close: Close) -> State {
        let state = quick.state.as_ref().or(close.state.as_ref());
        let active = self.port.is_none() || state.is_some_and(|state| number(state) == ACTIVE);
        let carries = quick.carrier.is_none_or(|carrier| carrier == Carrier::Yes);
        let up = active && (carries || self.infiniband);
        let rated = close.rate.is_some() || self.rate == RateFrom::Nowhere;
        let agree = self.port.is_none() || quick.carrier.is_none() || active == carries;
        let mut words = Vec::new();
        words.extend(state.map(|state| format!("state {state}")));
        words.extend(close.physical.as_ref().map(|state| format!("phys_state {state}")));
        words.extend(quick.carrier.map(|carrier| format!("carrier {carrier}")));
        words.extend(close.operational.as_ref().map(|state| format!("operstate {state}")));
        words.extend(
            self.members.iter().zip(&quick.members).map(|(name, carrier)| format!("{name}: carrier {carrier}")),
        );
        State {
            up,
            // For a port that is down, the files have old values or a guess.
            rate: close.rate.filter(|_| up),
            lanes: close.lanes.filter(|_| up),
            words: words.join(", "),
            unsettled: !agree || (up && !rated),
            quick,
            close,
        }
    }
}

const INTERFACES: &str = "sys/class/net";

fn carrier_of(tree: &Tree, interface: &str) -> Result<Carrier, Unreadable> {
    match text(tree, format!("{INTERFACES}/{interface}/carrier")) {
        Ok(text) if text == "1" => Ok(Carrier::Yes),
        Ok(_) => Ok(Carrier::No),
        Err(unreadable) if unreadable.error.raw_os_error() == Some(libc::EINVAL) => Ok(Carrier::Down),
        Err(unreadable) => Err(unreadable),
    }
}

fn breaks_of(tree: &Tree, interface: &str) -> Option<u64> {
    text(tree, format!("{INTERFACES}/{interface}/carrier_down_count")).ok()?.parse().ok()
}

/// `None` for no speed, which the kernel reports as -1 or as an error.
fn speed(tree: &Tree, interface: &str) -> Option<GigabitsPerSecond> {
    let megabits: u64 = text(tree, format!("{INTERFACES}/{interface}/speed")).ok()?.parse().ok()?;
    // 32 bits of ones as a number without sign: drivers that do not know it.
    (megabits > 0 && megabits < u64::from(u32::MAX)).then(|| MegabitsPerSecond(megabits).into())
}

/// The number in front of a state, as in `4: ACTIVE`.
fn number(state: &str) -> &str {
    state.split(':').next().unwrap_or_default().trim()
}

/// Rate and lanes of `100 Gb/sec (4X EDR)`.
fn rate(words: &str) -> (Option<GigabitsPerSecond>, Option<u8>) {
    let rate = words.split_whitespace().next().and_then(|number| number.parse().ok()).map(GigabitsPerSecond);
    let lanes = words.split('(').nth(1).and_then(|rest| rest.split('X').next()?.trim().parse().ok());
    (rate.filter(|rate| rate.is_rate()), lanes)
}

fn text(tree: &Tree, path: String) -> Result<String, Unreadable> {
    match tree.read(&path, LONGEST) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
        Err(error) => Err(Unreadable { path, error }),
    }
}

#[cfg(test)]
#[path = "tests/state.rs"]
mod tests;
