//! The state of each measured component by test. Only this module decides whether a host, NIC, rail or path is good,
//! faulty or undecided in a run; `night` decides over many runs.
//!
//! A component is faulty if it was measured again and confirmed, and no other one fits. It is good only if most of its
//! values show it: they are neither low among peers nor below a limit, and no other bad component accounts for them.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use railgauge_model::{
    plan::{hostlist, model::Test},
    schedule::{Flow, Port},
};
use railgauge_preflight::Held;
use railgauge_wire::{Better, Metric, natural};

use super::{Component, Judged, Kind, Measured, PREFLIGHT, SOAK, Verdict};
use crate::{
    case::NotRun,
    journal::{Journal, JournalEnd},
    localise::{Localisation, Named, Standing, waives_flow},
    outliers::{Link, OfTest, Outliers, Part},
    reason::Id,
    soak::Soaking,
    status::Status,
    words::{change, count, end_word, moment},
};

pub const ANSWERS: &str = "answer";

/// Kinds listed wherever they were measured: their own line says whether they are good.
pub const LISTED: [&str; 5] = ["host", "nic", "GPU", "NUMA node", "rail"];

impl Component {
    fn new(kind: &str, name: String, hosts: Vec<String>, state: Option<Judged>) -> Self {
        Self { kind: kind.to_owned(), name, hosts, state, ..Self::default() }
    }

    fn host(host: &str, state: Option<Judged>) -> Self {
        Self::new("host", format!("host {host}"), vec![host.to_owned()], state)
    }

    fn because(self, why: String) -> Self {
        Self { why: vec![why], ..self }
    }
}

/// Empty if the run did not finish, or its records are damaged or contradict themselves.
pub(super) fn components(
    journal: &Journal,
    model: &Outliers<'_>,
    verdicts: &[Verdict],
    soak: Option<&Soaking>,
) -> Vec<Measured> {
    let is_whole = journal.unhealed().next().is_none() && journal.contradictions.is_empty();
    if journal.end != JournalEnd::Finished || !is_whole {
        return Vec::new();
    }
    let wanted = verdicts.iter().filter_map(|verdict| of_preflight(journal, verdict));
    let tests = model.tests.iter().map(|test| Search::new(journal, model, test, verdicts).measured());
    let mut all: Vec<Measured> = wanted.chain(tests).chain(soak.map(of_soak)).collect();
    for one in &mut all {
        // A host that was lost was good only for a while.
        one.components.retain(|part| {
            part.state == Some(Judged::Faulty) || !part.hosts.iter().any(|host| journal.lost.contains_key(host))
        });
    }
    all.push(answers(journal));
    all
}

fn answers(journal: &Journal) -> Measured {
    let of_host = |host: &str| match journal.lost.get(host) {
        None => Component::host(host, Some(Judged::Good)),
        Some(failure) => {
            let failure = failure.clone().unnamed();
            let at = journal.losses.iter().rev().find(|loss| loss.host == host).and_then(|loss| loss.at);
            let at = at.map_or_else(String::new, |at| format!(" at {}", moment(at)));
            Component::host(host, Some(Judged::Undecided)).because(match journal.hosts.contains_key(host) {
                false => format!("it did not answer: {failure}"),
                true => format!("its agent was lost{at}: {failure}"),
            })
        }
    };
    Measured {
        test: ANSWERS.to_owned(),
        passed: journal.lost.is_empty(),
        components: journal.plan.hosts.iter().map(|host| of_host(&host.name)).collect(),
        ..Measured::default()
    }
}

fn of_preflight(journal: &Journal, verdict: &Verdict) -> Option<Measured> {
    let key = verdict.key.as_deref().filter(|_| verdict.kind == Kind::Preflight && !verdict.waived)?;
    if verdict.is_escalated() {
        return None;
    }
    let (all, unmet) = (journal.plan.hosts.len(), verdict.unmet_hosts());
    let blames = verdict.blames_hosts(all);
    let note = (!blames).then(|| {
        format!("{} of {all} hosts are not as {key} in the plan wants; that blames none of them", unmet.len())
    });
    let of_host = |host: &String| {
        let held: Vec<_> = verdict.holdings.iter().filter(|held| held.host == *host).collect();
        let state = match held.iter().map(|held| held.state).max() {
            None => Judged::Good,
            Some(Held::Unmet) if blames => Judged::Faulty,
            _ => return None,
        };
        let why = held.iter().filter(|held| held.state == Held::Unmet).map(|held| verdict.departure(held)).collect();
        Some(Component { why, ..Component::host(host, Some(state)) })
    };
    Some(Measured {
        test: format!("{PREFLIGHT} {key}"),
        passed: verdict.status == Status::Pass,
        note,
        components: journal.hosts.keys().filter_map(of_host).collect(),
        ..Measured::default()
    })
}

