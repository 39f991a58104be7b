//! The sign-off as plain data, ready to print: every demand with its answer, coverage, what was not tested, the parts,
//! and the hashes of the records.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use railgauge_analysis::{
    history::{By, PartKind, fitted},
    journal::Journal,
    reason::Id,
    status::Status,
    verdict::{Kind, Verdict, Verdicts, not_tested},
    words::{count, number, was},
};
use railgauge_model::plan::count::capital;
use railgauge_wire::HostFacts;
use serde::Serialize;

use crate::view::{CarrierGroup, Table};

const NAMED: usize = 8;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignOff {
    pub version: u32,
    pub plan: String,
    pub run_id: String,
    /// Start and end, UTC.
    pub time: [String; 2],
    pub versions: [String; 2],
    /// Of everything that counts; inconclusive if only a part of the plan ran, and all of that passed.
    pub status: Status,
    pub sentence: String,
    /// Caveats of the answer: what the numbers do not show, and values without a demand.
    pub cautions: Vec<String>,
    /// In the order of the plan.
    pub limits: Vec<Limit>,
    pub coverage: Table,
    pub untested: Vec<String>,
    pub inventory: Table,
    pub unlabelled: Vec<String>,
    pub hashes: Vec<Hash>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limit {
    pub test: String,
    pub demand: String,
    pub scope: String,
    pub status: Status,
    pub waived: bool,
    /// Gravest first.
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hash {
    pub file: String,
    /// Hexadecimal; `None` without such a file.
    pub sha256: Option<String>,
}

pub fn view(journal: &Journal, verdicts: &Verdicts, carriers: &[CarrierGroup], hashes: Vec<Hash>) -> SignOff {
    let limit = |verdict: &Verdict| Limit {
        test: verdict.test.clone(),
        demand: verdict.demand.clone(),
        scope: verdict.scope.clone(),
        status: verdict.status,
        waived: verdict.waived,
        reasons: verdict.reason.iter().map(ToString::to_string).collect(),
    };
    let (inventory, unlabelled) = inventory(journal);
    let is_part = verdicts.subset.is_some();
    SignOff {
        version: 1,
        plan: verdicts.plan.clone(),
        run_id: verdicts.run_id.clone(),
        time: [journal.time.0.clone(), journal.time.1.clone()],
        versions: [journal.version.clone(), env!("CARGO_PKG_VERSION").to_owned()],
        status: if is_part && verdicts.status == Status::Pass { Status::Inconclusive } else { verdicts.status },
        sentence: verdicts.sentence.clone(),
        cautions: cautions(verdicts, carriers),
        limits: verdicts.verdicts.iter().map(limit).collect(),
        coverage: coverage(journal, verdicts),
        untested: untested(journal, verdicts),
        inventory,
        unlabelled,
        hashes,
    }
}

fn cautions(verdicts: &Verdicts, carriers: &[CarrierGroup]) -> Vec<String> {
    let cautious = carriers.iter().filter(|carrier| !carrier.caution.is_empty());
    let carried = cautious.map(|one| format!("{} carried {}. {}.", one.words, one.tests.join(", "), one.caution));
    carried.chain(not_tested(verdicts.untested.iter()).map(|what| format!("{}.", capital(&what)))).collect()
}

fn coverage(journal: &Journal, verdicts: &Verdicts) -> Table {
    let counted = verdicts.verdicts.iter().filter(|verdict| !verdict.waived).count();
    let mut rows = vec![
        vec!["hosts that answered".to_owned(), hosts_of(journal, verdicts)],
        vec![
            "cases measured and verified as the plan requires".to_owned(),
            format!("{} of {}", verdicts.cases.measured, verdicts.cases.planned),
        ],
        vec!["verdicts that passed".to_owned(), format!("{} of {counted}", verdicts.with(Status::Pass))],
    ];
    let mut tests: BTreeMap<&str, Covered<'_>> = BTreeMap::new();
    let mut test_of: HashMap<u64, &str> = HashMap::new();
    let troubled: HashSet<u64> = verdicts.troubles.iter().map(|trouble| trouble.case).collect();
    for case in &journal.cases {
        let covered = tests.entry(&case.test).or_default();
        let hosts = case.flow.hosts().into_iter().map(|host| &**host);
        covered.cases += 1;
        covered.hosts.extend(hosts.clone());
        if !troubled.contains(&case.id) {
            covered.measured += 1;
            covered.measured_hosts.extend(hosts);
        }
        test_of.insert(case.id, &case.test);
    }
    for one in &journal.tries {
        let covered = test_of.get(&one.case).and_then(|test| tests.get_mut(test));
        if let (Some(covered), Some(link)) = (covered, &one.link) {
            covered.carriers.insert((link.transport.word(), link.software));
        }
    }
    for test in &journal.plan.tests {
        let covered = tests.remove(test.name.as_str()).unwrap_or_default();
        rows.push(vec![format!("test {}", test.name), covered.words()]);
    }
    if let Some(switches) = &verdicts.switches {
        for loaded in &switches.loaded {
            let what = format!("links between switches loaded to {} % in {}", number(loaded.percent), loaded.test);
            rows.push(vec![what, format!("{} of {}", loaded.loaded, loaded.of)]);
        }
    }
    Table::new("what | covered", rows)
}

/// Hosts that answered, out of those to be tested and those of the plan.
fn hosts_of(journal: &Journal, verdicts: &Verdicts) -> String {
    let (answered, chosen) = (journal.hosts.len(), journal.plan.hosts.len());
    let lost = journal.hosts.keys().filter(|host| journal.lost.contains_key(*host)).count();
    let lost = if lost > 0 { format!(", {lost} {} lost", was(lost)) } else { String::new() };
    let hosts = match verdicts.subset.as_ref().map(|subset| subset.of_hosts).filter(|all| *all != chosen) {
        Some(all) => format!("{answered} of {all} of the plan ({chosen} chosen)"),
        None => format!("{answered} of {chosen}"),
    };
    hosts + &lost
}

#[derive(Default)]
struct Covered<'j> {
    cases: usize,
    hosts: BTreeSet<&'j str>,
    measured: usize,
    measured_hosts: BTreeSet<&'j str>,
    /// What carried bytes, and whether that was a device in software.
    carriers: BTreeSet<(&'static str, bool)>,
}

impl Covered<'_> {
    fn words(&self) -> String {
        let carrier = |(name, software): &(&str, bool)| {
            if *software { format!("{name} over devices in software") } else { (*name).to_owned() }
        };
        let carriers: Vec<String> = self.carriers.iter().map(carrier).collect();
        let carried = if carriers.is_empty() { "nothing was carried".to_owned() } else { carriers.join(", ") };
        let (cases, hosts) = (count(self.cases, "case"), count(self.hosts.len(), "host"));
        format!("{} of {cases}, {} of {hosts}; {carried}", self.measured, self.measured_hosts.len())
    }
}

/// What a reader must not take for tested.
fn untested(journal: &Journal, verdicts: &Verdicts) -> Vec<String> {
    let mut said = Vec::new();
    let whole = verdicts.verdicts.iter().filter(|verdict| matches!(verdict.kind, Kind::Run | Kind::Records));
    said.extend(whole.map(|verdict| format!("{}.", verdict.reason)));
    if let Some(subset) = &verdicts.subset {
        said.push(subset.sentence());
        said.extend(subset.left_out().map(|text| format!("{text}.")));
    }
    for failure in &verdicts.lost {
        said.push(format!("{failure}."));
    }
    // Includes those that came back, and those about which nothing is known.
    let of_hosts = verdicts.verdicts.iter().filter(|verdict| verdict.kind == Kind::Hosts);
    let others = of_hosts.flat_map(|verdict| verdict.reason.iter());
    let others = others.filter(|reason| reason.id != Id::Lost);
    said.extend(others.map(|reason| format!("{reason}.")));
    let of_soak = verdicts.verdicts.iter().filter(|verdict| verdict.kind == Kind::Soak);
    let unknown = of_soak.filter(|verdict| verdict.status == Status::Inconclusive && !verdict.waived);
    said.extend(unknown.map(|verdict| format!("Not known in the soak: {}: {}.", verdict.demand, verdict.reason)));
    let cases = verdicts.cases;
    for (n, what) in [
        (cases.failed, "failed"),
        (cases.not_run, "not run"),
        (cases.short, "measured less often than planned"),
        (cases.unverified, "measured, and their data was not verified"),
        (cases.contaminated, "measured while something disturbed them"),
        (cases.impossible, "with impossible values"),
        (cases.no_value, "without a value"),
        (cases.wrong, "delivered wrong bytes"),
    ] {
        if n > 0 {
            said.push(format!("{} of {}: {what}.", n, count(cases.planned, "case")));
        }
    }
    for verdict in verdicts.verdicts.iter().filter(|verdict| verdict.waived) {
        said.push(format!("Waived by the plan: {}: {} ({}).", verdict.test, verdict.demand, verdict.status.word()));
    }
    let without = journal.plan.tests.iter().filter(|test| !test.verify);
    said.extend(without.map(|test| format!("Data is not verified in {}: the plan says so.", test.name)));
    said.extend(verdicts.untested.iter().map(|one| format!("{one}.")));
    for driver in &verdicts.drivers_never_run {
        said.push(format!("{}.", driver.words()));
    }
    if verdicts.switches.is_none() {
        said.push("The plan has no topology: which cables and switches were tested is unknown.".to_owned());
    }
    if journal.plan.soak.is_none() {
        said.push("No soak test: intermittent faults were not tested for.".to_owned());
    }
    said
}

fn inventory(journal: &Journal) -> (Table, Vec<String>) {
    let (mut rows, mut unlabelled) = (Vec::new(), Vec::new());
    for host in &journal.plan.hosts {
        let Some(up) = journal.hosts.get(&host.name) else {
            unlabelled.push(host.name.clone());
            continue;
        };
        let place = journal.plan.places.get(&host.name).cloned().unwrap_or_default();
        let parts = fitted(&up.facts);
        let has_serial = parts.iter().any(|part| part.ids.contains_key(&By::Serial));
        for part in parts {
            let ids: Vec<String> = part.ids.iter().map(|(by, id)| format!("{} {id}", by.word())).collect();
            let at = if part.carries.is_empty() { part.slot.at.clone() } else { carried(&part.carries, &part.slot.at) };
            let label = label(&up.facts, part.slot.kind, &part.slot.at);
            rows.push(vec![host.name.clone(), place.clone(), part.name(), at, ids.join(", "), label]);
        }
        if !has_serial {
            unlabelled.push(host.name.clone());
        }
    }
    (Table::new("host | place | part | in slot | known by | label", rows), unlabelled)
}

fn carried(names: &[String], at: &str) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = if names.len() > NAMED { ", ..." } else { "" };
    if at.is_empty() { format!("{}{more}", shown.join(", ")) } else { format!("{at} ({}{more})", shown.join(", ")) }
}

