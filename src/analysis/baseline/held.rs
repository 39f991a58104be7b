//! Holds a value against a baseline, or says why that cannot be done.

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
};
use crate::analysis::{
    journal::Journal,
    results::CaseResult,
    row::{Reading, Row},
    settings,
    words::{count, number},
};

/// Values under which nothing is held against an entry: its spread would be a guess.
pub const LEAST_VALUES: usize = 5;
/// Standard deviations of the baseline within which a value is nothing out of the ordinary.
const ORDINARY: f64 = 3.0;
/// Differences named.
const NAMED: usize = 3;

/// What a host was.
type Facts<'a> = Box<dyn Fn(&str) -> Option<&'a HostFacts> + 'a>;

/// A baseline as it is held against the rows of one test.
pub struct Held<'a> {
    baseline: &'a Baseline,
    entries: HashMap<&'a Class, Vec<&'a Entry>>,
    ends: RefCell<Ends<Facts<'a>>>,
    /// Why nothing of the test can be held against it.
    refusal: Option<String>,
    /// What is set up differently, and on which hosts, as far as rows were held against it.
    differences: RefCell<BTreeMap<String, BTreeSet<String>>>,
}

impl<'a> Held<'a> {
    /// The plan's baseline for a test.
    pub fn new(journal: &'a Journal, test: &Test) -> Option<Self> {
        let baseline = journal.plan.baseline.as_ref()?;
        let mut entries: HashMap<&Class, Vec<&Entry>> = HashMap::new();
        for entry in baseline.entries.iter().filter(|entry| entry.class.test == test.name) {
            entries.entry(&entry.class).or_default().push(entry);
        }
        let refusal = match baseline.settings.get(&test.name) {
            None => Some(format!("the baseline has no test {}", test.name)),
            Some(then) => settings::difference(then, &settings::bearing(test))
                .map(|different| format!("the baseline was measured with other settings: {different}")),
        };
        let facts: Facts<'a> = Box::new(|host: &str| journal.hosts.get(host).map(|up| &up.facts));
        Some(Self { baseline, entries, ends: RefCell::new(Ends::new(facts)), refusal, differences: RefCell::default() })
    }

    /// The limit for a row: `percent` worse than the centre.
    ///
    /// # Errors
    /// Why the row cannot be held against the baseline, in words.
    pub fn limit(&self, result: &CaseResult<'_>, row: &Row, percent: f64) -> Result<f64, String> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let entry = self.entry(result, row)?;
        let higher = row.better == Better::Higher;
        let limit = entry.centre * if higher { 1.0 - percent / 100.0 } else { 1.0 + percent / 100.0 };
        let worse = row.value.is_some_and(|value| if higher { value < limit } else { value > limit });
        let ordinary = ORDINARY * (entry.spread_percent / 100.0).ln_1p();
        let away = row.value.map_or(0.0, |value| (value / entry.centre).ln().abs());
        if worse && away < ordinary {
            return Err(format!(
                "{} is worse than the limit, but within {ORDINARY} standard deviations of the baseline, whose values scatter by {} %",
                row.value.map_or_else(String::new, number),
                number(entry.spread_percent)
            ));
        }
        Ok(limit)
    }

    /// What is set up differently from what the baseline was measured with; empty if nothing is.
    pub fn words(&self) -> String {
        let all = self.differences.borrow();
        let mut order: Vec<(&String, &BTreeSet<String>)> = all.iter().collect();
        order.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
        let place = |hosts: &BTreeSet<String>| match hosts.len() {
            1 => hosts.first().cloned().unwrap_or_default(),
            n => format!("{n} hosts"),
        };
        let word = |(what, hosts): &(&String, &BTreeSet<String>)| format!("{what} on {}", place(hosts));
        let shown = order.iter().take(NAMED).map(word).collect::<Vec<_>>().join(", ");
        match order.len() {
            0 => String::new(),
            n if n > NAMED => format!("set up differently from the baseline: {shown}, and {} more", n - NAMED),
            _ => format!("set up differently from the baseline: {shown}"),
        }
    }

    fn entry(&self, result: &CaseResult<'_>, row: &Row) -> Result<&'a Entry, String> {
        let reading = Reading::from(row);
        let class = class(result.case, &reading).ok_or("nothing carried its bytes")?;
        let candidates = self.entries.get(&class).map_or(&[][..], Vec::as_slice);
        let Some(first) = candidates.first() else {
            return Err(format!("the baseline has no {} of such a link", class.metric));
        };
        let mut ends = self.ends.borrow_mut();
        let kinds = ends.of(result.case, &reading).ok_or("what its hosts are is not known")?;
        let Some(entry) = candidates.iter().find(|entry| entry.ends == kinds) else {
            return Err(format!("the baseline is of other hardware: {}", self.other(first, &kinds, &ends)));
        };
        if entry.n < LEAST_VALUES {
            let n = count(entry.n, "value");
            return Err(format!("the baseline rests on {n} of such a link, and {LEAST_VALUES} are needed"));
        }
        let flow = &result.case.flow;
        let cuda = result.case.cell.memory == railgauge_wire::terms::Memory::Cuda;
        for (host, device) in [(&flow.from.host, &reading.devices[0]), (&flow.to.host, &reading.devices[1])] {
            let device = if flow.members.is_empty() { device } else { "" };
            let Some((name, now)) = ends.end(host, device, cuda) else { continue };
            let then = self.baseline.ends.get(name).map(|end| &end.configuration);
            for difference in then.into_iter().flat_map(|then| differences(then, &now.configuration)) {
                self.differences.borrow_mut().entry(difference).or_default().insert(host.to_string());
            }
        }
        Ok(entry)
    }

    /// In what the ends differ from those of an entry.
    fn other<F>(&self, entry: &Entry, kinds: &[String], ends: &Ends<F>) -> String
    where
        F: Fn(&str) -> Option<&'a HostFacts>,
    {
        let none = BTreeMap::new();
        let then = |at: usize| entry.ends.get(at).and_then(|end| self.baseline.ends.get(end)).map(|end| &end.hardware);
        let mut words = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            if let Some(now) = ends.named(kind) {
                words.extend(differences(then(at).unwrap_or(&none), &now.hardware));
            }
        }
        words.sort_unstable();
        words.dedup();
        words.truncate(NAMED);
        words.join(", ")
    }
}
