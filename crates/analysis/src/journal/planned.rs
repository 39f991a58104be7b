//! Checks the cases of a journal against its plan: the schedule follows from the plan and the hosts that had answered,
//! so it is computed again and compared.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use railgauge_model::{
    journal::event::Case,
    plan::{
        Plan,
        limits::{cells, flows},
        model::{Host, Localise, Test},
    },
    schedule::{
        self, Cell, Inventory, Port,
        devices::{active_ports, devices, parts},
    },
};
use railgauge_wire::{Distance, HostFacts, Transport};

use crate::{
    journal::{measures, measures_on_any},
    words::{are, count, size},
};

/// Limit on flows of a test that leaves some out by the distance of their GPUs, so that its cases do not show how many there were.
const MOST_LEFT_OUT: u128 = 1 << 22;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Offer {
    ports: u32,
    nodes: u32,
    gpus: u32,
    distances: Vec<BTreeSet<Distance>>,
}

impl Offer {
    /// From the facts, as a run takes them.
    pub(super) fn of(host: &Host, facts: &HostFacts) -> Self {
        let near = |device: &String| {
            let card = device.rsplit_once(':').map_or(&**device, |(card, _)| card);
            facts.gpus_near(card).map(|known| known.distance).collect()
        };
        let number = |all: Vec<String>| u32::try_from(all.len()).unwrap_or(u32::MAX);
        Self {
            ports: number(active_ports(facts)),
            nodes: number(parts(facts, Transport::Cpu)),
            gpus: number(parts(facts, Transport::Gpu)),
            distances: devices(host, Some(facts), Transport::Verbs).iter().map(near).collect(),
        }
    }
}

fn inventory(plan: &Plan, offers: &BTreeMap<String, Offer>) -> Inventory {
    let mut inventory = Inventory::of_run(plan, |host, transport| {
        let offer = offers.get(&host.name)?;
        Some(match transport {
            Transport::Verbs | Transport::Nic => offer.ports,
            Transport::Cpu => offer.nodes,
            Transport::Gpu => offer.gpus,
            // Addresses for TCP are only in the plan.
            Transport::Tcp | Transport::Nccl => 0,
        })
    });
    for host in &plan.hosts {
        if let Some(offer) = offers.get(&host.name) {
            inventory.set_distances(&host.name, offer.distances.clone());
        }
    }
    inventory
}

/// `None` if the cases are those that the plan makes for these hosts.
pub(super) fn contradiction(plan: &Plan, offers: &BTreeMap<String, Offer>, cases: &[Case]) -> Option<String> {
    if let Some(words) = too_many(plan, cases) {
        return Some(words);
    }
    if let Some(words) = unfit(plan, cases) {
        return Some(words);
    }
    // The pairs of such a test follow from the switches, whose forwarding tables are not in the journal: it is not recomputed.
    let on_fabric = |name: &str| plan.tests.iter().any(|test| test.name == name && test.on_fabric());
    let cases: Vec<&Case> = cases.iter().filter(|case| !on_fabric(&case.test)).collect();
    let plan = &Plan { tests: plan.tests.iter().filter(|test| !test.on_fabric()).cloned().collect(), ..plan.clone() };
    let schedule = match schedule::schedule(plan, &inventory(plan, offers)) {
        Ok(schedule) => schedule,
        Err(error) => return Some(format!("its plan makes no cases: {error}")),
    };
    let mut made = schedule.cases().filter_map(|place| schedule.resolve(place));
    for case in cases {
        let Some((round, flow, cell)) = made.next() else {
            return Some(format!("case {} ({}) is not one that the plan makes", case.id, words(case)));
        };
        let test = plan.tests.get(round.test).map_or("", |test| &test.name);
        if (&*case.test, case.round, &case.flow, &*case.cell) != (test, round.number, flow, cell) {
            let wanted = format!("`{test}`, {}, {}, round {}", flow.name(), size(cell.size), round.number);
            return Some(format!("case {} is {}, and the plan makes {wanted} there", case.id, words(case)));
        }
    }
    let (round, flow, cell) = made.next()?;
    let test = plan.tests.get(round.test).map_or("", |test| &test.name);
    let absent = made.count() + 1;
    let first = format!("`{test}`, {}, {}", flow.name(), size(cell.size));
    Some(format!("{} of the plan not among them, first {first}", are(absent, "case")))
}

/// A case of such a test that it cannot have: a host or measurement that is not its own, or a port that its round already has.
fn unfit(plan: &Plan, cases: &[Case]) -> Option<String> {
    let tests: BTreeMap<&str, &Test> =
        plan.tests.iter().filter(|test| test.on_fabric()).map(|test| (test.name.as_str(), test)).collect();
    let mut busy: HashSet<(&str, u32, &Cell, &Port)> = HashSet::new();
    cases.iter().find_map(|case| {
        let test = tests.get(&*case.test)?;
        let ends = [&case.flow.from, &case.flow.to];
        let own = ends.iter().all(|port| test.hosts.iter().any(|host| **host == *port.host));
        let apart = case.flow.from.host != case.flow.to.host && case.flow.members.is_empty();
        let place = |port| (&*case.test, case.round, &*case.cell, port);
        let free = ends.into_iter().all(|port| busy.insert(place(port)));
        let fits = own && apart && free && measures(case, test);
        (!fits).then(|| format!("case {} ({}) is not one that the plan makes", case.id, words(case)))
    })
}