/// Hosts with and without a GPU error while the soak used their memory.
fn of_soak(soak: &Soaking) -> Measured {
    let errors = soak.gpus.iter().filter_map(|gpu| {
        let (error, _) = gpu.error()?;
        Some((gpu.host.as_str(), format!("{}: {error} ({SOAK})", gpu.gpu)))
    });
    let failures = soak.gpu_failures.iter().filter_map(|one| {
        let host = one.failure.host.as_deref()?;
        Some((host, format!("{} ({SOAK})", one.failure.clone().unnamed())))
    });
    let mut all = Parts::default();
    errors.chain(failures).for_each(|(host, why)| all.add(Component::host(host, Some(Judged::Faulty)).because(why)));
    soak.gpus.iter().for_each(|gpu| all.add(Component::host(&gpu.host, Some(Judged::Good))));
    let components = all.finish();
    let passed = components.iter().all(|one| one.state == Some(Judged::Good));
    Measured { test: SOAK.to_owned(), passed, components, ..Measured::default() }
}

#[derive(Default)]
struct Parts(BTreeMap<(String, String), Component>);

impl Parts {
    fn add(&mut self, one: Component) {
        let key = (one.kind.clone(), one.name.clone());
        let Some(known) = self.0.get_mut(&key) else {
            self.0.insert(key, one);
            return;
        };
        known.value = known.value.or(one.value);
        known.device = known.device.take().or(one.device);
        known.links.extend(one.links);
        if one.state >= known.state {
            if one.state > known.state {
                (known.state, known.why) = (one.state, Vec::new());
            }
            let new = one.why.into_iter().filter(|why| !known.why.contains(why)).collect::<Vec<_>>();
            known.why.extend(new);
        }
    }

    fn finish(self) -> Vec<Component> {
        let mut all: Vec<Component> = self.0.into_values().collect();
        all.sort_by(|a, b| {
            (b.state, &a.kind).cmp(&(a.state, &b.kind)).then(natural::key(&a.name).cmp(&natural::key(&b.name)))
        });
        all
    }
}

#[derive(Default)]
struct Evidence {
    planned: usize,
    valued: usize,
    bad: usize,
    /// By verdict: values that were compared with its demand, and how many of them break it.
    demands: BTreeMap<usize, [usize; 2]>,
    values: Vec<f64>,
    device: Option<String>,
}

struct Search<'s, 'a> {
    journal: &'s Journal,
    model: &'s Outliers<'a>,
    test: &'s OfTest<'a>,
    found: Vec<&'s Localisation>,
    verdicts: Vec<&'s Verdict>,
    /// By case: positions of verdicts with whose demands it was compared, and whether it breaks them.
    compared: HashMap<u64, Vec<(usize, bool)>>,
    /// Whether there are enough peers to compare values with.
    has_peers: bool,
    /// Whether there are enough peers, or a limit, to compare values with.
    is_judged: bool,
    in_doubt: bool,
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(journal: &'s Journal, model: &'s Outliers<'a>, test: &'s OfTest<'a>, verdicts: &'s [Verdict]) -> Self {
        let found: Vec<&Localisation> = model.found.iter().filter(|found| found.test == test.test).collect();
        let verdicts: Vec<&Verdict> = verdicts.iter().filter(|one| one.test == test.test && !one.waived).collect();
        let limits = || verdicts.iter().filter(|one| one.kind == Kind::Expectation);
        let is_limited = limits().any(|one| {
            one.metric == Some(test.metric)
                && one.narrowed.is_none()
                && matches!(one.status, Status::Pass | Status::Fail)
        });
        let compares = |found: &&Localisation| !found.is_extra && !found.good.is_empty() && found.too_few.is_none();
        let has_peers = found.iter().any(compares);
        let mut compared: HashMap<u64, Vec<(usize, bool)>> = HashMap::default();
        for (at, one) in verdicts.iter().enumerate() {
            one.compared.iter().for_each(|(case, breaks)| compared.entry(*case).or_default().push((at, *breaks)));
        }
        let counts = verdicts.iter().any(|one| one.kind == Kind::Parts);
        Self {
            journal,
            model,
            test,
            compared,
            has_peers,
            is_judged: is_limited || has_peers,
            in_doubt: counts && found.iter().any(|found| is_in_doubt(found)),
            found,
            verdicts,
        }
    }

