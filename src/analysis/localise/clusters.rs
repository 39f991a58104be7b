//! Two clusters of values, in names and numbers.

use std::collections::BTreeMap;

use railgauge_stats::localise::{self, Findings, Pair, Separated};

use super::{Cluster, Localisation, SeparatedBy, TwoClusters, names::Names};

impl Localisation {
    /// The two clusters of the findings, if there are two.
    pub(super) fn tell_clusters(&mut self, findings: &Findings, names: &Names, cases: &[u64], pairs: &[Pair]) {
        let Some(found) = &findings.two_clusters else { return };
        let side = |good: bool| {
            let (hosts, groups, boundaries) = whole(found, names, pairs, good);
            let of = || found.is_good.iter().enumerate().filter(|(_, is)| **is == good).map(|(at, _)| at);
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
        let here = *is_good == good;
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
