//! Values of earlier runs: learned from them, and compared with later ones.

mod ends;
mod held;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    history::Run,
    settings::{self, Difference},
};
use ends::{Ends, class};
use railgauge_model::plan::baseline::{Baseline, Class, Entry, Source, VERSION};
use railgauge_stats::robust::Level;

pub use held::{Held, LEAST_VALUES};

/// Values of one class between ends of a kind: link, run, and natural logarithm.
type Values = Vec<(String, usize, f64)>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{run} measured test {test} with other settings than the runs before it: {different}")]
pub struct OtherSettings {
    pub run: String,
    pub test: String,
    pub different: Difference,
}

/// For every metric and class of links the robust centre and spread of all trusted values. A link that was bad in some
/// runs, or some bad links among many, do not affect it.
///
/// # Errors
/// The runs measured a test with different settings.
pub fn learn(mut runs: Vec<Run>) -> Result<Baseline, OtherSettings> {
    runs.sort_by(|a, b| (a.started, &a.run_id).cmp(&(b.started, &b.run_id)));
    let mut baseline = Baseline {
        version: VERSION,
        railgauge: env!("CARGO_PKG_VERSION").to_owned(),
        runs: runs.iter().map(source).collect(),
        ..Baseline::default()
    };
    let mut values: BTreeMap<(Class, Vec<String>), Values> = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        for test in &run.plan.tests {
            let settings = settings::bearing(test);
            let known = baseline.settings.entry(test.name.clone()).or_insert_with(|| settings.clone());
            if let Some(different) = settings::difference(known, &settings) {
                let Source { run_id, .. } = &baseline.runs[number];
                let (run, test) = (run_id.clone(), test.name.clone());
                return Err(OtherSettings { run, test, different });
            }
        }
        let mut ends = Ends::new(|host| run.hosts.get(host));
        for reading in &run.readings {
            let case = usize::try_from(reading.case).ok().and_then(|case| run.cases.get(case));
            let (Some(case), Ok(value)) = (case, &reading.value) else { continue };
            let Some(class) = class(case, reading) else { continue };
            let Some(kinds) = ends.of(case, reading) else { continue };
            values.entry((class, kinds)).or_default().push((case.flow.name(), number, value.ln()));
        }
        baseline.ends.extend(ends.known());
    }
    baseline.entries = values.into_iter().filter_map(|((class, ends), values)| entry(class, ends, &values)).collect();
    Ok(baseline)
}

fn source(run: &Run) -> Source {
    Source { run_id: run.run_id.clone(), started: run.started.to_string(), plan_hash: run.plan_hash.clone() }
}

fn entry(class: Class, ends: Vec<String>, values: &Values) -> Option<Entry> {
    let logarithms: Vec<f64> = values.iter().map(|(_, _, value)| *value).collect();
    let level = Level::of(&logarithms, 0.0).ok()?;
    Some(Entry {
        unit: class.metric.unit().to_owned(),
        class,
        ends,
        centre: level.centre.exp(),
        spread_percent: 100.0 * level.scale.exp_m1(),
        n: values.len(),
        links: values.iter().map(|(link, ..)| link).collect::<BTreeSet<_>>().len(),
        runs: values.iter().map(|(_, run, _)| run).collect::<BTreeSet<_>>().len(),
    })
}
