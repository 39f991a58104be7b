//! The verdict on ports below their best rate or width during the soak.

use std::collections::BTreeMap;

use railgauge_model::plan::model::Degraded as Limit;
use railgauge_wire::{remedy, unit::Nanoseconds};

use super::{
    Tally, Verdict,
    soak::{Event, event, of_events, standing, verdict, watched_too_little},
};
use crate::{
    reason::{Id, Reason, Value},
    soak::{
        PortLower, Soaking,
        ports::{Lower, PortName},
        span::Span,
    },
    status::Status,
    words::{count, lasting},
};

/// Error of the length of such a time: rate and lanes are read once a second (docs/tests.md).
const ERROR: Nanoseconds = Nanoseconds::from_secs(1);

/// `None` without a demand and without data.
pub(super) fn judge(limit: Limit, found: &Soaking) -> Option<Verdict> {
    let (ports, unknown) = (found.counts.watched_ports, found.counts.without_speed);
    if unknown == ports && !limit.written {
        return None;
    }
    let longest: Nanoseconds = limit.longest.into();
    let times = times(&found.lower).into_iter().map(|(name, span, lower)| {
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

fn times(lower: &[PortLower]) -> Vec<(&str, Span, Lower)> {
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
