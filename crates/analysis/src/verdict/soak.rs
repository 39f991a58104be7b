//! The verdicts on the soak: that it lasted long enough and was watched, that nothing was down or stalled for too long,
//! that counters kept their limits, and that the bytes were right. Unwatched time does not pass.

use std::collections::BTreeMap;

use railgauge_model::plan::model::{Degraded, Soak};
use railgauge_wire::{Bytes, Nanoseconds, failure, remedy};

use super::{
    Tally, Verdict,
    shared::only_shared,
    soak_events::{
        Event, NAMED, WATCHED_PERCENT, at_least, beyond, event, of_counts, of_events, standing, verdict,
        watched_too_little,
    },
    soak_gpus, soak_levels,
};
use crate::{
    journal::JournalEnd,
    reason::{Id, Reason, Reasons, Value, frequency},
    soak::{
        Counts, PortLower, Soaking,
        coverage::Hole,
        families::{Family, family},
        hit::{FlowStall, Hit},
        outages::Outage,
        ports::{Lower, PortName},
        rates::FlowRate,
        span::{self, Span},
        stalls::{LostHost, PortsWatched, Unexplained},
        tables::Limit,
    },
    status::Status,
    words::{count, lasting},
};

/// A healthy agent looks many times in this. A pause of a flow also shows from this length on.
const HANGS: Nanoseconds = Nanoseconds::from_secs(2);

/// `end` is that of the run.
pub(super) fn judge(soak: &Soak, found: &Soaking, end: &JournalEnd) -> Vec<Verdict> {
    let running = *end == JournalEnd::Running;
    let next = |reason: Reason| reason.with("running", running.then_some(true));
    if found.counts.parts == 0 {
        let demand = format!("traffic lasts {}", lasting(found.demanded));
        let reason = Reasons::new(next(Reason::new(Id::SoakNothing)));
        return vec![verdict("for", demand, &soak.test, Status::Inconclusive, reason, Tally::default())];
    }
    let mut verdicts = vec![length(soak, found, next), watched(found, running), outages(found)];
    verdicts.extend(soak.longest_degraded.and_then(|limit| degraded(limit, found)));
    verdicts.extend(found.limits.iter().map(of_limit));
    verdicts.extend(found.levels.iter().map(soak_levels::judge));
    verdicts.push(bytes(found));
    verdicts.extend(soak_gpus::judge(found));
    verdicts
}

fn length(soak: &Soak, found: &Soaking, next: impl Fn(Reason) -> Reason) -> Verdict {
    let mut reason = Reasons::default();
    let idle: Vec<&FlowRate> = found.flows.iter().filter(|flow| flow.windows == 0).collect();
    let missing = found.missing(soak.window.into());
    let lasted = |id| Reason::new(id).with("observed", found.lasted).with("required", found.demanded);
    reason.push(match missing {
        Some(missing) => next(lasted(Id::SoakShort).with("missing", missing)),
        None => lasted(Id::SoakLasted).with("flows", found.counts.flows),
    });
    reason.extend(idle.first().map(|first| Reason::new(Id::SoakIdleFlows).first(&first.flow, idle.len())));
    let status = if missing.is_none() && idle.is_empty() && found.counts.flows > 0 {
        Status::Pass
    } else {
        Status::Inconclusive
    };
    let all = found.flows.len();
    let tally = Tally { in_scope: all, judged: all - idle.len(), missing: idle.len(), ..Tally::default() };
    verdict("for", format!("traffic lasts {}", lasting(found.demanded)), &count(all, "flow"), status, reason, tally)
}

fn watched(found: &Soaking, running: bool) -> Verdict {
    let all = found.coverage.len();
    let few = found.coverage.iter().take_while(|port| port.percent < WATCHED_PERCENT).count();
    let mut reason = Reasons::default();
    reason.extend(found.coverage.first().map(|worst| {
        let id = if few > 0 { Id::SoakNotWatched } else { Id::SoakWatched };
        Reason::new(id)
            .about(&worst.port)
            .with("ports", if few > 0 { few } else { all })
            .with("of", all)
            // Not rounded up to the whole.
            .with("percent", Value::Number((worst.percent.min(100.0) * 100.0).floor() / 100.0, "%"))
            .with("required", Value::Number(WATCHED_PERCENT, "%"))
            .with("failure", worst.failure.clone())
    }));
    let unknown = found.counts.unknown_ends;
    if unknown == 0 && all == 0 && running {
        reason.push(Reason::new(Id::SoakNotReported));
    } else if unknown > 0 || all == 0 {
        reason.push(Reason::new(Id::SoakUnknownEnds).with("ends", unknown));
    }
    reason.extend(found.holes.iter().take(NAMED).map(of_hole));
    let status = if few + unknown == 0 && all > 0 { Status::Pass } else { Status::Inconclusive };
    let tally =
        Tally { in_scope: all + unknown, judged: all - few, doubtful: few, missing: unknown, ..Tally::default() };
    let demand = format!("ports are watched {WATCHED_PERCENT} % of the time");
    verdict("watched", demand, &count(all, "port"), status, reason, tally)
}

