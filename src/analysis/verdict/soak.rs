//! The verdicts on the soak: that it lasted long enough and was watched, that nothing was down or stalled for too long, that counters
//! kept their limits, and that what arrived was right. What nobody watched has not been good.

use std::collections::BTreeMap;

use railgauge_model::plan::model::Soak;
use railgauge_wire::unit::{Bytes, Nanoseconds};

use super::{
    Kind, Status, Tally, Verdict, degraded,
    reason::{Next, OfSoak, Reason, SoakEvent, What, frequency},
    shared::only_shared,
    soak_gpus,
};
use crate::analysis::{
    journal::JournalEnd,
    soak::{
        Counts, Soaking,
        coverage::Hole,
        hit::{FlowStall, Hit},
        outages::Outage,
        rates::FlowRate,
        span::{self, lasting},
        stalls::Unexplained,
        tables::Limit,
    },
    words::count,
};

/// Name under which these verdicts stand beside those of tests.
pub const NAME: &str = "soak";

/// For how much of the soak each port must be watched, in percent.
const WATCHED_PERCENT: f64 = 99.0;
/// An agent that is well looks many times in this. A pause of a flow shows from this length on, too.
const HANGS: Nanoseconds = Nanoseconds::from_secs(2);
/// Events named in a verdict.
pub(super) const NAMED: usize = 5;

/// The verdicts on a soak of a run that ends so.
pub(super) fn judge(soak: &Soak, found: &Soaking, end: &JournalEnd) -> Vec<Verdict> {
    let next = Next {
        running: *end == JournalEnd::Running,
        prevented: matches!(end, JournalEnd::Prevented { remedy: Some(_), .. }),
    };
    if found.counts.parts == 0 {
        let demand = format!("traffic lasts {}", lasting(found.demanded));
        return vec![verdict(
            "for",
            demand,
            &soak.test,
            Status::Inconclusive,
            Reason::new(OfSoak::SoakNothing { next }),
            Tally::default(),
        )];
    }
    let mut verdicts = vec![length(soak, found, next), watched(found, next), outages(found)];
    verdicts.extend(soak.longest_degraded.and_then(|limit| degraded::judge(limit, found)));
    verdicts.extend(found.limits.iter().map(of_limit));
    verdicts.push(bytes(found));
    verdicts.extend(soak_gpus::judge(found));
    verdicts
}

fn length(soak: &Soak, found: &Soaking, next: Next) -> Verdict {
    let mut reason = Reason::default();
    let idle: Vec<&FlowRate> = found.flows.iter().filter(|flow| flow.windows == 0).collect();
    let missing = found.missing(soak.window.into());
    match missing {
        Some(missing) => reason.push(OfSoak::SoakShort { lasted: found.lasted, missing, next }),
        None => reason.push(OfSoak::SoakLasted { lasted: found.lasted, flows: found.counts.flows }),
    }
    if let Some(first) = idle.first() {
        reason.push(OfSoak::SoakIdleFlows { flows: idle.len(), first: first.flow.clone() });
    }
    let status = if missing.is_none() && idle.is_empty() && found.counts.flows > 0 {
        Status::Pass
    } else {
        Status::Inconclusive
    };
    let all = found.flows.len();
    let tally = Tally { in_scope: all, judged: all - idle.len(), missing: idle.len(), ..Tally::default() };
    verdict("for", format!("traffic lasts {}", lasting(found.demanded)), &count(all, "flow"), status, reason, tally)
}

fn watched(found: &Soaking, next: Next) -> Verdict {
    let all = found.coverage.len();
    let few = found.coverage.iter().take_while(|port| port.percent < WATCHED_PERCENT).count();
    let mut reason = Reason::default();
    let worst = found.coverage.first();
    match worst {
        Some(worst) if few > 0 => reason.push(OfSoak::SoakNotWatched {
            ports: few,
            of: all,
            port: worst.port.to_string(),
            percent: worst.percent,
            failure: worst.failure.clone(),
        }),
        Some(worst) => {
            reason.push(OfSoak::SoakWatched { ports: all, port: worst.port.to_string(), percent: worst.percent });
        }
        None => {}
    }
    let unknown = found.counts.unknown_ends;
    if unknown == 0 && all == 0 && next.running {
        reason.push(OfSoak::SoakNotTold);
    } else if unknown > 0 || all == 0 {
        reason.push(OfSoak::SoakUnknownEnds { ends: unknown });
    }
    reason.extend(found.holes.iter().take(NAMED).map(of_hole));
    let status = if few + unknown == 0 && all > 0 { Status::Pass } else { Status::Inconclusive };
    let tally =
        Tally { in_scope: all + unknown, judged: all - few, doubtful: few, missing: unknown, ..Tally::default() };
    let demand = format!("ports are watched {WATCHED_PERCENT} % of the time");
    verdict("watched", demand, &count(all, "port"), status, reason, tally)
}

