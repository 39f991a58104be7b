use std::collections::{BTreeMap, BTreeSet};

use super::{
    course::Course,
    screen::{self, FEWEST_GROUPS},
};
use crate::{refusal::Refusal, robust::Level};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setting {
    pub least: f64,
    /// Standard deviation of repeated results on the scale of logarithms. 0 if not known.
    pub noise: f64,
    pub references: BTreeMap<usize, Level>,
    /// Hosts that are near one another, such as those of a leaf; empty if not known. Groups of the screen follow them.
    pub leaves: Vec<Vec<u32>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Hosts in no good group, and low with good hosts of every side.
    pub hosts: Vec<u32>,
    /// Pairs of sides that are good by themselves and low together, as narrow as could be found.
    pub boundaries: Vec<(Vec<u32>, Vec<u32>)>,
    /// Three sides or more that are good by themselves, any two being low together; empty otherwise. A shared level of the fabric causes
    /// that: which one is at fault, if any, is unknown.
    pub parted: Vec<Vec<u32>>,
    /// Groups that failed twice and passed when taken apart, or a host that passed when confirmed.
    pub transient: Vec<Vec<u32>>,
    /// Failing groups that could not be taken apart, because too few known good hosts give a reference.
    pub open: Vec<Vec<u32>>,
    pub tests: usize,
}

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
