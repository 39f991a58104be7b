//! The links that the flows of an event share, without those of a flow that continued.

use std::collections::BTreeSet;

use railgauge_model::topology::fabric::{Hop, Route};
use serde::Serialize;

use super::{
    silence::Stalled,
    stalls::Unexplained,
    traffic::{Traffic, case_of},
};
use crate::switches::ways::Ways;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CommonLinks {
    /// Empty without any, or if unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub links_unknown: String,
}

const NAMED: usize = 4;

/// `all` are all stalls, by start.
pub(super) fn common(
    traffic: &Traffic<'_>,
    ways: Option<&Ways<'_>>,
    event: &Unexplained,
    all: &[Stalled],
) -> CommonLinks {
    let unknown = |why: &str| CommonLinks { links_unknown: why.to_owned(), links: Vec::new() };
    if event.lost.is_some() {
        return unknown("a host was lost");
    }
    let Some(ways) = ways else { return unknown("the plan has no topology") };
    let mut shared: Option<BTreeSet<Hop>> = None;
    for case in &event.hit.cases {
        let links = match passed(traffic, ways, *case) {
            Ok(links) => links,
            Err(why) => return unknown(&why.to_string()),
        };
        shared = Some(match shared {
            Some(shared) => shared.intersection(&links).copied().collect(),
            None => links,
        });
    }
    let mut shared = shared.unwrap_or_default();
    for case in went_on(traffic, event, all) {
        // A flow of unknown way does not show any link to be good.
        if let Ok(links) = passed(traffic, ways, case) {
            shared.retain(|link| !links.contains(link));
        }
        if shared.is_empty() {
            break;
        }
    }
    if shared.is_empty() {
        return unknown("no link is passed by all of them and by no other flow of the time");
    }
    let links = shared.iter().take(NAMED).map(|link| ways.cable(2 * link)).collect();
    CommonLinks { links, links_unknown: String::new() }
}

fn passed(traffic: &Traffic<'_>, ways: &Ways<'_>, case: u64) -> Result<BTreeSet<Hop>, NotKnown> {
    let known = case_of(traffic.journal, case).zip(traffic.ends.get(&case));
    let Some((case, [from, to])) = known else { return Err(NotKnown::NotPlanned) };
    let ends = [(&case.flow.from, from.device.as_str()), (&case.flow.to, to.device.as_str())];
    let mut links = BTreeSet::new();
    for ends in [ends, [ends[1], ends[0]]] {
        match ways.taken(case.cell.transport, ends) {
            Route::Known(path) => links.extend(path.iter().map(|hop| hop / 2)),
            Route::OneOf(_) => return Err(NotKnown::OneOfSeveral),
            Route::Unknown(why) => return Err(NotKnown::NoWay(why)),
        }
    }
    Ok(links)
}

#[derive(Debug, thiserror::Error)]
enum NotKnown {
    #[error("a flow is not planned")]
    NotPlanned,
    #[error("which of several equal paths the flows take is not known")]
    OneOfSeveral,
    #[error("{0}")]
    NoWay(String),
}

fn went_on(traffic: &Traffic<'_>, event: &Unexplained, all: &[Stalled]) -> BTreeSet<u64> {
    let round = |case: u64| case_of(traffic.journal, case).map(|case| case.round);
    let rounds: BTreeSet<_> = event.hit.cases.iter().map(|case| round(*case)).collect();
    let end = all.partition_point(|stall| stall.span.from <= event.span.until);
    let stalled: BTreeSet<u64> =
        all[..end].iter().filter(|stall| stall.span.meets(&event.span)).map(|stall| stall.case).collect();
    let flows = traffic.parts_in(event.span).flat_map(|part| &part.flows);
    let flows =
        flows.filter(|flow| flow.windows > 0 && !stalled.contains(&flow.case) && rounds.contains(&round(flow.case)));
    flows.map(|flow| flow.case).collect()
}