fn of_hole(hole: &Hole) -> OfSoak {
    OfSoak::SoakHole {
        from: hole.span.from,
        length: hole.span.length(),
        ports: hole.ports,
        port: hole.port.to_string(),
    }
}

/// Whether there was traffic in a time without a look that is longer than the longest outage, and than a host that is well takes between
/// two looks. A host that hangs between two windows looks at no port, and its flows wait for it.
fn hides_an_outage(found: &Soaking, hole: &Hole) -> bool {
    let length = hole.span.length().saturating_sub(span::within(&found.pauses, &hole.span));
    length > found.longest_outage.max(HANGS)
}

/// Whether some port was watched too little for its silence to say anything.
pub(super) fn watched_too_little(found: &Soaking) -> bool {
    found.coverage.first().is_none_or(|worst| worst.percent < WATCHED_PERCENT)
}

/// How a length stands to the longest that is allowed. One whose end or begin was not seen is as long as it was seen, at least.
pub(super) fn standing(length: Nanoseconds, error: Nanoseconds, open: bool, longest: Nanoseconds) -> Status {
    let surely = if open { length } else { length.saturating_sub(error) };
    at_least(surely, (!open).then(|| length.saturating_add(error)), longest)
}

/// How a time of a least and a greatest length stands to the longest that is allowed; `most` is `None` where nobody knows.
fn at_least(surely: Nanoseconds, most: Option<Nanoseconds>, longest: Nanoseconds) -> Status {
    if longest.is_zero() {
        // Whatever was seen is longer than nothing.
        return Status::Fail;
    }
    match (surely > longest, most.is_none_or(|most| most > longest)) {
        (true, _) => Status::Fail,
        (false, true) => Status::Inconclusive,
        (false, false) => Status::Pass,
    }
}

/// How a stall stands to it. One that went on when the traffic ended has no greatest length, and its begin may still be off.
fn of_flow(stall: &FlowStall, longest: Nanoseconds) -> Status {
    let most = (!stall.open).then(|| stall.length.saturating_add(stall.length_error));
    at_least(stall.surely(), most, longest)
}

/// How the stalls of an event stand to the longest that is allowed, and the one that says so: one that is surely too long fails whatever
/// the others are, and one that may be too long is no pass.
fn of_stalls(hit: &Hit, longest: Nanoseconds) -> Option<(Status, &FlowStall)> {
    let all = hit.flow_stalls.iter().map(|stall| (of_flow(stall, longest), stall));
    all.max_by_key(|(status, stall)| (*status, stall.surely(), stall.length))
}

fn of_outage(outage: &Outage, longest: Nanoseconds) -> (Status, SoakEvent) {
    let stall = of_stalls(&outage.hit, longest);
    let down = standing(outage.length, outage.length_error, !outage.is_whole(), longest);
    let event = SoakEvent {
        what: What::Down,
        place: outage.name.clone(),
        begin: outage.begin.at,
        length: outage.length,
        length_error: outage.length_error,
        open: !outage.is_whole(),
        ..of_hit(&outage.hit, stall.map(|(_, stall)| stall))
    };
    (stall.map_or(down, |(stalled, _)| stalled.max(down)), event)
}

/// What an event says of the flows that it hit, and of the stall that is judged.
fn of_hit(hit: &Hit, stall: Option<&FlowStall>) -> SoakEvent {
    SoakEvent {
        flows: hit.flows_hit,
        stalls: hit.stall_count,
        stalled: hit.stalled,
        longest_stall: stall.map(|stall| stall.length),
        longest_stall_error: stall.map(|stall| stall.length_error),
        ..SoakEvent::default()
    }
}

/// One of the stalls is told, with its own begin and length: the one that is judged.
fn of_stall(stall: &Unexplained, longest: Nanoseconds) -> Option<(Status, SoakEvent)> {
    let (status, worst) = of_stalls(&stall.hit, longest)?;
    let event = SoakEvent {
        what: What::Stall,
        place: worst.flow.clone(),
        begin: worst.from,
        length: worst.length,
        length_error: worst.length_error,
        open: worst.open,
        lost: stall.lost.clone().map(Box::new),
        ports_watched: Some(stall.ports_watched),
        ..of_hit(&stall.hit, None)
    };
    Some((status, event))
}