fn of_hole(hole: &Hole) -> Reason {
    let hidden = Reason::new(Id::SoakHole).first(&hole.port, hole.ports);
    hidden.with("from", Value::Moment(hole.span.from)).with("length", hole.span.length())
}

/// Whether there was traffic in a time without a look that is longer than the longest outage, and than a healthy host
/// takes between two looks. A host that hangs between two windows watches no port, and its flows wait for it.
fn hides_an_outage(found: &Soaking, hole: &Hole) -> bool {
    let length = hole.span.length().saturating_sub(span::within(&found.pauses, &hole.span));
    length > found.longest_outage.max(HANGS)
}

/// A stall that continued at the end of the traffic has no greatest length, and its start may still be off.
fn of_flow(stall: &FlowStall, longest: Nanoseconds) -> Status {
    let most = (!stall.open).then(|| stall.length.saturating_add(stall.length_error));
    at_least(stall.surely(), most, longest)
}

/// The status of an event's stalls against the longest allowed, with the deciding one: one that is surely too long
/// fails whatever the others are, and one that may be too long is not a pass.
fn of_stalls(hit: &Hit, longest: Nanoseconds) -> Option<(Status, &FlowStall)> {
    let all = hit.flow_stalls.iter().map(|stall| (of_flow(stall, longest), stall));
    all.max_by_key(|(status, stall)| (*status, stall.surely(), stall.length))
}

fn of_outage(outage: &Outage, longest: Nanoseconds) -> Event {
    let open = !outage.is_whole();
    let down = standing(outage.length, outage.length_error, open, longest);
    let reason =
        event(Id::SoakDown, &outage.name, outage.begin.at, (outage.length, outage.length_error, open), longest);
    of_port(reason, down, outage.length, &outage.hit, longest)
}

/// An event of a port with the stalls that it caused.
fn of_port(reason: Reason, status: Status, length: Nanoseconds, hit: &Hit, longest: Nanoseconds) -> Event {
    let stall = of_stalls(hit, longest);
    Event {
        status: stall.map_or(status, |(stalled, _)| stalled.max(status)),
        length: stall.map_or(length, |(_, stall)| stall.length.max(length)),
        reason: with_hit(reason, hit, stall.map(|(_, stall)| stall)).remedy(Some(remedy::LINK_WENT_DOWN.into())),
    }
}

/// Adds the flows that it hit and, for other events than stalls, the stall that is judged.
fn with_hit(reason: Reason, hit: &Hit, stall: Option<&FlowStall>) -> Reason {
    let several = hit.stall_count > 1;
    reason
        .with("flows", Some(hit.flows_hit).filter(|flows| *flows > 0))
        .with("stalls", several.then_some(hit.stall_count))
        .with("stalled", several.then_some(hit.stalled))
        .with("longest_stall", stall.map(|stall| Value::About(stall.length, stall.length_error)))
}

fn with_lost(reason: Reason, lost: Option<&LostHost>) -> Reason {
    let Some(LostHost { host, at, failure }) = lost else { return reason };
    reason.with("host", host).with("lost_at", Value::Moment(*at)).remedy(failure.told_remedy())
}

fn of_stall(stall: &Unexplained, longest: Nanoseconds) -> Option<Event> {
    let (status, worst) = of_stalls(&stall.hit, longest)?;
    let id = if worst.length.is_zero() { Id::SoakWindowFailed } else { Id::SoakStalled };
    let reason = event(id, &worst.flow, worst.from, (worst.length, worst.length_error, worst.open), longest);
    // A resumed run had traffic after that, too.
    let until = worst.open.then(|| Value::Moment(worst.from.saturating_add(worst.length)));
    let words = match stall.ports_watched {
        PortsWatched::All => "no watched port of theirs was down",
        PortsWatched::Some => "no watched port of theirs was down, and some were not watched",
        PortsWatched::None => "none of their ports was watched",
    };
    // A dead agent has no data about ports.
    let watched = serde_json::to_value(stall.ports_watched).ok().filter(|_| stall.lost.is_none());
    let reason = Reason { count: stall.hit.flows_hit, ..with_hit(reason, &stall.hit, None) }
        .with("flow", &worst.flow)
        .with("until", until)
        .with("ports_watched", watched.map(|fields| Value::Data(fields, words.to_owned())));
    Some(Event { status, length: worst.length, reason: with_lost(reason, stall.lost.as_ref()) })
}

