//! The verdict on the parts of a test: none of its hosts, NICs, rails, groups or paths is worse than its peers.

use std::collections::HashMap;

use railgauge_model::plan::{Plan, model::Waiver};
use railgauge_wire::remedy;
use serde_json::json;

use super::{Kind, Lack, Part, Tally, Untested, Verdict, named::named, not_tested};
use crate::{
    localise::{Confirmation, Localisation, Named, Standing, TwoClusters, waives_flow},
    outliers::Link,
    reason::{Id, Reason, Reasons, Value},
    status::Status,
    words::{self, count},
};

const TWO_CLUSTERS: &str = "two clusters of values";
const NOISE: &str = "components hidden by noise";

const UNEXPLAINED: &str = "what makes the collective slow";

const OVER_TIME: &str = "values that change during the test";

/// In place of ends with a lower ceiling due to their port or slot.
const LESSER: &str = "ports or slots that carry less";

pub(super) const LINKS: &str = "outlier links outside of all components";

/// `None` where nothing could be compared, as the localisation's remarks say. `links` are outliers outside of all
/// parts, each at its worst size: at sizes that were not searched, or with too few hosts for parts.
pub(super) fn judge(found: &Localisation, links: &[&Link<'_>], untested: &[Untested], plan: &Plan) -> Option<Verdict> {
    let nothing = found.suspects.is_empty() && found.two_clusters.is_none() && found.unexplained.is_none();
    if found.good.is_empty() && nothing && found.lesser.is_empty() && links.is_empty() {
        return None;
    }
    let waivers = &plan.localise.waive;
    let one = |named: &Named| {
        Some(Part { name: named.name.clone(), status: named.standing.status()?, waived: named.waived, place: None })
    };
    let mut parts: Vec<Part> = found.suspects.iter().filter_map(one).collect();
    // Only a waiver of everything covers what belongs to no part.
    let waived = waivers.contains(&Waiver::All);
    if found.two_clusters.is_some() {
        parts.push(apart(TWO_CLUSTERS, waived));
    }
    let in_order = |parts: &mut Vec<Part>| parts.sort_by(|a, b| (a.waived, b.status).cmp(&(b.waived, a.status)));
    in_order(&mut parts);
    let mut reason = Reasons::default();
    reason.extend(of_suspects(found));
    if let Some(clusters) = found.two_clusters.as_ref().filter(|_| !waived && found.unlike().is_none()) {
        reason.push(two_clusters(found, clusters));
    }
    let ([unnamed, _], of_links) = outside(links.iter().copied(), plan);
    parts.extend(of_links);
    reason.extend(standing_out(&unnamed, None));
    let detail = |id, detail: Value| Reason::new(id).with("detail", detail);
    let again = || Some(remedy::MEASURE_AGAIN.into());
    reason.extend(found.unlike().map(|unlike| detail(Id::GroupsUnlike, Value::data(&unlike))));
    if !found.lesser.is_empty() {
        reason.extend(found.carry_less().map(|less| detail(Id::CarryLess, Value::data(&less))));
        let waived = found.lesser.iter().all(|end| end.waived);
        parts.push(apart(LESSER, waived));
    }
    if let Some(words) = &found.unexplained {
        reason.push(detail(Id::Unexplained, words.into()));
        parts.push(apart(UNEXPLAINED, waived));
    }
    if let Some(over_time) = &found.over_time {
        reason.push(detail(Id::OverTime, Value::data(over_time)).remedy(again()));
        parts.push(apart(OVER_TIME, waived));
    }
    if let Some(noise) = &found.too_noisy {
        reason.push(detail(Id::TooNoisy, Value::data(noise)).remedy(again()));
        parts.push(apart(NOISE, waived));
    }
    in_order(&mut parts);
    let worst = |waived: bool| parts.iter().filter(|part| part.waived == waived).map(|part| part.status).max();
    // If only waived parts stand out, the verdict is about them and does not count.
    let waived = worst(false).is_none() && worst(true).is_some();
    // What was not measured may be worse.
    let lacking = found.missing > 0 || !found.unmeasured.is_empty();
    let otherwise = if lacking { Status::Inconclusive } else { Status::Pass };
    let status = match worst(false) {
        Some(status) => status.max(otherwise),
        None if lacking => otherwise,
        None => worst(true).unwrap_or(Status::Pass),
    };
    let waived = waived && !lacking;
    let waived_parts = names(found, &parts, |part| part.waived);
    reason.extend(waived_parts.map(|parts| Reason::new(Id::Waived).with("parts", parts)));
    let counted = found.counted;
    if reason.is_empty() && found.unmeasured.is_empty() {
        reason.push(Reason::new(Id::NothingStandsOut).with("among", Value::Counted(found.pairs, counted)));
    }
    reason.extend(found.across_rails().map(|across| detail(Id::AcrossRails, Value::data(&across))));
    reason.extend(untested_parts(untested, &found.test));
    let violating = parts.iter().filter(|part| part.status == Status::Fail).count();
    // Those that count come first.
    let worst = parts.iter().find(|part| part.status == Status::Fail && !part.waived);
    let worst = worst.and_then(|part| found.suspects.iter().find(|named| named.name == part.name));
    Some(Verdict {
        scope: match found.searched() {
            Some(view) => format!("{}, {view}", count(found.pairs, counted)),
            None => count(found.pairs, counted),
        },
        view: found.searched(),
        metric: Some(found.metric),
        unit: Some(found.unit.clone()),
        waived,
        remedy: worst.map(|part| found.remedy(part).into()),
        tally: Tally {
            in_scope: found.pairs + found.missing,
            judged: found.pairs,
            violating,
            doubtful: parts.len() - violating,
            missing: found.missing,
            ..Tally::default()
        },
        parts,
        ..Verdict::new(Kind::Parts, &found.test, "outlier check", status, reason)
    })
}

fn apart(name: &str, waived: bool) -> Part {
    Part { name: name.to_owned(), status: Status::Inconclusive, waived, place: None }
}

/// Outliers outside of components: those that count, the waived ones, and a part of the verdict for each kind.
pub(super) fn outside<'l, 'r>(
    links: impl Iterator<Item = &'l Link<'r>>,
    plan: &Plan,
) -> ([Vec<&'l Link<'r>>; 2], Vec<Part>) {
    let (waived, own): (Vec<_>, Vec<_>) = links.partition(|link| waives_flow(plan, &link.result.case.flow));
    let kinds = [(own.is_empty(), false), (waived.is_empty(), true)];
    let parts = kinds.into_iter().filter(|(is_empty, _)| !is_empty).map(|(_, waived)| apart(LINKS, waived));
    let parts = parts.collect();
    ([own, waived], parts)
}

/// Components that count, by state.
fn of_suspects(found: &Localisation) -> impl Iterator<Item = Reason> {
    let states = [
        (Id::Faulty, Standing::Confirmed),
        (Id::FaultyAtTimes, Standing::Intermittent),
        (Id::Suspect, Standing::Suspect),
        (Id::Undecided, Standing::Open),
    ];
    states.into_iter().filter_map(|(id, standing)| {
        let own = found.suspects.iter().filter(|part| part.standing == standing && !part.waived);
        let own: Vec<&Named> = own.collect();
        let first = own.first()?;
        let names: Vec<_> = own.iter().map(|part| (&*part.name, Some(*part))).collect();
        let share = first.bad_share.filter(|_| own.len() == 1).map(words::share);
        let reason = Reason::new(id).with("parts", named(&names)).with("change", level(&own)).with("bad_share", share);
        Some(reason.with("metric", found.metric.word().replace('_', " ")))
    })
}

/// `is at 50.0 % of its peers'`: from further tests if these have an interval, since they were not selected for being bad.
fn level(parts: &[&Named]) -> Value {
    let change = |part: &&Named| match part.confirmation {
        Some(Confirmation { change_percent, interval_percent: Some(_), .. }) => change_percent,
        _ => part.change_percent,
    };
    let levels: Vec<f64> = parts.iter().map(change).map(|percent| (1.0 + percent / 100.0).max(0.0)).collect();
    let low = levels.iter().copied().fold(f64::INFINITY, f64::min);
    let high = levels.iter().copied().fold(0.0, f64::max);
    let is_one = levels.len() == 1 && parts.iter().all(|part| !matches!(part.kind, "group" | "uplink"));
    let text = match (is_one, words::share(low), words::share_of(high)) {
        (true, _, high) => format!("is at {high} its peers'"),
        (_, low, high) if high.starts_with(&low) => format!("are at {high} their peers'"),
        _ => format!("are at {} their peers'", words::shares_of(low, high)),
    };
    Value::Data(json!(parts.iter().map(change).collect::<Vec<f64>>()), text)
}

fn two_clusters(found: &Localisation, clusters: &TwoClusters) -> Reason {
    let centre = |value: f64| Value::Data(json!(value), format!("{} {}", words::number(value), found.unit));
    Reason::new(Id::TwoClusters)
        .with("good", Value::Counted(clusters.good.n, found.counted))
        .with("bad", clusters.bad.n)
        .with("high", centre(clusters.good.centre))
        .with("low", centre(clusters.bad.centre))
}

/// `None` without any.
fn names(found: &Localisation, parts: &[Part], which: impl Fn(&Part) -> bool) -> Option<Value> {
    let suspects: HashMap<&str, &Named> = found.suspects.iter().map(|part| (&*part.name, part)).collect();
    let chosen = parts.iter().filter(|part| which(part));
    let all: Vec<_> = chosen.map(|part| (&*part.name, suspects.get(&*part.name).copied())).collect();
    (!all.is_empty()).then(|| named(&all))
}

/// `None` where all were tested.
pub(super) fn untested_parts(untested: &[Untested], test: &str) -> Option<Reason> {
    let of_test = || untested.iter().filter(|one| one.is_of_parts() && one.is_in(test));
    let hosts = of_test().filter(|one| one.kind == Lack::Hosts).flat_map(|one| &one.names);
    let detail = Value::Data(of_test().map(|one| json!(one)).collect(), not_tested(of_test())?);
    Some(Reason::new(Id::NotTested).hosts(hosts).with("detail", detail))
}

/// Outliers that were not measured again, with their shared host if known; `None` without any.
pub(super) fn standing_out(links: &[&Link<'_>], shared_host: Option<String>) -> Option<Reason> {
    let worst = links.first()?;
    let flow = &worst.result.case.flow;
    // The hosts of a group are not named one by one.
    let own = flow.hosts().into_iter().filter(|_| flow.members.is_empty()).map(|host| &**host);
    let reason = Reason::new(Id::LinksStandOut)
        .first(worst.result.link_name(), links.len())
        .hosts(shared_host.as_deref().into_iter().chain(own))
        .with("links", links.len())
        .with("size", worst.cell.1)
        .with("change", worst.change_percent().map(Value::Change));
    Some(reason.with("shared_host", shared_host))
}
