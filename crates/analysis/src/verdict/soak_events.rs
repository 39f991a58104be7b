//! What the verdicts on a soak share: events with a length, and how these are judged and named.

use railgauge_wire::Nanoseconds;

use super::{Kind, Tally, Verdict};
use crate::{
    reason::{Id, Reason, Reasons, Value},
    soak::Soaking,
    status::Status,
    words::lasting,
};

pub const NAME: &str = "soak";

/// Share of the soak for which each port must be watched.
pub(super) const WATCHED_PERCENT: f64 = 99.0;
pub(super) const NAMED: usize = 5;

pub(super) fn watched_too_little(found: &Soaking) -> bool {
    found.coverage.first().is_none_or(|worst| worst.percent < WATCHED_PERCENT)
}

/// The status of a length against the longest allowed. If its start or end was not seen, the length is a minimum.
pub(super) fn standing(length: Nanoseconds, error: Nanoseconds, open: bool, longest: Nanoseconds) -> Status {
    let surely = if open { length } else { length.saturating_sub(error) };
    at_least(surely, (!open).then(|| length.saturating_add(error)), longest)
}

/// The status of a time between a least and a greatest length against the longest allowed; `most` is `None` if unknown.
pub(super) fn at_least(surely: Nanoseconds, most: Option<Nanoseconds>, longest: Nanoseconds) -> Status {
    if longest.is_zero() {
        // Anything seen is longer than nothing.
        return Status::Fail;
    }
    match (surely > longest, most.is_none_or(|most| most > longest)) {
        (true, _) => Status::Fail,
        (false, true) => Status::Inconclusive,
        (false, false) => Status::Pass,
    }
}

/// `is_known` says whether a pass is known to be one where nothing is bad or open.
pub(super) const fn of_counts(bad: usize, open: usize, is_known: bool) -> Status {
    match (bad, open) {
        (0, 0) if is_known => Status::Pass,
        (0, _) => Status::Inconclusive,
        _ => Status::Fail,
    }
}

/// `no port is down for more than 2 s`.
pub(super) fn beyond(what: &str, longest: Nanoseconds) -> String {
    if longest.is_zero() { what.to_owned() } else { format!("{what} for more than {}", lasting(longest)) }
}

pub(super) struct Event {
    pub(super) status: Status,
    pub(super) length: Nanoseconds,
    pub(super) reason: Reason,
}

pub(super) fn event(
    id: Id,
    name: &str,
    begin: Nanoseconds,
    (length, error, open): (Nanoseconds, Nanoseconds, bool),
    longest: Nanoseconds,
) -> Reason {
    Reason::new(id)
        .about(name)
        .with("begin", Value::Moment(begin))
        .with("observed", Value::time(length, error, open))
        .with("required", longest)
        .with("length_error", error)
        .with("open", open)
}

pub(super) fn of_events(mut events: Vec<Event>) -> (Reasons, [usize; 3]) {
    events.sort_by(|a, b| b.status.cmp(&a.status).then(b.length.cmp(&a.length)));
    let of = |status: Status| events.iter().filter(|one| one.status == status).count();
    let counts @ [bad, open, short] = [Status::Fail, Status::Inconclusive, Status::Pass].map(of);
    let (unmet, met) = events.split_at(bad + open);
    let named = unmet.iter().take(NAMED).map(|one| match one.status {
        Status::Fail => one.reason.clone(),
        _ => Reason::new(Id::SoakPerhapsTooLong).with("event", Value::data(&one.reason)),
    });
    let longest = met.first().map(|one| Reason::new(Id::SoakShorter).with("event", Value::data(&one.reason)));
    let more = more(unmet.len(), "more event");
    (named.chain(more).chain(longest.map(|longest| longest.with("events", short))).collect(), counts)
}

pub(super) fn more(all: usize, noun: &'static str) -> Option<Reason> {
    let more = all.checked_sub(NAMED).filter(|more| *more > 0)?;
    Some(Reason::new(Id::SoakMore).with("more", Value::Counted(more, noun)))
}

pub(super) fn verdict(
    key: &str,
    demand: String,
    scope: &str,
    status: Status,
    reason: Reasons,
    tally: Tally,
) -> Verdict {
    Verdict {
        key: Some(key.to_owned()),
        scope: scope.to_owned(),
        tally,
        ..Verdict::new(Kind::Soak, NAME, demand, status, reason)
    }
}
