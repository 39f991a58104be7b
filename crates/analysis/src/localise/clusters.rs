//! Two clusters of values, in names and numbers.

use std::collections::BTreeSet;

use railgauge_stats::{
    bisect::unlike,
    localise::{self, Pair, Part, Port, Way},
    robust::median,
};
use railgauge_wire::Better;

use super::{Cluster, Localisation, Named, Names, OpenReason, PartName, Probe, Scatter, Standing, TwoClusters, probe};
use crate::words::{be, count, number, worse};

/// Smallest difference between two kinds of bandwidths of a few hosts measured once, without a known scatter: 10 %, as
/// a difference of logarithms.
const APART: f64 = 0.105;
/// Multiple of either kind's range that the difference must reach.
const RANGES: f64 = 3.0;

/// Repeated measurements of every pair of a few hosts.
const AGAIN: usize = 2;

impl Localisation {
    /// Checks whether the values of too few hosts for a confirmed part are of two kinds: as for groups of a collective,
    /// by far more than their repeats scatter, or without repeats by [`APART`]. Latencies within and between groups may
    /// differ, because more switches add latency.
    pub(super) fn tell_few(&mut self, pairs: &[(u64, Pair)], scatter: Option<Scatter>, names: &Names) -> bool {
        let values: Vec<f64> = pairs.iter().map(|(_, pair)| pair.value).collect();
        let once = || apart(&values).filter(|_| scatter.is_none() && self.metric.better() == Better::Higher);
        let Some(from) = unlike(&values, scatter.map(Scatter::of_median), self.least).or_else(once) else {
            return false;
        };
        let of = |good: bool| pairs.iter().filter(move |(_, pair)| (pair.value >= from) == good);
        let within = |(_, pair): &(u64, Pair)| names.is_within(pair.from, pair.to);
        if self.metric.better() == Better::Lower && of(true).all(within) && !of(false).any(within) {
            return true;
        }
        let centre = |good: bool| median(&of(good).map(|(_, pair)| pair.value).collect::<Vec<_>>()).unwrap_or_default();
        let (good, bad) = (centre(true), centre(false));
        let Some(named) = self.one_of_few(pairs, from, bad - good, names) else {
            let is_good = values.iter().map(|value| Some(*value >= from)).collect();
            let cases: Vec<u64> = pairs.iter().map(|(case, _)| *case).collect();
            self.tell_clusters(&localise::TwoClusters { good, bad, is_good }, &cases);
            return false;
        };
        if self.confirms {
            let pulls = self.cell.as_ref().is_some_and(|cell| cell.op.pulls());
            let again = |(_, pair): &(u64, Pair)| Probe {
                suspect: 0,
                flow: probe::flow((pair.from, pair.to), names, pulls),
                control: pair.value >= from,
                raw: None,
            };
            self.probes = pairs.iter().cycle().take(AGAIN * pairs.len()).map(again).collect();
        }
        self.suspects.push(named);
        self.low_below = self.metric_value((good + bad) / 2.0);
        false
    }

    /// The part of a few hosts that all low pairs share and no other pair has, with its alternatives. `None` without any.
    fn one_of_few(&self, pairs: &[(u64, Pair)], from: f64, effect: f64, names: &Names) -> Option<Named> {
        let low: Vec<&(u64, Pair)> = pairs.iter().filter(|(_, pair)| pair.value < from).collect();
        let parts = shared(pairs, from, self.directed);
        let part = names.part(parts.first()?);
        let links = if low.len() == 2 { "both".to_owned() } else { format!("all {}", low.len()) };
        let links = PartName { kind: "path", name: links + " of its links", ..PartName::default() };
        let links = Some(links).filter(|_| !parts.iter().any(Part::is_link));
        let lacks = self.too_few.map_or(1, |[got, need]| need - got);
        let reach: BTreeSet<u32> = low.iter().flat_map(|(_, pair)| [pair.from.host, pair.to.host]).collect();
        Some(Named {
            change_percent: self.percent(effect),
            n: low.len(),
            bad: low.len(),
            partners: reach.len() - 1,
            reason: format!(
                "its {} {} {} (the others reach {} {}); {} would decide",
                count(low.len(), "pair"),
                be(low.len()),
                worse(effect, self.metric.better() == Better::Higher),
                number(self.metric_value(from)),
                self.unit,
                count(lacks, "more healthy host")
            ),
            cases: low.iter().map(|(case, _)| *case).collect(),
            standing: Standing::Open,
            open: Some(OpenReason::TooFewToTell),
            alternatives: parts.iter().skip(1).map(|part| names.part(part)).chain(links).collect(),
            reach: reach.into_iter().map(|host| names.host(host).to_owned()).collect(),
            ..Named::new(part, "what all low pairs of a few hosts have in common (docs/methods.md)")
        })
    }

