//! The counter of the bytes that passed a NIC, if there is one that works.

use std::collections::BTreeMap;

use railgauge_model::journal::event::LinkRecord;
use railgauge_wire::{
    ByteCounter, Carrier, HostFacts,
    drivers::{INTERFACE, MEMBERS, PHYSICAL, byte_counters},
};

use crate::ceiling::LinkEnd;

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
    /// `gpu01 mlx5_0`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.host, self.device)
    }

    /// Interface counters only count if their packets are the flow's: TCP, and RDMA in software. A counter that did not
    /// move while payload passed does not work. `None` without one that does.
    pub(super) fn counted(&self, link: &LinkRecord, way: Way) -> Option<Counted> {
        let end = LinkEnd::find(self.facts, self.device);
        let rdma = link.transport != Carrier::Tcp;
        let driver = end.device.filter(|_| rdma).and_then(|device| device.driver.as_deref());
        let members = end.port.filter(|_| rdma).map(|port| port.members.as_slice()).unwrap_or_default();
        match members {
            [_, _, ..] => self.of_members(members, way),
            _ if rdma && !link.software => self.of_port(byte_counters(driver), way),
            _ => self.of_port(&[INTERFACE], way),
        }
    }

    fn of_port(&self, candidates: &[ByteCounter], way: Way) -> Option<Counted> {
        candidates.iter().find_map(|candidate| {
            let there = names(candidate, way).iter().filter_map(|name| Some((*name, *self.counters.get(*name)?)));
            let (names, counts): (Vec<&str>, Vec<u64>) = there.unzip();
            let sum = counts.into_iter().fold(0_u64, u64::saturating_add);
            (sum > 0).then(|| Counted { counter: names.join(" + "), bytes: sum.saturating_mul(candidate.unit) })
        })
    }

    /// The sum over the physical ports of a bond; the device's own counter may be that of one.
    fn of_members(&self, members: &[String], way: Way) -> Option<Counted> {
        let of = |member: &String| {
            let counts = names(&PHYSICAL, way).iter();
            counts.map(|name| self.counters.get(&format!("{MEMBERS}{member}/{name}")).copied()).sum::<Option<u64>>()
        };
        let bytes = members.iter().map(of).try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)))?;
        let counter = format!("{} of {}", names(&PHYSICAL, way).join(" + "), members.join(" + "));
        (bytes > 0).then_some(Counted { counter, bytes })
    }
}

const fn names(counter: &ByteCounter, way: Way) -> &'static [&'static str] {
    match way {
        Way::Sent => counter.sent,
        Way::Received => counter.received,
    }
}
