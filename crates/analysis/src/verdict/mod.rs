//! What was demanded and whether it was met. Nothing passes that was not measured.
//!
//! | status | when |
//! | --- | --- |
//! | fail | a measured value breaks the demand, or wrong bytes arrived |
//! | inconclusive | nothing breaks it, but something in its scope is missing, disturbed or cannot be judged |
//! | not-run | nothing in its scope was even tried |
//! | pass | everything in its scope was measured, may be trusted, and keeps the demand |
//!
//! Every test has two implicit verdicts: that all its cases were measured and verified, and, with enough of them to
//! compare, that no part is worse than its peers. So has every value in `[preflight]`, and a run that did not finish or
//! whose records are damaged. A soak has several.

mod broken;
mod components;
mod degraded;
mod demand;
mod every_case;
mod flows;
mod links;
mod members;
mod more_peers;
mod named;
mod offender;
mod parts;
mod peers;
mod places;
mod preflight;
mod reason;
mod scope;
mod shared;
mod soak;
mod soak_gpus;
mod sums;
mod trouble;
mod untested;
mod whole;

pub use broken::{Broken, BrokenBy, MeasuredOn};
pub use components::{ANSWERS, Component, Judged, LISTED, Measured};
pub use links::{loading, searched};
pub use offender::{OFFENDERS, Offender, Tally};
pub use parts::Part;
pub use preflight::{ESCALATED, NAME as PREFLIGHT};
pub use reason::{Id, Placed, Reason, Reasons, Value, frequency};
pub use scope::Scope;
pub use shared::only_shared;
pub use soak::NAME as SOAK;
pub use sums::Sums;
pub use trouble::{Failed, Trouble};
pub use untested::{Lack, Untested, not_tested, uncounted};
pub use whole::NAME as RUN;

use std::collections::BTreeMap;

use railgauge_model::plan::model::{Subset, Test};
use railgauge_preflight::Holding;
use railgauge_wire::{failure::Failure, remedy::Remedy, terms::Metric};
use serde::{Deserialize, Serialize};

use super::{
    banner,
    collisions::{Collisions, collisions},
    compare::Interleaved,
    costs::{ValueCost, costs},
    journal::Journal,
    localise::{Localisation, Searched, localise},
    nics::{AllNics, nics},
    outliers::{Link, Outliers, outliers},
    proven::{self, NeverRun},
    results::{self, CaseResult, State},
    row::Row,
    soak::{Soaking, soaking},
    switches::{Switches, switches},
    together::{self, Beside},
};

pub const VERSION: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Pass,
    NotRun,
    Inconclusive,
    Fail,
}

