//! The verdicts on the links between switches: that none stands out, and that the flows of a test loaded as many as
//! demanded. The state of a link that was not loaded is unknown, so it is neither a pass nor a failure.

use railgauge_model::plan::model::Test;
use railgauge_wire::remedy;
use serde_json::json;

use super::{Kind, Tally, Verdict};
use crate::{
    localise::Standing,
    reason::{Id, Reason, Reasons, Value},
    status::Status,
    switches::{Loaded, NotLoaded, OnLinks, SuspectLink, Switches},
    words::{between, count, number},
};

const NAMED: usize = 3;

/// No link between switches is worse than its peers in a test; `None` where none was searched.
///
/// An outlier is a suspect until it is measured again: it only fails the verdict if that confirms it.
pub(super) fn judge_suspects(test: &Test, switches: Option<&Switches>) -> Option<Verdict> {
    // Does not cover links without a flow: `links_covered` demands these.
    let found = switches?.links.iter().find(|links| links.test == test.name && links.passed > 0)?;
    let OnLinks { undecided, failed, passed, of, suspects, unexplained, too_noisy, waived, .. } = found;
    let (cleared, suspects): (Vec<_>, Vec<_>) = suspects
        .iter()
        .filter(|suspect| suspect.between_switches)
        .partition(|suspect| suspect.standing == Standing::Cleared);
    let mut reason: Reasons = suspects.iter().map(|suspect| stands_out(suspect)).collect();
    reason.extend(searched(found).iter().cloned());
    reason.extend(cleared.iter().map(|suspect| Reason::new(Id::LinkCleared).about(&suspect.name)));
    let status = if suspects.iter().any(|suspect| suspect.standing == Standing::Confirmed) {
        Status::Fail
    } else if suspects.is_empty() && !too_noisy && unexplained + undecided + failed == 0 {
        Status::Pass
    } else {
        Status::Inconclusive
    };
    let bad = suspects.iter().filter(|suspect| suspect.standing == Standing::Confirmed).count();
    let tally = Tally {
        in_scope: *passed,
        judged: *passed,
        violating: bad,
        doubtful: suspects.len() - bad,
        ..Tally::default()
    };
    let demand = "no link between switches is worse than its peers".to_owned();
    let scope = format!("{} of the {of} that there are", count(*passed, "passed direction"));
    let waived = *waived && !suspects.is_empty();
    Some(Verdict { waived, scope, ..verdict(test, demand, status, reason, tally) })
}

/// `None` where the plan demands nothing of links.
pub(super) fn judge(test: &Test, switches: Option<&Switches>) -> Option<Verdict> {
    let wanted = test.links_covered?;
    let found = switches.and_then(|switches| switches.loaded.iter().find(|loaded| loaded.test == test.name));
    let mut reason = Reasons::default();
    let mut status = Status::Inconclusive;
    let mut tally = Tally::default();
    match found {
        None => {
            reason.push(Reason::new(Id::LinksNothingMeasured));
            status = Status::NotRun;
        }
        Some(found) if found.of == 0 => reason.push(Reason::new(Id::NoLinks)),
        Some(found) => {
            reason = loading(found);
            // Rounding alone must not fail: 31 of 32 is not 97 %, and all of them is 100 %.
            if found.impossible.is_empty() && found.loaded as f64 * 100.0 >= wanted * found.of as f64 {
                status = Status::Pass;
            }
            tally = Tally { in_scope: found.of, judged: found.loaded, missing: found.not_loaded.len(), ..tally };
        }
    }
    let demand = format!("{} % of the links between switches are loaded", number(wanted));
    Some(verdict(test, demand, status, reason, tally))
}

pub fn searched(on: &OnLinks) -> Reasons {
    let OnLinks { flows, contended, undecided, failed, passed, of, unexplained, too_noisy, .. } = on;
    let outliers = on.suspects.iter().any(|one| one.between_switches && one.standing != Standing::Cleared);
    let of_links = Reason::new(Id::LinksSearched).with("flows", *flows).with("passed", *passed).with("of", *of);
    let mut reasons = Reasons::new(of_links.with("none", !outliers));
    if *too_noisy {
        reasons.push(Reason::new(Id::LinksTooNoisy));
    }
    let unjudged = [
        (Id::LinksUnexplained, unexplained),
        (Id::LinksFull, contended),
        (Id::LinksUndecided, undecided),
        (Id::LinksNotMeasured, failed),
    ];
    let unjudged = unjudged.into_iter().filter(|(_, flows)| **flows > 0);
    reasons.extend(unjudged.map(|(id, flows)| Reason::new(id).with("flows", *flows)));
    reasons
}

pub fn loading(found: &Loaded) -> Reasons {
    let loaded = Reason::new(Id::LinksLoaded).with("loaded", found.loaded).with("of", found.of);
    let mut reasons = Reasons::new(loaded.with("from", Value::Number(found.percent, "%")));
    let (no_rate, low): (Vec<_>, Vec<_>) = found.not_loaded.iter().partition(|link| link.reached_percent.is_none());
    if !low.is_empty() {
        let names = low.iter().take(NAMED).map(|link| match link.reached_percent {
            Some(reached) if reached > 0.0 => format!("{} ({} %)", link.link, number(reached)),
            _ => link.link.clone(),
        });
        let names = names.collect();
        reasons.push(Reason { count: low.len(), ..Reason::new(Id::LinksNotLoaded).all(names) });
    }
    if !no_rate.is_empty() {
        reasons.push(Reason::new(Id::LinksNoRate).with("links", no_rate.len()));
    }
    if let Some(worst) = worst(&found.impossible) {
        let percent = Value::Number(worst.reached_percent.unwrap_or_default(), "%");
        let impossible = Reason::new(Id::LinksImpossible).about(&worst.link).with("percent", percent);
        reasons.push(impossible.with("links", found.impossible.len()));
    }
    if found.open_flows > 0 {
        reasons.push(Reason::new(Id::LinksOpenFlows).with("flows", found.open_flows));
    }
    let unknown =
        |(why, flows): (&String, &usize)| Reason::new(Id::LinksUnknownWays).with("flows", *flows).with("why", why);
    reasons.extend(found.unknown.iter().map(unknown));
    reasons
}

fn stands_out(suspect: &SuspectLink) -> Reason {
    let bad = suspect.standing == Standing::Confirmed;
    Reason::new(Id::LinkStandsOut)
        .all(std::iter::once(&suspect.name).chain(&suspect.alternatives).cloned().collect())
        .with("several", !suspect.alternatives.is_empty())
        .with("standing", Value::Data(json!(suspect.standing), suspect.standing.words().to_owned()))
        .with("change", Value::Number(suspect.change_percent, "%"))
        .with("interval", suspect.interval_percent.map(|ends| Value::Data(json!(ends), between(ends))))
        .with("low", suspect.low)
        .with("good", suspect.good)
        .remedy(bad.then(|| remedy::CHECK_CABLE.into()))
}

fn worst(links: &[NotLoaded]) -> Option<&NotLoaded> {
    let share = |link: &NotLoaded| link.reached_percent.unwrap_or_default();
    links.iter().max_by(|a, b| share(a).total_cmp(&share(b)))
}

fn verdict(test: &Test, demand: String, status: Status, reason: Reasons, tally: Tally) -> Verdict {
    Verdict {
        scope: "each direction of each link".to_owned(),
        tally,
        ..Verdict::new(Kind::Links, &test.name, demand, status, reason)
    }
}
