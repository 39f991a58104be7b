//! Fat trees: their links, and the routes between their ports.
//!
//! Ports are numbered leaf by leaf. Where routes are known the number of the receiving port chooses every switch on the way up, as
//! OpenSM's fat-tree routing does (d-mod-k); where they are hashed every way up is a candidate.

use std::collections::HashMap;

use railgauge_stats::fabric::{Fabric, Link, Route};

/// A fat tree of two or three levels.
pub struct Tree {
    /// Its links.
    pub fabric: Fabric,
    /// Number of ports.
    pub ports: u32,
    /// Ports of a leaf.
    pub leaf: u32,
    /// Ports of a pod: of a leaf where there are two levels.
    pub pod: u32,
    /// Whether routes are hashed.
    pub hashed: bool,
    /// Switches, by their number among the devices.
    pub switches: Vec<u32>,
    /// Ways up from a leaf, and from the switch above it (1 with two levels).
    ways: (u32, u32),
    between: HashMap<(u32, u32), u32>,
    levels: u32,
}

impl Tree {
    /// Leaves and spines, each leaf with one cable to every spine.
    pub fn two_levels(leaves: u32, leaf: u32, spines: u32, hashed: bool) -> Self {
        let ports = leaves * leaf;
        let mut cables: Vec<(u32, u32)> = (0..ports).map(|port| (port, ports + port / leaf)).collect();
        for at in 0..leaves {
            cables.extend((0..spines).map(|spine| (ports + at, ports + leaves + spine)));
        }
        Self::new((2, ports, leaf, leaf), (spines, 1), &cables, hashed)
    }

    /// The three-level fat tree of switches with k ports (Al-Fares et al. 2008): k pods, k³/4 ports.
    pub fn three_levels(k: u32, hashed: bool) -> Self {
        let half = k / 2;
        let (ports, edges) = (k * half * half, k * half);
        let mut cables: Vec<(u32, u32)> = (0..ports).map(|port| (port, ports + port / half)).collect();
        for edge in 0..edges {
            cables.extend((0..half).map(|way| (ports + edge, ports + edges + edge / half * half + way)));
        }
        for aggregation in 0..edges {
            let group = aggregation % half;
            cables.extend((0..half).map(|way| (ports + edges + aggregation, ports + 2 * edges + group * half + way)));
        }
        Self::new((3, ports, half, half * half), (half, half), &cables, hashed)
    }

    fn new(
        (levels, ports, leaf, pod): (u32, u32, u32, u32),
        ways: (u32, u32),
        cables: &[(u32, u32)],
        hashed: bool,
    ) -> Self {
        let mut links = Vec::new();
        let mut between = HashMap::new();
        for &(a, b) in cables {
            let first = links.len() as u32;
            between.insert((a, b), first);
            between.insert((b, a), first + 1);
            links.push(Link { from: a, to: b, reverse: Some(first + 1) });
            links.push(Link { from: b, to: a, reverse: Some(first) });
        }
        let mut switches: Vec<u32> = cables.iter().flat_map(|&(a, b)| [a, b]).filter(|&device| device >= ports).collect();
        switches.sort_unstable();
        switches.dedup();
        #[expect(clippy::expect_used, reason = "every link above leads back")]
        let fabric = Fabric::new(links).expect("a fabric");
        Self { fabric, ports, leaf, pod, hashed, switches, ways, between, levels }
    }

    /// Number of cables.
    pub fn cables(&self) -> usize {
        self.fabric.links().len() / 2
    }

    /// Candidate routes between two ports.
    pub fn routes(&self, from: u32, to: u32) -> Vec<Route> {
        let edges = self.ports / self.leaf;
        let (here, there) = (from / self.leaf, to / self.leaf);
        let leaf = |at: u32| self.ports + at;
        let links = |devices: &[u32]| -> Route { devices.windows(2).map(|ends| self.between[&(ends[0], ends[1])]).collect() };
        if here == there {
            return vec![links(&[from, leaf(here), to])];
        }
        let chosen = |way: u32, of: u32, known: u32| if self.hashed { way } else { known % of };
        let up = if self.hashed { self.ways.0 } else { 1 };
        if self.levels == 2 {
            let spine = |way: u32| self.ports + edges + chosen(way, self.ways.0, to);
            return (0..up).map(|way| links(&[from, leaf(here), spine(way), leaf(there), to])).collect();
        }
        let per_pod = self.pod / self.leaf;
        let above = |edge: u32, way: u32| self.ports + edges + edge / per_pod * per_pod + chosen(way, self.ways.0, to);
        if from / self.pod == to / self.pod {
            return (0..up).map(|way| links(&[from, leaf(here), above(here, way), leaf(there), to])).collect();
        }
        let cores = if self.hashed { self.ways.1 } else { 1 };
        let core = |way: u32, next: u32| {
            let next = chosen(next, self.ways.1, to / self.ways.0);
            self.ports + 2 * edges + chosen(way, self.ways.0, to) * self.ways.1 + next
        };
        let every = (0..up).flat_map(|way| (0..cores).map(move |next| (way, next)));
        every
            .map(|(way, next)| {
                links(&[from, leaf(here), above(here, way), core(way, next), above(there, way), leaf(there), to])
            })
            .collect()
    }

    /// Rounds of the screen, each a permutation that loads no link twice where routes are known: one within the leaves, with three
    /// levels one within the pods, then between pods. `draw` gives a number below its argument.
    pub fn screen(&self, rounds: usize, mut draw: impl FnMut(u32) -> u32) -> Vec<Vec<(u32, u32)>> {
        let rotated = |by: u32, within: u32, port: u32| port / within * within + (port % within + by) % within;
        let mut found: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut shifts: Vec<(u32, u32)> = Vec::new();
        for round in 0..rounds {
            // Other shifts in every round, so that other links share a path.
            let (mut across, mut within);
            loop {
                (across, within) = match (round, self.levels) {
                    (0, _) => (0, 1 + draw(self.leaf - 1)),
                    (1, 3) => (0, self.leaf * (1 + draw(self.pod / self.leaf - 1)) + draw(self.leaf)),
                    _ => (self.pod * (1 + draw(self.ports / self.pod - 1)), draw(self.pod)),
                };
                if !shifts.contains(&(across, within)) {
                    break;
                }
            }
            shifts.push((across, within));
            let group = if round == 0 { self.leaf } else { self.pod };
            found.push((0..self.ports).map(|port| (port, (rotated(within, group, port) + across) % self.ports)).collect());
        }
        found
    }
}
