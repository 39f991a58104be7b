//! The counter of the bytes that passed a NIC, or why there is none.

use std::collections::BTreeMap;

use railgauge_model::journal::event::LinkRecord;
use railgauge_wire::{
    drivers::{ByteCounter, INTERFACE, MEMBERS, PHYSICAL, byte_counters},
    facts::HostFacts,
    terms::Carrier,
};

use crate::{
    case::{Uncounted, WhyUncounted},
    ceiling::LinkEnd,
};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counted {
    pub counter: String,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Sent,
    Received,
}

impl Way {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }
}

pub(super) struct End<'a> {
    pub host: &'a str,
    pub device: &'a str,
    pub facts: Option<&'a HostFacts>,
    pub counters: &'a BTreeMap<String, u64>,
}

impl End<'_> {
    /// That the header bytes are unknown because an MTU is: that of its own interface, or of the other end's.
    pub(super) fn without_mtu(&self, peer: &Self) -> Option<Uncounted> {
        let why = if !self.has_mtu() {
            WhyUncounted::UnknownMtu
        } else if !peer.has_mtu() {
            WhyUncounted::UnknownMtuOfPeer { peer: peer.host.to_owned(), peer_device: peer.device.into() }
        } else {
            return None;
        };
        let driver = LinkEnd::find(self.facts, self.device).device.and_then(|device| device.driver.clone());
        Some(Uncounted { host: self.host.to_owned(), device: self.device.to_owned(), driver, why })
    }

    fn has_mtu(&self) -> bool {
        LinkEnd::find(self.facts, self.device).interface.is_some_and(|interface| interface.mtu.is_some())
    }

    /// Interface counters only count if their packets are the flow's: TCP, and RDMA in software.
    ///
    /// # Errors
    /// No counter exists, or it is known to be wrong.
    pub(super) fn counted(&self, link: &LinkRecord, way: Way) -> Result<Counted, Uncounted> {
        let end = LinkEnd::find(self.facts, self.device);
        let rdma = link.transport != Carrier::Tcp;
        let device = end.device.filter(|_| rdma);
        let driver = device.and_then(|device| device.driver.clone());
        let of_driver = byte_counters(driver.as_deref());
        let candidates = if rdma && !link.software { of_driver } else { &[INTERFACE] };
        let port = end.port.filter(|_| rdma);
        let members: &[String] = port.map(|port| port.members.as_slice()).unwrap_or_default();
        let found = match members {
            [_, _, ..] => self.of_members(members, way),
            _ => self.of_port(candidates, way).map_err(|why| {
                let broken = candidates.iter().flat_map(|counter| names(counter, way)).find_map(|name| {
                    let said = port?.unreadable_counters.get(*name)?;
                    Some(WhyUncounted::Unreadable { counter: (*name).to_owned(), said: said.clone() })
                });
                match why {
                    WhyUncounted::NoCounter { .. } => broken.unwrap_or(why),
                    why => why,
                }
            }),
        };
        found.map_err(|why| Uncounted { host: self.host.to_owned(), device: self.device.to_owned(), driver, why })
    }

    fn of_port(&self, candidates: &[ByteCounter], way: Way) -> Result<Counted, WhyUncounted> {
        let mut still = None;
        for candidate in candidates {
            let there: Vec<(&str, u64)> =
                names(candidate, way).iter().filter_map(|name| Some((*name, *self.counters.get(*name)?))).collect();
            let sum = there.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
            let counter = there.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" + ");
            match (there.as_slice(), sum) {
                ([], _) => {}
                (_, 0) => still = still.or(Some(counter)),
                _ => return Ok(Counted { counter, bytes: sum.saturating_mul(candidate.unit) }),
            }
        }
        Err(match still {
            Some(counter) => WhyUncounted::Still { counter },
            None => {
                let interface = names(&INTERFACE, way).iter().any(|name| self.counters.contains_key(*name));
                WhyUncounted::NoCounter { interface }
            }
        })
    }

    /// The sum over the physical ports of a bond; the device's own counter may be that of one.
    fn of_members(&self, members: &[String], way: Way) -> Result<Counted, WhyUncounted> {
        let of = |member: &String| {
            let counts = names(&PHYSICAL, way).iter();
            counts.map(|name| self.counters.get(&format!("{MEMBERS}{member}/{name}")).copied()).sum::<Option<u64>>()
        };
        let silent: Vec<String> = members.iter().filter(|member| of(member).is_none()).cloned().collect();
        let counter = format!("{} of {}", names(&PHYSICAL, way).join(" + "), members.join(" + "));
        match members.iter().filter_map(of).fold(0_u64, u64::saturating_add) {
            _ if !silent.is_empty() => Err(WhyUncounted::Members { members: silent }),
            0 => Err(WhyUncounted::Still { counter }),
            bytes => Ok(Counted { counter, bytes }),
        }
    }
}

const fn names(counter: &ByteCounter, way: Way) -> &'static [&'static str] {
    match way {
        Way::Sent => counter.sent,
        Way::Received => counter.received,
    }
}
