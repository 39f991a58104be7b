//! What links of unlike ceilings are held against, and which ends carry less than others by their ports or slots.
//!
//! A ceiling binds only where it is lower than what all links reach anyway. So a link is held against what links of the best class
//! reach, or a share of its own ceiling, whichever is less: the share that links of its class reach, where these reach it, else that
//! of the best class. Ends whose ceiling binds are told: a port that trained at half its rate is no fault that pairs would show, and
//! no reason to be silent.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use foldhash::HashMap;
use railgauge_model::plan::{Plan, hostlist, model::Waiver};
use railgauge_stats::{
    localise::Port,
    robust::{MAD_TO_SIGMA, median},
};
use railgauge_wire::natural;
use serde::Serialize;

use super::{Localisation, decide::REACHES, names::Names, waived::groups_of};
use crate::analysis::{ceiling::DISPROVED, words::number};

/// Fewest links of a ceiling that may be the best class; fewer, where no class has as many.
const FEWEST: usize = 3;
/// Fewest ends of a ceiling that are peers of each other: as many as hosts that a part can be told among.
const PEERS: usize = 4;

/// Fewest links of an end, in the mean, from which it is learned what the end does.
const LINKS_AN_END: usize = 4;

/// An end that carries less than others at best, so that its links cannot reach what other links reach.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lesser {
    pub host: String,
    pub rail: u32,
    /// The ceiling of its best link, in the metric's unit.
    pub ceiling: f64,
    /// What links of the best ports reach, in the metric's unit.
    pub others: f64,
    /// Whether the plan waives it: its host, a group of it, its rail if all ends on it carry less, or all.
    pub waived: bool,
}

/// A link: its ends, and the logarithms of its value and of its ceiling.
pub(super) type Link = (Port, Port, f64, f64);

/// What ends can carry at best; empty where all are alike.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rates {
    /// The logarithm of the ceiling of each end's best link: a link is as good as its worse end.
    own: HashMap<Port, f64>,
    /// The logarithm of what links of the best class reach.
    most: f64,
    /// The logarithm of the share of their ceiling that links of the best class reach.
    share: f64,
    /// The same of every class of which that is known.
    shares: BTreeMap<u64, f64>,
    /// Classes of which enough ends are to be held against each other.
    peers: BTreeSet<u64>,
    /// Standard deviation of links of the best class. Those that a ceiling limits hardly scatter.
    pub(super) scatter: f64,
    least: f64,
}

/// Standard deviation of links about what they should reach: what the worse of their ends does, where ends have links enough
/// to tell, so that bad ends are no scatter; else `most`. An end does what the better half of its links reach, for the
/// others may be the other end's.
fn scatter(links: &[(Port, Port, f64)], most: f64) -> f64 {
    let mut of: HashMap<Port, Vec<f64>> = HashMap::default();
    for &(from, to, value) in links {
        of.entry(from).or_default().push(value);
        of.entry(to).or_default().push(value);
    }
    let ends = of.len();
    let does: HashMap<Port, f64> = of
        .into_iter()
        .map(|(end, mut values)| {
            values.sort_by(|a, b| b.total_cmp(a));
            values.truncate(values.len().div_ceil(2));
            (end, median(&values).unwrap_or(most))
        })
        .collect();
    let told = links.len() >= LINKS_AN_END * ends / 2;
    let should = |from: &Port, to: &Port| if told { does[from].min(does[to]) } else { most };
    let away: Vec<f64> = links.iter().map(|(from, to, value)| (value - should(from, to)).abs()).collect();
    // What an end does was learned from the same links.
    let learned = if told { (links.len() as f64 / (links.len() - ends) as f64).sqrt() } else { 1.0 };
    learned * MAD_TO_SIGMA * median(&away).unwrap_or_default()
}

