//! Reference levels for links of different ceilings, and ends with a lower ceiling due to their port or slot.
//!
//! A ceiling binds only below what all links reach anyway. So a link is compared with the smaller of what links of the
//! best class reach and a share of its own ceiling: the share that its class reaches, if known, otherwise that of the
//! best class. Ends whose ceiling binds are reported: pairs would not show a port trained at half its rate as a fault.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use foldhash::HashMap;
use railgauge_model::plan::{
    Plan, hostlist,
    model::{Limit, Test, Waiver},
};
use railgauge_stats::{
    localise::{Pair, Port},
    robust::{MAD_TO_SIGMA, median},
};
use railgauge_wire::{Metric, natural};
use serde::Serialize;

use super::{Crossing, Names, One, View, names::groups_of};
use crate::{ceiling::DISPROVED, words::number};

/// Share of a ceiling that counts as reaching it: it includes headers, but not acknowledgements and memory.
pub(super) const REACHES: f64 = 0.9;

/// Fewest links of a ceiling for the best class; fewer if no class has as many.
const FEWEST: usize = 3;
/// Fewest ends of a ceiling that are compared with each other: the number of hosts needed to distinguish a part.
const PEERS: usize = 4;

/// Fewest links per end, on average, to learn the end's level.
const LINKS_AN_END: usize = 4;

/// An end with a lower ceiling than others, so that its links cannot reach what other links reach.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lesser {
    pub host: String,
    pub rail: u32,
    /// Of its best link, in the metric's unit.
    pub ceiling: f64,
    /// Level of links of the best ports, in the metric's unit.
    pub others: f64,
    /// Whether the plan waives its host, its group, its rail (if all ends on it carry less), or all.
    pub waived: bool,
}

/// Ends, and the logarithms of value and ceiling.
pub(super) type Link = (Port, Port, f64, f64);

/// Empty where all ends have the same ceiling.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rates {
    /// Logarithm of the ceiling of each end's best link: a link is as good as its worse end.
    own: HashMap<Port, f64>,
    most: f64,
    /// Logarithm of the share of the ceiling that links of the best class reach.
    share: f64,
    shares: BTreeMap<u64, f64>,
    peers: BTreeSet<u64>,
    /// Standard deviation of links of the best class; links limited by a ceiling hardly scatter.
    pub(super) scatter: f64,
    least: f64,
}

/// Standard deviation of links about their expected level: that of the worse end, if ends have enough links to learn it
/// (so that bad ends do not add to the scatter); otherwise `most`. An end's level is that of its better half of links,
/// because the others may suffer from their other end.
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
    // Corrects for levels learned from the same links.
    let learned = if told { (links.len() as f64 / (links.len() - ends) as f64).sqrt() } else { 1.0 };
    learned * MAD_TO_SIGMA * median(&away).unwrap_or_default()
}

