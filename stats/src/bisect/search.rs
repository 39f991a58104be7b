//! The state machine.

use std::collections::{BTreeMap, BTreeSet};

use super::job::{Job, Vote};
use crate::{
    refusal::Refusal,
    robust::{Level, median},
};

/// Standard deviations below the reference at which a group fails.
const CUT: f64 = 3.0;
/// Good groups that a reference rests on.
const REFERENCES: usize = 3;
/// Fewest groups of the screen: among fewer, what is usual cannot be told.
const FEWEST_GROUPS: usize = 3;

/// What is known beforehand.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Smallest effect that counts, as a difference of logarithms.
    pub least: f64,
    /// Standard deviation of repeated results, as far as known, on the scale of logarithms. 0 if not known.
    pub noise: f64,
    /// What good groups of a size reach, where known from before.
    pub references: BTreeMap<usize, Level>,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Hosts that were low in every group and again beside a known-good host.
    pub hosts: Vec<u32>,
    /// Pairs of sides that are good by themselves and low together, as narrow as could be found.
    pub boundaries: Vec<(Vec<u32>, Vec<u32>)>,
    /// Groups that failed twice and passed when taken apart, or a host that passed when confirmed.
    pub transient: Vec<Vec<u32>>,
    /// Groups that fail but could not be taken apart, because too few hosts are known to be good for a reference.
    pub open: Vec<Vec<u32>>,
    /// Measurements made.
    pub tests: usize,
}

/// A search under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    setting: Setting,
    /// The screen: groups with their first result, until each has one.
    screen: Vec<(Vec<u32>, Option<Option<f64>>)>,
    /// Groups of the screen that failed at first and are repeated.
    again: Vec<Vote>,
    /// What is to be done, the next last.
    jobs: Vec<Job>,
    /// Hosts of groups that passed.
    good: BTreeSet<u32>,
    references: BTreeMap<usize, Level>,
    /// Standard deviation of good groups, as known or as the screen shows.
    spread: f64,
    /// Known-good hosts already used beside a suspect, so that the next one is another.
    turn: usize,
    found: Found,
}

impl Search {
    /// A search over `hosts`, in the given order: neighbours share a group, so hosts of a leaf should stand together.
    ///
    /// # Errors
    /// Fewer than six hosts (three groups of two), a host twice, or a negative noise or least effect.
    pub fn new(hosts: &[u32], setting: Setting) -> Result<Self, Refusal> {
        if hosts.len() < 2 * FEWEST_GROUPS {
            return Err(Refusal::TooFew { need: 2 * FEWEST_GROUPS, got: hosts.len() });
        }
        if hosts.iter().collect::<BTreeSet<_>>().len() != hosts.len() {
            return Err(Refusal::Parameter("a host occurs twice"));
        }
        if !(setting.least >= 0.0 && setting.noise >= 0.0 && setting.least.is_finite() && setting.noise.is_finite()) {
            return Err(Refusal::Parameter("the least effect and the noise are not negative"));
        }
        let size = ((hosts.len() as f64).sqrt().ceil() as usize).clamp(2, hosts.len() / FEWEST_GROUPS);
        let screen = hosts
            .chunks(size)
            .map(|chunk| {
                // The last group is filled up from the front, so that all have one size and one reference.
                let fill = hosts.iter().filter(|host| !chunk.contains(host)).take(size - chunk.len());
                (chunk.iter().chain(fill).copied().collect(), None)
            })
            .collect();
        Ok(Self {
            references: setting.references.clone(),
            setting,
            screen,
            again: Vec::new(),
            jobs: Vec::new(),
            good: BTreeSet::new(),
            spread: 0.0,
            turn: 0,
            found: Found::default(),
        })
    }

    /// The hosts to run the collective on next; `None` when the search is over.
    pub fn next_group(&self) -> Option<&[u32]> {
        if let Some((group, _)) = self.screen.iter().find(|(_, result)| result.is_none()) {
            return Some(group);
        }
        let again = self.again.iter().find(|vote| vote.fails().is_none());
        again.map(|vote| vote.hosts.as_slice()).or_else(|| self.jobs.last()?.next_group())
    }

