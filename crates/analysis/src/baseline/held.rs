//! Compares a value with a baseline, or returns why that is impossible.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
};

use railgauge_model::plan::{
    baseline::{Baseline, Class, Entry},
    model::Test,
};
use railgauge_wire::Better;

use super::ends::{Ends, class};
use crate::{
    case::CaseResult,
    journal::Journal,
    reason::{Id, Reason, Value},
    row::{Reading, Row},
    settings::{self, Difference},
};

/// Fewest values of an entry for a comparison: with fewer its spread would be a guess.
pub const LEAST_VALUES: usize = 5;
/// Standard deviations of the baseline within which a value is ordinary.
const ORDINARY: u32 = 3;
/// Differences of hardware in a reason.
const NAMED: usize = 3;

pub struct Held<'a> {
    baseline: &'a Baseline,
    entries: HashMap<&'a Class, Vec<&'a Entry>>,
    ends: RefCell<Ends<'a>>,
    refusal: Option<Reason>,
}

impl<'a> Held<'a> {
    pub fn new(journal: &'a Journal, test: &Test) -> Option<Self> {
        let baseline = journal.plan.baseline.as_ref()?;
        let mut entries: HashMap<&Class, Vec<&Entry>> = HashMap::new();
        for entry in baseline.entries.iter().filter(|entry| entry.class.test == test.name) {
            entries.entry(&entry.class).or_default().push(entry);
        }
        let refusal = match baseline.settings.get(&test.name) {
            None => Some(Reason::new(Id::BaselineWithoutTest).with("test", &test.name)),
            Some(then) => settings::difference(then, &settings::bearing(test)).map(|difference| {
                Reason::new(Id::BaselineOfOtherSettings).with("difference", Value::data(&difference))
            }),
        };
        let facts = |host: &str| journal.hosts.get(host).map(|up| &up.facts);
        Some(Self { baseline, entries, ends: RefCell::new(Ends::new(facts)), refusal })
    }

    /// `percent` worse than the centre.
    ///
    /// # Errors
    /// Why the row cannot be compared with the baseline.
    pub fn limit(&self, result: &CaseResult<'_>, row: &Row, percent: f64) -> Result<f64, Box<Reason>> {
        if let Some(refusal) = &self.refusal {
            return Err(Box::new(refusal.clone()));
        }
        let entry = self.entry(result, row)?;
        let higher = row.better == Better::Higher;
        let limit = entry.centre * if higher { 1.0 - percent / 100.0 } else { 1.0 + percent / 100.0 };
        if let Some(value) = row.value
            && (if higher { value < limit } else { value > limit })
            && (value / entry.centre).ln().abs() < f64::from(ORDINARY) * (entry.spread_percent / 100.0).ln_1p()
        {
            let scatters = Reason::new(Id::BaselineScatters)
                .with("value", Value::Number(value, ""))
                .with("limit", Value::Number(limit, ""))
                .with("deviations", ORDINARY)
                .with("spread_percent", Value::Number(entry.spread_percent, "%"));
            return Err(Box::new(scatters));
        }
        Ok(limit)
    }

    fn entry(&self, result: &CaseResult<'_>, row: &Row) -> Result<&'a Entry, Box<Reason>> {
        let reading = Reading::from(row);
        let class = class(result.case, &reading).ok_or(Reason::new(Id::NothingCarried))?;
        let candidates = self.entries.get(&class).map_or(&[][..], Vec::as_slice);
        let unknown = || Reason::new(Id::BaselineWithoutLink).with("metric", class.metric.word());
        let first = candidates.first().ok_or_else(unknown)?;
        let mut ends = self.ends.borrow_mut();
        let kinds = ends.of(result.case, &reading).ok_or(Reason::new(Id::HostsUnknown))?;
        let Some(entry) = candidates.iter().find(|entry| entry.ends == kinds) else {
            return Err(Box::new(other_hardware(&self.other(first, &kinds, &ends))));
        };
        if entry.n < LEAST_VALUES {
            let few = Reason::new(Id::BaselineOfFewValues).with("values", entry.n).with("needed", LEAST_VALUES);
            return Err(Box::new(few));
        }
        Ok(entry)
    }

    fn other(&self, entry: &Entry, kinds: &[String], ends: &Ends<'_>) -> Vec<Difference> {
        let none = BTreeMap::new();
        let then = |at: usize| entry.ends.get(at).and_then(|end| self.baseline.ends.get(end)).map(|end| &end.hardware);
        let mut all = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            if let Some(now) = ends.named(kind) {
                all.extend(settings::differences(then(at).unwrap_or(&none), &now.hardware));
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn other_hardware(differences: &[Difference]) -> Reason {
    let named: Vec<String> = differences.iter().take(NAMED).map(|one| one.words("unknown")).collect();
    let fields = serde_json::to_value(differences).unwrap_or_default();
    Reason::new(Id::BaselineOfOtherHardware).with("differences", Value::Data(fields, named.join(", ")))
}
