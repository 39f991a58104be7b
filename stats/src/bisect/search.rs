use std::collections::{BTreeMap, BTreeSet};

use super::{
    Found, Setting,
    course::Course,
    screen::{self, FEWEST_GROUPS},
};
use crate::{refusal::Refusal, robust::Level};

/// Keeps only measured results: each result repeats its course from the start as far as results allow.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    setting: Setting,
    order: Vec<u32>,
    screen: Vec<Vec<u32>>,
    /// In order of arrival, groups as sorted places.
    results: BTreeMap<Vec<u32>, Vec<Option<f64>>>,
    next: Option<Vec<u32>>,
    references: BTreeMap<usize, Level>,
    found: Found,
}

impl Search {
    /// Neighbours in the given order share a group, so hosts of a leaf should be adjacent where [`Setting::leaves`] does not name them.
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

    pub fn next_group(&self) -> Option<&[u32]> {
        self.next.as_deref()
    }

    /// Takes the natural logarithm of the bandwidth of [`next_group`](Self::next_group), or `None` if the collective did not run, which
    /// counts as failing. A number that is not finite counts as `None`.
    pub fn answer(&mut self, result: Option<f64>) {
        let Some(group) = self.next.take() else { return };
        let place = |host: &u32| self.order.iter().position(|known| known == host).map(|at| at as u32);
        let mut places: Vec<u32> = group.iter().filter_map(place).collect();
        places.sort_unstable();
        self.results.entry(places).or_default().push(result.filter(|value| value.is_finite()));
        self.found.tests += 1;
        self.go_on();
    }

    /// Complete when [`next_group`](Self::next_group) is `None`.
    pub fn found(&self) -> &Found {
        &self.found
    }

    pub fn references(&self) -> &BTreeMap<usize, Level> {
        &self.references
    }

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