impl Rates {
    /// `least` is the least effect.
    pub(super) fn new(links: &[Link], least: f64) -> Self {
        let mut own: HashMap<Port, f64> = HashMap::default();
        let mut best: HashMap<Port, f64> = HashMap::default();
        for &(from, to, value, ceiling) in links {
            for port in [from, to] {
                own.entry(port).and_modify(|known| *known = known.max(ceiling)).or_insert(ceiling);
                best.entry(port).and_modify(|known| *known = known.max(value)).or_insert(value);
            }
        }
        // An end above its ceiling has another, unknown one: its slot or port was misread.
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
        // If all links are short of their ceiling, their level is unknown. With few ends, some may be short and others not.
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

    pub(super) fn best(&self) -> Option<f64> {
        (!self.own.is_empty()).then_some(self.most - self.share)
    }

    fn ceiling(&self, from: Port, to: Port) -> f64 {
        let of = |port: Port| self.own.get(&port).copied().unwrap_or(f64::INFINITY);
        of(from).min(of(to))
    }

    /// Ceilings that differ by less than the least effect share a class or are in adjacent ones.
    fn class(&self, ceiling: f64) -> u64 {
        (ceiling / self.least.max(f64::EPSILON)).round().max(0.0) as u64
    }

    /// How far a link of this ceiling may be below the best class, as a difference of logarithms; 0 or less.
    fn below(&self, ceiling: f64) -> f64 {
        let class = self.class(ceiling);
        let near = || self.shares.range(class.saturating_sub(1)..=class.saturating_add(1)).next();
        let share = self.shares.get(&class).or_else(|| near().map(|(_, share)| share)).copied().unwrap_or(self.share);
        (ceiling + share - self.most).min(0.0)
    }

    /// Logarithm of the value scaled to the best class. `None` for a link that reaches its own lower ceiling, if too
    /// few ends share that for a comparison.
    pub(super) fn as_of_best(&self, from: Port, to: Port, value: f64) -> Option<f64> {
        let ceiling = self.ceiling(from, to);
        let below = self.below(ceiling);
        let lone = below < -self.least && !self.peers.contains(&self.class(ceiling));
        (!lone || value < ceiling + REACHES.ln()).then_some(value - below)
    }

    pub(super) fn is_lesser(&self, port: Port) -> bool {
        self.own.get(&port).is_some_and(|ceiling| self.below(*ceiling) < -self.least)
    }

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

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Bounds {
    /// In the metric's unit, of the best links where they differ; `None` if that of any measured link is unknown.
    pub(super) ceiling: Option<f64>,
    pub(super) rates: Rates,
    pub(super) crossing: Crossing,
    /// The plan's numeric limits, in the metric's unit.
    pub(super) limits: Vec<f64>,
}

impl Bounds {
    pub(super) fn new(view: &View<'_>, names: &Names, test: &Test, least: f64) -> Self {
        let Some(One { row: first, .. }) = view.cases.first() else { return Self::default() };
        // A case without a value has no link, and thus no ceiling.
        let valued = view.cases.iter().filter(|one| one.log.is_some());
        let ceilings: Option<Vec<f64>> = valued.map(|one| one.row.ceiling.filter(|c| *c > 0.0)).collect();
        let ceiling = ceilings.as_ref().and_then(|ceilings| railgauge_stats::robust::median(ceilings).ok());
        let ceiling = ceiling.filter(|_| view.metric == Metric::Bandwidth);
        let link = |one: &One<'_>| {
            let pair = one.pair(names)?;
            Some((pair.from, pair.to, pair.value, one.row.ceiling?.ln()))
        };
        let rates = match ceiling {
            Some(_) => Rates::new(&view.cases.iter().filter_map(link).collect::<Vec<_>>(), least),
            None => Rates::default(),
        };
        // The reference for all is the level of the best.
        let ceiling = ceiling.map(|ceiling| rates.best().map_or(ceiling, f64::exp));
        let size = first.size_bytes;
        let of = test.expect.iter().filter(|one| {
            one.metric == view.metric
                && one.group.is_none()
                && one.rails.is_empty()
                && one.sizes.is_none_or(|(from, to)| (from..=to).contains(&size))
        });
        let limit = |limit: &Limit| match *limit {
            Limit::AtLeast(value) | Limit::AtMost(value) => Some(value),
            Limit::PercentOfCeiling(percent) => ceiling.map(|ceiling| ceiling * percent / 100.0),
            _ => None,
        };
        let limits = of.filter_map(|one| limit(&one.limit)).collect();
        let mut bounds = Self { ceiling, rates, crossing: Crossing::default(), limits };
        let pairs: Vec<Pair> = view
            .cases
            .iter()
            .filter_map(|one| one.pair(names))
            // The loss across rails is independent of an end's lower ceiling.
            .filter(|pair| ![pair.from, pair.to].into_iter().any(|port| bounds.rates.is_lesser(port)))
            .filter_map(|pair| Some(Pair { value: bounds.as_of_best(pair.from, pair.to, pair.value)?, ..pair }))
            .collect();
        bounds.crossing = Crossing::new(&pairs, &names.groups, least);
        bounds
    }

    /// Share of the ceiling that a value reaches, if clearly below it and no limit of the plan judges it.
    pub(super) fn short_of_ceiling(&self, value: f64) -> Option<f64> {
        let share = value / self.ceiling.filter(|_| self.limits.is_empty())?;
        (share < REACHES).then_some(share)
    }

    /// Logarithm of the value scaled to equal ends and pairs on one rail. `None` for a link that reaches its own lower
    /// ceiling and has no peers.
    pub(super) fn as_of_best(&self, from: Port, to: Port, value: f64) -> Option<f64> {
        Some(self.rates.as_of_best(from, to, value)? + self.crossing.of(from, to))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CarryLess {
    pub ends: Vec<Lesser>,
    /// In `unit`.
    pub others: f64,
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
            format!("{} rail {rail} at most {ceiling} {unit}", hostlist::listed(hosts.iter().copied()))
        };
        let (parts, others) = (by_rate.iter().map(part).collect::<Vec<_>>().join(", "), number(self.others));
        write!(
            f,
            "less by the rate of their ports, their slots or their MTU: {parts}; links of others reach {others} {unit}"
        )
    }
}