    fn measured(self) -> Measured {
        let mut all = Parts::default();
        for (found, named) in self.found.iter().flat_map(|found| found.suspects.iter().map(move |named| (found, named)))
        {
            self.suspect(found, named, &mut all);
        }
        let reasons = self.verdicts.iter().flat_map(|one| one.reason.iter());
        for reason in reasons.filter(|reason| reason.id == Id::WrongMemory) {
            for (part, host) in reason.subject.iter().zip(&reason.hosts) {
                let why = format!("{part}: its memory does not keep what is written to it ({})", self.test.test);
                all.add(Component::host(host, Some(Judged::Faulty)).because(why));
            }
        }
        let links = self.ends(&mut all);
        let test = self.journal.plan.tests.iter().find(|test| test.name == self.test.test);
        Measured {
            test: self.test.test.to_owned(),
            measures: test.map(Test::measures).unwrap_or_default(),
            metric: Some(self.test.metric),
            passed: self.verdicts.iter().all(|one| one.status == Status::Pass),
            peers: self.has_peers,
            components: all.finish(),
            links,
            ..Measured::default()
        }
    }

    fn suspect(&self, found: &Localisation, named: &Named, all: &mut Parts) {
        let shown = match named.standing {
            Standing::Cleared => return,
            Standing::Confirmed | Standing::Intermittent => named.alternatives.is_empty(),
            Standing::Suspect | Standing::Open => false,
        };
        if named.waived {
            return;
        }
        let state = Some(if shown { Judged::Faulty } else { Judged::Undecided });
        let change = format!("{} against good {}s in {}", change(named.change_percent), found.counted, found.test);
        let cases: BTreeSet<u64> = named.cases.iter().copied().collect();
        let all_cases = self.journal.cases.iter().chain(&self.journal.further);
        let links: BTreeSet<(String, String)> =
            all_cases.filter(|case| cases.contains(&case.id)).map(|case| link_of(&case.flow)).collect();
        for part in std::iter::once(&named.part).chain(&named.alternatives) {
            let name = match (part.kind, part.hosts.as_slice(), part.rail) {
                ("host", [host], _) => format!("host {host}"),
                ("nic", [host], Some(rail)) => format!("rail {rail} of {host}"),
                ("path", [], _) => format!("{}: {}", named.part.name, part.name),
                _ => part.name.clone(),
            };
            let links = if LISTED.contains(&part.kind) { BTreeSet::new() } else { links.clone() };
            let why = if *part == named.part { change.clone() } else { format!("{}: {change}", named.name) };
            let one = Component::new(part.kind, name, part.hosts.clone(), state).because(why);
            let rail = part.rail.filter(|_| part.hosts.is_empty() && named.groups.is_empty());
            all.add(Component { links, groups: named.groups.clone(), rail, ..one });
        }
    }

