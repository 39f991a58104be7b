//! The verdict on the parts of a test: none of its hosts, NICs, rails, groups or paths is worse than its fellows.

use railgauge_model::plan::{Plan, hostlist, model::Waiver};

use super::{Kind, Status, Tally, Verdict};
use crate::analysis::{
    localise::{Localisation, Named, SeparatedBy, Standing, waives_flow},
    outliers::Link,
    words::count,
};

/// Name of what stands in the place of a part where the values fall into two clusters.
const TWO_CLUSTERS: &str = "two clusters of values";
/// Name of what stands in the place of the parts that noise would hide.
const NOISE: &str = "parts that noise hides";

/// Name of what stands in the place of the part that makes a collective slow.
const UNEXPLAINED: &str = "what makes the collective slow";

/// Name of what stands in the place of ends that carry less than others by their ports or slots.
const LESSER: &str = "ports or slots that carry less";

/// Name of what stands in the place of links that belong to no part.
pub(super) const LINKS: &str = "links that stand out by themselves";

/// A part that a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Part {
    /// Its name, as the localisation has it.
    pub name: String,
    /// What it does to the verdict by itself.
    pub status: Status,
    /// Whether the plan waives it, so that it does not count.
    pub waived: bool,
}

/// The verdict on what was found in one test; `None` where nothing could be compared, which the localisation's remarks say.
/// `beside` are links that stand out and belong to no part, each at its worst size: at sizes that were not searched, or where
/// hosts are too few for parts.
pub(super) fn judge(found: &Localisation, beside: &[&Link<'_>], plan: &Plan) -> Option<Verdict> {
    let nothing = found.suspects.is_empty() && found.two_clusters.is_none() && found.unexplained.is_none();
    if found.good.is_empty() && nothing && found.lesser.is_empty() && beside.is_empty() {
        return None;
    }
    let waivers = &plan.localise.waive;
    let one =
        |named: &Named| Some(Part { name: named.name.clone(), status: status(named.standing)?, waived: named.waived });
    let mut parts: Vec<Part> = found.suspects.iter().filter_map(one).collect();
    // What is of no part is waived with all of them only.
    let waived = waivers.contains(&Waiver::All);
    let apart = |name: &str| Part { name: name.to_owned(), status: Status::Inconclusive, waived };
    if found.two_clusters.as_ref().is_some_and(|clusters| clusters.separated_by == SeparatedBy::Nothing) {
        parts.push(apart(TWO_CLUSTERS));
    }
    let in_order = |parts: &mut Vec<Part>| parts.sort_by(|a, b| (a.waived, b.status).cmp(&(b.waived, a.status)));
    in_order(&mut parts);
    let mut reasons = Vec::new();
    for (wanted, words) in [
        (Status::Fail, "worse than its fellows, measured again"),
        (Status::Inconclusive, "stands out and is neither confirmed nor cleared"),
    ] {
        let own = parts.iter().filter(|part| part.status == wanted && !part.waived);
        let list: Vec<&str> = own.map(|part| part.name.as_str()).collect();
        if !list.is_empty() {
            reasons.push(format!("{words}: {}", list.join(", ")));
        }
    }
    let (unnamed, waived_links): (Vec<&Link<'_>>, Vec<&Link<'_>>) =
        beside.iter().partition(|link| !is_waived(link, plan));
    for (links, waived) in [(&unnamed, false), (&waived_links, true)] {
        if !links.is_empty() {
            parts.push(Part { name: LINKS.to_owned(), status: Status::Inconclusive, waived });
            in_order(&mut parts);
        }
    }
    if let Some(words) = standing_out(&unnamed) {
        reasons.push(words);
    }
    reasons.extend(found.unlike_words());
    if !found.lesser.is_empty() {
        reasons.extend(found.lesser_words());
        let waived = found.lesser.iter().all(|end| end.waived);
        parts.push(Part { name: LESSER.to_owned(), status: Status::Inconclusive, waived });
        in_order(&mut parts);
    }
    if let Some(words) = &found.unexplained {
        reasons.push(words.clone());
        parts.push(apart(UNEXPLAINED));
        in_order(&mut parts);
    }
    // Noise stands out in nothing: it has words of its own.
    if let Some(words) = found.noise_words() {
        let front = if reasons.is_empty() { "" } else { "beside that, " };
        reasons.push(format!("{front}too noisy to tell: {words}"));
        parts.push(apart(NOISE));
        in_order(&mut parts);
    }
    let worst = |waived: bool| parts.iter().filter(|part| part.waived == waived).map(|part| part.status).max();
    // Where only waived parts stand out the verdict is theirs, and does not count.
    let waived = worst(false).is_none() && worst(true).is_some();
    // Of what was not measured nobody knows whether it is worse.
    let lacking = found.missing > 0 || !found.unmeasured.is_empty();
    let otherwise = if lacking { Status::Inconclusive } else { Status::Pass };
    let status = match worst(false) {
        Some(status) => status.max(otherwise),
        None if lacking => otherwise,
        None => worst(true).unwrap_or(Status::Pass),
    };
    let waived = waived && !lacking;
    let set_aside: Vec<&str> = parts.iter().filter(|part| part.waived).map(|part| part.name.as_str()).collect();
    if !set_aside.is_empty() {
        reasons.push(format!("waived by the plan: {}", set_aside.join(", ")));
    }
    let counted = count(found.pairs, found.counted);
    if !found.unmeasured.is_empty() {
        let hosts = hostlist::fold(found.unmeasured.iter().map(String::as_str));
        reasons.push(format!("not judged, without a value that may be trusted: {hosts}"));
    }
    if reasons.is_empty() {
        reasons.push(format!("nothing stands out among {counted}"));
    }
    if found.missing > 0 {
        reasons
            .push(format!("not compared: {} without a value that may be trusted", count(found.missing, found.counted)));
    }
    reasons.extend(found.across_rails_words());
    reasons.extend(found.one_way.words());
    let violating = parts.iter().filter(|part| part.status == Status::Fail).count();
    Some(Verdict {
        kind: Kind::Parts,
        test: found.test.clone(),
        key: None,
        demand: "no part is worse than its fellows".to_owned(),
        scope: counted,
        line: None,
        metric: Some(found.metric),
        unit: Some(found.unit.clone()),
        status,
        waived,
        reason: reasons.join("; "),
        worst: None,
        offenders: Vec::new(),
        holdings: Vec::new(),
        tally: Tally {
            in_scope: found.pairs + found.missing,
            judged: found.pairs,
            violating,
            doubtful: parts.len() - violating,
            missing: found.missing,
        },
        parts,
    })
}

/// Whether the plan waives a link.
pub(super) fn is_waived(link: &Link<'_>, plan: &Plan) -> bool {
    waives_flow(plan, &link.result.case.flow)
}

/// Links that stand out and that nothing further was measured of; `None` without any.
pub(super) fn standing_out(links: &[&Link<'_>]) -> Option<String> {
    let worst = links.first()?;
    let first = format!("{} ({})", worst.result.link_name(), worst.words());
    let more = if links.len() > 1 { format!(" and {} more", links.len() - 1) } else { String::new() };
    let stand = if links.len() == 1 { "stands" } else { "stand" };
    Some(format!("{} {stand} out, not measured again: {first}{more}", count(links.len(), "link")))
}

/// What a part does to the verdict; `None` for one that was measured again and is good.
const fn status(standing: Standing) -> Option<Status> {
    match standing {
        Standing::Confirmed | Standing::Intermittent => Some(Status::Fail),
        Standing::Suspect | Standing::Open => Some(Status::Inconclusive),
        Standing::Cleared => None,
    }
}
