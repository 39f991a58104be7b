use railgauge_analysis::{
    soak::{
        PortLower, Soaking,
        hit::Hit,
        outages::{Break, Outage, Scope},
        stalls::{PortsWatched, Unexplained},
    },
    words::{count, lasting, lasting_about, moment},
};
use railgauge_wire::Nanoseconds;

use super::tables::{Listed, table};

/// A sort key, and a row that is only made if it is shown.
type Lazy<'s> = (Nanoseconds, Box<dyn Fn() -> Vec<String> + 's>);

fn lazy<'s>(weight: Nanoseconds, row: impl Fn() -> Vec<String> + 's) -> Lazy<'s> {
    (weight, Box::new(row))
}

/// Longest first.
pub(super) fn events(found: &Soaking) -> Listed {
    // The cost of an event, which is the sort key.
    let weight =
        |length: Nanoseconds, hit: &Hit| hit.longest_stall.as_ref().map_or(length, |stall| stall.length.max(length));
    let mut all: Vec<Lazy<'_>> = Vec::new();
    all.extend(found.outages.iter().map(|one| lazy(weight(one.length, &one.hit), move || outage_row(one))));
    all.extend(found.breaks.iter().map(|one| lazy(weight(one.hidden.shorter_than, &one.hit), move || break_row(one))));
    all.extend(found.stalls.iter().map(|one| lazy(one.longest().0, move || stall_row(one))));
    all.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    // What ran slower was not down: it comes last.
    all.extend(found.lower.iter().map(|one| lazy(Nanoseconds::ZERO, move || lower_row(one))));
    let heads = "what | where | start | #length | #flows hit | #longest stall | evidence";
    table(heads, &all, |(_, row)| row())
}

/// `hit` are the flows that the event hit.
fn row(
    what: &str,
    place: &str,
    begin: Nanoseconds,
    length: String,
    hit: Option<&Hit>,
    evidence: String,
) -> Vec<String> {
    let flows = hit.map_or_else(String::new, |hit| hit.flows_hit.to_string());
    let stalls = hit.map_or_else(String::new, stall_of);
    vec![what.to_owned(), place.to_owned(), moment(begin), length, flows, stalls, evidence]
}

fn stall_of(hit: &Hit) -> String {
    let stall = hit.longest_stall.as_ref();
    let longest = stall.map_or_else(String::new, |stall| lasting_about(stall.length, stall.length_error));
    match hit.stall_count {
        0 | 1 => longest,
        stalls => format!("{longest} of {stalls}, {} in all", lasting(hit.stalled)),
    }
}

fn outage_row(outage: &Outage) -> Vec<String> {
    let what = match outage.scope {
        Scope::Port => "port down",
        Scope::Cable => "cable down",
        Scope::Host => "host down",
        Scope::Switch => "switch down",
    };
    let open = match (outage.begin.seen, outage.end.seen) {
        (true, true) => "",
        (true, false) => "still down at the last reading; ",
        (false, true) => "already down at the first reading; ",
        (false, false) => "down at every look of this watch; ",
    };
    let length = match outage.is_whole() {
        true => lasting_about(outage.length, outage.length_error),
        false => format!("at least {}", lasting(outage.length)),
    };
    row(what, &outage.name, outage.begin.at, length, Some(&outage.hit), format!("{open}{}", outage.words))
}

fn break_row(one: &Break) -> Vec<String> {
    let hidden = &one.hidden;
    let breaks = count(usize::try_from(hidden.breaks).unwrap_or(usize::MAX), "break");
    let within = lasting(hidden.span.length());
    let evidence = format!("only by {}, within {within}: shorter than the time between two polls", hidden.counter);
    let length = format!("under {}", lasting(hidden.shorter_than));
    row(&breaks, &one.name, hidden.span.from, length, Some(&one.hit), evidence)
}

fn stall_row(stall: &Unexplained) -> Vec<String> {
    // For flows that stalled one after the other the row has the whole time, and next to it the longest stall.
    let (length, error) = (stall.span.length(), stall.length_error);
    let flows = match stall.hit.flows.as_slice() {
        [first] => first.clone(),
        [first, ..] => format!("{first} and {} more", stall.hit.flows_hit - 1),
        [] => String::new(),
    };
    let evidence = match &stall.lost {
        Some(lost) => {
            let why = lost.failure.clone().unnamed();
            format!("the agent of {} was lost at {}: {why}", lost.host, moment(lost.at))
        }
        None => ports_of(stall).to_owned(),
    };
    let what = match (stall.failed, length.is_zero()) {
        _ if stall.lost.is_some() => "host lost",
        (true, true) => "failed window",
        (true, false) => "stall, failed",
        (false, _) => "stall",
    };
    let length = if length.is_zero() { String::new() } else { lasting_about(length, error) };
    row(what, &flows, stall.span.from, length, Some(&stall.hit), evidence)
}

const fn ports_of(stall: &Unexplained) -> &'static str {
    match stall.ports_watched {
        PortsWatched::All => "all watched ports of theirs were up",
        PortsWatched::Some => "not all of their ports were watched, and those were up",
        PortsWatched::None => "none of their ports was watched",
    }
}

fn lower_row(of: &PortLower) -> Vec<String> {
    let lower = &of.lower;
    let length = lasting(lower.span.length());
    let length = if lower.open { format!("at least {length}") } else { length };
    row("lower rate", &of.name, lower.span.from, length, None, lower.to_string())
}
