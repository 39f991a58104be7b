//! Everything that the page and the terminal show, as plain data: text ready to print, in reading order.

mod alike;
mod banner;
mod carriers;
mod cluster;
mod culprits;
pub(crate) mod hosts;
mod parts;
mod section;
mod soak;
mod switches;
pub(crate) mod troubles;
mod wrong;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashSet},
};

use jiff::Timestamp;
use railgauge_analysis::{
    case::CaseResult,
    compare::Interleaved,
    journal::Journal,
    outliers::Outliers,
    overrides, parallel,
    proven::NeverRun,
    row::Row,
    status::Status,
    verdict::{Cases, Kind, Verdict, Verdicts, not_tested},
    words::{self, held_against, number, share_of},
};
use railgauge_model::{
    journal::stages::Stages,
    plan::{
        count::{capital, count, were},
        hostlist,
    },
};
use serde::Serialize;

use super::{
    ReportError,
    compare::{self, CompareView},
};

pub use banner::Banner;
pub use carriers::CarrierGroup;
pub use cluster::Cluster;
pub use culprits::Pointer;
pub(super) use hosts::help;
pub use hosts::{Difference, Distances, FindingView, HostView, Hosts};
pub use parts::{PartView, Parts};
pub use section::{Block, Column, Figure, Map, MapCell, Table, TestView};
pub(super) use section::{columns, text_column};
pub use section::{how, title};
pub use soak::{Listed, SoakView};
pub use switches::{LoadedView, SuspectView, SwitchesView};
pub use troubles::{TroubleGroup, TroubleLink};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    pub run: Run,
    pub carriers: Vec<CarrierGroup>,
    /// Drivers that railgauge's authors never ran, a sentence each.
    pub never_run: Vec<String>,
    pub status: Status,
    pub sentence: String,
    pub banner: Banner,
    pub cluster: Option<Cluster>,
    /// A chart for each metric that several tests or settings have.
    pub compared: Vec<Figure>,
    pub cases: Cases,
    /// Worst first within the order of the plan's tests.
    pub expectations: Vec<ExpectationView>,
    /// `None` without a test of pairs.
    pub parts: Option<Parts>,
    pub interleaved: Vec<Turns>,
    pub troubles: Vec<TroubleGroup>,
    pub hosts: Hosts,
    /// `None` where the plan has none.
    pub switches: Option<SwitchesView>,
    /// `None` where the plan has none.
    pub soak: Option<SoakView>,
    /// The section of each test.
    pub anchors: BTreeMap<String, String>,
    pub tests: Vec<TestView>,
    /// Host (may be empty) and text.
    pub notes: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    pub plan: String,
    pub description: String,
    pub plan_hash: String,
    pub id: String,
    pub started: String,
    pub duration: String,
    pub stages: String,
    pub version: String,
    pub controller: String,
    pub launcher: String,
    pub remarks: Vec<String>,
    pub hosts: (usize, usize),
    /// Whether only a part of the plan was run; the verdict's sentence says which.
    pub is_part: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExpectationView {
    pub status: Status,
    pub waived: bool,
    pub test: String,
    /// The page's section with details; may be empty.
    pub anchor: String,
    pub demand: String,
    pub scope: String,
    pub line: Option<usize>,
    pub reason: String,
    /// The reason's parts, gravest first.
    pub reasons: Vec<String>,
    pub offenders: Vec<OffenderView>,
    pub more: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OffenderView {
    pub place: String,
    pub link: String,
    pub value: String,
    pub limit: String,
    /// Value relative to the limit, which follows it: `73.8 % of`, `4.7 times`.
    pub share: String,
}

const LISTED: usize = 8;

/// # Errors
/// A statistic or chart fails.
pub fn view(
    journal: &Journal,
    results: &[CaseResult<'_>],
    rows: &[Row],
    verdicts: &Verdicts,
    outliers: &Outliers<'_>,
) -> Result<View, ReportError> {
    let on_links = verdicts.switches.as_ref().map_or(&[][..], |switches| switches.links.as_slice());
    let parts = parts::parts(outliers, verdicts);
    let troubles = troubles::groups(&verdicts.troubles);
    let (hosts, tests) = parallel::both(
        || hosts::hosts(journal, outliers, verdicts.status),
        || section::tests(journal, results, rows, outliers, verdicts),
    );
    let (tests, compared) = tests?;
    let links = switches::open(on_links);
    let seen = banner::Seen {
        end: &journal.end,
        verdicts,
        parts: parts.as_ref(),
        confirms: journal.plan.localise.confirm,
        links: &links,
        troubles: &troubles,
        hosts: &hosts,
    };
    let interleaved: Vec<Turns> = verdicts.interleaved.iter().map(turns).collect::<Result<_, _>>()?;
    let mut view = View {
        compared,
        banner: banner::banner(&seen),
        run: run(journal, verdicts),
        carriers: carriers::carriers(results),
        never_run: verdicts.drivers_never_run.iter().map(NeverRun::words).chain(overrides::told(journal)).collect(),
        status: verdicts.status,
        sentence: verdicts.sentence.clone(),
        cases: verdicts.cases,
        cluster: cluster::cluster(&journal.plan, outliers),
        expectations: verdicts.verdicts.iter().map(expectation).collect(),
        parts,
        interleaved,
        troubles,
        notes: notes(journal, &hosts.findings),
        hosts,
        switches: verdicts.switches.as_ref().map(switches::switches),
        anchors: tests.iter().map(|test| (test.name.clone(), test.anchor.clone())).collect(),
        tests,
        soak: verdicts
            .soak
            .as_ref()
            .map(soak::soak)
            .transpose()
            .map_err(ReportError::drawing("the charts of the soak"))?,
    };
    let anchors: Vec<String> = verdicts.verdicts.iter().map(|verdict| anchor(&view, verdict)).collect();
    view.expectations.iter_mut().zip(anchors).for_each(|(row, anchor)| row.anchor = anchor);
    view.expectations.sort_by_key(|row| (row.waived, Reverse(row.status)));
    once(&mut view.expectations);
    Ok(view)
}

/// An example that a row above has is not repeated.
fn once(rows: &mut [ExpectationView]) {
    let mut seen = HashSet::new();
    for row in rows.iter_mut().filter(|row| row.status != Status::Pass) {
        for reason in &mut row.reasons {
            if let Some((what, example)) = reason.split_once(": ")
                && !seen.insert((row.test.clone(), example.to_owned()))
            {
                *reason = format!("{what}, as above");
            }
        }
    }
}

/// The page's section with details of a verdict; may be empty.
fn anchor(view: &View, verdict: &Verdict) -> String {
    let test = || view.anchors.get(&verdict.test).cloned();
    let trouble = || {
        let of_test = |group: &&TroubleGroup| group.links.iter().any(|link| link.test == verdict.test);
        view.troubles.iter().find(of_test).map(|group| group.anchor.clone())
    };
    let section = |there: bool, name: &str| there.then(|| name.to_owned());
    let place = match verdict.kind {
        Kind::Run | Kind::Records => None,
        Kind::Configure => section(!view.notes.is_empty(), "notes"),
        Kind::Hosts => section(true, "where"),
        Kind::Preflight => section(true, if view.hosts.findings.is_empty() { "where" } else { "configuration" }),
        Kind::Parts => section(view.parts.is_some(), "parts"),
        Kind::Links => section(view.switches.is_some(), "switches"),
        Kind::Soak => section(view.soak.is_some(), "soak"),
        Kind::EveryCase => trouble().or_else(test),
        Kind::Expectation => test(),
    };
    place.unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turns {
    /// `from → to, 8 blocks`.
    pub title: String,
    /// The status whose colour it has.
    pub class: Status,
    pub comparison: CompareView,
}

fn turns(of: &Interleaved) -> Result<Turns, ReportError> {
    let comparison = compare::view(&of.comparison).map_err(ReportError::drawing("the chart of changes"))?;
    // No change is neither good nor bad.
    let class = match comparison.status {
        Status::Pass if of.comparison.counts.improved == 0 => Status::NotRun,
        Status::NotRun => Status::Inconclusive,
        status => status,
    };
    Ok(Turns { class, title: format!("{} → {}, {} blocks", of.a, of.b, of.blocks), comparison })
}

/// Notes of the journal, except those about a finding, which has its own section.
fn notes(journal: &Journal, findings: &[FindingView]) -> Vec<(String, String)> {
    let told = |(host, text): &&(String, String)| {
        findings
            .iter()
            .map(|view| &view.finding)
            .any(|f| f.hosts.contains(host) && text.starts_with(&format!("{} [{}]", f.what, f.check)))
    };
    journal.notes.iter().filter(|note| !told(note)).cloned().collect()
}

fn run(journal: &Journal, verdicts: &Verdicts) -> Run {
    let mut remarks = Vec::new();
    if let Some(subset) = &journal.plan.subset {
        remarks.extend(subset.left_out().map(|text| format!("{}.", capital(&text))));
    }
    let (unread, contradictions) = (journal.unhealed().count(), journal.contradictions.len());
    if unread + contradictions > 0 {
        remarks.push(format!(
            "Records are damaged or inconsistent in {}: do not rely on this report.",
            count(unread + contradictions, "place")
        ));
    }
    if journal.resumed > 0 {
        remarks.push(format!("The run was resumed {} after it had stopped.", times(journal.resumed)));
    }
    let back: BTreeSet<&str> = journal.came_back().map(|loss| loss.host.as_str()).collect();
    if !back.is_empty() {
        let hosts = hostlist::listed(back.iter().copied());
        remarks.push(format!("{} lost and came back: {hosts}.", were(back.len(), "host")));
    }
    // The sentence of a pass already has the others.
    let untested = verdicts.untested.iter().filter(|one| verdicts.status != Status::Pass || !one.may_hide_a_fault());
    remarks.extend(not_tested(untested).map(|what| format!("{}.", capital(&what))));
    let hosts =
        (journal.hosts.keys().filter(|host| !journal.lost.contains_key(*host)).count(), journal.plan.hosts.len());
    Run {
        plan: journal.plan.name.clone(),
        description: journal.plan.description.clone(),
        plan_hash: journal.plan_hash.clone(),
        id: journal.run_id.clone(),
        started: time(&journal.time.0),
        duration: duration(&journal.time.0, &journal.time.1),
        stages: stages(&journal.stages),
        version: journal.version.clone(),
        controller: journal.controller.clone(),
        launcher: journal.launcher.clone(),
        remarks,
        hosts,
        is_part: journal.plan.subset.is_some(),
    }
}

/// `connect 0.40 s, windows 12.00 s`: parts of at least a thousandth of the whole.
fn stages(stages: &Stages) -> String {
    let least = stages.total().as_f64() / 1e3;
    let told = stages.parts().into_iter().filter(|(_, part)| !part.is_zero() && part.as_f64() >= least);
    told.map(|(name, part)| format!("{name} {:.2} s", part.seconds())).collect::<Vec<_>>().join(", ")
}

fn times(n: u32) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

/// `2026-11-21 02:00:00 UTC` from RFC 3339; other text is unchanged.
fn time(text: &str) -> String {
    text.parse::<Timestamp>()
        .map_or_else(|_| text.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// `1 h 04 min`, `3 min 20 s`, `12.4 s`.
fn duration(from: &str, to: &str) -> String {
    let (Ok(from), Ok(to)) = (from.parse::<Timestamp>(), to.parse::<Timestamp>()) else { return String::new() };
    let seconds = to.duration_since(from).as_secs_f64().max(0.0);
    let whole = seconds.round() as u64;
    match whole {
        0..=59 => format!("{seconds:.1} s"),
        60..=3599 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

fn expectation(verdict: &Verdict) -> ExpectationView {
    let unit = verdict.unit.as_deref().unwrap_or_default();
    let wanted = verdict.expectation.as_ref();
    // In the plan's unit, if the verdict answers one of its expectations.
    let text =
        |value: f64| wanted.map_or_else(|| format!("{} {unit}", number(value)), |wanted| held_against(wanted, value));
    let limit = |limit: f64| wanted.and_then(words::limit).unwrap_or_else(|| text(limit));
    let offenders = verdict.offenders.iter().take(LISTED).map(|offender| OffenderView {
        place: offender.place(),
        link: offender.link.clone(),
        value: offender.value.map_or_else(|| offender.error.clone().unwrap_or_default(), text),
        limit: offender.limit.map_or_else(String::new, limit),
        share: match (offender.value, offender.limit) {
            (Some(value), Some(limit)) if limit != 0.0 => share_of(value / limit),
            _ => String::new(),
        },
    });
    ExpectationView {
        status: verdict.status,
        waived: verdict.waived,
        test: verdict.test.clone(),
        anchor: String::new(),
        demand: verdict.demand.clone(),
        scope: verdict.scope.clone(),
        line: verdict.line,
        reason: verdict.reason.to_string(),
        reasons: verdict.reason.iter().map(ToString::to_string).collect(),
        offenders: offenders.collect(),
        more: match verdict.offenders.len() {
            0 => 0,
            listed => verdict.tally.violating.saturating_sub(LISTED.min(listed)),
        },
    }
}
