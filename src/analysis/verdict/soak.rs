//! The verdicts on the soak: that it lasted long enough and was watched, that nothing was down or stalled for too long, that counters
//! kept their limits, and that what arrived was right. What nobody watched has not been good.

use railgauge_model::plan::model::Soak;
use railgauge_wire::unit::{Bytes, Nanoseconds};

use super::{
    Kind, Status, Tally, Verdict, degraded,
    reason::{Next, OfSoak, Reason, SoakEvent, What, frequency},
    soak_gpus,
};
use crate::analysis::{
    journal::JournalEnd,
    soak::{
        Soaking,
        hit::{FlowStall, Hit},
        outages::Outage,
        rates::FlowRate,
        span::lasting,
        stalls::Unexplained,
        tables::Limit,
    },
    words::count,
};

/// Name under which these verdicts stand beside those of tests.
pub const NAME: &str = "soak";

/// For how much of the soak each port must be watched, in percent.
const WATCHED_PERCENT: f64 = 99.0;
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
    reason.extend(found.holes.iter().take(NAMED).map(|hole| OfSoak::SoakHole {
        from: hole.span.from,
        length: hole.span.length(),
        ports: hole.ports,
    }));
    let status = if few + unknown == 0 && all > 0 { Status::Pass } else { Status::Inconclusive };
    let tally =
        Tally { in_scope: all + unknown, judged: all - few, doubtful: few, missing: unknown, ..Tally::default() };
    let demand = format!("ports are watched {WATCHED_PERCENT} % of the time");
    verdict("watched", demand, &count(all, "port"), status, reason, tally)
}

/// Whether some port was watched too little for its silence to say anything.
pub(super) fn watched_too_little(found: &Soaking) -> bool {
    found.coverage.first().is_none_or(|worst| worst.percent < WATCHED_PERCENT)
}

/// How a length stands to the longest that is allowed.
pub(super) fn standing(length: Nanoseconds, error: Nanoseconds, open: bool, longest: Nanoseconds) -> Status {
    if longest.is_zero() {
        // Whatever was seen is longer than nothing.
        return Status::Fail;
    }
    let surely = if open { length } else { length.saturating_sub(error) };
    match (surely > longest, length.saturating_add(error) > longest || open) {
        (true, _) => Status::Fail,
        (false, true) => Status::Inconclusive,
        (false, false) => Status::Pass,
    }
}

/// How the stalls of an event stand to the longest that is allowed, and the one that says so: one that is surely too long fails whatever
/// the others are, and one that may be too long is no pass.
fn of_stalls(hit: &Hit, longest: Nanoseconds) -> Option<(Status, &FlowStall)> {
    let all = hit.flow_stalls.iter().map(|stall| (standing(stall.length, stall.length_error, false, longest), stall));
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
        flows: outage.hit.flows_hit,
        stalls: outage.hit.stall_count,
        stalled: outage.hit.stalled,
        longest_stall: stall.map(|(_, stall)| stall.length),
    };
    (stall.map_or(down, |(stalled, _)| stalled.max(down)), event)
}

fn of_stall(stall: &Unexplained, longest: Nanoseconds) -> (Status, SoakEvent) {
    let worst = of_stalls(&stall.hit, longest);
    let (length, length_error) = worst.map_or_else(|| stall.longest(), |(_, one)| (one.length, one.length_error));
    let first = stall.hit.flows.first().cloned().unwrap_or_default();
    let event = SoakEvent {
        what: What::Stall,
        place: match stall.hit.flows_hit {
            0 | 1 => first,
            flows => format!("{first} and {}", count(flows - 1, "more flow")),
        },
        begin: stall.span.from,
        length,
        length_error,
        open: false,
        flows: stall.hit.flows_hit,
        stalls: stall.hit.stall_count,
        stalled: stall.hit.stalled,
        longest_stall: None,
    };
    (standing(length, length_error, false, longest), event)
}

/// Lengths are judged and not counts: a job survives a hundred outages that are shorter than its time limit, and no longer one.
fn outages(found: &Soaking) -> Verdict {
    let longest = found.longest_outage;
    let mut events: Vec<(Status, SoakEvent)> = found.outages.iter().map(|outage| of_outage(outage, longest)).collect();
    events.extend(found.stalls.iter().map(|stall| of_stall(stall, longest)));
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
            length_error: Nanoseconds::ZERO,
            open: false,
            flows: one.hit.flows_hit,
            stalls: one.hit.stall_count,
            stalled: one.hit.stalled,
            longest_stall: stall.map(|(_, stall)| stall.length),
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
    if events.is_empty() {
        reason.push(OfSoak::SoakNoOutage { ports: found.counts.watched_ports, flows: found.counts.flows });
    }
    let too_little = watched_too_little(found);
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
        reason.push(OfSoak::SoakWrongBytes { flows: wrong.len(), first: first.flow.clone(), wrong: bytes });
    }
    if let Some(first) = failed.first() {
        reason.push(OfSoak::SoakFailed {
            windows: sum(|flow| flow.failed_unexplained),
            flows: failed.len(),
            first: first.flow.clone(),
            failure: first.failure.clone().map(Box::new),
        });
    }
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
