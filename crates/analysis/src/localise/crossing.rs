//! Pairs across rails and pairs on one rail.
//!
//! Where every rail has a switch of its own, pairs across rails pass one more layer of switches: their latency is
//! higher and their bandwidth may be lower. All of them are alike then, and low against those on one rail: by the
//! design of the fabric, and not by a fault of each path.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use railgauge_stats::{
    localise::{Pair, Port},
    robust::{MAD_TO_SIGMA, median},
};
use railgauge_wire::Better;
use serde::Serialize;

use crate::words::worse;

/// Share of pairs of hosts whose difference must be near the median one.
const ALIKE: f64 = 0.9;
/// Share of hosts that may differ: bad ones, which are excluded.
const ODD: f64 = 1.0 / 3.0;
/// Standard errors that the difference must exceed.
const SURE: f64 = 5.0;
/// Number of values below which the spread is at least the least effect, as in [`localise`](mod@super).
const FEW: usize = 12;

/// Loss of pairs across rails, as differences of logarithms; 0 without one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Crossing {
    below: [f64; 2],
    groups: Vec<u32>,
}

impl Crossing {
    /// `least` is the least effect.
    pub(super) fn new(pairs: &[Pair], groups: &[u32], least: f64) -> Self {
        let mut crossing = Self { below: [0.0; 2], groups: groups.to_vec() };
        if pairs.iter().all(|pair| pair.from.rail == pair.to.rail) {
            return crossing;
        }
        let below = [0, 1].map(|kind| {
            let of = pairs.iter().filter(|pair| crossing.kind(pair.from, pair.to) == kind);
            let table = CrossingTable::new(of);
            (!table.differences.is_empty()).then(|| table.alike(least).unwrap_or_default())
        });
        // A kind without pairs uses the other kind's.
        crossing.below = [below[0].or(below[1]), below[1].or(below[0])].map(Option::unwrap_or_default);
        crossing
    }

    pub(super) fn kind(&self, from: Port, to: Port) -> usize {
        let group = |port: Port| self.groups.get(port.host as usize);
        usize::from(group(from) != group(to))
    }

    /// Loss of a pair because it crosses rails.
    pub(super) fn of(&self, from: Port, to: Port) -> f64 {
        if from.rail == to.rail { 0.0 } else { self.below[self.kind(from, to)] }
    }
}

struct Difference {
    hosts: [u32; 2],
    below: f64,
    /// In units of the variance of a value.
    variance: f64,
    straight: f64,
    /// Loss of each pair across rails, by the rails of its ends in their order.
    by_rails: Vec<((u32, u32), f64)>,
}

struct CrossingTable {
    differences: Vec<Difference>,
    /// Standard deviation of values of one kind and two hosts.
    scale: f64,
    n: usize,
}

/// Standard error of a median of normal values over that of their mean.
const MEDIAN_ERROR: f64 = 1.2533;