    fn ends(&self, all: &mut Parts) -> BTreeMap<String, String> {
        let mut known: BTreeMap<(&str, Option<u32>), Evidence> = BTreeMap::new();
        let mut good: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        let shown = self.shown();
        for link in &self.test.links {
            let flow = &link.result.case.flow;
            let part = link.part.map(|at| &self.model.parts[at]).or_else(|| self.part_within(flow));
            let is_bad = self.is_bad(link, part);
            let is_waived = waives_flow(&self.journal.plan, flow);
            let is_cut = link.result.not_run == Some(NotRun::TimeOver);
            for (port, device) in ends(link) {
                let of = [Some((&*port.host, None)), flow.members.is_empty().then_some((&*port.host, Some(port.rail)))];
                for key in of.into_iter().flatten() {
                    let one = known.entry(key).or_default();
                    one.device = one.device.take().or_else(|| device.clone().filter(|_| key.1.is_some()));
                    if let Some(value) = link.value {
                        one.values.extend(shown.filter(|shown| link.cell == **shown).map(|_| value));
                    }
                    if !is_cut && !accounts_for(part, port) && !self.is_gone(flow, &port.host) {
                        one.planned += 1;
                        one.valued += usize::from(link.value.is_some() || is_bad);
                        one.bad += usize::from(is_bad);
                        for (verdict, breaks) in self.compared(link).iter().filter(|_| !is_waived) {
                            let [all, broken] = one.demands.entry(*verdict).or_default();
                            *all += 1;
                            *broken += usize::from(*breaks);
                        }
                    }
                }
            }
            if link.value.is_some() && !is_bad && part.is_none_or(|part| !part.is_bad()) {
                match flow.members.is_empty() {
                    true => _ = good.entry(end(&flow.from)).or_default().insert(&flow.to.host),
                    // A group's members differ in ways that do not matter here.
                    false => flow.members.iter().for_each(|member| {
                        good.entry(member.host.to_string())
                            .or_default()
                            .extend(flow.hosts().iter().map(|host| &***host));
                    }),
                }
            }
            let is_apart = link.stands_out && part.is_none() && !self.in_doubt;
            if is_apart && flow.members.is_empty() && flow.from.host != flow.to.host {
                let why = format!("{} is an outlier in {}: {}", link.result.link_name(), self.test.test, link.words());
                let hosts = vec![flow.from.host.to_string(), flow.to.host.to_string()];
                let name = format!("path from {} to {}", end(&flow.from), end(&flow.to));
                let one = Component::new("path", name, hosts, Some(Judged::Undecided)).because(why);
                all.add(Component { links: [link_of(flow)].into(), ..one });
            }
        }
        self.add_ends(known, all);
        good.into_iter().map(|(from, to)| (from, hostlist::listed(to))).collect()
    }

    fn add_ends(&self, known: BTreeMap<(&str, Option<u32>), Evidence>, all: &mut Parts) {
        let word = self.test.links.first().map_or("rail", |link| end_word(link.result.case.cell.transport));
        let unjudged: BTreeSet<&String> = self.found.iter().flat_map(|found| &found.unjudged).collect();
        let mut rails: BTreeMap<u32, Option<Judged>> = BTreeMap::new();
        for ((host, number), mut evidence) in known {
            let mut one = match number {
                None => Component::host(host, None),
                Some(number) if word == "rail" => {
                    Component::new("nic", format!("rail {number} of {host}"), vec![host.to_owned()], None)
                }
                Some(number) => Component::new(word, format!("{word} {number} of {host}"), vec![host.to_owned()], None),
            };
            let is_open = number.is_some_and(|number| unjudged.contains(&format!("{host} rail {number}")));
            (one.state, one.why) = self.state(&evidence, is_open);
            if let Some(number) = number.filter(|_| word == "rail") {
                let rail = rails.entry(number).or_insert(one.state);
                *rail = one.state.or(*rail).min(rail.or(one.state));
            }
            evidence.values.sort_by(f64::total_cmp);
            one.value = evidence.values.get(evidence.values.len() / 2).copied();
            one.device = evidence.device;
            all.add(one);
        }
        if rails.len() > 1 {
            for (rail, state) in rails {
                let one = Component::new("rail", format!("rail {rail}, on all hosts"), Vec::new(), state);
                all.add(Component { rail: Some(rail), ..one });
            }
        }
    }

