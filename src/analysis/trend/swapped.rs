//! Parts that took the place of others: when, where they were before, and how they did there. A change that came or went with one
//! names it, and a part that was slow in one slot and is in another is the same change for the worse.

use std::collections::{BTreeSet, HashMap, HashSet};

use railgauge_stats::robust::median;
use railgauge_wire::terms::Memory;
use serde::Serialize;

use super::{
    Alert, How, Series, State, Way,
    assemble::Everything,
    calendar::{date, day},
    judge::{FARTHEST, NEARBY},
    parts::Part,
    travelled::{Move, Travelled, travelled},
};
use crate::analysis::{
    history::{By, PartKind, Stay, Swap},
    words::count,
};

/// More than one in so many of what passes a part speak against it: of three hosts or more, the partner of a bad one has half of its
/// links bad at most.
const SHARE: usize = 2;
/// Parts that are named beside one change.
const NAMED: usize = 3;

/// A part that took the place of another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replaced {
    /// First night with the new part.
    pub date: String,
    /// The same, counted in days from 1970.
    #[serde(skip)]
    pub day: i64,
    /// Last night with the old part.
    pub until: String,
    /// The host.
    pub host: String,
    /// What kind of part it is.
    pub kind: PartKind,
    /// The slot in words: `NIC mlx5_0`.
    pub part: String,
    /// By what parts are told from each other here.
    pub by: By,
    /// The old part.
    pub old: String,
    /// The new one.
    pub new: String,
    /// Where the new one was before, if it was in another slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Before>,
    /// Where the old one is since, if it came to another slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Since>,
    /// The new part in its slot.
    #[serde(skip)]
    pub(super) stay: Stay,
}

/// Where a part was before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Before {
    /// The host.
    pub host: String,
    /// The slot in words.
    pub part: String,
    /// Its last night there.
    pub until: String,
    /// What stood against it there on that night.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
}

/// Changes for the worse of what passed a part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slow {
    /// First night of the first of them.
    pub since: String,
    /// Series that were worse, and all that passed the part.
    pub series: (usize, usize),
    /// With what the slow values went when the part was moved.
    pub travelled: Travelled,
    /// By how much they were slow, as a difference of logarithms.
    #[serde(skip)]
    size: f64,
}

/// Where a part went to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Since {
    /// The host.
    pub host: String,
    /// The slot in words.
    pub part: String,
    /// Its first night there.
    pub since: String,
}

impl Replaced {
    /// It in words.
    pub fn words(&self) -> String {
        let Self { date, host, part, by, old, new, .. } = self;
        let mut text = format!("{part} of {host} was replaced on {date} ({} {old} → {new})", by.word());
        if let Some(Before { host, part, until, slow }) = &self.from {
            text += &format!(", and {new} was {part} of {host} until {until}");
            if let Some(Slow { since, series: (slow, all), travelled, .. }) = slow {
                text += &format!(", where {slow} of {all} series were worse since {since}");
                let place = |host: &str, slot: &str| match slot.rsplit_once(' ') {
                    Some((_, name)) if !matches!(self.kind, PartKind::Machine | PartKind::Board) => {
                        format!("{host} {name}")
                    }
                    _ => host.to_owned(),
                };
                let noun = self.kind.noun();
                let was = place(host, part);
                text += &match travelled {
                    Travelled::WithPart => {
                        let is = place(&self.host, &self.part);
                        format!("; the slow values moved with the {noun} {new} from {was} to {is}")
                    }
                    Travelled::WithSlot => {
                        format!("; the slow values stayed at {was} and did not move with the {noun} {new}")
                    }
                    Travelled::Unknown => {
                        format!(
                            "; whether the slow values moved with the {noun} {new} or stayed at {was} cannot be told"
                        )
                    }
                };
            }
        }
        if let Some(Since { host, part, since }) = &self.to {
            text += &format!("; {old} is {part} of {host} since {since}");
        }
        text
    }

    /// Whether its night is that of one of these days.
    fn is_near(&self, days: &[i64]) -> bool {
        days.iter().any(|day| (self.day - day).abs() <= NEARBY)
    }
}