/// Judges lengths, not counts: a job survives a hundred outages below its time limit, but not one above.
fn outages(found: &Soaking) -> Verdict {
    let longest = found.longest_outage;
    let mut events: Vec<Event> = found.outages.iter().map(|outage| of_outage(outage, longest)).collect();
    events.extend(found.stalls.iter().filter_map(|stall| of_stall(stall, longest)));
    events.extend(found.breaks.iter().map(|one| {
        let most = one.hidden.shorter_than;
        // An outage that no look saw was shorter than the time between two; how much shorter is unknown.
        let by_looks = at_least(Nanoseconds::ZERO, Some(most), longest);
        let (begin, length) = (one.hidden.span.from, (most, Nanoseconds::ZERO, false));
        let reason = event(Id::SoakBreaks, &one.name, begin, length, longest).with("breaks", one.hidden.breaks);
        of_port(reason, by_looks, most, &one.hit, longest)
    }));
    let (mut reason, [bad, open, short]) = of_events(events);
    let unseen: Vec<&Hole> = found.holes.iter().filter(|hole| hides_an_outage(found, hole)).collect();
    reason.extend(unseen.iter().take(NAMED).map(|hole| of_hole(hole)));
    let too_little = watched_too_little(found) || !unseen.is_empty();
    let events = bad + open + short;
    if events == 0 {
        let Counts { watched_ports: ports, flows, .. } = found.counts;
        let none = Reason::new(Id::SoakNoOutage).with("ports", ports).with("flows", flows);
        reason.push(none.with("unseen", too_little));
    }
    let is_seen = found.counts.watched_ports > 0 && found.counts.flows > 0;
    let status = of_counts(bad, open, is_seen && !too_little);
    let demand = beyond("no port is down and no flow stalls", longest);
    let (ports, flows) = (count(found.counts.watched_ports, "port"), count(found.counts.flows, "flow"));
    let tally = Tally { in_scope: events, judged: bad + short, violating: bad, doubtful: open, ..Tally::default() };
    verdict("longest_outage", demand, &format!("{ports}, {flows}"), status, reason, tally)
}

fn of_limit(limit: &Limit) -> Verdict {
    let Limit { counter, limit_per_second, counted_by, ports, over, worst } = limit;
    let (status, id) = match worst {
        Some(_) if *over > 0 => (Status::Fail, Id::SoakOverLimit),
        _ if counted_by < ports => (Status::Inconclusive, Id::SoakNotCounted),
        _ => (Status::Pass, Id::SoakLimitKept),
    };
    let rate = |per_second| Value::Number(per_second, "/s");
    let mut reason = Reason::new(id)
        .with("required", rate(*limit_per_second))
        .with("counted_by", *counted_by)
        .with("ports", *ports)
        .with("never", worst.is_none());
    if let Some(worst) = worst {
        let of_cable = family(&worst.counter).is_some_and(Family::is_of_cable);
        reason = reason
            .first(&worst.port, (*over).max(1))
            .with("observed", rate(worst.most_per_second))
            .with("counter", &worst.counter)
            .with("at", Value::Moment(worst.most_at))
            .remedy((status == Status::Fail && of_cable).then(|| remedy::LOOK_AT_CABLE.into()));
    }
    let tally = Tally {
        in_scope: *ports,
        judged: *counted_by,
        violating: *over,
        missing: ports - counted_by,
        ..Tally::default()
    };
    let demand = format!("`{counter}` at most {}", frequency(*limit_per_second));
    verdict(&format!("limits.{counter}"), demand, &count(*ports, "port"), status, Reasons::new(reason), tally)
}