    /// Takes the natural logarithm of the bandwidth of [`next_group`](Self::next_group), or `None` if the collective did
    /// not run, which counts as failing. A number that is not finite is taken as `None`.
    pub fn answer(&mut self, result: Option<f64>) {
        let result = result.filter(|value| value.is_finite());
        if self.next_group().is_none() {
            return;
        }
        self.found.tests += 1;
        if let Some((_, first)) = self.screen.iter_mut().find(|(_, result)| result.is_none()) {
            *first = Some(result);
            if self.screen.iter().all(|(_, result)| result.is_some()) {
                self.judge_screen();
            }
            return;
        }
        if let Some(at) = self.again.iter().position(|vote| vote.fails().is_none()) {
            let fails = self.fails(self.again[at].hosts.len(), result);
            count(&mut self.again[at], fails);
        } else if let Some(Job::Reference { results, tried, .. }) = self.jobs.last_mut() {
            results.extend(result);
            *tried += 1;
        } else if let Some(size) = self.next_group().map(<[u32]>::len) {
            let fails = self.fails(size, result);
            if let Some(vote) = self.jobs.last_mut().and_then(Job::open_vote) {
                count(vote, fails);
            }
        }
        self.advance();
    }

    /// What was found so far; complete when [`next_group`](Self::next_group) is `None`.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// What good groups of each size reach.
    pub fn references(&self) -> &BTreeMap<usize, Level> {
        &self.references
    }

    /// A reference from results of good groups: their median, with the spread of the screen, because three results say
    /// little about spread.
    fn level(&self, results: &[f64]) -> Option<Level> {
        let centre = median(results).ok()?;
        Some(Level { centre, scale: self.spread, n: results.len() })
    }

    /// Whether a result of a group of this size fails.
    fn fails(&self, size: usize, result: Option<f64>) -> bool {
        match (self.references.get(&size), result) {
            (Some(level), Some(value)) => value < level.centre - (CUT * level.scale).max(self.setting.least),
            _ => true,
        }
    }

    fn judge_screen(&mut self) {
        let results: Vec<f64> = self.screen.iter().filter_map(|(_, result)| result.flatten()).collect();
        let size = self.screen[0].0.len();
        let good = upper(results, &self.setting);
        self.spread = if self.setting.noise > 0.0 { self.setting.noise } else { deviation(&good) };
        if let Some(level) = self.level(&good) {
            self.references.entry(size).or_insert(level);
        }
        for (group, result) in std::mem::take(&mut self.screen) {
            if self.fails(size, result.flatten()) {
                self.again.push(Vote { failed: 1, ..Vote::new(group) });
            } else {
                self.good.extend(group);
            }
        }
        self.advance();
    }

    /// Draws all conclusions that are due, until something is to be measured.
    fn advance(&mut self) {
        if self.again.iter().any(|vote| vote.fails().is_none()) {
            return;
        }
        // Every group's vote must be in before the first is taken apart: it decides who is known to be good.
        let settled = std::mem::take(&mut self.again);
        let (failing, passing): (Vec<Vote>, Vec<Vote>) = settled.into_iter().partition(|v| v.fails() == Some(true));
        for vote in passing {
            self.good.extend(&vote.hosts);
            self.found.transient.push(vote.hosts);
        }
        for vote in &failing {
            vote.hosts.iter().for_each(|host| _ = self.good.remove(host));
        }
        failing.into_iter().for_each(|vote| self.take_apart(vote.hosts));
        while let Some(job) = self.jobs.last() {
            let missing = job.sizes().into_iter().find(|size| !self.references.contains_key(size));
            if let Some(size) = missing {
                if !self.want_reference(size) {
                    self.give_up();
                }
            } else if job.next_group().is_some() {
                return;
            } else if let Some(job) = self.jobs.pop() {
                self.conclude(job);
            }
        }
    }

    /// Plans to measure good groups of a size; false if too few hosts are known to be good.
    fn want_reference(&mut self, size: usize) -> bool {
        let good: Vec<u32> = self.good.iter().copied().collect();
        if good.len() < size {
            return false;
        }
        let start = |i: usize| i * (good.len() / REFERENCES).max(1);
        let group = |i: usize| (0..size).map(|j| good[(start(i) + j) % good.len()]).collect();
        let groups = (0..REFERENCES).map(group).collect();
        self.jobs.push(Job::Reference { size, groups, results: Vec::new(), tried: 0 });
        true
    }