    /// Adds repeated results of all pairs of a few hosts. A low part that is not low any more is good; otherwise it
    /// cannot be distinguished from its alternatives.
    pub(super) fn confirm_few(&mut self, results: &[(usize, f64)]) -> Vec<bool> {
        let Some(named) = self.suspects.first_mut() else { return Vec::new() };
        let is_low = |value: f64| (value < self.low_below) == (self.metric.better() == Better::Higher);
        let low = |control: bool| -> Vec<bool> {
            let own = results.iter().filter(|(at, _)| self.probes[*at].control == control);
            own.map(|(_, value)| is_low(*value)).collect()
        };
        let (suspects, controls) = (low(false), low(true));
        let bad = suspects.iter().filter(|low| **low).count();
        (named.standing, named.open) = match () {
            () if suspects.is_empty() || controls.is_empty() => (Standing::Open, Some(OpenReason::TooFew)),
            () if controls.contains(&true) => (Standing::Open, Some(OpenReason::ControlsUnsteady)),
            () if bad == suspects.len() => (Standing::Open, Some(OpenReason::TooFewToTell)),
            () if bad > 0 => (Standing::Open, Some(OpenReason::Mixed)),
            () => (Standing::Cleared, None),
        };
        named.reason += &format!("; low in {bad} of {}", count(suspects.len(), "further test"));
        vec![false; self.suspects.len()]
    }

    pub(super) fn tell_clusters(&mut self, found: &localise::TwoClusters, cases: &[u64]) {
        let side = |good: bool| {
            let cases: Vec<u64> =
                found.is_good.iter().zip(cases).filter(|(is, _)| **is == Some(good)).map(|(_, case)| *case).collect();
            let centre = self.metric_value(if good { found.good } else { found.bad });
            Cluster { centre, n: cases.len(), cases, ..Cluster::default() }
        };
        let (good, bad) = (side(true), side(false));
        self.two_clusters = Some(TwoClusters { good, bad, change_percent: self.percent(found.bad - found.good) });
    }
}

/// Parts that all low pairs pass and no others, likeliest first.
fn shared(pairs: &[(u64, Pair)], from: f64, directed: bool) -> Vec<Part> {
    let low: Vec<&Pair> = pairs.iter().map(|(_, pair)| pair).filter(|pair| pair.value < from).collect();
    let Some(&&Pair { from: a, to: b, .. }) = low.first() else { return Vec::new() };
    let fits = |part: &Part| pairs.iter().all(|(_, pair)| part.passed(pair.from, pair.to, &[]) == (pair.value < from));
    let ends: BTreeSet<Port> = pairs.iter().flat_map(|(_, pair)| [pair.from, pair.to]).collect();
    let hosts: BTreeSet<u32> = ends.iter().map(|port| port.host).collect();
    // If all NICs of a host are low, none of them is the suspect.
    let of_ends = |way: Way| {
        let of_host = |host: &u32| {
            let nics = ends.iter().filter(|port| port.host == *host).map(|port| Part::Nic(*port, way));
            [Part::Host(*host, way)].into_iter().chain(nics).find(fits)
        };
        hosts.iter().filter_map(of_host).collect::<Vec<Part>>()
    };
    let mut parts = of_ends(Way::Both);
    parts.extend(Some(Part::Rail(a.rail)).filter(|part| hosts.len() > 2 && fits(part)));
    let is_alone = !parts.is_empty();
    parts.extend(match low.len() {
        1 => Some(Part::Link(a, b, if directed { Way::Send } else { Way::Both })),
        _ => Some(Part::Hosts(a.host, b.host)).filter(fits),
    });
    // One direction of an end that is good in the other is the least likely.
    if directed && !is_alone {
        parts.extend([Way::Send, Way::Receive].into_iter().flat_map(of_ends));
    }
    parts
}

fn apart(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let gap = |at: usize| sorted[at] - sorted[at - 1];
    let at = (1..sorted.len()).max_by(|a, b| gap(*a).total_cmp(&gap(*b)))?;
    let range = (sorted[at - 1] - sorted[0]).max(sorted[sorted.len() - 1] - sorted[at]);
    (gap(at) > APART.max(RANGES * range)).then_some(sorted[at])
}
