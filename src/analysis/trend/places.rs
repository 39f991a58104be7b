//! Places: the same metric of the same link at the same size, whatever hardware, settings and name of a test it has. A series
//! that begins where another ended took its place.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use railgauge_stats::changepoint::Night;
use railgauge_wire::terms::Metric;

use super::{assemble::Collected, parts::Part};
use crate::{
    analysis::history::Subject,
    schedule::{Cell, Flow},
};

/// The series of a place.
#[derive(Debug)]
pub(super) struct Place {
    /// Their positions, in the order of time.
    pub members: Vec<usize>,
    /// The nights of all of them; none where there is only one, which has them.
    pub nights: Vec<Night>,
}

/// What is the same in all series of a place: first version of the plan, metric, part or link, cell.
type Where<'a> = (usize, Metric, Option<&'a Part>, Option<&'a Flow>, &'a Cell);

/// Series of one test with the same settings: hardware of one place takes turns.
struct Stretch<'a> {
    test: &'a str,
    settings: usize,
    /// First and last night with a value.
    ends: (i64, i64),
    members: Vec<usize>,
}

/// The place of every series; `settings` are the numbers of the settings of each subject.
pub(super) fn places(series: &[Collected], subjects: &[Subject], settings: &[usize]) -> Vec<Place> {
    let mut known: HashMap<Where<'_>, usize> = HashMap::new();
    let mut all: Vec<(usize, Vec<Stretch<'_>>)> = Vec::new();
    let mut tests: HashMap<(usize, &str), (i64, i64)> = HashMap::new();
    let mut places: Vec<Place> = Vec::new();
    for (at, one) in series.iter().enumerate() {
        // A pair of a plan that rotates is measured now and then: its end is no end.
        if one.rotating && one.part.is_none() {
            places.push(Place { members: vec![at], nights: Vec::new() });
            continue;
        }
        let subject = &subjects[one.subject];
        let (test, settings) = (subject.test.as_str(), settings[one.subject]);
        let flow = one.part.is_none().then_some(&subject.flow);
        let next = all.len();
        let place = *known.entry((one.line, one.metric, one.part.as_ref(), flow, &subject.cell)).or_insert(next);
        if place == next {
            all.push((one.line, Vec::new()));
        }
        let ends = one.ends();
        let span = tests.entry((one.line, test)).or_insert(ends);
        *span = (span.0.min(ends.0), span.1.max(ends.1));
        let stretches = &mut all[place].1;
        match stretches.iter_mut().find(|stretch| (stretch.test, stretch.settings) == (test, settings)) {
            Some(stretch) => {
                stretch.ends = (stretch.ends.0.min(ends.0), stretch.ends.1.max(ends.1));
                stretch.members.push(at);
            }
            None => stretches.push(Stretch { test, settings, ends, members: vec![at] }),
        }
    }
    for (line, stretches) in all {
        // A test that was renamed was measured before the new name was, and not since.
        let renamed = |old: &str, new: &str| tests[&(line, old)].1 <= tests[&(line, new)].0;
        for chain in chains(stretches, renamed) {
            let mut members: Vec<usize> = chain.into_iter().flat_map(|stretch| stretch.members).collect();
            members.sort_by_key(|&at| (series[at].ends().1, series[at].ends().0));
            let nights = if members.len() > 1 { merged(series, &members) } else { Vec::new() };
            places.push(Place { members, nights });
        }
    }
    places
}

/// Stretches that go on where another ended: of several with the same test first, then the same settings, then the one that
/// ended last. Of several tests with other settings none is known to be the one that was renamed.
fn chains<'a>(mut stretches: Vec<Stretch<'a>>, renamed: impl Fn(&str, &str) -> bool) -> Vec<Vec<Stretch<'a>>> {
    stretches.sort_by_key(|stretch| stretch.ends);
    let mut chains: Vec<Vec<Stretch<'a>>> = Vec::new();
    for stretch in stretches {
        let rank = |last: &Stretch<'_>| (last.test == stretch.test, last.settings == stretch.settings);
        let follows = |last: &Stretch<'_>| {
            last.ends.1 <= stretch.ends.0 && (last.test == stretch.test || renamed(last.test, stretch.test))
        };
        let mut found: Vec<(usize, &Stretch<'_>)> = chains
            .iter()
            .enumerate()
            .filter_map(|(at, chain)| Some((at, chain.last().filter(|last| follows(last))?)))
            .collect();
        found.sort_by_key(|(_, last)| Reverse((rank(last), last.ends.1)));
        let best = match found.as_slice() {
            [(_, best), _, ..] if rank(best) == (false, false) => None,
            [(at, _), ..] => Some(*at),
            [] => None,
        };
        match best {
            Some(at) => chains[at].push(stretch),
            None => chains.push(vec![stretch]),
        }
    }
    chains
}

fn merged(series: &[Collected], members: &[usize]) -> Vec<Night> {
    let mut nights: BTreeMap<i64, Night> = BTreeMap::new();
    for night in members.iter().flat_map(|&at| &series[at].nights) {
        match nights.get_mut(&night.day) {
            Some(known) => {
                known.runs.extend(&night.runs);
                known.lost += night.lost;
            }
            None => _ = nights.insert(night.day, night.clone()),
        }
    }
    nights.into_values().collect()
}
