//! The course of a search: from the screen to the hosts and boundaries at fault. It runs from the start with the results so far, and
//! stops with the group whose result it needs next.

use std::{
    collections::{BTreeMap, BTreeSet},
    f64::consts::FRAC_PI_2,
};

use super::{Found, Setting, known::Known};
use crate::{
    robust::{Level, median},
    student::t_quantile,
};

/// Standard deviations below the reference at which a group fails.
const CUT: f64 = 3.0;
const REFERENCES: usize = 3;
const DECIDES: usize = 2;
/// Results of a group after which one that is not surely low counts as good.
const MOST: usize = 5;
const PARTNERS: usize = 2;

/// Of a single low result by chance, if the noise is estimated; two of three decide.
const CHANCE: f64 = 0.01;

/// Suspects that each suspect is measured with: if no group of the screen is within a small side, its hosts are near one another.
const NEIGHBOURS: usize = 4;

pub(super) type Wanted = Vec<u32>;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sure {
    /// A first result that is good is enough: a fault adds no bandwidth.
    Once,
    Vote,
}

pub(super) struct Course<'s> {
    setting: &'s Setting,
    screen: &'s [Vec<u32>],
    results: &'s BTreeMap<Vec<u32>, Vec<Option<f64>>>,
    references: BTreeMap<usize, Level>,
    /// Standard deviation of good groups, as known or as the results so far show.
    spread: f64,
    /// In standard deviations.
    cut: f64,
    pub(super) known: Known,
    /// Pairs of hosts that were measured: whether they failed, `None` if that could not be judged.
    pub(super) pairs: BTreeMap<(u32, u32), Option<bool>>,
    suspects: Vec<u32>,
    pub(super) across: Vec<Vec<u32>>,
    taken: BTreeSet<Vec<u32>>,
    pub(super) found: Found,
}

impl<'s> Course<'s> {
    pub(super) fn new(
        setting: &'s Setting,
        screen: &'s [Vec<u32>],
        results: &'s BTreeMap<Vec<u32>, Vec<Option<f64>>>,
    ) -> Self {
        Self {
            setting,
            screen,
            results,
            references: setting.references.clone(),
            spread: setting.noise,
            cut: CUT,
            known: Known::default(),
            pairs: BTreeMap::new(),
            suspects: Vec::new(),
            across: Vec::new(),
            taken: BTreeSet::new(),
            found: Found::default(),
        }
    }

    pub(super) fn end(self) -> (Found, BTreeMap<usize, Level>) {
        (self.found, self.references)
    }

    pub(super) fn size(&self) -> usize {
        self.screen.first().map_or(2, Vec::len)
    }

    pub(super) fn walk(&mut self) -> Result<(), Wanted> {
        let failing = self.screen()?;
        if failing.len() == self.screen.len() {
            self.found.open = failing;
            return Ok(());
        }
        self.link()?;
        for group in failing {
            self.take_apart(&group)?;
        }
        self.confirm()?;
        self.part()?;
        self.look_within()?;
        self.drop_held();
        Ok(())
    }

    fn screen(&mut self) -> Result<Vec<Vec<u32>>, Wanted> {
        let mut first = Vec::new();
        for group in self.screen {
            first.push(self.results_of(group).first().ok_or_else(|| group.clone())?);
        }
        let good = upper(first.into_iter().flatten().copied().collect(), self.setting);
        if self.setting.noise <= 0.0 {
            let repeated = self.results.values().map(|of| of.iter().flatten().copied().collect());
            (self.spread, self.cut) = scatter(repeated.chain([good.clone()]));
        }
        if let Some(level) = self.level(&good) {
            self.references.entry(self.size()).or_insert(level);
        }
        let mut failing = Vec::new();
        // All groups vote before the first is taken apart: the votes show who is good.
        for group in self.screen {
            if !self.references.contains_key(&group.len()) || self.fails(group, Sure::Once)? == Some(true) {
                failing.push(group.clone());
            } else {
                self.known.pass(group);
                if self.results_of(group).len() > 1 {
                    self.found.transient.push(group.clone());
                }
            }
        }
        Ok(failing)
    }

