//! Places: the same metric of the same link at the same size, for any hardware, settings and name of the test. A series
//! that begins where another ended took its place.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use railgauge_model::schedule::{Cell, Flow};
use railgauge_stats::changepoint::Night;
use railgauge_wire::{Metric, WriteLatency};

use super::{Collected, Part};
use crate::history::Subject;

#[derive(Debug)]
pub(crate) struct Place {
    /// Positions in order of time.
    pub members: Vec<usize>,
    /// The nights of all members; empty for a single one.
    pub nights: Vec<Night>,
}

/// Key of a place: first version of the plan, metric, part or link, cell, and the method of the write latency, since a
/// new method starts a new series.
type Where<'a> = (usize, Metric, Option<&'a Part>, Option<&'a Flow>, &'a Cell, Option<WriteLatency>);

struct Stretch<'a> {
    test: &'a str,
    settings: usize,
    ends: (i64, i64),
    members: Vec<usize>,
}

/// `settings` are the numbers of the settings of each subject.
pub(super) fn places(series: &[Collected], subjects: &[Subject], settings: &[usize]) -> Vec<Place> {
    let mut known: HashMap<Where<'_>, usize> = HashMap::new();
    let mut all: Vec<(usize, Vec<Stretch<'_>>)> = Vec::new();
    let mut tests: HashMap<(usize, &str), (i64, i64)> = HashMap::new();
    let mut places: Vec<Place> = Vec::new();
    let mut groups = Groups::default();
    for (at, one) in series.iter().enumerate() {
        // A pair of a rotating plan is only measured now and then: a pause does not end it.
        if one.rotating && one.part.is_none() {
            places.push(Place { members: vec![at], nights: Vec::new() });
            continue;
        }
        let subject = &subjects[one.subject];
        let (test, settings) = (&*subject.test, settings[one.subject]);
        let flow = one.part.is_none().then(|| groups.of((one.line, test), &subject.flow));
        let next = all.len();
        let key = (one.line, one.metric, one.part.as_ref(), flow, &*subject.cell, subject.write_latency);
        let place = *known.entry(key).or_insert(next);
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
        // A renamed test was measured before the new name was, and not since.
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

/// Groups of collectives that continue as another: a group that lost or gained a host is in the same place.
#[derive(Default)]
struct Groups<'a> {
    place: HashMap<(usize, &'a str, &'a Flow), &'a Flow>,
    /// The first groups of their places, by each of their hosts.
    with: HashMap<(usize, &'a str, &'a str), Vec<&'a Flow>>,
}

impl<'a> Groups<'a> {
    /// The first group of a test with most hosts in common; a pair is its own.
    fn of(&mut self, (line, test): (usize, &'a str), flow: &'a Flow) -> &'a Flow {
        if flow.members.is_empty() {
            return flow;
        }
        if let Some(place) = self.place.get(&(line, test, flow)) {
            return place;
        }
        let hosts: BTreeSet<&str> = flow.hosts().into_iter().map(|host| &**host).collect();
        let mut known = hosts.iter().filter_map(|host| self.with.get(&(line, test, host))).flatten();
        let place = known.find(|known| is_mostly(known, &hosts)).copied().unwrap_or(flow);
        if place == flow {
            hosts.into_iter().for_each(|host| self.with.entry((line, test, host)).or_default().push(flow));
        }
        self.place.insert((line, test, flow), place);
        place
    }
}

fn is_mostly(one: &Flow, others: &BTreeSet<&str>) -> bool {
    let one = one.hosts();
    let common = one.iter().filter(|host| others.contains(host.as_ref())).count();
    2 * common > one.len() + others.len() - common
}

/// Stretches that continue where another ended: the same test is preferred, then the same settings, then the latest
/// end. Of several tests with other settings, none is known to be the renamed one.
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