/// Failed windows that no outage explains: those of lost hosts first, host by host. `all` is the number of flows.
fn of_failed(flows: &[&FlowRate], all: usize) -> Vec<Reason> {
    let mut by_host: BTreeMap<Option<&str>, Vec<&FlowRate>> = BTreeMap::new();
    for flow in flows {
        by_host.entry(flow.lost.as_ref().map(|lost| lost.host.as_str())).or_default().push(flow);
    }
    let others = by_host.remove(&None);
    let one = |flows: Vec<&FlowRate>| {
        let first = *flows.first()?;
        let lost = first.lost.as_ref();
        // The host is named already.
        let failure = lost.map(|lost| lost.failure.clone().unnamed()).or_else(|| first.failure.clone());
        let own = first.failure.as_ref().and_then(|failure| match failure.kind {
            failure::Kind::Corruption => Some(remedy::WRONG_BYTES.into()),
            _ if flows.len() > 1 && flows.len() == all => Some(remedy::FAILED_ALIKE.into()),
            _ => failure.remedy.as_deref().cloned(),
        });
        let mut reason = Reason::new(Id::SoakFailed)
            .first(&first.flow, flows.len())
            .with("windows", flows.iter().fold(0, |sum: u64, flow| sum.saturating_add(flow.failed_unexplained)))
            .with("unexplained", lost.is_none());
        if let Some(failure) = &failure {
            reason = reason.failed(failure);
        }
        Some(with_lost(reason.remedy(own), lost))
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
    let mut reason = Reasons::default();
    reason.extend(wrong.first().map(|first| {
        Reason::new(Id::SoakWrongBytes)
            .first(&first.flow, wrong.len())
            .with("observed", sum(|flow| flow.wrong.0))
            .with("host", only_shared(wrong.iter().map(|flow| flow.hosts.as_slice())))
            .remedy(Some(remedy::WRONG_BYTES.into()))
    }));
    reason.extend(of_failed(&failed, flows.len()));
    if let Some(first) = unverified.first().filter(|_| found.verify) {
        reason.push(Reason::new(Id::SoakNotVerified).first(&first.flow, unverified.len()));
    }
    let windows = sum(|flow| flow.windows);
    let verified = found.verify.then(|| Value::Amount(Bytes(sum(|flow| flow.verified.0))));
    let id = if found.verify { Id::SoakVerified } else { Id::SoakVerificationOff };
    reason.push(Reason::new(id).with("windows", windows).with("verified_bytes", verified));
    let in_outages = sum(|flow| flow.failed - flow.failed_unexplained);
    if in_outages > 0 {
        reason.push(Reason::new(Id::SoakFailedInOutages).with("windows", in_outages));
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

/// Error of the length of such a time: rate and lanes are read once a second (docs/tests.md).
const ERROR: Nanoseconds = Nanoseconds::from_secs(1);

/// `None` without a demand and without data.
fn degraded(limit: Degraded, found: &Soaking) -> Option<Verdict> {
    let (ports, unknown) = (found.counts.watched_ports, found.counts.without_speed);
    if unknown == ports && !limit.written {
        return None;
    }
    let longest: Nanoseconds = limit.longest.into();
    let times = lower_times(&found.lower).into_iter().map(|(name, span, lower)| {
        let (begin, length) = (span.from, (span.length(), ERROR, lower.open));
        Event {
            status: standing(span.length(), ERROR, lower.open, longest),
            length: span.length(),
            reason: event(Id::SoakLower, name, begin, length, longest)
                .with("lower", Value::data(&lower))
                .remedy(Some(remedy::LOOK_AT_CABLE.into())),
        }
    });
    let (mut reason, [bad, open, short]) = of_events(times.collect());
    if bad + open + short == 0 && unknown < ports {
        reason.push(Reason::new(Id::SoakFullRate).with("ports", ports - unknown));
    }
    if unknown > 0 || ports == 0 {
        reason.push(Reason::new(Id::SoakUnknownRate).with("ports", unknown).with("of", ports));
    }
    let is_known = ports > 0 && !(limit.written && unknown > 0) && !watched_too_little(found);
    let status = of_counts(bad, open, is_known);
    let demand = beyond("no port runs at less than its best rate and width", longest);
    let tally = Tally {
        in_scope: ports,
        judged: ports - unknown,
        violating: bad,
        doubtful: open,
        missing: unknown,
        ..Tally::default()
    };
    Some(verdict("longest_degraded", demand, &count(ports, "port"), status, reason, tally))
}

fn lower_times(lower: &[PortLower]) -> Vec<(&str, Span, Lower)> {
    let mut by_port: BTreeMap<&PortName, Vec<&PortLower>> = BTreeMap::new();
    for one in lower {
        by_port.entry(&one.port).or_default().push(one);
    }
    let mut found: Vec<(&str, Span, Lower)> = Vec::new();
    for mut of_port in by_port.into_values() {
        of_port.sort_by_key(|one| one.lower.span.from);
        let mut until = None;
        for one in of_port {
            let span = one.lower.span;
            match found.last_mut().filter(|_| until == Some(span.from)) {
                Some((_, whole, worst)) => {
                    whole.until = span.until;
                    let open = worst.open || one.lower.open;
                    if one.lower.is_worse_than(worst) {
                        *worst = one.lower.clone();
                    }
                    worst.open = open;
                }
                None => found.push((&one.name, span, one.lower.clone())),
            }
            until = Some(span.until);
        }
    }
    found
}
