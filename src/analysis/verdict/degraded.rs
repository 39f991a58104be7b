//! The verdict on ports that ran at less than their best rate or width while the soak lasted.

use std::collections::BTreeMap;

use railgauge_model::plan::model::Degraded as Limit;
use railgauge_wire::unit::Nanoseconds;

use super::{
    Status, Tally, Verdict,
    reason::{Degraded, OfSoak, Reason},
    soak::{NAMED, standing, verdict, watched_too_little},
};
use crate::analysis::{
    soak::{PortLower, Soaking, ports::PortName, span::lasting},
    words::count,
};

/// How far off the length of such a time may be: rate and lanes are looked at once a second (docs/tests.md).
const ERROR: Nanoseconds = Nanoseconds::from_secs(1);

/// The verdict; `None` where nobody demands what nobody knows.
pub(super) fn judge(limit: Limit, found: &Soaking) -> Option<Verdict> {
    let (ports, unknown) = (found.counts.watched_ports, found.counts.without_speed);
    if unknown == ports && !limit.written {
        return None;
    }
    let longest: Nanoseconds = limit.longest.into();
    let mut times: Vec<(Status, Degraded)> =
        times(&found.lower).into_iter().map(|time| (standing(time.length, ERROR, time.open, longest), time)).collect();
    times.sort_by(|(a, one), (b, other)| b.cmp(a).then(other.length.cmp(&one.length)));
    let of = |status: Status| times.iter().filter(move |(one, _)| *one == status).count();
    let (bad, open, short) = (of(Status::Fail), of(Status::Inconclusive), of(Status::Pass));
    let mut reason = Reason::default();
    for (status, time) in times.iter().take_while(|(status, _)| *status != Status::Pass).take(NAMED) {
        reason.push(match status {
            Status::Fail => OfSoak::SoakDegraded(time.clone()),
            _ => OfSoak::SoakPerhapsDegraded(time.clone()),
        });
    }
    if let Some(more @ 1..) = (bad + open).checked_sub(NAMED) {
        reason.push(OfSoak::SoakMoreDegraded { times: more });
    }
    if let Some((_, time)) = times.iter().find(|(status, _)| *status == Status::Pass) {
        reason.push(OfSoak::SoakDegradedShorter { times: short, longest: time.clone() });
    }
    if times.is_empty() && unknown < ports {
        reason.push(OfSoak::SoakFullRate { ports: ports - unknown });
    }
    if unknown > 0 || ports == 0 {
        reason.push(OfSoak::SoakUnknownRate { ports: unknown, of: ports });
    }
    let nobody_knows = ports == 0 || (limit.written && unknown > 0) || watched_too_little(found);
    let status = match (bad, open) {
        (0, 0) if !nobody_knows => Status::Pass,
        (0, _) => Status::Inconclusive,
        _ => Status::Fail,
    };
    let demand = match longest {
        Nanoseconds::ZERO => "no port runs at less than its best rate and width".to_owned(),
        longest => format!("no port runs at less than its best rate and width for more than {}", lasting(longest)),
    };
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

/// Times at less than the best, by port: those that follow each other without a gap are one, which is told as its worst part.
fn times(lower: &[PortLower]) -> Vec<Degraded> {
    let mut by_port: BTreeMap<&PortName, Vec<&PortLower>> = BTreeMap::new();
    for one in lower {
        by_port.entry(&one.port).or_default().push(one);
    }
    let mut found: Vec<Degraded> = Vec::new();
    for mut of_port in by_port.into_values() {
        of_port.sort_by_key(|one| one.lower.span.from);
        let mut until = None;
        for one in of_port {
            let span = one.lower.span;
            match found.last_mut().filter(|_| until == Some(span.from)) {
                Some(before) => {
                    before.length = before.length.saturating_add(span.length());
                    before.open |= one.lower.open;
                    if one.lower.is_worse_than(&before.lower) {
                        before.lower = one.lower.clone();
                    }
                }
                None => found.push(Degraded {
                    place: one.name.clone(),
                    begin: span.from,
                    length: span.length(),
                    open: one.lower.open,
                    lower: one.lower.clone(),
                }),
            }
            until = Some(span.until);
        }
    }
    found
}
