//! Fat trees: their links, and the routes between their ports.
//!
//! Ports are numbered leaf by leaf. Where routes are known the number of the receiving port chooses every switch on the way up, as
//! OpenSM's fat-tree routing does (d-mod-k); where they are hashed every way up is a candidate.

use railgauge_stats::fabric::{Fabric, Link, Route};

pub struct Tree {
    pub fabric: Fabric,
    pub ports: u32,
    pub leaf: u32,
    /// Ports of a pod: of a leaf where there are two levels.
    pub pod: u32,
    pub hashed: bool,
    pub switches: Vec<u32>,
    /// Ways up from a leaf, and from the switch above it (1 with two levels).
    ways: (u32, u32),
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
        for &(a, b) in cables {
            let first = links.len() as u32;
            links.push(Link { from: a, to: b, reverse: Some(first + 1) });
            links.push(Link { from: b, to: a, reverse: Some(first) });
        }
        let mut switches: Vec<u32> =
            cables.iter().flat_map(|&(a, b)| [a, b]).filter(|&device| device >= ports).collect();
        switches.sort_unstable();
        switches.dedup();
        #[expect(clippy::expect_used, reason = "every link above leads back")]
        let fabric = Fabric::new(links).expect("a fabric");
        Self { fabric, ports, leaf, pod, hashed, switches, ways, levels }
    }

    pub fn cables(&self) -> usize {
        self.fabric.links().len() / 2
    }

    /// Candidate routes between two ports. Cables are numbered level by level, from the ports up; cable c is the link 2 c up and the
    /// link 2 c + 1 down.
    pub fn routes(&self, from: u32, to: u32) -> Vec<Route> {
        let (here, there) = (from / self.leaf, to / self.leaf);
        let (first, last) = (2 * from, 2 * to + 1);
        if here == there {
            return vec![vec![first, last]];
        }
        let ways = |of: u32, known: u32| if self.hashed { 0..of } else { known % of..known % of + 1 };
        let above = |leaf: u32, way: u32| 2 * (self.ports + leaf * self.ways.0 + way);
        let up = ways(self.ways.0, to);
        if from / self.pod == to / self.pod || self.levels == 2 {
            return up.map(|way| vec![first, above(here, way), above(there, way) + 1, last]).collect();
        }
        let per_pod = self.pod / self.leaf;
        let (leaves, below) = (self.ports / self.leaf, |leaf: u32| leaf / per_pod * per_pod);
        let core = |leaf: u32, way: u32, next: u32| {
            2 * (self.ports + leaves * self.ways.0 + (below(leaf) + way) * self.ways.1 + next)
        };
        let next = ways(self.ways.1, to / self.ways.0);
        let every = up.flat_map(|way| next.clone().map(move |next| (way, next)));
        let route = |(way, next)| {
            let (rise, fall) = (core(here, way, next), core(there, way, next) + 1);
            vec![first, above(here, way), rise, fall, above(there, way) + 1, last]
        };
        every.map(route).collect()
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
            found.push(
                (0..self.ports).map(|port| (port, (rotated(within, group, port) + across) % self.ports)).collect(),
            );
        }
        found
    }
}
