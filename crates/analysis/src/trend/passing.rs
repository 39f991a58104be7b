//! Which series pass which part, and the changes for the worse of a part.

use std::collections::{BTreeSet, HashMap};

use super::{
    Ends, Everything, Part, Series, State, Way,
    calendar::{date, day},
    swapped::Slow,
};
use crate::history::{PartKind, Seated, Stay, Subject};

/// Days around a change within which declared changes are named with it.
pub(crate) const NEARBY: i64 = 3;
/// More than one in this many of a part's series must be worse: with at least three hosts, at most half of the links of
/// a bad one's partner are bad.
const SHARE: usize = 2;

pub(crate) struct Passing<'a> {
    everything: &'a Everything,
    of_rail: HashMap<(&'a str, Ends, u32), BTreeSet<&'a str>>,
    /// Index by host, because there are many parts, and few series are about each host.
    of_host: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Passing<'a> {
    pub(super) fn new(everything: &'a Everything) -> Self {
        let mut of_rail: HashMap<(&str, Ends, u32), BTreeSet<&str>> = HashMap::new();
        // Only rails of parts are looked up.
        if everything.series.iter().any(|one| matches!(one.part, Some(Part::Nic(..)))) {
            for (subject, devices) in everything.through.all() {
                let Subject { flow, cell, .. } = &everything.subjects[subject];
                for (port, device) in [&flow.from, &flow.to].into_iter().zip(devices) {
                    of_rail.entry((&port.host, Ends::of(cell.transport), port.rail)).or_default().insert(device);
                }
            }
        }
        let mut of_host: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, one) in everything.series.iter().enumerate() {
            let hosts = one.hosts(&everything.subjects);
            hosts.into_iter().for_each(|host| of_host.entry(host).or_default().push(at));
        }
        Self { everything, of_rail, of_host }
    }

    pub(super) fn of_host(&self, host: &str) -> &[usize] {
        self.of_host.get(host).map_or(&[], Vec::as_slice)
    }

    /// Whether all of a series passes a part. A collective's library chooses the devices of a host.
    pub(super) fn passes(&self, at: usize, part: &Seated<'_>) -> bool {
        let one = &self.everything.series[at];
        let subject = &self.everything.subjects[one.subject];
        let whole = match part.kind {
            PartKind::Machine | PartKind::Board => true,
            PartKind::Gpu => subject.cell.memory.has_gpu(),
            PartKind::Card | PartKind::Module => false,
        };
        match &one.part {
            Some(Part::Host(host)) => *host == part.host,
            Some(Part::Nic(host, ends, rail)) => {
                let devices = self.of_rail.get(&(host.as_str(), *ends, *rail));
                *host == part.host && (whole || devices.is_some_and(|all| all.iter().any(|one| part.has_device(one))))
            }
            Some(_) => false,
            None if whole => subject.flow.hosts().iter().any(|host| ***host == *part.host),
            None if subject.flow.members.is_empty() => {
                let ends = [&subject.flow.from, &subject.flow.to].into_iter();
                let devices = self.everything.through.at(one.subject, part.run);
                let mut ends = ends.zip(devices.into_iter().flatten());
                ends.any(|(port, device)| *port.host == *part.host && part.has_device(device))
            }
            None => false,
        }
    }

    /// Changes for the worse of a part on its last night in a slot, if they are more than chance.
    pub(super) fn stood(&self, series: &[Series], stay: &Stay, (first, last): (i64, i64)) -> Option<Slow> {
        let (of, part) = (&self.everything.series, stay.left());
        let there = |at: &usize| {
            let ends = of[*at].ends();
            ends.0 <= last && ends.1 + NEARBY >= last && self.passes(*at, &part)
        };
        // Series that took turns in a place are one.
        let mut passing: Vec<usize> = self.of_host(part.host).iter().copied().filter(there).collect();
        passing.sort_by_key(|at| of[*at].place);
        passing.dedup_by_key(|at| of[*at].place);
        let since = |at: &usize| {
            let standing = |alert: &&super::Alert| {
                let over = || alert.end.as_deref().and_then(|end| day(end).ok()).is_some_and(|end| end <= last);
                let stood = match alert.state {
                    State::Open | State::Left | State::Ended => true,
                    State::WentAway | State::Accepted | State::Overtaken => !over(),
                };
                alert.way == Way::Worse && (first..=last).contains(&alert.day) && stood
            };
            // A persisting change belongs to the successor series.
            let of_place = self.everything.places[of[*at].place].members.iter();
            of_place.flat_map(|at| &series[*at].alerts).filter(standing).map(|alert| alert.day).min()
        };
        let slow: Vec<i64> = passing.iter().filter_map(since).collect();
        let since = date(slow.iter().copied().min()?);
        (slow.len() * SHARE > passing.len()).then_some(Slow { since, series: (slow.len(), passing.len()) })
    }
}