/// Everything that was replaced, in the order of time.
pub(super) fn replaced(everything: &Everything, series: &[Series]) -> Vec<Replaced> {
    if everything.swaps.is_empty() {
        return Vec::new();
    }
    let passing = Passing::new(everything);
    let place_of = places_of(everything);
    let night = |run: usize| everything.days.get(run).copied().unwrap_or_default();
    let nights = |stay: &Stay| (night(stay.runs.0), night(stay.runs.1));
    let one = |swap: &Swap| {
        let before = |stay: &Stay| {
            let mut slow = passing.slow(series, stay, nights(stay));
            if let Some(slow) = &mut slow {
                let moved = Move { old: nights(stay), new: nights(&swap.new) };
                let (old, new) = passing.apart(stay, &swap.new, &place_of);
                slow.travelled = travelled(everything, (&old, &new), &moved, slow.size);
            }
            Before { host: stay.host.clone(), part: stay.name.clone(), until: date(night(stay.runs.1)), slow }
        };
        let since =
            |stay: &Stay| Since { host: stay.host.clone(), part: stay.name.clone(), since: date(night(stay.runs.0)) };
        let day = night(swap.new.runs.0);
        Replaced {
            date: date(day),
            day,
            until: date(night(swap.old.runs.1)),
            host: swap.new.host.clone(),
            kind: swap.new.slot.kind,
            part: swap.new.name.clone(),
            by: swap.new.id.0,
            old: swap.old.id.1.clone(),
            new: swap.new.id.1.clone(),
            from: swap.from.as_ref().map(before),
            to: swap.to.as_ref().map(since),
            stay: swap.new.clone(),
        }
    };
    everything.swaps.iter().map(one).collect()
}

/// The place of every series.
fn places_of(everything: &Everything) -> Vec<usize> {
    let mut of = vec![0; everything.series.len()];
    for (number, place) in everything.places.iter().enumerate() {
        place.members.iter().for_each(|&at| of[at] = number);
    }
    of
}

/// A part that was bad where it was before and is bad where it is now: the change is still so, whatever took the place of what.
pub(super) fn follow(everything: &Everything, replaced: &[Replaced], series: &mut [Series]) {
    let passing = Passing::new(everything);
    let moved = |one: &&Replaced| one.from.as_ref().is_some_and(|before| before.slow.is_some());
    for one in replaced.iter().filter(moved) {
        for at in passing.of_host(&one.stay.host) {
            let known = &mut series[*at];
            if !known.alive || !passing.passes(*at, &one.stay) {
                continue;
            }
            let came = |alert: &&mut Alert| {
                let by_hardware = alert.taken.as_ref().is_some_and(|taken| taken.how == How::Hardware);
                alert.way == Way::Worse && alert.state == State::Left && by_hardware && one.is_near(&[alert.day])
            };
            known.alerts.iter_mut().filter(came).for_each(|alert| alert.state = State::Open);
        }
    }
}

/// What was replaced when a change came or went, in words: where half of what changed passes the part, or more.
pub(super) fn beside(
    everything: &Everything,
    replaced: &[Replaced],
    members: &[(usize, usize)],
    series: &[Series],
) -> Vec<String> {
    if replaced.is_empty() {
        return Vec::new();
    }
    let passing = Passing::new(everything);
    let alerts = || members.iter().map(|(at, alert)| &series[*at].alerts[*alert]);
    let ends = alerts().filter(|alert| !matches!(alert.state, State::Open | State::Left));
    let days: Vec<i64> =
        alerts().map(|alert| alert.day).chain(ends.filter_map(|alert| day(alert.end.as_deref()?).ok())).collect();
    let is_of = |one: &&Replaced| {
        let passing = members.iter().filter(|(at, _)| passing.passes(*at, &one.stay)).count();
        2 * passing >= members.len()
    };
    // They are in the order of time: only those of these days are looked at.
    let mut near: BTreeSet<usize> = BTreeSet::new();
    for day in &days {
        let first = replaced.partition_point(|one| one.day < day - NEARBY);
        near.extend(first..replaced.partition_point(|one| one.day <= day + NEARBY));
    }
    let found: Vec<&Replaced> = near.into_iter().map(|at| &replaced[at]).filter(is_of).collect();
    // With another machine all of its parts are others.
    let machines = found.iter().filter(|one| one.kind == PartKind::Machine).map(|one| (one.host.as_str(), one.day));
    let machines: HashSet<(&str, i64)> = machines.collect();
    let within = |one: &&Replaced| one.kind != PartKind::Machine && machines.contains(&(one.host.as_str(), one.day));
    let told: Vec<&Replaced> = found.iter().copied().filter(|one| !within(one)).collect();
    let mut words: Vec<String> = told.iter().take(NAMED).map(|one| one.words()).collect();
    if told.len() > NAMED {
        words.push(format!("{} more were replaced at about that time", count(told.len() - NAMED, "part")));
    }
    words
}

