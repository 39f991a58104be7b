//! The verdicts on the links between switches: that none stands out, and that the flows of a test loaded as many of them as the plan
//! demands. Of a link that was not loaded nobody knows whether it is good, so it is never a pass, and no failure either.

use railgauge_model::plan::model::Test;
use railgauge_wire::remedy;

use super::{
    Kind, Status, Tally, Verdict,
    reason::{OfLinks, Reason},
};
use crate::analysis::{
    localise::Standing,
    switches::{NotLoaded, OnLinks, Switches},
    words::{count, number},
};

/// The verdict that no link between switches is worse than its peers in a test; `None` where none was searched for.
///
/// A link that stands out is a suspect until it was measured again: it fails the verdict only when that confirmed it.
pub(super) fn judge_suspects(test: &Test, switches: Option<&Switches>) -> Option<Verdict> {
    // Of links that no flow passed nothing is said: `links_covered` demands that they are passed.
    let found = switches?.links.iter().find(|links| links.test == test.name && links.passed > 0)?;
    let OnLinks { flows, contended, undecided, failed, passed, of, suspects, unexplained, too_noisy, waived, .. } =
        found;
    let (cleared, suspects): (Vec<_>, Vec<_>) = suspects
        .iter()
        .filter(|suspect| suspect.between_switches)
        .partition(|suspect| suspect.standing == Standing::Cleared);
    let mut reason = Reason::default();
    reason.extend(suspects.iter().map(|suspect| OfLinks::StandsOut {
        standing: suspect.standing,
        link: suspect.name.clone(),
        alternatives: suspect.alternatives.clone(),
        change_percent: suspect.change_percent,
        interval_percent: suspect.interval_percent,
        low: suspect.low,
        good: suspect.good,
    }));
    if suspects.is_empty() {
        reason.push(OfLinks::NothingStandsOut { passed: *passed, of: *of, flows: *flows });
    }
    if *unexplained > 0 {
        reason.push(OfLinks::Unexplained { flows: *unexplained });
    }
    if *too_noisy {
        reason.push(OfLinks::TooNoisy);
    }
    if *contended > 0 {
        reason.push(OfLinks::Contended { flows: *contended });
    }
    if *undecided > 0 {
        reason.push(OfLinks::Undecided { flows: *undecided });
    }
    if *failed > 0 {
        reason.push(OfLinks::NotMeasured { flows: *failed });
    }
    reason.extend(cleared.iter().map(|suspect| OfLinks::Cleared { link: suspect.name.clone() }));
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
    let remedy = (bad > 0).then(|| remedy::CHECK_CABLE.into());
    Some(Verdict { waived, scope, remedy, ..verdict(test, demand, status, reason, tally) })
}

/// The verdict on one test; `None` where the plan demands nothing of links.
pub(super) fn judge(test: &Test, switches: Option<&Switches>) -> Option<Verdict> {
    let wanted = test.links_covered?;
    let found = switches.and_then(|switches| switches.loaded.iter().find(|loaded| loaded.test == test.name));
    let mut reason = Reason::default();
    let mut status = Status::Inconclusive;
    let mut tally = Tally::default();
    match found {
        None => {
            reason.push(OfLinks::NothingMeasured);
            status = Status::NotRun;
        }
        Some(found) if found.of == 0 => reason.push(OfLinks::NoLinks),
        Some(found) => {
            reason.push(OfLinks::Loaded { loaded: found.loaded, of: found.of, from_percent: found.percent });
            // Of rounding alone nothing fails: 31 of 32 is not 97 %, and all of them is 100 %.
            if found.loaded as f64 * 100.0 >= wanted * found.of as f64 {
                status = Status::Pass;
            }
            let (no_rate, low): (Vec<_>, Vec<_>) =
                found.not_loaded.iter().partition(|link| link.reached_percent.is_none());
            if !low.is_empty() {
                let told = low.iter().map(|link| match link.reached_percent {
                    Some(reached) if reached > 0.0 => format!("{} ({} %)", link.link, number(reached)),
                    _ => link.link.clone(),
                });
                reason.push(OfLinks::not_loaded(told));
            }
            if !no_rate.is_empty() {
                reason.push(OfLinks::NoRate { links: no_rate.len() });
            }
            if let Some(worst) = worst(&found.impossible) {
                reason.push(OfLinks::Impossible {
                    links: found.impossible.len(),
                    link: worst.link.clone(),
                    percent: worst.reached_percent.unwrap_or_default(),
                });
                status = Status::Inconclusive;
            }
            if found.open_flows > 0 {
                reason.push(OfLinks::OpenFlows { flows: found.open_flows });
            }
            reason
                .extend(found.unknown.iter().map(|(why, flows)| OfLinks::Unknown { flows: *flows, why: why.clone() }));
            tally = Tally { in_scope: found.of, judged: found.loaded, missing: found.not_loaded.len(), ..tally };
        }
    }
    let demand = format!("{} % of the links between switches are loaded", number(wanted));
    Some(verdict(test, demand, status, reason, tally))
}

/// The link that carried most of its rate.
fn worst(links: &[NotLoaded]) -> Option<&NotLoaded> {
    let share = |link: &NotLoaded| link.reached_percent.unwrap_or_default();
    links.iter().max_by(|a, b| share(a).total_cmp(&share(b)))
}

fn verdict(test: &Test, demand: String, status: Status, reason: Reason, tally: Tally) -> Verdict {
    Verdict {
        scope: "each direction of each link".to_owned(),
        tally,
        ..Verdict::new(Kind::Links, &test.name, demand, status, reason)
    }
}
