use std::collections::BTreeMap;

use railgauge_analysis::status::Status;
use railgauge_model::plan::{
    Plan,
    count::{be, count},
    hostlist,
};
use railgauge_preflight::{Cluster, Demand, Drift, Finding, Held, Severity};
use railgauge_wire::{Failure, HostFacts};
use serde::Serialize;

use crate::view::{
    Table, help,
    hosts::{devices_of, machine_of, system_of},
    text_column,
    troubles::shape,
};

#[derive(Debug, Clone, Copy)]
pub struct Looked<'a> {
    pub plan: &'a Plan,
    pub cluster: &'a Cluster,
    pub demands: &'a [Demand],
    pub findings: &'a [Finding],
    pub drift: &'a [Drift],
    pub lost: &'a BTreeMap<String, Failure>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PreflightView {
    pub plan: String,
    /// Time of the look at the hosts, UTC, to the second.
    pub time: String,
    pub version: &'static str,
    pub status: Status,
    pub sentence: String,
    /// The first step, with its purpose; may be empty.
    pub first: String,
    /// Demands of the plan, worst first.
    pub demands: Table,
    /// Of each row of `demands`, and whether it is waived.
    #[serde(skip)]
    pub held: Vec<(Held, bool)>,
    /// Gravest first.
    pub cards: Vec<Card>,
    pub lost: Vec<Lost>,
    pub unread: Vec<Unread>,
    pub drift: Table,
    pub inventory: Table,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Card {
    pub check: String,
    pub severity: Severity,
    pub waived: bool,
    /// Folded; empty for switches.
    pub hosts: String,
    pub of_hosts: usize,
    /// The first finding, verbatim.
    pub what: String,
    /// All findings with their hosts; empty where they are equal.
    pub each: Vec<(String, String)>,
    pub meaning: String,
    pub help: String,
    pub help_example: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lost {
    pub hosts: String,
    /// The first reason.
    pub why: String,
    /// May be empty.
    pub help: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unread {
    pub hosts: String,
    pub what: String,
    pub why: String,
}

/// Fail for a failure or an unmet demand, inconclusive if something relevant is unknown.
fn status(looked: &Looked<'_>) -> Status {
    let held = looked.demands.iter().filter(|demand| !demand.waived).map(Demand::held).max().unwrap_or(Held::Met);
    let gravest = looked.findings.iter().map(|finding| finding.severity).max();
    match (gravest, held) {
        _ if looked.cluster.facts.is_empty() => Status::NotRun,
        (Some(Severity::Failure), _) | (_, Held::Unmet) => Status::Fail,
        (_, Held::Unread) => Status::Inconclusive,
        _ if !looked.lost.is_empty() => Status::Inconclusive,
        _ => Status::Pass,
    }
}

pub fn view(looked: &Looked<'_>, time: String) -> PreflightView {
    let Looked { plan, cluster, demands, findings, drift, lost } = *looked;
    let cards = cards(findings);
    let lost = lost_hosts(lost);
    let status = status(looked);
    let mut order: Vec<&Demand> = demands.iter().collect();
    order.sort_by_key(|demand| (demand.waived, std::cmp::Reverse(demand.held())));
    PreflightView {
        plan: plan.name.clone(),
        time,
        version: env!("CARGO_PKG_VERSION"),
        status,
        sentence: sentence(looked, &cards),
        first: first(&cards, &lost),
        demands: demanded(&order),
        held: order.iter().map(|demand| (demand.held(), demand.waived)).collect(),
        unread: unread(looked),
        cards,
        lost,
        drift: drifted(drift),
        inventory: inventory(plan, cluster),
    }
}

fn sentence(looked: &Looked<'_>, cards: &[Card]) -> String {
    let Looked { plan, cluster, demands, lost, .. } = *looked;
    let part = plan.subset.as_ref();
    let part = part.map(|subset| format!("Only part of the plan was checked: {}.", subset.words()));
    let mut said: Vec<String> = part.into_iter().collect();
    said.push(format!("{} of {} answered.", cluster.facts.len(), count(plan.hosts.len(), "host")));
    let counted: Vec<&Demand> = demands.iter().filter(|demand| !demand.waived).collect();
    for (state, words) in [(Held::Unmet, "not met"), (Held::Unread, "not read on every host")] {
        let n = counted.iter().filter(|demand| demand.held() == state).count();
        if n > 0 {
            said.push(format!("{} of {} of the plan {words}.", n, count(counted.len(), "requirement")));
        }
    }
    if !counted.is_empty() && counted.iter().all(|demand| demand.held() == Held::Met) {
        said.push(format!("{} of the plan {} met.", count(counted.len(), "requirement"), be(counted.len())));
    }
    for severity in [Severity::Failure, Severity::Warning, Severity::Notice] {
        let n = cards.iter().filter(|card| card.severity == severity).count();
        if n > 0 {
            said.push(format!("{}.", count(n, severity.word())));
        }
    }
    if cards.is_empty() && !cluster.facts.is_empty() {
        let where_ = if lost.is_empty() { "" } else { " on the hosts that answered" };
        said.push(format!("No findings{where_}."));
    }
    said.join(" ")
}

fn first(cards: &[Card], lost: &[Lost]) -> String {
    let grave = cards.iter().find(|card| card.severity != Severity::Notice);
    match (grave, lost.iter().find(|lost| !lost.help.is_empty())) {
        (Some(card), _) if card.severity == Severity::Failure => told(card),
        (_, Some(lost)) => format!("{} did not answer: {}", lost.hosts, lost.help),
        (Some(card), None) => told(card),
        (None, None) => String::new(),
    }
}

fn told(card: &Card) -> String {
    let hosts = if card.hosts.is_empty() { String::new() } else { format!(" ({})", card.hosts) };
    format!("{}{hosts}: {}", card.check, card.help)
}

fn cards(findings: &[Finding]) -> Vec<Card> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    let key = |one: &Finding| {
        let fact = one.observed.as_ref().map(|observed| observed.fact.clone());
        (one.check.clone(), one.severity, one.waived, one.unread, one.meaning.clone(), one.remedy.id.clone(), fact)
    };
    for finding in findings {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| key(first) == key(finding))) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.first().map(|first| first.severity)));
    groups.iter().filter_map(|group| card(group)).collect()
}

