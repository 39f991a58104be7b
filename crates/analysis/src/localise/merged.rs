//! Merges the findings of several views: each part once.

use std::collections::{BTreeSet, HashSet};

use railgauge_model::schedule::{Flow, Port};

use super::{Localisation, Named, Standing};
use crate::case::CaseResult;

/// Share of a part's flows from which on another part explains it.
const SAME: f64 = 0.8;

#[derive(Default)]
struct Known<'r> {
    flows: HashSet<&'r Flow>,
    ends: BTreeSet<(String, Option<u32>)>,
}

impl<'r> Known<'r> {
    fn add(&mut self, named: &Named, results: &'r [CaseResult<'r>]) {
        self.flows.extend(flows(named, results));
        if matches!(named.kind, "host" | "nic") {
            self.ends.extend(named.hosts.iter().map(|host| (host.clone(), named.rail)));
        }
    }

    fn holds(&self, named: &Named, results: &'r [CaseResult<'r>]) -> bool {
        let at_end = |port: &Port| {
            [None, Some(port.rail)].into_iter().any(|rail| self.ends.contains(&(port.host.to_string(), rail)))
        };
        let all: Vec<&Flow> = flows(named, results).collect();
        let held = all.iter().filter(|flow| self.flows.contains(*flow) || at_end(&flow.from) || at_end(&flow.to));
        held.count() as f64 >= SAME * all.len() as f64
    }
}

fn flows<'r>(named: &Named, results: &'r [CaseResult<'r>]) -> impl Iterator<Item = &'r Flow> {
    let of = |case: &u64| Some(&results.get(usize::try_from(*case).ok()?)?.case.flow);
    named.cases.iter().filter_map(of)
}

pub(super) fn merged(all: Vec<Localisation>, results: &[CaseResult<'_>]) -> Vec<Localisation> {
    let (mut merged, mut test) = (Vec::new(), String::new());
    let (mut bad, mut cleared) = (Known::default(), Known::default());
    for mut found in all {
        if test != found.test {
            (bad, cleared) = Default::default();
            test.clone_from(&found.test);
        }
        if found.is_extra {
            // What was good when measured again is good in other views, unless it is shown to be bad there.
            let is_new = |named: &Named| {
                let sure = named.standing.is_certain();
                !bad.holds(named, results) && (sure || !cleared.holds(named, results))
            };
            let is_new: Vec<bool> = found.suspects.iter().map(is_new).collect();
            found.retain(&is_new);
            if found.suspects.is_empty() {
                continue;
            }
        }
        for named in &found.suspects {
            let known = if named.standing == Standing::Cleared { &mut cleared } else { &mut bad };
            known.add(named, results);
        }
        merged.push(found);
    }
    merged
}

impl Localisation {
    /// Removes what is not reported: what was only checked to be sure, and what another part explains.
    pub(super) fn leave_out(&mut self) {
        let Some(screen) = &self.screen else { return };
        let shown: Vec<bool> = (0..self.suspects.len()).map(|at| screen.findings.shows(at, &self.judgements)).collect();
        self.retain(&shown);
    }

    fn retain(&mut self, kept: &[bool]) {
        let mut next = 0;
        let places = kept.iter().map(|kept| {
            next += usize::from(*kept);
            if *kept { next - 1 } else { usize::MAX }
        });
        let places: Vec<usize> = places.collect();
        let mut at = kept.iter();
        self.suspects.retain(|_| at.next().copied().unwrap_or_default());
        let mut at = kept.iter();
        self.raw.retain(|_| at.next().copied().unwrap_or_default());
        self.probes
            .iter_mut()
            .for_each(|probe| probe.suspect = places.get(probe.suspect).copied().unwrap_or(usize::MAX));
    }

    pub(super) fn only_suspects(&mut self) {
        (self.short_of_ceiling, self.too_noisy, self.two_clusters, self.over_time) = (None, None, None, None);
        self.unjudged.clear();
        self.across_rails_percent.clear();
    }
}