/// Which series pass which part.
struct Passing<'a> {
    everything: &'a Everything,
    /// Devices by host and rail, where a test says them.
    of_rail: HashMap<(&'a str, u32), BTreeSet<&'a str>>,
    /// Series that may pass a part of a host: there are many parts, and few of the series are about each host.
    of_host: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Passing<'a> {
    fn new(everything: &'a Everything) -> Self {
        let mut of_rail: HashMap<(&str, u32), BTreeSet<&str>> = HashMap::new();
        // Only rails of parts are looked up.
        if everything.series.iter().any(|one| matches!(one.part, Some(Part::Nic(..)))) {
            for (subject, devices) in &everything.through {
                let flow = &everything.subjects[*subject].flow;
                for (port, device) in [&flow.from, &flow.to].into_iter().zip(devices) {
                    of_rail.entry((&port.host, port.rail)).or_default().insert(device);
                }
            }
        }
        let mut of_host: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, one) in everything.series.iter().enumerate() {
            let hosts: BTreeSet<&str> = match &one.part {
                Some(Part::Host(host) | Part::Nic(host, _)) => [host.as_str()].into(),
                Some(_) => BTreeSet::new(),
                None => everything.subjects[one.subject].flow.hosts().into_iter().map(|host| &**host).collect(),
            };
            hosts.into_iter().for_each(|host| of_host.entry(host).or_default().push(at));
        }
        Self { everything, of_rail, of_host }
    }

    /// Series that may pass a part of a host.
    fn of_host(&self, host: &str) -> &[usize] {
        self.of_host.get(host).map_or(&[], Vec::as_slice)
    }

    /// Whether all of a series passes a part. What a collective uses of a host is the library's choice.
    fn passes(&self, at: usize, stay: &Stay) -> bool {
        let one = &self.everything.series[at];
        let subject = &self.everything.subjects[one.subject];
        let whole = match stay.slot.kind {
            PartKind::Machine | PartKind::Board => true,
            PartKind::Gpu => subject.cell.memory != Memory::Host,
            PartKind::Card | PartKind::Module => false,
        };
        match &one.part {
            Some(Part::Host(host)) => *host == stay.host,
            Some(Part::Nic(host, rail)) => {
                let devices = self.of_rail.get(&(host.as_str(), *rail));
                *host == stay.host && (whole || devices.is_some_and(|all| all.iter().any(|one| stay.has_device(one))))
            }
            Some(_) => false,
            None if whole => subject.flow.hosts().iter().any(|host| ***host == *stay.host),
            None if subject.flow.members.is_empty() => {
                let ends = [&subject.flow.from, &subject.flow.to].into_iter();
                let devices = self.everything.through.get(&one.subject);
                let mut ends = ends.zip(devices.into_iter().flatten());
                ends.any(|(port, device)| *port.host == *stay.host && stay.has_device(device))
            }
            None => false,
        }
    }

    /// Places that pass one slot and not the other, of each. A link between the two passes the part wherever it is.
    fn apart(&self, old: &Stay, new: &Stay, place_of: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let of = |stay: &Stay| -> BTreeSet<usize> {
            let passing = self.of_host(&stay.host).iter().filter(|at| self.passes(**at, stay));
            passing.map(|at| place_of[*at]).collect()
        };
        let (old, new) = (of(old), of(new));
        (old.difference(&new).copied().collect(), new.difference(&old).copied().collect())
    }

    /// What stood against a part on its last night in a slot, if it is more than chance.
    fn slow(&self, series: &[Series], stay: &Stay, (first, last): (i64, i64)) -> Option<Slow> {
        let of = &self.everything.series;
        let there = |at: &usize| {
            let ends = of[*at].ends();
            ends.0 <= last && ends.1 + NEARBY >= last && self.passes(*at, stay)
        };
        let passing: Vec<usize> = self.of_host(&stay.host).iter().copied().filter(there).collect();
        let since = |at: &usize| {
            let standing = |alert: &&Alert| {
                let over = || alert.end.as_deref().and_then(|end| day(end).ok()).is_some_and(|end| end <= last);
                let stood = match alert.state {
                    State::Open | State::Left | State::Ended => true,
                    State::WentAway | State::Accepted | State::Overtaken => !over(),
                };
                alert.way == Way::Worse && (first..=last).contains(&alert.day) && stood
            };
            let first = series[*at].alerts.iter().filter(standing).min_by_key(|alert| alert.day)?;
            Some((first.day, (first.percent / 100.0).ln_1p().abs().min(FARTHEST)))
        };
        let slow: Vec<(i64, f64)> = passing.iter().filter_map(since).collect();
        let first = slow.iter().map(|(day, _)| *day).min()?;
        let size = median(&slow.iter().map(|(_, size)| *size).collect::<Vec<f64>>()).ok()?;
        let enough = slow.len() * SHARE > passing.len();
        let series = (slow.len(), passing.len());
        enough.then(|| Slow { since: date(first), series, travelled: Travelled::Unknown, size })
    }
}
