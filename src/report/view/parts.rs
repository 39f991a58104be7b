//! Which part is bad: what stands out, in the order in which somebody should look at it, and what was looked at. The parts, their
//! states and their order are those of [`outliers`](mod@crate::analysis::outliers).

use railgauge_model::plan::{count::capital, hostlist};
use serde::Serialize;

use crate::analysis::{
    localise::{Further, Localisation, Named, Standing, Which},
    outliers::{Link, Outliers, Part},
    words::{between, change, count, number, scatter, share as share_of, size, spread},
};

/// Which part is bad.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts {
    /// The whole in a sentence.
    pub sentence: String,
    /// Parts that are named, the gravest first, each once for all tests.
    pub named: Vec<PartView>,
    /// Links that stand out and belong to none of these.
    pub beside: usize,
    /// Whether nothing stands out, although it was searched and would have been seen: no part that is bad or may be, no link, no
    /// second cluster.
    pub nothing: bool,
    /// Pairs and groups, of all tests, without a value that may be trusted: they were not compared.
    pub missing: usize,
    /// Whether a test's values scatter so much that a bad part may not stand out.
    pub noisy: bool,
    /// What was looked at and what could not be told, a sentence for each test.
    pub tests: Vec<String>,
}

/// One part that is named.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartView {
    /// The part.
    pub name: String,
    /// `confirmed`, `intermittent`, `suspect`, `open` or `cleared`; with `, waived` where the plan waives it.
    pub standing: String,
    /// Whether it was good when measured again.
    pub cleared: bool,
    /// The class that colours it.
    pub class: &'static str,
    /// Parts that the results cannot distinguish from it.
    pub alternatives: Vec<String>,
    /// The evidence for it: name of the test, change with its interval, reason.
    pub evidence: Vec<[String; 3]>,
    /// The further cases that were to settle it: test, link, value or why it cannot be used.
    pub further: Vec<[String; 3]>,
}

/// Links that are named in the sentence.
const NAMED: usize = 3;

/// Makes the view; `None` where nothing was searched for parts and nothing stands out.
pub(super) fn parts(outliers: &Outliers<'_>, found: &[Localisation]) -> Option<Parts> {
    let beside = outliers.beside().len();
    (!found.is_empty() || beside > 0).then(|| Parts {
        sentence: sentence(outliers, found),
        named: outliers.parts.iter().map(part).collect(),
        beside,
        nothing: outliers.searched
            && !outliers.any()
            && outliers.noisy.is_empty()
            && unmeasured(found).is_none()
            && found.iter().all(|test| test.unexplained.is_none() && test.carry_less().is_none()),
        missing: found.iter().map(|test| test.missing).sum(),
        noisy: !outliers.noisy.is_empty(),
        tests: found.iter().map(looked_at).collect(),
    })
}

fn part(part: &Part<'_>) -> PartView {
    let mut alternatives: Vec<String> =
        part.evidence.iter().flat_map(|one| &one.named.alternatives).map(|name| name.name.clone()).collect();
    alternatives.sort_unstable();
    alternatives.dedup();
    let further = part.evidence.iter().flat_map(|one| one.named.further.iter().map(|case| further(one.test, case)));
    let evidence = |one: &crate::analysis::outliers::Evidence<'_>| {
        // What became of it in one test, where it is not what became of it in all.
        let own = if one.named.standing == part.standing {
            String::new()
        } else {
            format!(" ({})", one.named.standing.word())
        };
        [one.test.test.clone() + &own, difference(one.named), one.named.reason.clone()]
    };
    PartView {
        name: part.name.to_owned(),
        standing: part.state(),
        cleared: part.standing == Standing::Cleared,
        class: if part.waived { "not-run" } else { class(part.standing) },
        alternatives,
        evidence: part.evidence.iter().map(evidence).collect(),
        further: further.collect(),
    }
}

const fn class(standing: Standing) -> &'static str {
    match standing {
        Standing::Confirmed | Standing::Intermittent => "fail",
        Standing::Suspect | Standing::Open => "inconclusive",
        Standing::Cleared => "not-run",
    }
}

fn further(test: &Localisation, case: &Further) -> [String; 3] {
    let value = case.value.map(|value| format!("{} {}", number(value), test.unit));
    [test.test.clone(), case.link.clone(), value.or(case.error.clone()).unwrap_or_default()]
}

/// `−40.1 % (−41.0 to −39.2 %)`.
fn difference(part: &Named) -> String {
    // Nothing came through where no group ran: that is no difference.
    if part.change_percent <= -100.0 || !part.change_percent.is_finite() {
        return "failed".to_owned();
    }
    // Further tests were not picked for being bad: where their interval is known, it is the better one.
    let confirmed = part.confirmation.and_then(|found| Some((found.change_percent, found.interval_percent?)));
    match confirmed.or(part.interval_percent.map(|interval| (part.change_percent, interval))) {
        Some((percent, interval)) => format!("{} ({})", change(percent), between(interval)),
        None => change(part.change_percent),
    }
}

