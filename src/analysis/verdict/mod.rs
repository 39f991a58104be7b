//! What was demanded and whether it was met. Nothing passes that was not measured.
//!
//! | status | when |
//! | --- | --- |
//! | fail | a measured value breaks the demand, or wrong bytes arrived |
//! | inconclusive | nothing breaks it, but something in its scope is missing, disturbed or cannot be judged |
//! | not-run | nothing in its scope was even tried |
//! | pass | everything in its scope was measured, may be trusted, and keeps the demand |
//!
//! Every test has two verdicts that nobody wrote: that all its cases were measured and their data verified, and, where
//! enough of them were measured to compare, that no part of the cluster is worse than its peers. Every value that
//! `[preflight]` wants is a verdict as well, and so is a run that did not come to its end or whose records are damaged. A soak has several:
//! that it lasted and was watched, and what happened meanwhile.

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
use crate::preflight::Holding;

/// Version of `verdicts.json`.
pub const VERSION: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Pass,
    NotRun,
    /// Cannot be said.
    Inconclusive,
    /// Not met.
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

    /// The exit code of a run that ends with this status.
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
    /// That the run came to its end; only where it did not.
    Run,
    /// That the records are as they were written; only where lines of the journal are damaged or missing.
    Records,
    /// That every host of the plan answered and was not lost; only where one was.
    Hosts,
    /// That what a test configured was taken back; only where it was not.
    Configure,
    /// A value that `[preflight]` wants of the hosts' configuration.
    Preflight,
    Expectation,
    /// That every case of a test was measured and its data verified.
    EveryCase,
    /// That no part of the cluster is worse than its peers in a test.
    Parts,
    /// That no link between switches is worse than its peers in a test, or that its flows loaded them.
    Links,
    /// A demand on the soak: that it lasted, was watched, and what happened meanwhile.
    Soak,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub kind: Kind,
    /// Name of the test; [`PREFLIGHT`] for a value that `[preflight]` wants, [`SOAK`] for the soak.
    pub test: String,
    /// The key of `[preflight]` that it is about, `mtu` or `firmware.mlx5_core`, or what it is about of the soak: `for`, `watched`,
    /// `longest_outage`, `limits.symbol_error`, `bytes`, `gpus`. `None` for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The value that `[preflight]` wants, in the plan's unit; `None` for other kinds.
    #[serde(skip)]
    pub wanted: Option<String>,
    pub demand: String,
    /// What it is demanded of, in words.
    /// Empty where it is about the whole run.
    pub scope: String,
    /// The same of an expectation that is not about all of its test.
    #[serde(skip)]
    pub narrowed: Option<Scope>,
    /// Which values were searched for parts, of a verdict on the parts that pairs pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<Searched>,
    /// Line of the plan; `None` for the verdict every test has.
    pub line: Option<usize>,
    /// The metric; `None` for the verdict every test has.
    pub metric: Option<Metric>,
    /// Unit of the values.
    pub unit: Option<String>,
    pub status: Status,
    /// Whether the plan waives it: the answer stands, and the run's status does not follow from it.
    pub waived: bool,
    #[serde(flatten)]
    pub reason: Reasons,
    /// The value nearest to, or farthest over, its limit.
    pub worst: Option<Offender>,
    /// What breaks the demand, worst first; at most [`OFFENDERS`].
    pub offenders: Vec<Offender>,
    /// How the values lie that break it, of an expectation; `None` where none does.
    #[serde(skip)]
    pub broken: Option<Broken>,
    #[serde(skip)]
    pub breaking: Vec<u64>,
    /// Hosts and devices that are not as `[preflight]` wants, or could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holdings: Vec<Holding>,
    /// Parts that stand out, those that count first and the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    pub tally: Tally,
    /// Where the hosts stand that its reason names, by their names, where the plan says it and it is no pass: rack, or rack and slot
    /// with `/` between them; at most [`OFFENDERS`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub place: BTreeMap<String, String>,
    /// What to do about it, where it is no pass and that follows from the demand alone, or from the GPUs of what broke it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl Verdict {
    /// A verdict with an answer and its reason, of nothing that was in scope yet. The demand is in words.
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
    /// Measured as often as planned, with nothing against them.
    pub measured: usize,
    pub short: usize,
    /// Measured without the verification that was asked for.
    pub unverified: usize,
    pub contaminated: usize,
    /// With a sample that says what cannot be true.
    pub impossible: usize,
    pub no_value: usize,
    /// Tried and not measured.
    pub failed: usize,
    /// Never tried.
    pub not_run: usize,
    /// With wrong bytes.
    pub wrong: usize,
}

/// Every verdict of a run: the content of `verdicts.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdicts {
    pub version: u32,
    pub run_id: String,
    pub plan: String,
    /// The worst status of all verdicts that are not waived.
    pub status: Status,
    /// The exit code that follows from it, with which `railgauge report` ends.
    pub exit_code: u8,
    /// The exit code of the process that ran the plan last: that of the verdicts where the run came to its end, 4 where it could
    /// not go on, 130 where it was interrupted; `None` where it did not end by itself, or not yet.
    pub run_exit_code: Option<u8>,
    /// The whole in a sentence, behind one that says so where only a part of the plan was run.
    pub sentence: String,
    pub cases: Cases,
    /// Every verdict, in the order of the plan.
    pub verdicts: Vec<Verdict>,
    /// Every case that does not simply count as measured; of those that settle suspects the ones with wrong bytes.
    pub troubles: Vec<Trouble>,
    /// Which parts stand out, for every test of pairs and every collective that was taken apart: what the verdicts on parts
    /// rest on.
    pub localisation: Vec<Localisation>,
    /// What is known of the switches between the hosts, and which of their links were loaded; absent where the plan names no source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<Switches>,
    /// Flows that were measured alone and alongside an incast or other traffic of their hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// What the values of `[test.configure]` cost against the first of them, for tests with several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<ValueCost>,
    /// Which low flows share a path with others, for tests with several numbers of queue pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collisions: Vec<Collisions>,
    /// All NICs at once against the sum of single ones, for tests of both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<AllNics>,
    /// What the soak came to; absent where the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak: Option<Soaking>,
    /// What became of tests that were measured in turn: answers to a question, and no verdicts either.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interleaved: Vec<Interleaved>,
    /// Why hosts were lost, and why the cluster could not be set back as it was: each about its host, with its remedy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Failure>,
    /// To what of its plan the run was limited; absent where it was run whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset: Option<Subset>,
    /// In which rack and slot the plan says that its hosts are, by their names; absent where it says nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    /// Drivers of RDMA devices that cases used, measured or not, and that have never been run by railgauge's authors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers_never_run: Vec<NeverRun>,
    /// What was not tested: a pass says nothing of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<Untested>,
    /// What it says of each component that it measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Measured>,
    /// What it was made of and with, once it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sums: Option<Sums>,
}

impl Verdicts {
    /// The document `verdicts.json`.
    ///
    /// # Errors
    /// None that a set of verdicts can cause: serde's signature.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub fn with(&self, status: Status) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.status == status && !verdict.waived).count()
    }
}

/// Judges a run. `rows` are those of `results`.
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

/// The same where it is known what stands out.
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
        // Groups that stand out are searched by smaller ones; of several views of pairs the first has them.
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

/// Whether a value of a test breaks one of its expectations.
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
