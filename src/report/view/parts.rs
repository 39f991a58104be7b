//! Which part is bad: what stands out, in the order in which somebody should look at it, and what was looked at.

use serde::Serialize;

use crate::analysis::{
    localise::{Further, Localisation, Named, Standing},
    words::{count, number, size},
};

/// Which part is bad.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parts {
    /// The whole in a sentence.
    pub sentence: String,
    /// Parts that stand out: confirmed ones first, each once for all tests that show it.
    pub named: Vec<PartView>,
    /// What was looked at and what could not be told, a sentence for each test.
    pub tests: Vec<String>,
}

/// One part that stands out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartView {
    /// The part.
    pub name: String,
    /// `confirmed`, `suspect`, `open` or `cleared`.
    pub standing: &'static str,
    /// The class that colours it.
    pub class: &'static str,
    /// What speaks for it: name of the test, change with its interval, reason.
    pub evidence: Vec<[String; 3]>,
    /// The further cases that were to settle it: test, link, value or what stands against it.
    pub further: Vec<[String; 3]>,
}

/// Makes the view; `None` without a test of pairs.
pub(super) fn parts(found: &[Localisation]) -> Option<Parts> {
    if found.is_empty() {
        return None;
    }
    let mut named: Vec<(Standing, PartView)> = Vec::new();
    for (test, one) in found.iter().flat_map(|test| test.suspects.iter().map(move |one| (test, one))) {
        let at = named.iter().position(|(standing, part)| *standing == one.standing && part.name == one.name);
        let at = at.unwrap_or_else(|| {
            let (standing, class) = (one.standing.word(), class(one.standing));
            let (evidence, further) = (Vec::new(), Vec::new());
            named.push((one.standing, PartView { name: one.name.clone(), standing, class, evidence, further }));
            named.len() - 1
        });
        let part = &mut named[at].1;
        part.evidence.push([test.test.clone(), change(one), one.reason.clone()]);
        part.further.extend(one.further.iter().map(|case| further(test, case)));
    }
    named.sort_by_key(|(standing, _)| rank(*standing));
    Some(Parts {
        sentence: sentence(found, &named),
        named: named.into_iter().map(|(_, part)| part).collect(),
        tests: found.iter().map(looked_at).collect(),
    })
}

const fn rank(standing: Standing) -> u8 {
    match standing {
        Standing::Confirmed => 0,
        Standing::Intermittent => 1,
        Standing::Suspect => 2,
        Standing::Open => 3,
        Standing::Cleared => 4,
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

/// `−40.1 % (−41.0 to −39.2)`.
fn change(part: &Named) -> String {
    let signed = |percent: f64| {
        let sign = if percent < 0.0 { '−' } else { '+' };
        format!("{sign}{:.1}", percent.abs())
    };
    // Further tests were not picked for being bad: where their interval is known, it is the better one.
    let confirmed = part.confirmation.and_then(|found| Some((found.change_percent, found.interval_percent?)));
    match confirmed.or(part.interval_percent.map(|interval| (part.change_percent, interval))) {
        Some((change, (low, high))) => format!("{} % ({} to {})", signed(change), signed(low), signed(high)),
        None => format!("{} %", signed(part.change_percent)),
    }
}

fn sentence(found: &[Localisation], named: &[(Standing, PartView)]) -> String {
    let with = |wanted: Standing| {
        let names = named.iter().filter(move |(standing, _)| *standing == wanted);
        names.map(|(_, part)| part.name.as_str()).collect::<Vec<_>>()
    };
    let (confirmed, cleared) =
        ([with(Standing::Confirmed), with(Standing::Intermittent)].concat(), with(Standing::Cleared));
    let open = [with(Standing::Suspect), with(Standing::Open)].concat();
    let judged = found.iter().any(|test| !test.good.is_empty());
    let mut words = Vec::new();
    if !confirmed.is_empty() {
        words.push(format!("Bad, measured again and confirmed: {}.", confirmed.join("; ")));
    }
    if !open.is_empty() {
        words.push(format!("Suspect, not settled: {}.", open.join("; ")));
    }
    if confirmed.is_empty() && open.is_empty() {
        let why = || found.iter().flat_map(|test| test.remarks.last()).next().map(|remark| capital(remark) + ".");
        let told = if judged { None } else { why() };
        words.push(told.unwrap_or_else(|| "No part stands out.".to_owned()));
    }
    if !cleared.is_empty() {
        words.push(format!("Suspected, and good when measured again: {}.", cleared.join("; ")));
    }
    words.join(" ")
}

/// With its first letter as a capital.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

/// `write-bw: 56 pairs at 1 MiB by bandwidth; good pairs reach 195.4 Gb/s ± 0.6 %`.
fn looked_at(test: &Localisation) -> String {
    let mut words =
        vec![format!("{} at {} by {}", count(test.pairs, test.counted), size(test.size_bytes), test.metric.word())];
    for good in &test.good {
        let which = if good.which == "all pairs" { "good pairs" } else { &good.which };
        words.push(format!("{which} reach {} {} ± {:.1} %", number(good.centre), test.unit, good.spread_percent));
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