impl CrossingTable {
    fn new<'p>(pairs: impl Iterator<Item = &'p Pair>) -> Self {
        let mut of: BTreeMap<[u32; 2], Vec<&Pair>> = BTreeMap::new();
        for pair in pairs {
            let hosts = [pair.from.host.min(pair.to.host), pair.from.host.max(pair.to.host)];
            of.entry(hosts).or_default().push(pair);
        }
        let (mut differences, mut away, mut n) = (Vec::new(), Vec::new(), 0);
        for (hosts, pairs) in of {
            let (straight, crossed): (Vec<&Pair>, Vec<&Pair>) =
                pairs.into_iter().partition(|pair| pair.from.rail == pair.to.rail);
            let mut rails: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            straight.iter().for_each(|pair| rails.entry(pair.from.rail).or_default().push(pair.value));
            let rails: BTreeMap<u32, f64> =
                rails.into_iter().filter_map(|(rail, values)| Some((rail, median(&values).ok()?))).collect();
            // A slow rail is slow for its own pairs, too.
            let below = |pair: &&Pair| {
                let (from, to) = (rails.get(&pair.from.rail)?, rails.get(&pair.to.rail)?);
                Some(from.min(*to) - pair.value)
            };
            let known = crossed.iter().filter_map(|pair| Some(((pair.from.rail, pair.to.rail), below(pair)?)));
            let known: Vec<((u32, u32), f64)> = known.collect();
            let all: Vec<f64> = known.iter().map(|(_, below)| *below).collect();
            let Ok(below) = median(&all) else { continue };
            let variance = MEDIAN_ERROR.powi(2) * (1.0 / straight.len() as f64 + 1.0 / all.len() as f64);
            let values: Vec<f64> = straight.iter().map(|pair| pair.value).collect();
            let straight = median(&values).unwrap_or_default();
            differences.push(Difference { hosts, below, variance, straight, by_rails: known });
            n += values.len() + all.len();
            for values in [rails.into_values().collect(), all] {
                spread(&values, &mut away);
            }
        }
        let scale = MAD_TO_SIGMA * median(&away).unwrap_or_default();
        Self { differences, scale, n }
    }

    /// The median difference, if nearly all are alike except those of a few hosts, and it is significant and beyond the least effect.
    fn alike(&self, least: f64) -> Option<f64> {
        let mut of: Vec<&Difference> = self.differences.iter().collect();
        let hosts: BTreeSet<u32> = of.iter().flat_map(|one| one.hosts).collect();
        let scale = if self.n < FEW { self.scale.max(least) } else { self.scale };
        let odd = ((hosts.len() as f64 * ODD) as usize).max(1);
        for _ in 0..=odd {
            let middle = median(&of.iter().map(|one| one.below).collect::<Vec<_>>()).ok()?;
            let of_one = scale * (of.iter().map(|one| one.variance).sum::<f64>() / of.len() as f64).sqrt();
            let error = MEDIAN_ERROR * of_one / (of.len() as f64).sqrt();
            let near = (middle / 2.0).max(SURE * of_one);
            let apart: Vec<&Difference> = of.iter().copied().filter(|one| (one.below - middle).abs() > near).collect();
            if apart.len() as f64 <= (1.0 - ALIKE) * of.len() as f64 {
                let sure = middle > (SURE * error).max(least);
                return (sure && is_of_all_rails(&of, middle, scale)).then_some(middle);
            }
            // A bad host is low on one rail, too.
            let low = |host: u32| {
                let own: Vec<f64> = of.iter().filter(|one| one.hosts.contains(&host)).map(|one| one.straight).collect();
                (median(&own).unwrap_or_default(), host)
            };
            let hosts: BTreeSet<u32> = of.iter().flat_map(|one| one.hosts).collect();
            let (_, worst) = hosts.into_iter().map(low).min_by(|a, b| a.0.total_cmp(&b.0))?;
            of.retain(|one| !one.hosts.contains(&worst));
        }
        None
    }
}

/// Whether every rail and direction shows it: otherwise it is a fault of those that do.
fn is_of_all_rails(of: &[&Difference], middle: f64, scale: f64) -> bool {
    let mut by_rails: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for (rails, below) in of.iter().flat_map(|one| &one.by_rails) {
        by_rails.entry(*rails).or_default().push(*below);
    }
    by_rails.values().all(|values| {
        let error = MEDIAN_ERROR * scale * (2.0 / values.len() as f64).sqrt();
        median(values).is_ok_and(|own| (own - middle).abs() <= (middle / 2.0).max(SURE * error))
    })
}

/// Adds deviations from the mean, scaled as for single values.
fn spread(values: &[f64], away: &mut Vec<f64>) {
    if values.len() > 1 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let of_mean = (values.len() as f64 / (values.len() - 1) as f64).sqrt();
        away.extend(values.iter().map(|value| (value - mean).abs() * of_mean));
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AcrossRails {
    /// In percent of the metric: within groups, between them.
    pub percent: Vec<f64>,
    pub better: Better,
}

impl fmt::Display for AcrossRails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let higher = self.better == Better::Higher;
        let by = self.percent.iter().map(|percent| worse(-(percent / 100.0).ln_1p().abs(), higher));
        let mut by: Vec<String> = by.collect();
        by.dedup();
        write!(f, "pairs across rails are {} than pairs on one rail, all alike", by.join(" and "))
    }
}
