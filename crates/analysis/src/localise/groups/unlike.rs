//! Groups of one size at different levels: their number does not show which side is bad.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use railgauge_model::plan::hostlist;
use railgauge_stats::{
    bisect::{Repeats, unlike},
    robust::median,
};
use serde::Serialize;

use super::{LEAST, Played, Scene};
use crate::{
    case::CaseResult,
    localise::{
        Cluster, Localisation, Scatter, TwoClusters,
        pick::{self, of_row},
    },
    row::Row,
    words::{count, number},
};

/// The value is a logarithm on which more is better.
type Valued<'a> = (&'a CaseResult<'a>, &'a Row, f64);

pub(super) struct Unlike<'a> {
    good: Vec<Valued<'a>>,
    bad: Vec<Valued<'a>>,
}

fn centre(side: &[Valued<'_>]) -> f64 {
    median(&side.iter().map(|(.., value)| *value).collect::<Vec<_>>()).unwrap_or_default()
}

impl<'a> Scene<'a> {
    pub(super) fn repeats(&self) -> Option<Repeats> {
        let (_, row) = self.screen.first()?;
        Scatter::of(row.metric, self.all.iter().copied()).map(Scatter::of_mean)
    }

    pub(super) fn unlike(&self) -> Option<Unlike<'a>> {
        let repeats = self.repeats();
        let mut sizes: BTreeMap<usize, Vec<Valued<'a>>> = BTreeMap::new();
        for &(result, row) in &self.screen {
            let of_size = sizes.entry(result.case.flow.hosts().len()).or_default();
            let logs = of_row(result, row).map(|_| pick::logs(result, row.metric)).unwrap_or_default();
            // The mean over the repeats shows smaller differences than their median.
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            of_size.extend((!logs.is_empty()).then_some((result, row, mean)));
        }
        let least = LEAST.max((self.journal.plan.localise.least_percent / 100.0).ln_1p());
        let parted = sizes.into_values().filter_map(|groups| {
            let values: Vec<f64> = groups.iter().map(|(.., value)| *value).collect();
            let from = unlike(&values, repeats, least)?;
            let (good, bad) = groups.into_iter().partition(|(.., value)| *value >= from);
            Some(Unlike { good, bad })
        });
        let apart = |unlike: &Unlike<'_>| centre(&unlike.good) - centre(&unlike.bad);
        parted.max_by(|a, b| apart(a).total_cmp(&apart(b)))
    }
}

impl Localisation {
    /// Reports two clusters of groups, unless a named part explains them.
    pub(super) fn tell_unlike(&mut self, scene: &Scene<'_>, played: Option<&Played>) {
        let Some(found) = scene.unlike() else { return };
        let side = |own: &[Valued<'_>], other: &[Valued<'_>]| {
            let hosts = |side: &[Valued<'_>]| -> BTreeSet<String> {
                side.iter().flat_map(|(result, ..)| result.case.flow.hosts()).map(ToString::to_string).collect()
            };
            let is = |members: &Vec<String>| {
                let members: BTreeSet<&str> = members.iter().map(String::as_str).collect();
                own.iter().any(|(result, ..)| {
                    result.case.flow.hosts().into_iter().map(|host| &**host).collect::<BTreeSet<&str>>() == members
                })
            };
            let groups = scene.journal.plan.groups.iter().filter(|(_, members)| is(members));
            Cluster {
                centre: self.metric_value(centre(own)),
                n: own.len(),
                hosts: hosts(own).difference(&hosts(other)).cloned().collect(),
                groups: groups.map(|(name, _)| name.clone()).collect(),
                cases: own.iter().map(|(_, row, _)| row.case).collect(),
            }
        };
        let held = |(result, ..): &Valued<'_>| played.is_some_and(|played| played.explains(&result.case.flow));
        let told = found.bad.iter().all(held) && !found.good.iter().any(held);
        if told {
            return;
        }
        let (good, bad) = (side(&found.good, &found.bad), side(&found.bad, &found.good));
        let change_percent = self.percent(centre(&found.bad) - centre(&found.good));
        // With two clusters it is unknown which one the good groups are in.
        self.good.clear();
        self.two_clusters = Some(TwoClusters { good, bad, change_percent });
    }

    /// With their hosts; `None` for pairs.
    pub fn unlike(&self) -> Option<GroupsUnlike> {
        let of_groups = self.two_clusters.as_ref().filter(|_| self.counted == "group");
        let TwoClusters { good, bad, .. } = of_groups?;
        Some(GroupsUnlike { good: good.clone(), bad: bad.clone(), unit: self.unit.clone() })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupsUnlike {
    pub good: Cluster,
    pub bad: Cluster,
    pub unit: String,
}

impl fmt::Display for GroupsUnlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |side: &Cluster| {
            let words = format!("{} at {} {}", count(side.n, "group"), number(side.centre), self.unit);
            let names = match side.groups.len() == side.n {
                true => side.groups.join(", "),
                false => hostlist::listed(side.hosts.iter().map(String::as_str)),
            };
            if names.is_empty() { words } else { format!("{words} (only there: {names})") }
        };
        let [good, bad] = [&self.good, &self.bad].map(words);
        write!(f, "groups of one size do not reach the same: {good} and {bad}")
    }
}
