//! What is measured next, and what was found so far.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    course::Course,
    screen::{self, FEWEST_GROUPS},
};
use crate::{refusal::Refusal, robust::Level};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setting {
    /// Smallest effect that counts, as a difference of logarithms.
    pub least: f64,
    /// Standard deviation of repeated results, as far as known, on the scale of logarithms. 0 if not known.
    pub noise: f64,
    /// What good groups of a size reach, where known from before.
    pub references: BTreeMap<usize, Level>,
    /// Hosts that stand together, such as those of a leaf; empty if not known. Groups of the screen keep to them.
    pub leaves: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Hosts that were in no good group and low beside good hosts of every side.
    pub hosts: Vec<u32>,
    /// Pairs of sides that are good by themselves and low together, as narrow as could be found.
    pub boundaries: Vec<(Vec<u32>, Vec<u32>)>,
    /// Three sides or more that are good by themselves, any two of which are low together; empty otherwise. That is what a
    /// level of the fabric does that all of them share: nothing tells which of them is at fault, or whether one is.
    pub parted: Vec<Vec<u32>>,
    /// Groups that failed twice and passed when taken apart, or a host that passed when confirmed.
    pub transient: Vec<Vec<u32>>,
    /// Groups that fail but could not be taken apart, because too few hosts are known to be good for a reference.
    pub open: Vec<Vec<u32>>,
    pub tests: usize,
}

/// A search under way. It keeps what was measured and nothing else: its course is walked anew from the beginning with every
/// result, as far as results lead.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    setting: Setting,
    /// The hosts' numbers by their place in the search.
    order: Vec<u32>,
    screen: Vec<Vec<u32>>,
    /// Results of every group in the order in which they came, groups as sorted places.
    results: BTreeMap<Vec<u32>, Vec<Option<f64>>>,
    next: Option<Vec<u32>>,
    references: BTreeMap<usize, Level>,
    found: Found,
}

impl Search {
    /// A search over `hosts`, in the given order: neighbours share a group, so hosts of a leaf should stand together where
    /// [`Setting::leaves`] does not name them.
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
        let order = screen::in_order(hosts, &setting.leaves);
        let mut search = Self {
            screen: screen::groups(&screen::leaves(&order, &setting.leaves), screen::size(hosts.len())),
            setting,
            order,
            results: BTreeMap::new(),
            next: None,
            references: BTreeMap::new(),
            found: Found::default(),
        };
        search.go_on();
        Ok(search)
    }

    /// The hosts to run the collective on next; `None` when the search is over.
    pub fn next_group(&self) -> Option<&[u32]> {
        self.next.as_deref()
    }

    /// Takes the natural logarithm of the bandwidth of [`next_group`](Self::next_group), or `None` if the collective did
    /// not run, which counts as failing. A number that is not finite is taken as `None`.
    pub fn answer(&mut self, result: Option<f64>) {
        let Some(group) = self.next.take() else { return };
        let place = |host: &u32| self.order.iter().position(|known| known == host).map(|at| at as u32);
        let mut places: Vec<u32> = group.iter().filter_map(place).collect();
        places.sort_unstable();
        self.results.entry(places).or_default().push(result.filter(|value| value.is_finite()));
        self.found.tests += 1;
        self.go_on();
    }

    /// What was found so far; complete when [`next_group`](Self::next_group) is `None`.
    pub fn found(&self) -> &Found {
        &self.found
    }

    pub fn references(&self) -> &BTreeMap<usize, Level> {
        &self.references
    }

    /// Walks the course as far as the results lead.
    fn go_on(&mut self) {
        let mut course = Course::new(&self.setting, &self.screen, &self.results);
        let wanted = course.walk().err();
        let (found, references) = course.end();
        let hosts = |places: &Vec<u32>| places.iter().map(|&place| self.order[place as usize]).collect::<Vec<u32>>();
        let lists = |lists: &Vec<Vec<u32>>| lists.iter().map(hosts).collect();
        self.found = Found {
            hosts: hosts(&found.hosts),
            boundaries: found.boundaries.iter().map(|(a, b)| (hosts(a), hosts(b))).collect(),
            parted: lists(&found.parted),
            transient: lists(&found.transient),
            open: lists(&found.open),
            tests: self.found.tests,
        };
        self.next = wanted.as_ref().map(hosts);
        self.references = references;
    }
}