/// Lengths are judged and not counts: a job survives a hundred outages that are shorter than its time limit, and no longer one.
fn outages(found: &Soaking) -> Verdict {
    let longest = found.longest_outage;
    let mut events: Vec<(Status, SoakEvent)> = found.outages.iter().map(|outage| of_outage(outage, longest)).collect();
    events.extend(found.stalls.iter().filter_map(|stall| of_stall(stall, longest)));
    events.extend(found.breaks.iter().map(|one| {
        let stall = of_stalls(&one.hit, longest);
        let most = one.hidden.shorter_than;
        // What no look saw was shorter than the time between two; how much shorter nobody knows.
        let by_looks = if longest.is_zero() {
            Status::Fail
        } else if most > longest {
            Status::Inconclusive
        } else {
            Status::Pass
        };
        let event = SoakEvent {
            what: What::Breaks(one.hidden.breaks),
            place: one.name.clone(),
            begin: one.hidden.span.from,
            length: most,
            ..of_hit(&one.hit, stall.map(|(_, stall)| stall))
        };
        (stall.map_or(by_looks, |(stalled, _)| stalled.max(by_looks)), event)
    }));
    let size = |event: &SoakEvent| event.longest_stall.unwrap_or_default().max(event.length);
    events.sort_by(|(a, one), (b, other)| b.cmp(a).then(size(other).cmp(&size(one))));
    let of = |status: Status| events.iter().filter(move |(one, _)| *one == status).count();
    let (bad, open, short) = (of(Status::Fail), of(Status::Inconclusive), of(Status::Pass));
    let mut reason = Reason::default();
    for (status, event) in events.iter().take_while(|(status, _)| *status != Status::Pass).take(NAMED) {
        reason.push(match status {
            Status::Fail => OfSoak::SoakTooLong(event.clone()),
            _ => OfSoak::SoakPerhapsTooLong(event.clone()),
        });
    }
    if let Some(more @ 1..) = (bad + open).checked_sub(NAMED) {
        reason.push(OfSoak::SoakMoreEvents { events: more });
    }
    if let Some((_, event)) = events.iter().find(|(status, _)| *status == Status::Pass) {
        reason.push(OfSoak::SoakShorter { events: short, longest: event.clone() });
    }
    let unseen: Vec<&Hole> = found.holes.iter().filter(|hole| hides_an_outage(found, hole)).collect();
    reason.extend(unseen.iter().take(NAMED).map(|hole| of_hole(hole)));
    let too_little = watched_too_little(found) || !unseen.is_empty();
    if events.is_empty() {
        let Counts { watched_ports: ports, flows, .. } = found.counts;
        reason.push(OfSoak::SoakNoOutage { ports, flows, is_all: !too_little });
    }
    let nothing_seen = found.counts.watched_ports == 0 || found.counts.flows == 0;
    let status = match (bad, open) {
        (0, 0) if nothing_seen || too_little => Status::Inconclusive,
        (0, 0) => Status::Pass,
        (0, _) => Status::Inconclusive,
        _ => Status::Fail,
    };
    let demand = match longest {
        Nanoseconds::ZERO => "no port is down and no flow stalls".to_owned(),
        longest => format!("no port is down and no flow stalls for more than {}", lasting(longest)),
    };
    let (ports, flows) = (count(found.counts.watched_ports, "port"), count(found.counts.flows, "flow"));
    let tally =
        Tally { in_scope: events.len(), judged: bad + short, violating: bad, doubtful: open, ..Tally::default() };
    verdict("longest_outage", demand, &format!("{ports}, {flows}"), status, reason, tally)
}