impl Rates {
    /// Of the links of a test; `least` is the least effect.
    pub(super) fn new(links: &[Link], least: f64) -> Self {
        let mut own: HashMap<Port, f64> = HashMap::default();
        let mut best: HashMap<Port, f64> = HashMap::default();
        for &(from, to, value, ceiling) in links {
            for port in [from, to] {
                own.entry(port).and_modify(|known| *known = known.max(ceiling)).or_insert(ceiling);
                best.entry(port).and_modify(|known| *known = known.max(value)).or_insert(value);
            }
        }
        // Who reaches more than its ceiling has another one, which nobody knows: what was read of its slot or port is wrong.
        let top = own.values().copied().fold(f64::NEG_INFINITY, f64::max);
        for (port, ceiling) in &mut own {
            let disproved = best.get(port).is_some_and(|best| *best > *ceiling + DISPROVED.ln());
            *ceiling = if disproved { top } else { *ceiling };
        }
        let (low, high) = own
            .values()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &ceiling| (low.min(ceiling), high.max(ceiling)));
        if high - low < least {
            return Self::default();
        }
        let mut rates = Self { own, least, ..Self::default() };
        // Values and their shares of the ceiling.
        let mut classes: BTreeMap<u64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for &(from, to, value, _) in links {
            let ceiling = rates.ceiling(from, to);
            let of = classes.entry(rates.class(ceiling)).or_default();
            of.0.push(value);
            of.1.push(value - ceiling);
        }
        let mut ends: HashMap<u64, usize> = HashMap::default();
        for ceiling in rates.own.values() {
            *ends.entry(rates.class(*ceiling)).or_default() += 1;
        }
        rates.peers = ends.into_iter().filter(|(_, of)| *of >= PEERS).map(|(class, _)| class).collect();
        let middle = |of: &[f64]| median(of).unwrap_or(f64::NEG_INFINITY);
        // Links that are all short of their ceiling are not what such links reach. Of few ends some may be, and others not.
        let share = |(class, (_, shares)): (&u64, &(Vec<f64>, Vec<f64>))| {
            let reach = |share: &f64| *share >= REACHES.ln();
            let peers = rates.peers.contains(class);
            let of: Vec<f64> = shares.iter().copied().filter(|share| peers || reach(share)).collect();
            median(&of).ok().filter(reach).map(|share| (*class, share.min(0.0)))
        };
        rates.shares = classes.iter().filter_map(share).collect();
        let enough = classes.values().map(|(values, _)| values.len()).max().unwrap_or_default().min(FEWEST);
        classes.retain(|_, (values, _)| values.len() >= enough);
        rates.most = classes.values().map(|(values, _)| middle(values)).fold(f64::NEG_INFINITY, f64::max);
        if let Some((class, _)) = classes.iter().find(|(_, (values, _))| middle(values) >= rates.most) {
            let of_class = |(from, to, ..): &&Link| rates.class(rates.ceiling(*from, *to)) == *class;
            let of: Vec<(Port, Port, f64)> =
                links.iter().filter(of_class).map(|(from, to, value, _)| (*from, *to, *value)).collect();
            rates.scatter = scatter(&of, rates.most);
        }
        let best = classes.values().map(|(_, shares)| middle(shares)).fold(f64::NEG_INFINITY, f64::max);
        rates.share = best.min(0.0);
        rates
    }

    /// The ceiling of links of the best class, where ends differ.
    pub(super) fn best(&self) -> Option<f64> {
        (!self.own.is_empty()).then_some(self.most - self.share)
    }

    fn ceiling(&self, from: Port, to: Port) -> f64 {
        let of = |port: Port| self.own.get(&port).copied().unwrap_or(f64::INFINITY);
        of(from).min(of(to))
    }

    /// Ceilings that differ by less than the least effect are of one class, or of two beside each other.
    fn class(&self, ceiling: f64) -> u64 {
        (ceiling / self.least.max(f64::EPSILON)).round().max(0.0) as u64
    }

    /// By how much a link of this ceiling may be below what links of the best class reach, as a difference of logarithms; 0 or less.
    fn below(&self, ceiling: f64) -> f64 {
        let class = self.class(ceiling);
        let near = || self.shares.range(class.saturating_sub(1)..=class.saturating_add(1)).next();
        let share = self.shares.get(&class).or_else(|| near().map(|(_, share)| share)).copied().unwrap_or(self.share);
        (ceiling + share - self.most).min(0.0)
    }

    /// The logarithm of a value as a link of the best class would show it. `None` where the link reaches its own lower ceiling, which
    /// too few ends have to be held against each other: nothing more can be said of it.
    pub(super) fn as_of_best(&self, from: Port, to: Port, value: f64) -> Option<f64> {
        let ceiling = self.ceiling(from, to);
        let below = self.below(ceiling);
        let lone = below < -self.least && !self.peers.contains(&self.class(ceiling));
        (!lone || value < ceiling + REACHES.ln()).then_some(value - below)
    }

    /// Whether an end's ceiling binds, by more than the least effect.
    pub(super) fn is_lesser(&self, port: Port) -> bool {
        self.own.get(&port).is_some_and(|ceiling| self.below(*ceiling) < -self.least)
    }

    /// The ends whose ceiling binds, by more than the least effect.
    pub(super) fn lesser(&self, names: &Names, plan: &Plan) -> Vec<Lesser> {
        let whole = |rail: u32| self.own.keys().all(|port| port.rail != rail || self.is_lesser(*port));
        let mut ports: Vec<(&Port, &f64)> = self.own.iter().filter(|(port, _)| self.is_lesser(**port)).collect();
        ports.sort_unstable_by_key(|(port, _)| **port);
        let lesser = |(port, ceiling): (&Port, &f64)| {
            let host = names.host(port.host);
            // One NIC on a rail is its host's.
            let rail: &[u32] = if whole(port.rail) { &[port.rail] } else { &[] };
            let waives = |waiver: &Waiver| waiver.covers(&[host], &groups_of(plan, &[host]), rail);
            Lesser {
                host: host.to_owned(),
                rail: port.rail,
                ceiling: ceiling.exp(),
                others: self.most.exp(),
                waived: plan.localise.waive.iter().any(waives),
            }
        };
        ports.into_iter().map(lesser).collect()
    }
}

impl Localisation {
    /// The ends that carry less than others at best, without those that the plan waives; `None` without any.
    pub fn carry_less(&self) -> Option<CarryLess> {
        let ends: Vec<Lesser> = self.lesser.iter().filter(|end| !end.waived).cloned().collect();
        let others = self.lesser.first()?.others;
        (!ends.is_empty()).then(|| CarryLess { ends, others, unit: self.unit.clone() })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CarryLess {
    pub ends: Vec<Lesser>,
    /// What links of the best ports reach, in `unit`.
    pub others: f64,
    /// The metric's unit.
    pub unit: String,
}

impl fmt::Display for CarryLess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = &self.unit;
        let mut by_rate: BTreeMap<(String, u32), Vec<&str>> = BTreeMap::new();
        for end in &self.ends {
            by_rate.entry((number(end.ceiling), end.rail)).or_default().push(&end.host);
        }
        by_rate.values_mut().for_each(|hosts| natural::sort(hosts));
        let part = |((ceiling, rail), hosts): (&(String, u32), &Vec<&str>)| {
            format!("{} rail {rail} at most {ceiling} {unit}", hostlist::fold(hosts.iter().copied()))
        };
        let (parts, others) = (by_rate.iter().map(part).collect::<Vec<_>>().join(", "), number(self.others));
        write!(
            f,
            "less by the rate of their ports, their slots or their MTU: {parts}; links of others reach {others} {unit}"
        )
    }
}
