//! Compares a value with a baseline, or returns why that is impossible.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use railgauge_model::plan::{
    baseline::{Baseline, Class, Entry},
    model::Test,
};
use railgauge_wire::{facts::HostFacts, terms::Better};

use super::{
    class::class,
    ends::{Ends, differences},
    parts::{End, OtherParts, Parts},
    refusal::{OnHosts, Refusal, SetUp},
};
use crate::{
    case::CaseResult,
    journal::Journal,
    row::{Reading, Row},
    settings::{self, Difference},
};

/// Fewest values of an entry for a comparison: with fewer its spread would be a guess.
pub const LEAST_VALUES: usize = 5;
/// Standard deviations of the baseline within which a value is ordinary.
const ORDINARY: f64 = 3.0;
type Facts<'a> = Box<dyn Fn(&str) -> Option<&'a HostFacts> + 'a>;

pub struct Held<'a> {
    baseline: &'a Baseline,
    entries: HashMap<&'a Class, Vec<&'a Entry>>,
    ends: RefCell<Ends<Facts<'a>>>,
    refusal: Option<Refusal>,
    differences: RefCell<BTreeMap<Difference, BTreeSet<String>>>,
    parts: Parts<'a>,
    held: RefCell<BTreeMap<End, usize>>,
}

impl<'a> Held<'a> {
    pub fn new(journal: &'a Journal, test: &Test) -> Option<Self> {
        let baseline = journal.plan.baseline.as_ref()?;
        let mut entries: HashMap<&Class, Vec<&Entry>> = HashMap::new();
        for entry in baseline.entries.iter().filter(|entry| entry.class.test == test.name) {
            entries.entry(&entry.class).or_default().push(entry);
        }
        let refusal = match baseline.settings.get(&test.name) {
            None => Some(Refusal::NoTest { test: test.name.clone() }),
            Some(then) => settings::difference(then, &settings::bearing(test))
                .map(|difference| Refusal::OtherSettings { difference }),
        };
        let facts: Facts<'a> = Box::new(|host: &str| journal.hosts.get(host).map(|up| &up.facts));
        Some(Self {
            baseline,
            entries,
            ends: RefCell::new(Ends::new(facts)),
            refusal,
            differences: RefCell::default(),
            parts: Parts::new(baseline, journal),
            held: RefCell::default(),
        })
    }

    /// `percent` worse than the centre.
    ///
    /// # Errors
    /// Why the row cannot be compared with the baseline.
    pub fn limit(&self, result: &CaseResult<'_>, row: &Row, percent: f64) -> Result<f64, Refusal> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let entry = self.entry(result, row)?;
        let higher = row.better == Better::Higher;
        let limit = entry.centre * if higher { 1.0 - percent / 100.0 } else { 1.0 + percent / 100.0 };
        if let Some(value) = row.value
            && (if higher { value < limit } else { value > limit })
            && (value / entry.centre).ln().abs() < ORDINARY * (entry.spread_percent / 100.0).ln_1p()
        {
            return Err(Refusal::Ordinary { value, limit, deviations: ORDINARY, spread_percent: entry.spread_percent });
        }
        Ok(limit)
    }

    pub fn set_up(&self) -> Option<SetUp> {
        let all = self.differences.borrow();
        let mut differences: Vec<OnHosts> = all
            .iter()
            .map(|(difference, hosts)| OnHosts {
                difference: difference.clone(),
                hosts: hosts.iter().cloned().collect(),
            })
            .collect();
        differences.sort_by_key(|one| std::cmp::Reverse(one.hosts.len()));
        (!differences.is_empty()).then_some(SetUp { differences })
    }

    /// `None` if all parts are those of the baseline.
    pub fn other_parts(&self) -> Option<OtherParts> {
        self.parts.of(&self.held.borrow())
    }

    fn entry(&self, result: &CaseResult<'_>, row: &Row) -> Result<&'a Entry, Refusal> {
        let reading = Reading::from(row);
        let class = class(result.case, &reading).ok_or(Refusal::NothingCarried)?;
        let candidates = self.entries.get(&class).map_or(&[][..], Vec::as_slice);
        let first = candidates.first().ok_or(Refusal::NoSuchLink { metric: class.metric })?;
        let mut ends = self.ends.borrow_mut();
        let kinds = ends.of(result.case, &reading).ok_or(Refusal::HostsUnknown)?;
        let Some(entry) = candidates.iter().find(|entry| entry.ends == kinds) else {
            return Err(Refusal::OtherHardware { differences: self.other(first, &kinds, &ends) });
        };
        if entry.n < LEAST_VALUES {
            return Err(Refusal::FewValues { values: entry.n, needed: LEAST_VALUES });
        }
        let flow = &result.case.flow;
        let cuda = result.case.cell.memory == railgauge_wire::terms::Memory::Cuda;
        for (host, device) in [(&flow.from.host, &reading.devices[0]), (&flow.to.host, &reading.devices[1])] {
            let device = if flow.members.is_empty() { device } else { "" };
            let (mut held, end) = (self.held.borrow_mut(), (host.to_string(), device.to_string(), cuda));
            let links = held.entry(end).or_insert(entry.links);
            *links = entry.links.max(*links);
            drop(held);
            let Some((name, now)) = ends.end(host, device, cuda) else { continue };
            let then = self.baseline.ends.get(name).map(|end| &end.configuration);
            for difference in then.into_iter().flat_map(|then| differences(then, &now.configuration)) {
                self.differences.borrow_mut().entry(difference).or_default().insert(host.to_string());
            }
        }
        Ok(entry)
    }

    fn other<F>(&self, entry: &Entry, kinds: &[String], ends: &Ends<F>) -> Vec<Difference>
    where
        F: Fn(&str) -> Option<&'a HostFacts>,
    {
        let none = BTreeMap::new();
        let then = |at: usize| entry.ends.get(at).and_then(|end| self.baseline.ends.get(end)).map(|end| &end.hardware);
        let mut all = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            if let Some(now) = ends.named(kind) {
                all.extend(differences(then(at).unwrap_or(&none), &now.hardware));
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}