    /// The last job cannot be measured: its hosts stay open.
    fn give_up(&mut self) {
        match self.jobs.pop() {
            Some(Job::Halves { halves: [a, b], .. }) => self.found.open.push([a, b].concat()),
            Some(Job::Mixes { sides, .. }) => self.found.open.push(sides.concat()),
            Some(Job::Confirm { host, .. }) => self.found.open.push(vec![host]),
            Some(Job::Reference { .. }) | None => {}
        }
    }

    /// A failing group is halved; a single host is confirmed.
    fn take_apart(&mut self, hosts: Vec<u32>) {
        if let [host] = hosts[..] {
            let job = match self.beside(host) {
                Some(good) => Job::Confirm { host, vote: Vote::new(vec![host, good]) },
                None => return self.found.open.push(hosts),
            };
            self.jobs.push(job);
            return;
        }
        let (a, b) = hosts.split_at(hosts.len() / 2);
        let halves = [a.to_vec(), b.to_vec()];
        match (self.vote(&halves[0]), self.vote(&halves[1])) {
            (Some(first), Some(second)) => self.jobs.push(Job::Halves { halves, votes: [first, second] }),
            _ => self.found.open.push(hosts),
        }
    }

    /// A group's vote; a single host gets a known-good one beside it.
    fn vote(&mut self, hosts: &[u32]) -> Option<Vote> {
        let mut hosts = hosts.to_vec();
        if let [host] = hosts[..] {
            hosts.push(self.beside(host)?);
        }
        Some(Vote::new(hosts))
    }

    /// A known-good host for `host` to be measured with, another one each time.
    fn beside(&mut self, host: u32) -> Option<u32> {
        let good: Vec<u32> = self.good.iter().copied().filter(|&other| other != host).collect();
        self.turn += 1;
        (!good.is_empty()).then(|| good[self.turn % good.len()])
    }

    fn conclude(&mut self, job: Job) {
        match job {
            Job::Reference { size, results, .. } => {
                // Without a result from good hosts nothing of this size can be judged.
                match self.level(&results) {
                    Some(level) => _ = self.references.insert(size, level),
                    None => self.give_up(),
                }
            }
            Job::Confirm { host, vote } => {
                if vote.fails() == Some(true) {
                    // The screen's last group may share hosts with the first.
                    if !self.found.hosts.contains(&host) {
                        self.found.hosts.push(host);
                    }
                } else {
                    self.good.insert(host);
                    self.found.transient.push(vec![host]);
                }
            }
            Job::Halves { halves, votes } => {
                let fail = votes.map(|vote| vote.fails() == Some(true));
                for (half, fails) in halves.iter().zip(fail) {
                    if !fails {
                        self.good.extend(half);
                    }
                }
                if fail == [false, false] {
                    self.mix(halves, false);
                } else {
                    let failing = halves.into_iter().zip(fail).filter(|(_, fails)| *fails);
                    failing.for_each(|(half, _)| self.take_apart(half));
                }
            }
            Job::Mixes { sides, mixes, votes, crossed } => {
                let [first, second] = mixes;
                match votes.map(|vote| vote.fails() == Some(true)) {
                    [true, true] => self.found.boundaries.push(sides.into()),
                    [true, false] => self.mix(first, false),
                    [false, true] => self.mix(second, false),
                    // Each half of one side has met one half of the other only.
                    [false, false] if !crossed && sides.iter().all(|side| side.len() >= 2) => self.mix(sides, true),
                    [false, false] => self.found.transient.push(sides.concat()),
                }
            }
        }
    }

    /// Sides that pass by themselves and fail together: narrowed by mixing half of one with half of the other, until each
    /// is a single host. `crossed` takes the halves the other way round.
    fn mix(&mut self, sides: [Vec<u32>; 2], crossed: bool) {
        if sides.iter().all(|side| side.len() < 2) {
            self.found.boundaries.push(sides.into());
            return;
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
        let votes = [&mixes[0], &mixes[1]].map(|mix| Vote::new(mix.concat()));
        self.jobs.push(Job::Mixes { sides, mixes, votes, crossed });
    }
}

/// The good ones among a screen's results. A fault takes bandwidth away and adds none, so where a gap wider than noise, and
/// wider than all that lies above it, parts the results, only those above it are good, even if they are few.
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

/// Standard deviation; 0 below two values.
fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    if values.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() }
}

fn count(vote: &mut Vote, fails: bool) {
    if fails {
        vote.failed += 1;
    } else {
        vote.passed += 1;
    }
}