fn label(facts: &HostFacts, kind: PartKind, at: &str) -> String {
    let parts = &facts.parts;
    let of = |label: &railgauge_wire::facts::Label| {
        [label.vendor.as_deref(), label.part_number.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    match kind {
        PartKind::Machine => of(&parts.machine),
        PartKind::Board => of(&parts.board),
        PartKind::Card => {
            let at_slot = |pci: Option<&str>| pci.is_some_and(|pci| pci.starts_with(at) && !at.is_empty());
            let card = parts.cards.iter().find(|card| at_slot(Some(&card.pci)));
            let firmware = facts
                .rdma
                .iter()
                .find(|device| at_slot(device.pci.as_deref()))
                .and_then(|device| device.firmware.as_ref().map(|firmware| format!("firmware {firmware}")));
            let name = card.map(|card| card.name.clone().unwrap_or_else(|| of(&card.label)));
            name.into_iter().chain(firmware).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
        }
        PartKind::Gpu => {
            let gpu = facts.gpus.iter().find(|gpu| gpu.pci.as_deref() == Some(at));
            gpu.and_then(|gpu| gpu.name.clone()).unwrap_or_default()
        }
        PartKind::Module => {
            let module = parts.modules.iter().find(|module| module.interface == at);
            module.map(|module| format!("{} {}", module.form, of(&module.label)).trim().to_owned()).unwrap_or_default()
        }
    }
}