    fn state(&self, of: &Evidence, is_open: bool) -> (Option<Judged>, Vec<String>) {
        let Evidence { planned, valued, bad, ref demands, .. } = *of;
        let test = self.test.test;
        // No peers are needed to see that its own values break a demand.
        let broken = demands.iter().find(|(_, [all, broken])| *broken > 0 && 2 * broken >= *all);
        let why = match broken {
            Some((at, [all, broken])) => {
                let demand = self.verdicts[*at].demanded();
                format!("{broken} of {} in {test} are not as demanded: {demand}", count(*all, "value"))
            }
            // No good partner, peers or limit shows whether it is good.
            None if planned == 0 || self.in_doubt || is_open || !self.is_judged => return (None, Vec::new()),
            None if 2 * bad > valued => format!("{bad} of {} are low in {test}", count(valued, "value")),
            None if 2 * valued < planned => {
                format!("only {valued} of {} could be measured in {test}", count(planned, "case"))
            }
            None => return (Some(Judged::Good), Vec::new()),
        };
        (Some(Judged::Undecided), vec![why])
    }

    /// A bad part of this test whose hosts all are in a group.
    fn part_within(&self, group: &Flow) -> Option<&'s Part<'a>> {
        let members: BTreeSet<&str> = group.members.iter().map(|port| &*port.host).collect();
        let is_within = |part: &&Part<'_>| {
            let hosts = part.hosts();
            !hosts.is_empty() && hosts.iter().all(|host| members.contains(host.as_str()))
        };
        self.model.parts.iter().filter(|part| part.is_bad() && part.is_named_by(self.test.test)).find(is_within)
    }

    fn compared(&self, link: &Link<'_>) -> &[(usize, bool)] {
        self.compared.get(&link.result.case.id).map_or(&[], Vec::as_slice)
    }

    fn is_bad(&self, link: &Link<'_>, part: Option<&Part<'_>>) -> bool {
        let is_cleared = part.is_some_and(|part| part.standing == Standing::Cleared);
        self.compared(link).iter().any(|(_, breaks)| *breaks) || link.stands_out && !is_cleared
    }

    /// Whether another host of a flow was lost: then its value is not evidence about this one.
    fn is_gone(&self, flow: &Flow, host: &str) -> bool {
        flow.hosts().into_iter().any(|other| **other != *host && self.journal.lost.contains_key(&**other))
    }

    fn shown(&self) -> Option<&'s (String, railgauge_wire::unit::Bytes)> {
        let metric = self.test.metric;
        let is_large = metric.better() == Better::Higher || metric == Metric::MemoryLatency;
        let sizes = self.test.links.iter().map(|link| link.cell.1);
        let size = if is_large { sizes.max() } else { sizes.min() }?;
        self.test.links.iter().map(|link| &link.cell).find(|cell| cell.1 == size)
    }
}

/// Whether nothing in a test is known to be good: its values fall into two clusters, scatter too much, changed during
/// the test, or are low for an unknown cause. The verdict on its parts reports that, and no component is to blame.
fn is_in_doubt(found: &Localisation) -> bool {
    let Localisation { two_clusters, too_noisy, over_time, unexplained, .. } = found;
    two_clusters.is_some() || too_noisy.is_some() || over_time.is_some() || unexplained.is_some()
}

/// Whether a bad or waived part, other than the end itself, accounts for a value of this end.
fn accounts_for(part: Option<&Part<'_>>, port: &Port) -> bool {
    let is_own =
        |part: &Part<'_>| part.ends().any(|(host, rail)| *host == *port.host && rail.is_none_or(|r| r == port.rail));
    part.is_some_and(|part| part.is_bad() && (part.waived || !is_own(part)))
}

fn ends<'l>(link: &'l Link<'_>) -> Vec<(&'l Port, Option<String>)> {
    let flow = &link.result.case.flow;
    if !flow.members.is_empty() {
        let mut seen = BTreeSet::new();
        return flow.members.iter().filter(|port| seen.insert(&port.host)).map(|port| (port, None)).collect();
    }
    let device = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
    let [from, to] = link.row.map_or([None, None], |row| [device(&row.src_device), device(&row.dst_device)]);
    let mut both = vec![(&flow.from, from)];
    both.extend((flow.from != flow.to).then_some((&flow.to, to)));
    both
}

fn end(port: &Port) -> String {
    format!("{} rail {}", port.host, port.rail)
}

/// As in [`Component::links`]; for a group one member and all of them.
fn link_of(flow: &Flow) -> (String, String) {
    match flow.members.first() {
        None => (end(&flow.from), flow.to.host.to_string()),
        Some(member) => (member.host.to_string(), hostlist::listed(flow.hosts().iter().map(|host| &***host))),
    }
}
