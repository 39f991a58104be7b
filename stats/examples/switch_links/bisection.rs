//! The other method: bisection in the manner of NVCRE's ADR-055, on fabrics whose routes are known.
//!
//! A group is tested by a ring of its ports, whose result is that of its slowest path; every path of it counts as one test. First
//! the group of each leaf, then rings of one representative for each leaf, other representatives while tests are left.
//! A ring that is low is halved; where neither half is low, the two paths that only the whole ring has are tested alone. A single
//! low pair is confirmed: either end beside healthy partners, so that an end which stays low is named by its cable. The original ends
//! there, since it looks for nodes; here it names the links of the path that no good ring passed.

use std::collections::BTreeSet;

use railgauge_stats::fabric::Part;

use crate::{tree::Tree, world::World};

/// A result below this, relative to a good one, is low: 4.5 standard deviations of the benchmark's results. The level is given to the
/// method.
const LOW: f64 = -0.045;
const PARTNERS: u32 = 3;

/// The parts that it names with at most so many tests.
pub fn named(world: &mut World<'_>, most: usize) -> Vec<Part> {
    let tree = world.tree;
    let mut search = Search { world, tree, most, good: vec![false; tree.fabric.links().len()], named: BTreeSet::new() };
    let leaves = tree.ports / tree.leaf;
    let mut low: Vec<Vec<u32>> = Vec::new();
    let groups = (0..leaves).map(|leaf| (0..tree.leaf).map(|port| leaf * tree.leaf + port).collect());
    let across =
        (0..tree.leaf).map(|turn| (0..leaves).map(|leaf| leaf * tree.leaf + (turn + leaf) % tree.leaf).collect());
    let groups: Vec<Vec<u32>> = groups.chain(across).collect();
    // A third of the tests is kept for what is low.
    for group in groups {
        if search.world.asked + group.len() <= most * 2 / 3 && !search.ring(&group) {
            low.push(group);
        }
    }
    for group in low {
        search.halve(&group);
    }
    let cable = |link: &u32| match tree.fabric.cable(*link) {
        Part::Cable(a, b) if search.named.contains(&a) && search.named.contains(&b) => Part::Cable(a, b),
        _ => Part::Link(*link),
    };
    search.named.iter().map(cable).collect::<BTreeSet<Part>>().into_iter().collect()
}

struct Search<'a, 'b> {
    world: &'b mut World<'a>,
    tree: &'a Tree,
    most: usize,
    good: Vec<bool>,
    named: BTreeSet<u32>,
}

impl Search<'_, '_> {
    fn path(&mut self, from: u32, to: u32) -> bool {
        let routes = self.tree.routes(from, to);
        let good = self.world.test(from, to, 0, &routes).is_some_and(|value| value > LOW);
        if good {
            routes[0].iter().for_each(|&link| self.good[link as usize] = true);
        }
        good
    }

    /// Whether a ring is good. A low one says nothing of its single paths, so their links are not taken for good.
    fn ring(&mut self, ports: &[u32]) -> bool {
        let before = self.good.clone();
        let mut good = true;
        for (at, &from) in ports.iter().enumerate() {
            good &= self.path(from, ports[(at + 1) % ports.len()]);
        }
        if !good {
            self.good = before;
        }
        good
    }

    fn halve(&mut self, ports: &[u32]) {
        if self.world.asked + ports.len() > self.most {
            return;
        }
        if ports.len() <= 2 {
            self.pair(ports[0], ports[1]);
            self.pair(ports[1], ports[0]);
            return;
        }
        let (a, b) = ports.split_at(ports.len() / 2);
        let mut any = false;
        for half in [a, b] {
            if half.len() > 1 && !self.ring(half) {
                any = true;
                self.halve(half);
            }
        }
        if !any {
            for (from, to) in [(a[a.len() - 1], b[0]), (b[b.len() - 1], a[0])] {
                self.pair(from, to);
            }
        }
    }

    fn pair(&mut self, from: u32, to: u32) {
        if self.world.asked + 2 + 2 * PARTNERS as usize > self.most || self.path(from, to) || self.path(from, to) {
            return;
        }
        let route = self.tree.routes(from, to).remove(0);
        for (end, sends) in [(from, true), (to, false)] {
            let mut low = 0;
            for number in 1..=PARTNERS {
                // Partners on the same leaf pass the end's own cable alone beside theirs.
                let partner = end / self.tree.leaf * self.tree.leaf + (end + number) % self.tree.leaf;
                let good = if sends { self.path(end, partner) } else { self.path(partner, end) };
                low += u32::from(!good);
            }
            if low == PARTNERS {
                let own = if sends { route[0] } else { route[route.len() - 1] };
                self.named.insert(own);
            }
        }
        if !route.iter().any(|link| self.named.contains(link)) {
            let open = route.iter().filter(|&&link| !self.good[link as usize]);
            self.named.extend(open.copied().collect::<Vec<u32>>());
        }
    }
}
