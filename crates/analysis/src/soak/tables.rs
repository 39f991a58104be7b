//! Tables of what ports counted: by family, by port, against the limits of the plan; and their optics.

use std::collections::BTreeMap;

use railgauge_wire::{Nanoseconds, drivers::of_member};
use serde::Serialize;

use super::{
    families::{Family, last_part},
    ports::{Port, PortName},
};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilySum {
    pub family: Family,
    pub words: &'static str,
    pub ports: usize,
    /// Sum of rises, for each port of its highest counter: counters at several places count the same.
    pub total: u64,
    pub most_per_second: f64,
    /// In nanoseconds since 1970.
    pub most_at: Nanoseconds,
    pub port: PortName,
    pub counter: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortCounter {
    pub port: PortName,
    pub counter: String,
    /// `None` if unknown.
    pub family: Option<Family>,
    pub total: u64,
    pub most_per_second: f64,
    /// End of that reading, in nanoseconds since 1970.
    pub most_at: Nanoseconds,
    /// The plan's limit, in rises per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_per_second: Option<f64>,
}

impl PortCounter {
    pub fn is_over(&self) -> bool {
        self.limit_per_second.is_some_and(|limit| self.most_per_second > limit)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    pub counter: String,
    pub limit_per_second: f64,
    pub counted_by: usize,
    pub ports: usize,
    pub over: usize,
    /// Where it rose fastest; `None` without a rise.
    pub worst: Option<PortCounter>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gauge {
    /// With its unit.
    pub name: String,
    pub ports: usize,
    pub low: f64,
    pub low_port: PortName,
    pub high: f64,
    pub high_port: PortName,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortGauge {
    pub port: PortName,
    /// With its unit.
    pub name: String,
    pub low: f64,
    pub high: f64,
}

/// By name, or by the part of it after the last `/`.
pub fn is_about(limit: &str, counter: &str) -> bool {
    limit == counter || of_member(counter).is_some_and(|(_, plain)| plain == limit) || limit == last_part(counter)
}

/// Rows of a family before those of the next one.
const OF_FAMILY: usize = 8;

/// Every counter that rose at a port: those over their limit first, then a few of each family, the gravest family first.
pub fn counters(ports: &[Port], limits: &BTreeMap<String, f64>) -> Vec<PortCounter> {
    let limit = |counter: &str| {
        let about = limits.iter().filter(|(name, _)| is_about(name, counter)).map(|(_, limit)| *limit);
        about.min_by(f64::total_cmp)
    };
    let rose = ports.iter().flat_map(|port| {
        port.counters.iter().filter(|(_, counted)| counted.total > 0).map(|(name, counted)| PortCounter {
            port: port.name.clone(),
            counter: name.clone(),
            family: counted.family,
            total: counted.total,
            most_per_second: counted.most_per_second,
            most_at: counted.most_at,
            limit_per_second: limit(name),
        })
    });
    let mut rose: Vec<PortCounter> = rose.collect();
    let family = |one: &PortCounter| one.family.unwrap_or(Family::Other);
    rose.sort_by(|a, b| {
        (!a.is_over(), family(a))
            .cmp(&(!b.is_over(), family(b)))
            .then(b.most_per_second.total_cmp(&a.most_per_second))
            .then(b.total.cmp(&a.total))
    });
    let mut ranks: BTreeMap<Family, usize> = BTreeMap::new();
    let mut ranked: Vec<((bool, usize), PortCounter)> = Vec::with_capacity(rose.len());
    for one in rose {
        let rank = ranks.entry(family(&one)).or_default();
        let place = if one.is_over() { 0 } else { *rank / OF_FAMILY };
        *rank += 1;
        ranked.push(((!one.is_over(), place), one));
    }
    ranked.sort_by_key(|(key, _)| *key);
    ranked.into_iter().map(|(_, one)| one).collect()
}

/// Over ports, the gravest family first.
pub fn families(counters: &[PortCounter]) -> Vec<FamilySum> {
    // The highest counter of each port.
    let mut most: BTreeMap<(Family, &PortName), &PortCounter> = BTreeMap::new();
    for one in counters {
        let Some(family) = one.family else { continue };
        let known = most.entry((family, &one.port)).or_insert(one);
        if one.total > known.total {
            *known = one;
        }
    }
    let mut sums: BTreeMap<Family, FamilySum> = BTreeMap::new();
    for ((family, port), one) in most {
        let sum = sums.entry(family).or_insert_with(|| FamilySum {
            family,
            words: family.words(),
            ports: 0,
            total: 0,
            most_per_second: -1.0,
            most_at: Nanoseconds::ZERO,
            port: port.clone(),
            counter: String::new(),
        });
        sum.ports += 1;
        sum.total = sum.total.saturating_add(one.total);
        if one.most_per_second > sum.most_per_second {
            (sum.most_per_second, sum.most_at) = (one.most_per_second, one.most_at);
            (sum.port, sum.counter) = (port.clone(), one.counter.clone());
        }
    }
    sums.into_values().collect()
}

pub(super) fn limits(ports: &[Port], counters: &[PortCounter], limits: &BTreeMap<String, f64>) -> Vec<Limit> {
    let of = |(name, limit): (&String, &f64)| {
        let about: Vec<&PortCounter> = counters.iter().filter(|one| is_about(name, &one.counter)).collect();
        let over = about.iter().filter(|one| one.most_per_second > *limit).map(|one| &one.port);
        // A counter at its largest value does not count any more.
        let full = |port: &Port, counter: &str| port.gauges.contains_key(&format!("saturated/{counter}"));
        let counts = |port: &&Port| port.counters.keys().any(|counter| is_about(name, counter) && !full(port, counter));
        let worst = about.iter().max_by(|a, b| a.most_per_second.total_cmp(&b.most_per_second));
        let worst = worst.map(|one| PortCounter { limit_per_second: Some(*limit), ..(*one).clone() });
        Limit {
            counter: name.clone(),
            limit_per_second: *limit,
            counted_by: ports.iter().filter(counts).count(),
            ports: ports.len(),
            over: over.collect::<std::collections::BTreeSet<_>>().len(),
            worst,
        }
    };
    limits.iter().map(of).collect()
}

pub fn gauges(ports: &[Port]) -> (Vec<Gauge>, Vec<PortGauge>) {
    let mut found: BTreeMap<&str, Gauge> = BTreeMap::new();
    let mut by_port = Vec::new();
    for port in ports {
        for (name, range) in &port.gauges {
            let (low_port, high_port) = (port.name.clone(), port.name.clone());
            let first = || Gauge {
                name: name.clone(),
                ports: 0,
                low: f64::INFINITY,
                low_port,
                high: f64::NEG_INFINITY,
                high_port,
            };
            let sum = found.entry(name).or_insert_with(first);
            sum.ports += 1;
            if range.low < sum.low {
                (sum.low, sum.low_port) = (range.low, port.name.clone());
            }
            if range.high > sum.high {
                (sum.high, sum.high_port) = (range.high, port.name.clone());
            }
            let name = name.clone();
            by_port.push(PortGauge { port: port.name.clone(), name, low: range.low, high: range.high });
        }
    }
    (found.into_values().collect(), by_port)
}
