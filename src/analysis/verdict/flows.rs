//! The verdict on flows at once: none of them is far below the others of the test.
//!
//! Suspects are not sought among flows at once, because what one of them reaches says as much of the others. A flow that stands
//! out all the same is told here: nobody may take it for a pass.

use std::{collections::BTreeSet, sync::Arc};

use railgauge_model::plan::{Plan, model::Test};

use super::{Kind, Part, Status, Tally, Verdict, parts};
use crate::analysis::{
    outliers::{Link, OfTest},
    words::{count, number},
};

/// The verdict on one test; `None` for other tests, and where too few flows have values to compare them.
pub(super) fn judge(test: &Test, of: &OfTest<'_>, plan: &Plan) -> Option<Verdict> {
    if !test.at_once() {
        return None;
    }
    let judged: Vec<&Link<'_>> = of.links.iter().filter(|link| link.deviation.is_some()).collect();
    let missing = of.links.iter().filter(|link| link.value.is_none()).count();
    let row = judged.iter().find_map(|link| link.row)?;
    let (waived, own): (Vec<&Link<'_>>, Vec<&Link<'_>>) =
        of.flows().into_iter().map(|(link, _)| link).partition(|link| parts::is_waived(link, plan));
    let total = count(judged.len(), "flow");
    let parts: Vec<Part> = [(&own, false), (&waived, true)]
        .into_iter()
        .filter(|(links, _)| !links.is_empty())
        .map(|(_, waived)| Part { name: parts::LINKS.to_owned(), status: Status::Inconclusive, waived })
        .collect();
    let mut reasons = Vec::new();
    reasons.extend(parts::standing_out(&own).map(|words| format!("{words}{}", in_common(&own))));
    if !waived.is_empty() {
        reasons.push(format!("waived by the plan: {}", parts::LINKS));
    }
    if parts.is_empty() {
        reasons.push(format!("nothing stands out among {total}{}", from_where(&judged)));
    }
    if missing > 0 {
        reasons.push(format!("not compared: {} without a value that may be trusted", count(missing, "flow")));
    }
    // Where only waived flows stand out the verdict is theirs, and does not count.
    let set_aside = own.is_empty() && !waived.is_empty() && missing == 0;
    let is_open = !parts.is_empty() || missing > 0;
    Some(Verdict {
        kind: Kind::Parts,
        test: test.name.clone(),
        key: None,
        demand: "no flow is far below the others".to_owned(),
        scope: total,
        line: None,
        metric: Some(of.metric),
        unit: Some(row.unit.clone()),
        status: if is_open { Status::Inconclusive } else { Status::Pass },
        waived: set_aside,
        reason: reasons.join("; "),
        worst: None,
        offenders: Vec::new(),
        holdings: Vec::new(),
        tally: Tally {
            in_scope: of.links.len(),
            judged: judged.len(),
            violating: 0,
            doubtful: own.len() + waived.len(),
            missing,
        },
        parts,
    })
}

/// The only host that all these flows share, in words; empty for a single flow, or where there is none.
fn in_common(links: &[&Link<'_>]) -> String {
    let hosts =
        |link: &&Link<'_>| -> BTreeSet<Arc<str>> { link.result.case.flow.hosts().into_iter().cloned().collect() };
    let shared = links.iter().map(hosts).reduce(|all, one| &all & &one).unwrap_or_default();
    match (links.len() > 1, Vec::from_iter(shared).as_slice()) {
        (true, [host]) => format!("; all of them are flows of {host}"),
        _ => String::new(),
    }
}

/// Below which share of the centre of good flows a flow would stand out, in words: where flows scatter much, little does.
fn from_where(links: &[&Link<'_>]) -> String {
    let widest = links.iter().filter_map(|link| link.level).map(|level| level.threshold).max_by(f64::total_cmp);
    widest.map_or_else(String::new, |threshold| {
        format!(" (a flow below {} % of what good flows reach would)", number(100.0 * (-threshold).exp()))
    })
}