fn card(group: &[&Finding]) -> Option<Card> {
    let first = group.first()?;
    let mut hosts: Vec<&str> = group.iter().flat_map(|one| &one.hosts).map(String::as_str).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let fold = |hosts: &[String]| hostlist::listed(hosts.iter().map(String::as_str));
    let each = group.iter().map(|one| (fold(&one.hosts), one.what.clone())).collect();
    Some(Card {
        check: first.check.clone(),
        severity: first.severity,
        waived: first.waived,
        of_hosts: hosts.len(),
        hosts: hostlist::listed(hosts),
        what: first.what.clone(),
        each: if group.len() > 1 { each } else { Vec::new() },
        meaning: first.meaning.clone(),
        help: help(&first.remedy),
        help_example: group.iter().any(|one| one.remedy != first.remedy),
    })
}

fn lost_hosts(lost: &BTreeMap<String, Failure>) -> Vec<Lost> {
    let mut groups: Vec<Vec<(&str, &Failure)>> = Vec::new();
    let key = |failure: &Failure| {
        let remedy = failure.remedy.as_ref().map(|remedy| remedy.id.clone());
        (failure.stage, failure.kind, remedy, shape(&failure.cause))
    };
    for (host, failure) in lost {
        match groups.iter_mut().find(|group| group.first().is_some_and(|(_, first)| key(first) == key(failure))) {
            Some(group) => group.push((host, failure)),
            None => groups.push(vec![(host, failure)]),
        }
    }
    let one = |group: Vec<(&str, &Failure)>| {
        let (_, failure) = group.first()?;
        let hosts = hostlist::listed(group.iter().map(|(host, _)| *host));
        let bare = Failure { remedy: None, ..(*failure).clone() };
        let help = failure.remedy.as_deref().map_or_else(String::new, help);
        Some(Lost { hosts, why: bare.to_string(), help })
    };
    groups.into_iter().filter_map(one).collect()
}

