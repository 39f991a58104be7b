//! Input of the choice of rounds: NIC ports, the links between switches, and the way of every ordered pair.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct End {
    pub host: u32,
    /// Number of its switch, from 0 without large gaps; `None` where unknown.
    pub leaf: Option<u32>,
    /// Rate of its link in Gbit/s; `None` where unknown: then assumed as fast as the links on the way.
    pub rate_gbps: Option<f64>,
}

pub type Link = u32;

/// Ends, links and ways.
///
/// A forwarding table depends only on the destination, so all ends of one leaf take the same way to an end elsewhere: ways are stored by
/// leaf and destination.
#[derive(Debug, Clone)]
pub struct Network {
    pub ends: Vec<End>,
    pub rates: Vec<Option<f64>>,
    below: Vec<Vec<u32>>,
    /// By leaf and destination: range in `arena`.
    ways: Vec<Option<Range<u32>>>,
    arena: Vec<Link>,
    /// By leaf and destination: the lowest rate of the way's links and the destination.
    most: Vec<f64>,
}

impl Network {
    /// Calls `way` once for each leaf and each end below another leaf. It returns the links between switches from that leaf to this end, or
    /// `None` if unknown. Links are indices into `rates` (Gbit/s); a way with other indices is unknown. Impossible rates (zero, negative,
    /// not finite) are unknown.
    pub fn new(ends: Vec<End>, rates: Vec<Option<f64>>, mut way: impl FnMut(u32, usize) -> Option<Vec<Link>>) -> Self {
        let real = |rate: Option<f64>| rate.filter(|rate| rate.is_finite() && *rate > 0.0);
        let ends: Vec<End> = ends.into_iter().map(|end| End { rate_gbps: real(end.rate_gbps), ..end }).collect();
        let rates: Vec<Option<f64>> = rates.into_iter().map(real).collect();
        let leaves = ends.iter().filter_map(|end| end.leaf).max().map_or(0, |last| last as usize + 1);
        let mut below = vec![Vec::new(); leaves];
        for (number, end) in (0..).zip(&ends) {
            if let Some(leaf) = end.leaf {
                below[leaf as usize].push(number);
            }
        }
        let mut network = Self { ends, rates, below, ways: Vec::new(), arena: Vec::new(), most: Vec::new() };
        for leaf in 0..leaves {
            for to in 0..network.ends.len() {
                let far = network.ends[to].leaf.map(|far| far as usize);
                let path = match far {
                    _ if network.below[leaf].is_empty() => None,
                    None => None,
                    Some(far) if far == leaf => Some(Vec::new()),
                    Some(_) => way(number(leaf), to),
                };
                network.add(to, path);
            }
        }
        network
    }

    fn add(&mut self, to: usize, path: Option<Vec<Link>>) {
        let path = path.filter(|path| path.iter().all(|link| (*link as usize) < self.rates.len()));
        let start = number(self.arena.len());
        let mut most = self.ends[to].rate_gbps.unwrap_or(f64::INFINITY);
        for link in path.iter().flatten() {
            most = most.min(self.rates[*link as usize].unwrap_or(f64::INFINITY));
            self.arena.push(*link);
        }
        self.ways.push(path.map(|_| start..number(self.arena.len())));
        self.most.push(most);
    }

    pub(super) fn leaves(&self) -> usize {
        self.below.len()
    }

    pub(super) fn below(&self, leaf: u32) -> &[u32] {
        &self.below[leaf as usize]
    }

    pub(super) fn way(&self, leaf: u32, to: u32) -> Option<&[Link]> {
        let range = self.ways[leaf as usize * self.ends.len() + to as usize].clone()?;
        Some(&self.arena[range.start as usize..range.end as usize])
    }

    /// The links between switches that a flow passes: empty for ends of one leaf; `None` where unknown.
    pub fn path(&self, from: u32, to: u32) -> Option<&[Link]> {
        self.way(self.ends[from as usize].leaf?, to)
    }

    /// Rate of a flow alone, in Gbit/s: the slowest of its ends and links. 1 where no rate is known.
    pub fn alone(&self, from: u32, to: u32) -> f64 {
        let from = self.ends[from as usize];
        let way = from.leaf.map_or(f64::INFINITY, |leaf| self.most[leaf as usize * self.ends.len() + to as usize]);
        let rate = way.min(from.rate_gbps.unwrap_or(f64::INFINITY));
        if rate.is_finite() { rate } else { 1.0 }
    }
}

/// Never overflows: sources are limited to fewer ends and links.
fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