fn words(case: &Case) -> String {
    format!("`{}`, {}, {}, round {}", case.test, case.flow.name(), size(case.cell.size), case.round)
}

/// Whether the plan makes far more cases than there are: a forged journal must not decide how much memory a report takes.
fn too_many(plan: &Plan, cases: &[Case]) -> Option<String> {
    let most = cases.len() as u128;
    let ranks = cases.iter().map(|case| case.flow.members.len()).max().unwrap_or_default() as u128;
    let mut all = 0_u128;
    for test in &plan.tests {
        let (flows, cells) = (flows(&plan.groups, test), cells(test));
        let hidden = test.collective.is_none() && test.gpu_distance.is_some();
        let few = if hidden { flows <= most.max(MOST_LEFT_OUT) && cells <= MOST_LEFT_OUT } else { true };
        let wide = test.collective.as_ref().is_some_and(|collective| u128::from(collective.ranks_per_host) > ranks);
        if !few || wide {
            return Some(format!(
                "the plan makes other cases of test `{}` than {}",
                test.name,
                count(cases.len(), "case")
            ));
        }
        all += if hidden { 0 } else { flows.saturating_mul(cells) };
    }
    let cases = count(cases.len(), "case");
    (all > most).then(|| format!("there are {cases}, and the plan makes {all} at least"))
}

/// A further case, with its position, that measures something else than its test, or a port that is in none of its
/// planned cases: probes may only take other partners, other groups and single queue pairs.
pub(super) fn strange(plan: &Plan, cases: &[Case], further: &[Case]) -> Option<(usize, String)> {
    let mut ports: BTreeMap<&str, HashSet<&Port>> = BTreeMap::new();
    fn ends(case: &Case) -> impl Iterator<Item = &Port> {
        [&case.flow.from, &case.flow.to].into_iter().chain(&case.flow.members)
    }
    for case in cases {
        ports.entry(&case.test).or_default().extend(ends(case));
    }
    let fits = |case: &Case| {
        let of_test = ports.get(&*case.test);
        let known = ends(case).all(|port| of_test.is_some_and(|ports| ports.contains(port)));
        let within = case.cell.transport.is_within_host();
        let apart = !case.flow.members.is_empty() || within == (case.flow.from.host == case.flow.to.host);
        let test = plan.tests.iter().find(|test| *test.name == *case.test);
        known && apart && test.is_some_and(|test| probes(plan, test, case))
    };
    let (at, case) = further.iter().enumerate().find(|(_, case)| !fits(case))?;
    Some((at, format!("further case {} ({}) measures what no case of its test does", case.id, words(case))))
}

/// Whether a run may repeat this: as in the test, or its queue pairs one by one.
fn probes(plan: &Plan, test: &Test, case: &Case) -> bool {
    let Some(only) = case.cell.only else { return measures(case, test) };
    let qps = case.cell.qps;
    let of_lanes = || test.qps.iter().any(|of_test| Localise::queue_pairs(*of_test, plan.localise.ports) == qps);
    plan.localise.ports > 0 && test.collective.is_none() && only < qps && of_lanes() && measures_on_any(case, test)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use railgauge_model::plan::parse;

    /// A port is in one flow of a round in every cell: alone, with other traffic, at every value.
    #[test]
    fn cells_of_one_size_share_their_ports() {
        let cables = "[topology]\ncables = [[\"a mlx5_0\", \"leaf1\"], [\"b mlx5_0\", \"leaf1\"]]\n";
        let text = format!(
            "name = \"p\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"], devices = [\"mlx5_0\"] }}\n{cables}\
             [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\npattern = \"same-leaf\"\nbeside = {{}}\n\
             [test.configure]\napply = \"tc {{value}}\"\nundo = \"tc del\"\nvalues = [\"0%\", \"1%\"]\n"
        );
        let plan = parse("p.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
        let ports = ["a", "b"].map(|host| Port::new(host, 0));
        let flow = schedule::Flow::pair(ports[0].clone(), ports[1].clone());
        let schedule = schedule::Schedule {
            cells: vec![schedule::schedule(&plan, &Inventory::of_plan(&plan)).unwrap().cells.remove(0)],
            rounds: vec![schedule::Round { test: 0, number: 0, flows: vec![flow] }],
            notes: Vec::new(),
        };
        let mut cases = Case::planned(&plan, &schedule);
        assert_eq!((cases.len(), unfit(&plan, &cases)), (4, None));
        cases.push(cases[0].clone());
        assert!(unfit(&plan, &cases).is_some());
    }
}