fn of_limit(limit: &Limit) -> Verdict {
    let Limit { counter, limit_per_second, counted_by, ports, over, worst } = limit;
    let (status, ground) = match worst {
        Some(worst) if *over > 0 => {
            let over_limit = OfSoak::SoakOverLimit {
                ports: *over,
                counter: worst.counter.clone(),
                port: worst.port.to_string(),
                per_second: worst.most_per_second,
                at: worst.most_at,
            };
            (Status::Fail, over_limit)
        }
        _ if counted_by < ports => {
            (Status::Inconclusive, OfSoak::SoakNotCounted { counted_by: *counted_by, ports: *ports })
        }
        worst => {
            let kept = OfSoak::SoakLimitKept {
                counted_by: *counted_by,
                ports: *ports,
                per_second: worst.as_ref().map_or(0.0, |worst| worst.most_per_second),
                port: worst.as_ref().map(|worst| worst.port.to_string()),
            };
            (Status::Pass, kept)
        }
    };
    let tally = Tally {
        in_scope: *ports,
        judged: *counted_by,
        violating: *over,
        missing: ports - counted_by,
        ..Tally::default()
    };
    let demand = format!("`{counter}` at most {}", frequency(*limit_per_second));
    verdict(&format!("limits.{counter}"), demand, &count(*ports, "port"), status, Reason::new(ground), tally)
}

/// Windows that failed and that no outage explains: those of hosts that were lost first, host by host.
fn of_failed(flows: &[&FlowRate]) -> Vec<OfSoak> {
    let mut by_host: BTreeMap<Option<&str>, Vec<&FlowRate>> = BTreeMap::new();
    for flow in flows {
        by_host.entry(flow.lost.as_ref().map(|lost| lost.host.as_str())).or_default().push(flow);
    }
    let others = by_host.remove(&None);
    let one = |flows: Vec<&FlowRate>| {
        let first = *flows.first()?;
        Some(OfSoak::SoakFailed {
            windows: flows.iter().fold(0, |sum: u64, flow| sum.saturating_add(flow.failed_unexplained)),
            flows: flows.len(),
            first: first.flow.clone(),
            failure: first.failure.clone().map(Box::new),
            lost: first.lost.clone().map(Box::new),
        })
    };
    by_host.into_values().chain(others).filter_map(one).collect()
}

fn bytes(found: &Soaking) -> Verdict {
    let flows = &found.flows;
    let sum = |of: fn(&FlowRate) -> u64| flows.iter().fold(0_u64, |sum, flow| sum.saturating_add(of(flow)));
    let with = |of: fn(&FlowRate) -> bool| flows.iter().filter(|flow| of(flow)).collect::<Vec<_>>();
    let wrong = with(|flow| flow.wrong > Bytes::ZERO);
    let failed = with(|flow| flow.failed_unexplained > 0);
    let unverified = with(|flow| flow.windows > 0 && flow.verified.is_zero());
    let mut reason = Reason::default();
    if let Some(first) = wrong.first() {
        let bytes = Bytes(sum(|flow| flow.wrong.0));
        reason.push(OfSoak::SoakWrongBytes {
            flows: wrong.len(),
            first: first.flow.clone(),
            wrong: bytes,
            host: only_shared(wrong.iter().map(|flow| flow.hosts.as_slice())),
        });
    }
    reason.extend(of_failed(&failed));
    if let Some(first) = unverified.first().filter(|_| found.verify) {
        reason.push(OfSoak::SoakNotVerified { flows: unverified.len(), first: first.flow.clone() });
    }
    let windows = sum(|flow| flow.windows);
    let verified = found.verify.then(|| Bytes(sum(|flow| flow.verified.0)));
    reason.push(OfSoak::SoakVerified { verified_bytes: verified, windows });
    let in_outages = sum(|flow| flow.failed - flow.failed_unexplained);
    if in_outages > 0 {
        reason.push(OfSoak::SoakFailedInOutages { windows: in_outages });
    }
    let missing = if found.verify { unverified.len() } else { 0 };
    let status = if !wrong.is_empty() || !failed.is_empty() {
        Status::Fail
    } else if missing > 0 || windows == 0 {
        Status::Inconclusive
    } else {
        Status::Pass
    };
    let violating = flows.iter().filter(|flow| flow.wrong > Bytes::ZERO || flow.failed_unexplained > 0).count();
    let tally = Tally { in_scope: flows.len(), judged: flows.len() - missing, violating, missing, ..Tally::default() };
    let demand = "no byte is wrong and no window fails, but in outages".to_owned();
    verdict("bytes", demand, &count(flows.len(), "flow"), status, reason, tally)
}

pub(super) fn verdict(key: &str, demand: String, scope: &str, status: Status, reason: Reason, tally: Tally) -> Verdict {
    Verdict {
        key: Some(key.to_owned()),
        scope: scope.to_owned(),
        tally,
        ..Verdict::new(Kind::Soak, NAME, demand, status, reason)
    }
}
