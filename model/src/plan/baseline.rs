use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::{Bytes, Carrier, Metric};
use serde::{Deserialize, Serialize};

use super::{Limit, Section, Table, Test, format::keys, read::file};

/// Version of the document. A reader refuses any other.
pub const VERSION: u32 = 1;
const LARGEST: Bytes = Bytes::from_mib(64);

pub static BASELINE: Section = Section {
    header: "[baseline]",
    about: "Results of earlier runs, written by `railgauge runs baseline`.",
    keys: keys! {
        "file": Path, Required,
            "The file that `railgauge runs baseline` wrote.";
    },
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    pub version: u32,
    pub railgauge: String,
    pub runs: Vec<Source>,
    pub ends: BTreeMap<String, EndFacts>,
    pub settings: BTreeMap<String, BTreeMap<String, String>>,
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// The whole machine: a host's name was given to another one.
    Machine,
    Board,
    Card,
    Gpu,
    Module,
}

impl PartKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Board => "main board",
            Self::Card => "NIC",
            Self::Gpu => "GPU",
            Self::Module => "cable or optics of",
        }
    }

    pub const fn noun(self) -> &'static str {
        match self {
            Self::Module => "cable or optics",
            other => other.word(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub run_id: String,
    pub started: String,
    /// SHA-256 of its plan.
    pub plan_hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndFacts {
    /// Facts that must be equal for a comparison of values.
    pub hardware: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    pub test: String,
    pub metric: Metric,
    pub size_bytes: Bytes,
    /// Ranks of a collective; 2 for a pair.
    pub ranks: u32,
    /// Queue pairs, data type, reduction and environment where unusual.
    pub variant: String,
    /// Rails of both ends; unused for collectives.
    pub rails: (u32, u32),
    pub transport: Carrier,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub class: Class,
    /// What the ends were, initiator first; for a collective, each kind once.
    pub ends: Vec<String>,
    pub unit: String,
    pub centre: f64,
    /// Robust standard deviation in percent of the centre: of a link in a run.
    pub spread_percent: f64,
    /// Number of values: one per link and run.
    pub n: usize,
    pub links: usize,
    /// Number of distinct runs.
    pub runs: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    #[error("is not a baseline: {0}")]
    Form(#[from] serde_json::Error),
    #[error("is a baseline of version {found}; this railgauge reads version {VERSION}")]
    Version { found: u32 },
    /// An entry has an invalid centre or spread, or ends that the baseline does not describe.
    #[error("is not a usable baseline: the entry for {metric} of test {test} has no value or unknown ends")]
    Entry { test: String, metric: Metric },
}

impl Baseline {
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let found = serde_json::from_str::<Versioned>(text)?.version;
        if found != VERSION {
            return Err(BaselineError::Version { found });
        }
        let baseline: Self = serde_json::from_str(text)?;
        let sound = |entry: &Entry| {
            let positive = |value: f64| value > 0.0 && value.is_finite();
            positive(entry.centre)
                && entry.spread_percent >= 0.0
                && entry.spread_percent.is_finite()
                && entry.ends.iter().all(|end| baseline.ends.contains_key(end))
        };
        match baseline.entries.iter().find(|entry| !sound(entry)) {
            Some(Entry { class: Class { test, metric, .. }, .. }) => {
                Err(BaselineError::Entry { test: test.clone(), metric: *metric })
            }
            None => Ok(baseline),
        }
    }
}

pub fn read(top: &Table<'_>) -> Option<Baseline> {
    top.written("baseline")?;
    let path = top.table("baseline").path("file")?;
    let text = file::read_up_to(&path.value, LARGEST).map_err(|fault| fault.to_string());
    match text.and_then(|text| Baseline::parse(&text).map_err(|error| error.to_string())) {
        Ok(baseline) => Some(baseline),
        Err(why) => {
            let message = format!("the baseline's file {why}");
            top.reject(path.span, message, "`railgauge runs baseline RUNS -o FILE` makes one from earlier runs")
        }
    }
}

/// The part of a baseline that these tests use: a run's journal stores only this part.
pub fn wanted(mut baseline: Baseline, tests: &[Test]) -> Baseline {
    let wanted: BTreeSet<(&str, Metric)> = tests
        .iter()
        .flat_map(|test| test.expect.iter().map(move |expect| (test, expect)))
        .filter(|(_, expect)| matches!(expect.limit, Limit::WithinPercentOfBaseline(_)))
        .map(|(test, expect)| (test.name.as_str(), expect.metric))
        .collect();
    baseline.entries.retain(|entry| wanted.contains(&(entry.class.test.as_str(), entry.class.metric)));
    baseline.settings.retain(|test, _| wanted.iter().any(|(name, _)| name == test));
    let used: BTreeSet<&String> = baseline.entries.iter().flat_map(|entry| &entry.ends).collect();
    baseline.ends.retain(|end, _| used.contains(end));
    baseline
}
