//! Events of a soak as a table.

use railgauge_wire::unit::Nanoseconds;

use super::{Listed, listed};
use crate::{
    analysis::{
        soak::{
            LISTED, PortLower, Soaking,
            hit::Hit,
            outages::{Break, Outage, Scope},
            span::{lasting, lasting_about, moment},
            stalls::{PortsWatched, Unexplained},
        },
        words::count,
    },
    report::view::section::{Table, number_column, text_column},
};

/// An event of any kind.
enum Event<'s> {
    Outage(&'s Outage),
    Break(&'s Break),
    Stall(&'s Unexplained),
    Lower(&'s PortLower),
}

impl Event<'_> {
    /// How long it cost, which is what it is sorted by.
    fn weight(&self) -> Nanoseconds {
        let of = |length: Nanoseconds, hit: &Hit| {
            hit.longest_stall.as_ref().map_or(length, |stall| stall.length.max(length))
        };
        match self {
            Self::Outage(outage) => of(outage.length, &outage.hit),
            Self::Break(one) => of(one.hidden.shorter_than, &one.hit),
            Self::Stall(stall) => stall.longest().0,
            Self::Lower(lower) => lower.lower.span.length(),
        }
    }

    fn row(&self) -> Vec<String> {
        match self {
            Self::Outage(outage) => outage_row(outage),
            Self::Break(one) => break_row(one),
            Self::Stall(stall) => stall_row(stall),
            Self::Lower(lower) => lower_row(lower),
        }
    }
}

/// All events, the longest first.
pub(super) fn events(found: &Soaking) -> Listed {
    let mut all: Vec<Event<'_>> = found.outages.iter().map(Event::Outage).collect();
    all.extend(found.breaks.iter().map(Event::Break));
    all.extend(found.stalls.iter().map(Event::Stall));
    // What ran slower was not down: it stands behind.
    all.sort_by_key(|event| std::cmp::Reverse(event.weight()));
    all.extend(found.lower.iter().map(Event::Lower));
    let rows = all.iter().take(LISTED).map(Event::row).collect();
    let columns = vec![
        text_column("what"),
        text_column("where"),
        text_column("begin"),
        number_column("length", ""),
        number_column("flows hit", ""),
        number_column("longest stall", ""),
        text_column("evidence"),
    ];
    listed(Table { columns, rows }, all.len())
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
    let length = match (outage.begin.seen, outage.end.seen) {
        (true, true) => lasting_about(outage.length, outage.length_error),
        _ => format!("at least {}", lasting(outage.length)),
    };
    let open = match (outage.begin.seen, outage.end.seen) {
        (true, true) => "",
        (true, false) => "still down when it was looked at last; ",
        (false, true) => "already down when it was looked at first; ",
        (false, false) => "down at every look of this watch; ",
    };
    vec![
        what.to_owned(),
        outage.name.clone(),
        moment(outage.begin.at),
        length,
        outage.hit.flows_hit.to_string(),
        stall_of(&outage.hit),
        format!("{open}{}", outage.words),
    ]
}

fn break_row(one: &Break) -> Vec<String> {
    let hidden = &one.hidden;
    let breaks = count(usize::try_from(hidden.breaks).unwrap_or(usize::MAX), "break");
    vec![
        breaks,
        one.name.clone(),
        moment(hidden.span.from),
        format!("under {}", lasting(hidden.shorter_than)),
        one.hit.flows_hit.to_string(),
        stall_of(&one.hit),
        format!(
            "only by {}, within {}: shorter than the time between two looks",
            hidden.counter,
            lasting(hidden.span.length())
        ),
    ]
}

fn stall_row(stall: &Unexplained) -> Vec<String> {
    // Of flows that stalled one after the other the row has the whole time, and beside it the longest stall of one.
    let (length, error) = (stall.span.length(), stall.length_error);
    let flows = match stall.hit.flows.as_slice() {
        [first] => first.clone(),
        [first, ..] => format!("{first} and {} more", stall.hit.flows_hit - 1),
        [] => String::new(),
    };
    let links = match stall.links.links.as_slice() {
        [] => format!("no link is named: {}", stall.links.links_unknown),
        links => format!("only these flows pass {}", links.join(", ")),
    };
    let evidence = match &stall.lost {
        Some(lost) => {
            let why = lost.failure.clone().unnamed();
            format!("the agent of {} was lost at {}: {why}", lost.host, moment(lost.at))
        }
        None => format!("{}; {links}", ports_of(stall)),
    };
    vec![
        match (stall.failed, length.is_zero()) {
            _ if stall.lost.is_some() => "host lost",
            (true, true) => "failed window",
            (true, false) => "stall, failed",
            (false, _) => "stall",
        }
        .to_owned(),
        flows,
        moment(stall.span.from),
        if length.is_zero() { String::new() } else { lasting_about(length, error) },
        stall.hit.flows_hit.to_string(),
        stall_of(&stall.hit),
        evidence,
    ]
}

/// What is known of the ports of flows while they stalled.
fn ports_of(stall: &Unexplained) -> String {
    let missed = match stall.not_watched.as_slice() {
        [] => String::new(),
        ports => format!("nobody looked at {}", ports.join(", ")),
    };
    match stall.ports_watched {
        PortsWatched::All => "all watched ports of theirs were up".to_owned(),
        PortsWatched::None if missed.is_empty() => "none of their ports was watched".to_owned(),
        PortsWatched::Some if missed.is_empty() => "not all of their ports were watched, and those were up".to_owned(),
        PortsWatched::Some | PortsWatched::None => missed,
    }
}

fn lower_row(of: &PortLower) -> Vec<String> {
    let lower = &of.lower;
    let length = lasting(lower.span.length());
    vec![
        "lower rate".to_owned(),
        of.name.clone(),
        moment(lower.span.from),
        if lower.open { format!("at least {length}") } else { length },
        String::new(),
        String::new(),
        lower.to_string(),
    ]
}
