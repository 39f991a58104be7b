//! Two clusters of values, in names and numbers.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_stats::{
    bisect::{Repeats, unlike},
    localise::{self, Findings, Pair, Separated},
    robust::median,
};
use railgauge_wire::terms::Better;

use super::{Cluster, Localisation, SeparatedBy, TwoClusters, names::Names};

impl Localisation {
    /// The two clusters of the values of so few hosts that no part can be told from the others, if they are two: as groups of a
    /// collective are, by far more than their repeats scatter. Latencies within groups and between these may differ: more
    /// switches on the way take time. Returns whether they do.
    pub(super) fn tell_few(&mut self, pairs: &[(u64, Pair)], scatter: Option<(f64, usize)>, names: &Names) -> bool {
        let values: Vec<f64> = pairs.iter().map(|(_, pair)| pair.value).collect();
        let repeats = scatter.map(|(deviation, freedom)| Repeats { deviation, freedom });
        let Some(from) = unlike(&values, repeats, self.least) else { return false };
        let of = |good: bool| pairs.iter().filter(move |(_, pair)| (pair.value >= from) == good);
        let within = |(_, pair): &(u64, Pair)| names.is_within(pair.from, pair.to);
        if self.metric.better() == Better::Lower && of(true).all(within) && !of(false).any(within) {
            return true;
        }
        let hosts =
            |good: bool| -> BTreeSet<u32> { of(good).flat_map(|(_, pair)| [pair.from.host, pair.to.host]).collect() };
        let centre = |good: bool| median(&of(good).map(|(_, pair)| pair.value).collect::<Vec<_>>()).unwrap_or_default();
        let side = |good: bool| Cluster {
            centre: self.metric_value(centre(good)),
            n: of(good).count(),
            hosts: hosts(good).difference(&hosts(!good)).map(|&host| names.host(host).to_owned()).collect(),
            groups: Vec::new(),
            boundaries: Vec::new(),
            cases: of(good).map(|(case, _)| *case).collect(),
        };
        let (good, bad) = (side(true), side(false));
        let change_percent = self.percent(centre(false) - centre(true));
        self.two_clusters = Some(TwoClusters { good, bad, change_percent, separated_by: SeparatedBy::Nothing });
        false
    }

    /// The two clusters of the findings, if there are two.
    pub(super) fn tell_clusters(&mut self, findings: &Findings, names: &Names, cases: &[u64], pairs: &[Pair]) {
        let Some(found) = &findings.two_clusters else { return };
        let side = |good: bool| {
            let (hosts, groups, boundaries) = whole(found, names, pairs, good);
            let of = || found.is_good.iter().enumerate().filter(|(_, is)| **is == Some(good)).map(|(at, _)| at);
            Cluster {
                centre: self.metric_value(if good { found.good } else { found.bad }),
                n: of().count(),
                hosts,
                groups,
                boundaries,
                cases: of().map(|at| cases[at]).collect(),
            }
        };
        let separated_by = match found.separated {
            Separated::Suspects => SeparatedBy::Suspects,
            Separated::Levels => SeparatedBy::Levels,
            Separated::Nothing => SeparatedBy::Nothing,
        };
        let (good, bad) = (side(true), side(false));
        let change_percent = self.percent(found.bad - found.good);
        self.two_clusters = Some(TwoClusters { good, bad, change_percent, separated_by });
    }
}

/// Hosts, groups and boundaries all of whose pairs are on one side.
fn whole(
    found: &localise::TwoClusters,
    names: &Names,
    pairs: &[Pair],
    good: bool,
) -> (Vec<String>, Vec<String>, Vec<(String, String)>) {
    let mut hosts: BTreeMap<u32, bool> = BTreeMap::new();
    let mut groups: BTreeMap<u32, bool> = BTreeMap::new();
    let mut boundaries: BTreeMap<(u32, u32), bool> = BTreeMap::new();
    for (pair, is_good) in pairs.iter().zip(&found.is_good) {
        let here = *is_good == Some(good);
        for host in [pair.from.host, pair.to.host] {
            *hosts.entry(host).or_insert(true) &= here;
        }
        let group = |host: u32| names.groups.get(host as usize).copied();
        if let Some((a, b)) = group(pair.from.host).zip(group(pair.to.host)) {
            let all = if a == b {
                groups.entry(a).or_insert(true)
            } else {
                boundaries.entry((a.min(b), a.max(b))).or_insert(true)
            };
            *all &= here;
        }
    }
    let only = |all: BTreeMap<u32, bool>| all.into_iter().filter(|(_, all)| *all).map(|(number, _)| number);
    let across = boundaries.into_iter().filter(|(_, all)| *all).map(|((a, b), _)| (a, b));
    (
        only(hosts).map(|host| names.host(host).to_owned()).collect(),
        only(groups).map(|group| names.group(group).to_owned()).collect(),
        across.map(|(a, b)| (names.group(a).to_owned(), names.group(b).to_owned())).collect(),
    )
}
