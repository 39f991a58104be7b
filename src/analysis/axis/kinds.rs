//! Counters of congestion that nobody has, or that stood still: silence, told as what it is.

use std::collections::{BTreeSet, HashMap};

use super::watch::{PortRows, Watch};
use crate::analysis::soak::{
    families::{Family, family},
    span::Span,
};

/// A kind of counter that congestion moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Pause frames of the link or of a priority, sent or received.
    Pauses,
    /// Packets marked by ECN.
    Ecn,
    /// Congestion notification packets, sent or received.
    Cnp,
    /// Packets thrown away, arriving or leaving.
    Discards,
    /// Packets sent again, missing, or out of order.
    Retransmissions,
}

impl Kind {
    /// Every kind, in the order in which they are told.
    pub const ALL: [Self; 5] = [Self::Pauses, Self::Ecn, Self::Cnp, Self::Discards, Self::Retransmissions];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pauses => "PFC and link pauses",
            Self::Ecn => "ECN marks",
            Self::Cnp => "CNPs",
            Self::Discards => "discards",
            Self::Retransmissions => "retransmissions",
        }
    }

    const fn of(family: Family) -> Option<Self> {
        match family {
            Family::PausesReceived | Family::PausesSent | Family::PausedTime | Family::PauseStorms => {
                Some(Self::Pauses)
            }
            Family::EcnMarks => Some(Self::Ecn),
            Family::CnpSent | Family::CnpReceived => Some(Self::Cnp),
            Family::DiscardsIn | Family::DiscardsOut => Some(Self::Discards),
            Family::Retransmissions => Some(Self::Retransmissions),
            _ => None,
        }
    }
}

/// Who has counters of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfKind {
    /// Which kind.
    pub kind: Kind,
    /// Ports that have such a counter, as far as one was read.
    pub counting: usize,
    /// Those of them on which one rose in a pass.
    pub rose: usize,
}

/// Every kind over the ports of these hosts, in the passes that ran on them.
pub(super) fn of(watch: &Watch<'_>, hosts: &BTreeSet<String>, times: &[(Span, BTreeSet<String>)]) -> Vec<OfKind> {
    let mut known: HashMap<String, Option<Kind>> = HashMap::new();
    let mut kind_of = |name: &str| match known.get(name) {
        Some(kind) => *kind,
        None => {
            let kind = family(name).and_then(Kind::of);
            known.insert(name.to_owned(), kind);
            kind
        }
    };
    let mut found = Kind::ALL.map(|kind| OfKind { kind, counting: 0, rose: 0 });
    for port in watch.ports_of(hosts) {
        let counting: BTreeSet<Kind> = port.names().filter_map(&mut kind_of).collect();
        let rose: BTreeSet<Kind> = risen(port, times).filter_map(&mut kind_of).collect();
        for of in &mut found {
            of.counting += usize::from(counting.contains(&of.kind));
            of.rose += usize::from(rose.contains(&of.kind));
        }
    }
    found.into()
}

/// Counters of a port that rose in a pass of its host.
fn risen<'w>(port: &'w PortRows<'_>, times: &'w [(Span, BTreeSet<String>)]) -> impl Iterator<Item = &'w str> {
    let own = times.iter().filter(|(_, hosts)| hosts.contains(&port.name.host));
    let rows = own.flat_map(|(time, _)| port.within(time));
    rows.flat_map(|row| row.counted.iter()).filter(|(_, rise)| **rise > 0).map(|(name, _)| name.as_str())
}