fn demanded(order: &[&Demand]) -> Table {
    let row = |demand: &&Demand| {
        let word = match demand.held() {
            Held::Met => "met",
            Held::Unread => "unread",
            Held::Unmet => "unmet",
        };
        let waived = if demand.waived { ", waived" } else { "" };
        let part = |state, words: &str| {
            let found = demand.departures(state);
            (!found.is_empty()).then(|| format!("{words}: {found}"))
        };
        let parts = [part(Held::Unmet, "not met"), part(Held::Unread, "not read")];
        let told = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let wanted = format!("{} = {}", demand.key, demand.wanted);
        vec![format!("{word}{waived}"), wanted, demand.check.clone(), demand.hosts().to_string(), told]
    };
    Table::new("answer | required | check | #hosts | where not", order.iter().map(row))
}

/// By what was unreadable, with the hosts.
fn unread(looked: &Looked<'_>) -> Vec<Unread> {
    let mut found: BTreeMap<(&str, String), Vec<(&str, &str)>> = BTreeMap::new();
    for (host, facts) in &looked.cluster.facts {
        for (what, why) in &facts.unreadable {
            found.entry((what, shape(why))).or_default().push((host, why));
        }
    }
    let one = |((what, _), all): ((&str, String), Vec<(&str, &str)>)| {
        let (hosts, whys): (Vec<&str>, Vec<&str>) = all.into_iter().unzip();
        let first = whys.first().copied().unwrap_or_default();
        let alike = whys.iter().all(|why| *why == first);
        let why = if alike { first.to_owned() } else { format!("{first} (the first one, verbatim)") };
        Unread { hosts: hostlist::listed(hosts), what: what.to_owned(), why }
    };
    found.into_iter().map(one).collect()
}

fn drifted(drift: &[Drift]) -> Table {
    let row = |row: &Drift| {
        let others = row.by_value().into_iter().map(|(value, hosts)| format!("{value} on {}", hostlist::listed(hosts)));
        let most = if row.decided { "most hosts" } else { "the largest group" };
        let most = format!("{} ({most}, {})", row.majority, row.holders);
        vec![row.fact.clone(), most, others.collect::<Vec<_>>().join("; ")]
    };
    Table::new("fact | most | others", drift.iter().map(row))
}

fn inventory(plan: &Plan, cluster: &Cluster) -> Table {
    let row = |(host, facts): (&str, &HostFacts)| {
        let place = plan.places.get(host).cloned().unwrap_or_default();
        let serial = facts.parts.machine.serial.clone().unwrap_or_default();
        let devices = match devices_of(facts) {
            none if none.is_empty() => "none found".to_owned(),
            devices => devices.join("\n"),
        };
        vec![host.to_owned(), place, serial, system_of(facts), machine_of(facts), devices]
    };
    let hosts = plan.hosts.iter().filter_map(|host| Some((host.name.as_str(), cluster.facts.get(&host.name)?)));
    // Equal hosts share a row.
    let mut alike: Vec<(Vec<String>, Vec<&str>)> = Vec::new();
    for (host, facts) in hosts {
        let words = row((host, facts));
        match alike.iter_mut().find(|(known, _)| known[1..] == words[1..]) {
            Some((_, hosts)) => hosts.push(host),
            None => alike.push((words, vec![host])),
        }
    }
    let named = |(mut words, hosts): (Vec<String>, Vec<&str>)| {
        words[0] = hostlist::listed(hosts);
        words
    };
    let mut rows: Vec<Vec<String>> = alike.into_iter().map(named).collect();
    let mut heads = vec!["host", "place", "serial number", "system", "machine", "devices"];
    // Empty columns are removed.
    for column in [2, 1] {
        if rows.iter().all(|row| row[column].is_empty()) {
            rows.iter_mut().for_each(|row| drop(row.remove(column)));
            heads.remove(column);
        }
    }
    Table { columns: heads.into_iter().map(text_column).collect(), rows }
}
