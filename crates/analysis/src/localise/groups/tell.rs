//! The results of a search of a collective, in names and numbers.

use railgauge_model::{plan::hostlist, schedule::Flow};
use railgauge_stats::robust::{Level, median};

use super::{LOW, Played};
use crate::{
    localise::{Confirmation, DecidedBy, Good, Localisation, Named, OpenReason, PartName, Standing, Which},
    words::{self, count},
};

struct Evidence {
    residuals: Vec<f64>,
    with: usize,
    failed: usize,
    without: usize,
    cases: Vec<u64>,
}

impl Played {
    fn evidence(&self, sides: &[&[u32]]) -> Evidence {
        let holds = |group: &[u32]| sides.iter().all(|side| side.iter().any(|host| group.contains(host)));
        let known = |group: &[u32]| self.search.references().get(&group.len());
        let (with, without): (Vec<_>, Vec<_>) = self.answers.iter().partition(|(group, ..)| holds(group));
        let failed = with.iter().filter(|(.., value)| value.is_none()).count();
        let measured = || with.iter().filter(|(group, _, value)| value.is_some() && known(group).is_some());
        let smallest = measured().map(|(group, ..)| group.len()).min();
        let smallest = measured().filter(|(group, ..)| Some(group.len()) == smallest);
        let (residuals, cases): (Vec<f64>, Vec<u64>) =
            smallest.filter_map(|(group, case, value)| Some((((*value)? - known(group)?.centre), *case))).unzip();
        let failing = with.iter().filter(|(.., value)| value.is_none()).map(|(_, case, _)| *case);
        let mut cases: Vec<u64> = cases.into_iter().chain(failing).collect();
        cases.sort_unstable();
        let without = without.iter().filter(|(.., value)| value.is_some()).count();
        Evidence { residuals, with: with.len(), failed, without, cases }
    }

    pub(super) fn explains(&self, flow: &Flow) -> bool {
        let Some(group) = self.numbers(flow) else { return false };
        let found = self.search.found();
        let meets = |side: &Vec<u32>| side.iter().any(|host| group.contains(host));
        meets(&found.hosts)
            || found.boundaries.iter().any(|(a, b)| meets(a) && meets(b))
            || found.parted.iter().filter(|side| meets(side)).count() > 1
    }

    fn side(&self, numbers: &[u32]) -> (String, Vec<String>) {
        let whole = self.leaves.iter().filter(|(_, leaf)| leaf.iter().all(|host| numbers.contains(host)));
        let (names, held): (Vec<String>, Vec<usize>) = whole.map(|(name, leaf)| (name.clone(), leaf.len())).unzip();
        if held.iter().sum::<usize>() == numbers.len() {
            return (names.join(", "), names);
        }
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        (hostlist::listed(self.names(&numbers).iter().map(String::as_str)), Vec::new())
    }
}

fn undecided(named: &mut Named) {
    named.standing = Standing::Open;
    named.open = Some(OpenReason::Undecided);
    named.decided_by = None;
    named.reason = format!("{}; {}", named.reason, OpenReason::Undecided.words());
}

