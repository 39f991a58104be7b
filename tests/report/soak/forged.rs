//! Parts of a soak that no run records so: they are told with their line, and nothing passes.

use railgauge_analysis::status::Status;
use railgauge_model::journal::event::{Event, Line, Soaked, Stall};
use railgauge_wire::unit::Nanoseconds;

use super::made::{Made, at, events, judged, read};

type Change = fn(&mut Soaked);

/// A journal whose last part is changed.
fn with(change: impl FnOnce(&mut Soaked)) -> Vec<Line> {
    let mut events = events(&Made::healthy());
    let first = events.iter().position(|line| matches!(line.event, Event::Soaked(_))).unwrap();
    let begin = Soaked { from: at(0), until: at(0), ..Soaked::default() };
    events.insert(first, Line { event: Event::Soaked(Box::new(begin)), ..events[first].clone() });
    let part = events.iter_mut().rev().find_map(|line| match &mut line.event {
        Event::Soaked(part) => Some(part),
        _ => None,
    });
    change(part.unwrap());
    events
}

const HOUR: Nanoseconds = Nanoseconds::from_secs(3600);

fn long(from: Nanoseconds, until: Nanoseconds) -> Stall {
    Stall { from, until, ..Stall::default() }
}

#[test]
fn a_soak_that_contradicts_itself_never_passes() {
    let of_other = |part: &mut Soaked| part.flows[0].case = 0;
    let unplanned = |part: &mut Soaked| part.flows[0].case = 1 << 40;
    let twice = |part: &mut Soaked| part.flows.push(part.flows[0].clone());
    let backwards = |part: &mut Soaked| std::mem::swap(&mut part.from, &mut part.until);
    let late = |part: &mut Soaked| part.until = part.until.saturating_add(HOUR * 24);
    let stall = |part: &mut Soaked| part.flows[0].stalls.push(long(part.from.saturating_sub(HOUR), part.until));
    let inverted = |part: &mut Soaked| part.flows[0].stalls.push(long(part.until, part.from));
    let traffic = |part: &mut Soaked| part.flows[0].measured = HOUR * 24 * 365;
    let changes: [(&str, Change); 8] = [
        ("is none of those", of_other),
        ("is none of those", unplanned),
        ("twice", twice),
        ("ends before", backwards),
        ("outside of the run", late),
        ("longer than", stall),
        ("longer than", inverted),
        ("longer than", traffic),
    ];
    for (word, change) in changes {
        let journal = read(&with(change));
        let found = journal.contradicted().unwrap_or_else(|| panic!("{word}"));
        assert!(found.what.contains(word), "{word}: {}", found.what);
        let (_, verdicts) = judged(&journal);
        assert_eq!(verdicts.status, Status::Inconclusive, "{word}");
    }
    let journal = read(&with(|_| ()));
    assert_eq!(journal.contradictions, []);
    assert!(journal.soaked.last().unwrap().until > at(0));
}