    fn results_of(&self, group: &[u32]) -> &'s [Option<f64>] {
        let mut places = group.to_vec();
        places.sort_unstable();
        self.results.get(&places).map_or(&[], Vec::as_slice)
    }

    /// `None` without a reference.
    pub(super) fn fails(&mut self, group: &[u32], sure: Sure) -> Result<Option<bool>, Wanted> {
        let Some(level) = self.reference(group.len())? else { return Ok(None) };
        // The centre is a median of few values, with its own error.
        let error = level.scale * (1.0 + FRAC_PI_2 / level.n.max(1) as f64).sqrt();
        let low = |cut: f64| level.centre - (cut * error).max(self.setting.least);
        let (surely, perhaps) = (low(self.cut), low(CUT));
        let (mut passed, mut failed) = (0, 0);
        let results = self.results_of(group);
        for result in results {
            match result {
                Some(value) if *value >= perhaps => passed += 1,
                Some(value) if *value >= surely => {}
                _ => failed += 1,
            }
            if passed >= DECIDES || (sure == Sure::Once && passed > failed) {
                return Ok(Some(false));
            }
            if failed >= DECIDES {
                return Ok(Some(true));
            }
        }
        if results.len() >= MOST {
            return Ok(Some(false));
        }
        Err(group.to_vec())
    }

    /// Whether two hosts fail together: their loss is at least half of `usual`, the loss that the fault causes in a larger group, or for
    /// one of them elsewhere. Less is chance.
    pub(super) fn pair_fails(&mut self, a: u32, b: u32, usual: Option<f64>) -> Result<Option<bool>, Wanted> {
        let mut fails = self.fails(&[a, b], Sure::Vote)?;
        if usual.zip(self.loss(&[a, b])).is_some_and(|(usual, loss)| loss < usual / 2.0) {
            fails = fails.map(|_| false);
        }
        self.pairs.insert((a.min(b), a.max(b)), fails);
        Ok(fails)
    }

    fn met(&self, host: u32) -> impl Iterator<Item = (u32, Option<bool>)> {
        let other = move |a, b| if a == host { Some(b) } else { (b == host).then_some(a) };
        self.pairs.iter().filter_map(move |(&(a, b), &fails)| Some((other(a, b)?, fails)))
    }

    fn were_paired(&self, a: u32, b: u32) -> bool {
        self.pairs.contains_key(&(a.min(b), a.max(b)))
    }

    /// What good groups of a size reach; `None` if it cannot be measured.
    fn reference(&mut self, size: usize) -> Result<Option<Level>, Wanted> {
        if let Some(level) = self.references.get(&size) {
            return Ok(Some(*level));
        }
        let mut results = Vec::new();
        for group in self.known.parts(size, REFERENCES) {
            results.extend(*self.results_of(&group).first().ok_or(group)?);
        }
        let level = self.level(&results);
        self.references.extend(level.map(|level| (size, level)));
        Ok(level)
    }

    /// Median of good groups, with the spread of the screen, because three results say little about spread.
    fn level(&self, results: &[f64]) -> Option<Level> {
        let centre = median(results).ok()?;
        Some(Level { centre, scale: self.spread, n: results.len() })
    }

    /// Halves a failing group until single hosts are left, or halves that are good by themselves.
    pub(super) fn take_apart(&mut self, group: &[u32]) -> Result<(), Wanted> {
        if !self.taken.insert(group.to_vec()) {
            return Ok(());
        }
        if let [host] = *group {
            if !self.suspects.contains(&host) {
                self.suspects.push(host);
            }
            return Ok(());
        }
        let (a, b) = group.split_at(group.len() / 2);
        let mut failing = Vec::new();
        for half in [a, b] {
            match self.half_fails(half, group)? {
                Some(true) => failing.push(half),
                Some(false) => {}
                None => {
                    self.found.open.push(group.to_vec());
                    return Ok(());
                }
            }
        }
        for half in &failing {
            self.take_apart(half)?;
        }
        if !failing.is_empty() {
            return Ok(());
        }
        self.link()?;
        if self.known.together(a[0], b[0]) {
            self.mix([a.to_vec(), b.to_vec()], false)?;
        } else if !self.are_apart(a[0], b[0]) {
            self.found.open.push(group.to_vec());
        }
        Ok(())
    }

    /// Whether a half of a group fails (a single host together with a good one from outside); records good hosts. A part of a good group
    /// is not measured again.
    fn half_fails(&mut self, half: &[u32], group: &[u32]) -> Result<Option<bool>, Wanted> {
        if self.known.holds(half) {
            return Ok(Some(false));
        }
        if let [host] = *half {
            let Some(partner) = self.beside(host, group) else { return Ok(None) };
            let fails = self.pair_fails(host, partner, self.loss(group))?;
            if fails == Some(false) {
                self.known.pass(&[host, partner]);
            }
            return Ok(fails);
        }
        let fails = self.fails(half, Sure::Vote)?;
        if fails == Some(false) {
            self.known.pass(half);
        }
        Ok(fails)
    }

    /// The nearest good host for `host` to be measured with, from a good group of the screen and not from `without`. Near ones are most
    /// likely on the same side if there are two sides.
    fn beside(&self, host: u32, without: &[u32]) -> Option<u32> {
        let screened = self.screen.iter().filter(|group| group.iter().all(|host| self.known.is_good(*host)));
        let free = |other: &u32| *other != host && !without.contains(other) && !self.were_paired(host, *other);
        screened.flatten().copied().filter(free).min_by_key(|other| other.abs_diff(host))
    }

    /// Narrows sides that pass by themselves and fail together, by mixing half of one with half of the other until each is a single host.
    /// `crossed` swaps the halves.
    fn mix(&mut self, sides: [Vec<u32>; 2], crossed: bool) -> Result<(), Wanted> {
        if sides.iter().all(|side| side.len() < 2) {
            self.add_boundary(sides.into());
            return Ok(());
        }
        // A side of a single host meets both halves of the other.
        let halves = |side: &[u32]| match side {
            [_] => [side.to_vec(), side.to_vec()],
            _ => [side[..side.len() / 2].to_vec(), side[side.len() / 2..].to_vec()],
        };
        let [a1, a2] = halves(&sides[0]);
        let [mut b1, mut b2] = halves(&sides[1]);
        if crossed {
            std::mem::swap(&mut b1, &mut b2);
        }
        let mixes = [[a1, b1], [a2, b2]];
        let mut fail = [false; 2];
        for (mix, fail) in mixes.iter().zip(&mut fail) {
            match self.fails(&mix.concat(), Sure::Vote)? {
                Some(fails) => *fail = fails,
                None => {
                    self.found.open.push(sides.concat());
                    return Ok(());
                }
            }
        }
        let [first, second] = mixes;
        match fail {
            [true, true] => self.add_boundary(sides.into()),
            [true, false] => return self.mix(first, false),
            [false, true] => return self.mix(second, false),
            // Each half of one side has met one half of the other only.
            [false, false] if !crossed && sides.iter().all(|side| side.len() >= 2) => return self.mix(sides, true),
            [false, false] => self.found.transient.push(sides.concat()),
        }
        Ok(())
    }

    pub(super) fn add_boundary(&mut self, sides: (Vec<u32>, Vec<u32>)) {
        if !self.found.boundaries.contains(&sides) {
            self.found.boundaries.push(sides);
        }
    }

    fn drop_held(&mut self) {
        let within = |a: &[u32], b: &[u32]| a.iter().all(|host| b.contains(host));
        let all = self.found.boundaries.clone();
        self.found.boundaries.retain(|(a, b)| {
            let holds = |(c, d): &(Vec<u32>, Vec<u32>)| {
                (a, b) != (c, d) && (within(a, c) && within(b, d) || within(a, d) && within(b, c))
            };
            !all.iter().any(holds)
        });
    }

    /// Measures every suspect with a good host of each side, two at least, and with the other suspects. A suspect that is good with one
    /// of them, or loses less than half as much as with others, is not at fault, but on its side.
    fn confirm(&mut self) -> Result<(), Wanted> {
        self.link()?;
        let suspects: Vec<u32> = self.suspects.clone();
        while let Some((host, partner)) = self.unmet(&suspects) {
            let losses: Vec<f64> = self.met(host).filter_map(|(other, _)| self.loss(&[host, other])).collect();
            if self.pair_fails(host, partner, median(&losses).ok())? == Some(false) {
                self.clear(host, partner);
            }
        }
        self.link()?;
        for host in suspects {
            // A host from a good group is not at fault, however many others failed with it.
            if self.known.is_good(host) {
                continue;
            }
            let failed = self.met(host).filter(|(_, fails)| *fails == Some(true)).count();
            if failed == self.met(host).count() && failed >= PARTNERS {
                self.found.hosts.push(host);
            } else {
                self.found.open.push(vec![host]);
            }
        }
        Ok(())
    }

    /// By how much a group was below its reference.
    pub(super) fn loss(&self, group: &[u32]) -> Option<f64> {
        let results: Vec<f64> = self.results_of(group).iter().flatten().copied().collect();
        Some(self.references.get(&group.len())?.centre - median(&results).ok()?)
    }

    fn clear(&mut self, host: u32, partner: u32) {
        self.known.pass(&[host, partner]);
        // It failed with a host of the same side: not throughout.
        if self.met(host).any(|(other, fails)| fails == Some(true) && self.known.together(host, other)) {
            self.found.transient.push(vec![host]);
        }
    }

    /// A suspect not known to be good, and whom it has not been measured with yet.
    fn unmet(&self, suspects: &[u32]) -> Option<(u32, u32)> {
        let sides = self.known.sides();
        for &host in suspects.iter().filter(|host| !self.known.is_good(**host)) {
            for side in &sides {
                if !side.iter().any(|other| self.were_paired(host, *other)) {
                    let nearest = side.iter().copied().min_by_key(|other| other.abs_diff(host))?;
                    return Some((host, nearest));
                }
            }
            if self.met(host).count() < PARTNERS {
                // From another group than the first, so that its fault cannot be the same.
                let other = |other: &u32| !self.known.home(*other).iter().any(|home| self.were_paired(host, *home));
                let good = || sides.iter().flatten().copied().filter(|other| !self.were_paired(host, *other));
                let nearest = good().filter(other).min_by_key(|other| other.abs_diff(host));
                if let Some(partner) = nearest.or_else(|| good().min_by_key(|other| other.abs_diff(host))) {
                    return Some((host, partner));
                }
            }
        }
        // Those that are left: a side may have no other hosts.
        let left: Vec<u32> = suspects.iter().copied().filter(|host| !self.known.is_good(*host)).collect();
        let unmet = |host: u32| {
            let mut others: Vec<u32> = left.iter().copied().filter(|other| *other != host).collect();
            others.sort_unstable_by_key(|other| other.abs_diff(host));
            others.into_iter().take(NEIGHBOURS).find(|other| !self.were_paired(host, *other))
        };
        left.iter().find_map(|&host| Some((host, unmet(host)?)))
    }
}

/// The good results of a screen. A fault removes bandwidth and adds none, so where a gap wider than noise, and wider than the spread
/// above it, separates the results, only those above it are good, even if few.
fn upper(mut results: Vec<f64>, setting: &Setting) -> Vec<f64> {
    results.sort_unstable_by(f64::total_cmp);
    let noise = setting.least.max(4.0 * setting.noise);
    let top = results.last().copied().unwrap_or_default();
    let parts = |at: &usize| {
        let gap = results[*at] - results[at - 1];
        gap > noise && gap > top - results[*at]
    };
    let start = (1..results.len()).rev().find(parts).unwrap_or(0);
    results.split_off(start)
}

/// Pooled standard deviation of values around the means of their groups, and how many of them a group must be below the reference: few
/// values say little about their scatter. 0 if no group has two.
fn scatter(groups: impl Iterator<Item = Vec<f64>>) -> (f64, f64) {
    let (mut squares, mut freedom) = (0.0, 0);
    for values in groups.filter(|values| values.len() > 1) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        squares += values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        freedom += values.len() - 1;
    }
    let freedom = freedom.max(1) as f64;
    ((squares / freedom).sqrt(), t_quantile(CHANCE, freedom).max(CUT))
}