fn sentence(outliers: &Outliers<'_>, found: &[Localisation]) -> String {
    let with = |wanted: &[Standing]| {
        let named = outliers.parts.iter().filter(|part| wanted.contains(&part.standing) && !part.waived);
        named.map(|part| part.name).collect::<Vec<_>>().join("; ")
    };
    let waived = || {
        let named = outliers.parts.iter().filter(|part| part.is_bad() && part.waived);
        named.map(|part| format!("{} ({})", part.name, part.standing.word())).collect::<Vec<_>>().join("; ")
    };
    let mut words = Vec::new();
    for (standing, what) in [
        (&[Standing::Confirmed][..], "Bad, measured again and confirmed"),
        (&[Standing::Intermittent], "Bad in part of its results"),
        (&[Standing::Suspect, Standing::Open], "Suspect, undecided"),
    ] {
        match with(standing) {
            names if names.is_empty() => {}
            names => words.push(format!("{what}: {names}.")),
        }
    }
    match waived() {
        names if names.is_empty() => {}
        names => words.push(format!("Waived by the plan: {names}.")),
    }
    for (test, words_of) in found.iter().filter_map(|test| Some((test, test.unexplained.as_ref()?))) {
        words.push(format!("In {} {words_of}.", test.test));
    }
    for (test, clusters) in &outliers.clusters {
        if let Some(unlike) = test.unlike() {
            words.push(format!("In {} {unlike}. Nothing tells which side is the sick one.", test.test));
            continue;
        }
        words.push(format!(
            "The values of {} fall into two clusters ({} and {}, {} {} at {} and {} at {}), and nothing tells which part separates \
             them.",
            test.test,
            count(clusters.good.n, test.counted),
            clusters.bad.n,
            number(clusters.good.centre),
            test.unit,
            size(test.size_bytes),
            number(clusters.bad.centre),
            size(test.size_bytes)
        ));
    }
    for test in &outliers.noisy {
        let hidden = test.noise();
        words.extend(hidden.map(|hidden| format!("Too noisy to tell in {}: {hidden}.", test.test)));
    }
    for test in found {
        words.extend(test.carry_less().map(|what| format!("In {} some carry {what}.", test.test)));
    }
    let none = words.is_empty();
    words.extend(beside(outliers, none));
    // Of a host without any value nobody knows whether it stands out.
    words.extend(unmeasured(found).filter(|_| outliers.searched));
    if words.is_empty() {
        let why = || found.iter().flat_map(|test| test.remarks.last()).next().map(|remark| capital(remark) + ".");
        let told = if outliers.searched { None } else { why() };
        words.push(told.unwrap_or_else(|| "No part stands out.".to_owned()));
    }
    for test in found.iter().filter(|test| !test.good.is_empty()) {
        words.extend(test.one_way.told().map(|what| format!("{} in {}.", capital(&what.to_string()), test.test)));
    }
    // What all have in common stands out nowhere.
    for test in found {
        words.extend(test.across_rails().map(|what| format!("In {} {what}.", test.test)));
    }
    for (test, share) in found.iter().filter_map(|test| Some((test, test.short_of_ceiling?))) {
        words.push(format!(
            "Good pairs of {} reach {} of what their links can carry, and no limit of the plan says whether that is enough.",
            test.test,
            share_of(share)
        ));
    }
    match with(&[Standing::Cleared]) {
        names if names.is_empty() => {}
        names => words.push(format!("Suspected, and good when measured again: {names}.")),
    }
    words.join(" ")
}

/// Hosts of which nothing was measured that could be compared, with the tests; `None` without any.
fn unmeasured(found: &[Localisation]) -> Option<String> {
    let mut by_hosts: Vec<(String, Vec<&str>)> = Vec::new();
    for test in found.iter().filter(|test| !test.unmeasured.is_empty()) {
        let hosts = hostlist::fold(test.unmeasured.iter().map(String::as_str));
        match by_hosts.iter_mut().find(|(known, _)| *known == hosts) {
            Some((_, tests)) => tests.push(&test.test),
            None => by_hosts.push((hosts, vec![&test.test])),
        }
    }
    let one = |(hosts, tests): &(String, Vec<&str>)| format!("{hosts} in {}", tests.join(", "));
    let all: Vec<String> = by_hosts.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("Not judged, without a value that may be trusted: {}.", all.join("; ")))
}

/// Links that stand out and belong to no part; `None` without any.
fn beside(outliers: &Outliers<'_>, none: bool) -> Option<String> {
    let links = outliers.beside();
    if links.is_empty() {
        return None;
    }
    let one = |link: &Link<'_>, test: &str| format!("{} ({test}, {})", link.result.link_name(), link.words());
    let named: Vec<String> = links.iter().take(NAMED).map(|(test, link, _)| one(link, test.test)).collect();
    let more = if links.len() > NAMED { format!(" and {} more", links.len() - NAMED) } else { String::new() };
    let stand = if links.len() == 1 { "stands" } else { "stand" };
    let front = if none { "No host, NIC or switch is named, but" } else { "Beside that," };
    Some(format!("{front} {} {stand} out: {}{more}.", count(links.len(), "link"), named.join("; ")))
}

/// `write-bw: 56 pairs at 1 MiB by bandwidth; good pairs reach 195.4 Gb/s, ±0.60 %`.
fn looked_at(test: &Localisation) -> String {
    let mut words =
        vec![format!("{} at {} by {}", count(test.pairs, test.counted), size(test.size_bytes), test.metric.word())];
    for good in &test.good {
        let which = if good.which == Which::ALL { "good pairs".to_owned() } else { good.which.to_string() };
        let centre = spread(good.centre, Some(good.centre * good.spread_percent / 100.0));
        words.push(format!("{which} reach {centre} {}, {}", test.unit, scatter(good.spread_percent)));
    }
    if test.missing > 0 {
        words.push(format!("{} without a value that may be trusted", test.missing));
    }
    if !test.unjudged.is_empty() {
        words.push(format!("neither good nor bad, for want of a good pair: {}", test.unjudged.join(", ")));
    }
    words.extend(test.remarks.iter().cloned());
    format!("{}: {}", test.test, words.join("; "))
}