impl Localisation {
    /// `demanded`: something failed or broke an expectation, so that a lower rate is not just by design.
    pub(super) fn tell_groups(&mut self, played: &Played, demanded: bool) {
        let result = played.search.found();
        let good = |(size, level): (&usize, &Level)| Good {
            which: Which::Groups(*size),
            centre: self.metric_value(level.centre),
            spread_percent: 100.0 * level.scale.exp_m1(),
            n: level.n,
        };
        self.good = played.search.references().iter().map(good).collect();
        for &host in &result.hosts {
            let names = played.names(&[host]);
            let name = format!("host {}", names[0]);
            self.suspects.push(self.bisected("host", name, played, &[&[host]]));
        }
        for (a, b) in &result.boundaries {
            let kind = if a.len() == 1 && b.len() == 1 { "path" } else { "boundary" };
            let name = format!("{kind} between {} and {}", played.side(a).0, played.side(b).0);
            let mut named = self.bisected(kind, name, played, &[a, b]);
            // If both sides are everything, no other boundary shows the usual rate of one.
            if !demanded && kind == "boundary" && a.len() + b.len() + result.hosts.len() >= played.hosts.len() {
                undecided(&mut named);
            }
            self.suspects.push(named);
        }
        if let [first, second, ..] = &result.parted[..] {
            let sides: Vec<String> = result.parted.iter().map(|side| played.side(side).0).collect();
            let name = format!("boundaries between any two of {}", sides.join(" and "));
            let mut named = self.bisected("boundary", name, played, &[first, second]);
            named.part.hosts = result.parted.iter().flat_map(|side| played.names(side)).collect();
            named.part.groups = result.parted.iter().flat_map(|side| played.side(side).1).collect();
            undecided(&mut named);
            self.suspects.push(named);
        }
        self.suspects.sort_by(|a, b| b.change_percent.abs().total_cmp(&a.change_percent.abs()));
        self.unmeasured.retain(|host| {
            let number = played.hosts.iter().position(|known| **known == **host).map(|at| at as u32);
            let judged = |(group, _, value): &(Vec<u32>, u64, Option<f64>)| {
                value.is_some() && number.is_some_and(|number| group.contains(&number))
            };
            !played.answers.iter().any(judged) && !self.suspects.iter().any(|named| named.hosts.contains(host))
        });
        let listed = |groups: &[Vec<u32>]| {
            groups.iter().map(|group| played.names(group).join(", ")).collect::<Vec<_>>().join("; ")
        };
        self.remarks.extend(played.overlap.clone());
        if !result.transient.is_empty() {
            self.remarks.push(format!("failed and then passed: {}", listed(&result.transient)));
        }
        if !result.open.is_empty() {
            let few = "not taken apart, for too few hosts are known to be good";
            self.remarks.push(format!("{few}: {}", listed(&result.open)));
        }
        let groups = count(result.tests, "group");
        self.remarks.push(match (&played.stopped, played.search.next_group()) {
            (Some(why), _) => format!("the bisection ended after {groups}: {why}"),
            (None, Some(_)) if !self.confirms && result.tests == 0 => {
                "it was not bisected, since the plan has `confirm = false`".to_owned()
            }
            (None, Some(_)) => format!("the bisection is not over: {groups} measured"),
            (None, None) => format!("bisected with {groups}"),
        });
    }

    fn bisected(&self, kind: &'static str, name: String, played: &Played, sides: &[&[u32]]) -> Named {
        let Evidence { residuals, with, failed, without, cases } = played.evidence(sides);
        // Where nothing ran, nothing came through.
        let effect = median(&residuals).unwrap_or(f64::NEG_INFINITY);
        let change = self.percent(effect);
        let fails = residuals.is_empty();
        let n = if fails { failed } else { residuals.len() };
        let what = match (kind, fails) {
            ("host", true) => "every group with it failed",
            ("host", false) if failed > 0 => {
                "every group with it is slow or fails, also with hosts that are good by themselves"
            }
            ("host", false) => "every group with it is slow, also with hosts that are good by themselves",
            (_, true) => "both sides are good by themselves, and every group with hosts of both failed",
            (_, false) => "both sides are good by themselves and slow together",
        };
        let reason = if fails {
            let others = count(without, "other group");
            format!("{what}: {failed} of {with}, while {others} came through")
        } else {
            let difference = words::change(change);
            let failing = if failed > 0 { format!(", and {failed} more failed") } else { String::new() };
            format!("{what}: {difference} against good groups of that size, in {}{failing}", count(n, "group"))
        };
        let hosts = sides.iter().flat_map(|side| played.names(side)).collect();
        let method = "bisection of a collective, two of three results each (docs/methods.md)";
        let groups = sides.iter().filter(|_| kind != "host").flat_map(|side| played.side(side).1).collect();
        let part = PartName { kind, name, hosts, groups, ..PartName::default() };
        Named {
            change_percent: change,
            n,
            bad: if fails { failed } else { residuals.iter().filter(|residual| **residual < effect / 2.0).count() },
            needed: LOW,
            reason,
            cases,
            standing: Standing::Confirmed,
            decided_by: Some(DecidedBy::FurtherMeasurement),
            confirmation: Some(Confirmation { change_percent: change, n, bad: n, ..Confirmation::default() }),
            ..Named::new(part, method)
        }
    }
}