impl Status {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::NotRun => "not-run",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }

    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Inconclusive | Self::NotRun => 3,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Run,
    Records,
    Hosts,
    Configure,
    Preflight,
    Expectation,
    EveryCase,
    Parts,
    Links,
    Soak,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub kind: Kind,
    pub test: String,
    /// The key of `[preflight]`, such as `mtu` or `firmware.mlx5_core`, or the demand on the soak: `for`, `watched`,
    /// `longest_outage`, `limits.symbol_error`, `bytes`, `gpus`. `None` for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// In the plan's unit; only for `[preflight]`.
    #[serde(skip)]
    pub wanted: Option<String>,
    pub demand: String,
    /// In words; empty for the whole run.
    pub scope: String,
    #[serde(skip)]
    pub narrowed: Option<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<Searched>,
    /// `None` for an implicit verdict.
    pub line: Option<usize>,
    pub metric: Option<Metric>,
    pub unit: Option<String>,
    pub status: Status,
    pub waived: bool,
    #[serde(flatten)]
    pub reason: Reasons,
    pub worst: Option<Offender>,
    /// Worst first; at most [`OFFENDERS`].
    pub offenders: Vec<Offender>,
    #[serde(skip)]
    pub broken: Option<Broken>,
    #[serde(skip)]
    pub breaking: Vec<u64>,
    /// Hosts and devices that differ from `[preflight]`, or could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holdings: Vec<Holding>,
    /// Parts that stand out: those that count first, then the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    pub tally: Tally,
    /// Places of the hosts in its reason, by name, if known and it does not pass: rack, or rack and slot joined by `/`;
    /// at most [`OFFENDERS`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub place: BTreeMap<String, String>,
    /// Next step, if it does not pass and the step follows from the demand or from the GPUs of what broke it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Verdict {
    fn new(kind: Kind, test: &str, demand: impl Into<String>, status: Status, reason: Reasons) -> Self {
        Self {
            kind,
            test: test.to_owned(),
            key: None,
            wanted: None,
            demand: demand.into(),
            scope: String::new(),
            narrowed: None,
            view: None,
            line: None,
            metric: None,
            unit: None,
            status,
            waived: false,
            reason,
            worst: None,
            offenders: Vec::new(),
            broken: None,
            breaking: Vec::new(),
            holdings: Vec::new(),
            parts: Vec::new(),
            tally: Tally::default(),
            place: BTreeMap::new(),
            remedy: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cases {
    pub planned: usize,
    pub measured: usize,
    pub short: usize,
    /// Without the requested verification.
    pub unverified: usize,
    pub contaminated: usize,
    pub impossible: usize,
    pub no_value: usize,
    pub failed: usize,
    pub not_run: usize,
    pub wrong: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdicts {
    pub version: u32,
    pub run_id: String,
    pub plan: String,
    pub status: Status,
    pub exit_code: u8,
    /// Exit code of the process that last ran the plan: that of the verdicts if the run finished, 4 if it was stopped,
    /// 130 if it was interrupted; `None` if it was killed or still runs.
    pub run_exit_code: Option<u8>,
    /// Says so first where only a part of the plan was run.
    pub sentence: String,
    pub cases: Cases,
    pub verdicts: Vec<Verdict>,
    /// Cases that do not simply count as measured; of the further cases those with wrong bytes.
    pub troubles: Vec<Trouble>,
    /// Parts that stand out, for every test of pairs and every collective taken apart: the basis of verdicts on parts.
    pub localisation: Vec<Localisation>,
    /// Switches between the hosts, and which of their links were loaded; absent where the plan names no source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<Switches>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// Cost of the values of `[test.configure]` against the first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<ValueCost>,
    /// Low flows that share a path with others, for tests with several numbers of queue pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collisions: Vec<Collisions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<AllNics>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Soaking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interleaved: Vec<Interleaved>,
    /// Why hosts were lost, and why the configuration could not be undone, with the remedy of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset: Option<Subset>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    /// Drivers of RDMA devices in its cases that railgauge's authors never ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers_never_run: Vec<NeverRun>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<Untested>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sums: Option<Sums>,
}

impl Verdicts {
    /// # Errors
    /// Only serde's signature: no set of verdicts causes one.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub fn with(&self, status: Status) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.status == status && !verdict.waived).count()
    }
}

/// `rows` are those of `results`.
pub fn verdicts(
    journal: &Journal,
    results: &[CaseResult<'_>],
    rows: &[Row],
    interleaved: Vec<Interleaved>,
) -> Verdicts {
    let localisation = localise(journal, results, rows);
    let outliers = outliers(journal, results, rows, &localisation);
    verdicts_of(journal, results, rows, interleaved, &outliers)
}

pub fn verdicts_of(
    journal: &Journal,
    results: &[CaseResult<'_>],
    rows: &[Row],
    interleaved: Vec<Interleaved>,
    model: &Outliers<'_>,
) -> Verdicts {
    let localisation = model.found.to_vec();
    let beside = model.beside();
    let more = results::further(journal);
    let corrupt: Vec<&CaseResult<'_>> = more.iter().filter(|result| result.state == State::Wrong).collect();
    let switches = switches(journal, (results, rows), &more);
    let untested = untested::untested(journal, results, model);
    let mut verdicts = whole::judge(journal);
    verdicts.extend(preflight::judge(journal));
    for test in &journal.plan.tests {
        let results: Vec<&CaseResult<'_>> = results.iter().filter(|result| *result.case.test == *test.name).collect();
        let rows: Vec<&Row> = rows.iter().filter(|row| *row.test == test.name).collect();
        verdicts.extend(test.expect.iter().map(|wanted| demand::judge(journal, test, wanted, &results, &rows)));
        let corrupt: Vec<&CaseResult<'_>> =
            corrupt.iter().copied().filter(|one| *one.case.test == *test.name).collect();
        let found = localisation.iter().filter(|found| found.test == test.name);
        let lossy: Vec<String> = found.clone().flat_map(|found| &found.lossy).map(|part| part.name.clone()).collect();
        verdicts.push(every_case::judge(test, &results, &corrupt, lossy));
        let beside: Vec<&Link<'_>> =
            beside.iter().filter(|(of, ..)| of.test == test.name).map(|(_, link, _)| *link).collect();
        // Groups that stand out are searched for smaller ones; of several views of pairs the first has them.
        let beside = |found: &Localisation| if found.counted == "pair" && !found.is_extra { &beside[..] } else { &[] };
        verdicts.extend(found.filter_map(|found| parts::judge(found, beside(found), &untested, &journal.plan)));
        verdicts.extend(links::judge_suspects(test, switches.as_ref()));
        verdicts.extend(links::judge(test, switches.as_ref()));
        verdicts.extend(model.of(&test.name).and_then(|of| flows::judge(test, of, &untested, &journal.plan)));
    }
    let soak = soaking(journal);
    if let (Some(wanted), Some(found)) = (&journal.plan.soak, &soak) {
        verdicts.extend(soak::judge(wanted, found, &journal.end));
    }
    for verdict in verdicts.iter_mut().filter(|verdict| verdict.status != Status::Pass && verdict.remedy.is_none()) {
        verdict.remedy = verdict.reason.step().map(|(_, remedy)| remedy.clone());
    }
    verdicts.iter_mut().for_each(|verdict| places::say(verdict, &journal.plan.places, &localisation));
    let counts = verdicts.iter().filter(|verdict| !verdict.waived);
    let status = counts.map(|verdict| verdict.status).max().unwrap_or(Status::NotRun);
    let troubles: Vec<Trouble> = results.iter().chain(corrupt).filter_map(Trouble::of).collect();
    let cases = tally(results);
    let part = journal.plan.subset.iter().map(Subset::sentence);
    let sentence =
        part.chain([banner::sentence(status, &verdicts, &troubles, cases, &untested)]).collect::<Vec<_>>().join(" ");
    let components = components::components(journal, model, &verdicts, soak.as_ref());
    Verdicts {
        version: VERSION,
        run_id: journal.run_id.clone(),
        plan: journal.plan.name.clone(),
        status,
        exit_code: status.exit_code(),
        run_exit_code: whole::exit_code(journal, status),
        sentence,
        cases,
        verdicts,
        troubles,
        localisation,
        switches,
        beside: together::beside(&results.iter().collect::<Vec<_>>()),
        nics: nics(&journal.plan.tests, results, rows),
        costs: costs(&journal.plan.tests, results),
        collisions: collisions(&journal.plan.tests, results, rows),
        soak,
        interleaved,
        lost: journal.lost.values().chain(&journal.unconfigured).cloned().collect(),
        subset: journal.plan.subset.clone(),
        places: journal.plan.places.clone(),
        drivers_never_run: proven::never_run(journal, results),
        untested,
        components,
        sums: None,
    }
}

pub fn is_broken(journal: &Journal, test: &Test, results: &[CaseResult<'_>], rows: &[Row]) -> bool {
    let results: Vec<&CaseResult<'_>> = results.iter().filter(|result| *result.case.test == *test.name).collect();
    let rows: Vec<&Row> = rows.iter().filter(|row| *row.test == test.name).collect();
    let judged = test.expect.iter().map(|wanted| demand::judge(journal, test, wanted, &results, &rows));
    judged.into_iter().any(|verdict| verdict.status == Status::Fail)
}

fn tally(results: &[CaseResult<'_>]) -> Cases {
    let mut cases = Cases { planned: results.len(), ..Cases::default() };
    for result in results {
        *match result.state {
            State::Measured => &mut cases.measured,
            State::Short => &mut cases.short,
            State::Unverified => &mut cases.unverified,
            State::Contaminated => &mut cases.contaminated,
            State::Impossible => &mut cases.impossible,
            State::NoValue => &mut cases.no_value,
            State::Failed => &mut cases.failed,
            State::NotRun => &mut cases.not_run,
            State::Wrong => &mut cases.wrong,
        } += 1;
    }
    cases
}
