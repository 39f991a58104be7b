//! The ranks of one collective: opened, joined, measured together, closed. See `wire/src/group.rs`.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use railgauge_model::schedule::devices::devices;
use railgauge_wire::{
    Answer, Ask, Bytes, CollectiveMeasurement, CollectiveSpec, Failure, Kind, MemberOpened, MemberSpec, Nanoseconds,
    RankEndpoint, Role, Stage, Ticket, Transport, remedy,
};
use tokio::task::JoinSet;

mod flows;
mod group;
mod nics;
mod overlap;
mod placing;
mod record;
mod times;

pub(crate) use group::Group;
use group::{Member, on_all};
use placing::Placed;
use record::record;

use super::super::{
    failures::unexpected,
    links::{self, CLOSE_LIMIT, Wanted, fresh_id},
    spine::now,
};
use super::case::{HostAgent, Tried};
use railgauge_model::{
    journal::event::{Case, RankAccount, Sample},
    plan::{
        Plan,
        model::{Collective, Test},
        traffic::exchanges,
    },
    schedule::{self, Cell, Flow, Port},
};

/// How much longer the controller waits than the agent, which gives up first with its own words.
const GRACE: Duration = Duration::from_secs(8);

pub(crate) struct CollectiveCase {
    pub plan: Arc<Plan>,
    pub index: usize,
    pub case: Case,
    pub repeat: u32,
    pub ends: BTreeMap<String, HostAgent>,
    pub warm: Option<Group>,
}

pub(crate) async fn run(of: CollectiveCase) -> Tried<Group> {
    let CollectiveCase { plan, index, case, repeat, ends, warm } = of;
    let started_at = now().into();
    let test = &plan.tests[index];
    let env = case.cell.manner.as_ref().map(|manner| manner.env.clone()).unwrap_or_default();
    let group = match (warm, &test.collective) {
        (Some(group), _) if group.env == env => Ok(group),
        (old, Some(collective)) => {
            if let Some(old) = old {
                close(old).await;
            }
            open(&plan, test, collective, &case.flow, &env, &ends).await
        }
        (_, None) => {
            let cause = "the case is a collective, but its test is not".to_owned();
            Err(Failure::new(Stage::Open, Kind::Internal, cause))
        }
    };
    let (group, result) = match group {
        Ok(mut group) => {
            let result = measure(&mut group, &plan, test, &case.cell).await;
            (Some(group), result)
        }
        Err(failure) => (None, Err(failure)),
    };
    let record = group.as_ref().and_then(|group| group.record.clone());
    Tried { open: group, ..Tried::new(case, repeat, started_at, record, result) }
}

/// Opens and joins all ranks of a flow. After a failure everything opened is closed.
async fn open(
    plan: &Plan,
    test: &Test,
    collective: &Collective,
    flow: &Flow,
    env: &BTreeMap<String, String>,
    ends: &BTreeMap<String, HostAgent>,
) -> Result<Group, Failure> {
    let mut group = Group { members: Vec::new(), env: env.clone(), record: None };
    for port in &flow.members {
        let (agent, facts) = ends
            .get(&*port.host)
            .cloned()
            .ok_or_else(|| Failure::new(Stage::Open, Kind::Internal, "the host is not there").at(&port.host))?;
        let gpu = test.gpus.from.get(port.rail as usize).copied().unwrap_or(port.rail);
        let gpu = (test.transport == Transport::Nccl).then_some(gpu);
        group.members.push(Member { agent, facts, link: fresh_id(), port: port.clone(), gpu, opened: None });
    }
    let placed =
        group.members.iter().map(|member| Placed { port: &member.port, facts: &member.facts, gpu: member.gpu });
    placing::check(placed, largest(test))?;
    match open_and_join(&mut group, plan, test, collective, flow).await {
        Ok(()) => Ok(group),
        Err(failure) => {
            close(group).await;
            Err(failure)
        }
    }
}

fn largest(test: &Test) -> Bytes {
    test.sizes.iter().copied().max().unwrap_or(Bytes(8))
}

async fn open_and_join(
    group: &mut Group,
    plan: &Plan,
    test: &Test,
    collective: &Collective,
    flow: &Flow,
) -> Result<(), Failure> {
    let ranks = u32::try_from(group.members.len()).unwrap_or(u32::MAX);
    let max_size = largest(test);
    let id = group.members[0].link;
    let token = links::token()?;
    let wanted = Wanted { hosts: &plan.hosts, test, flow, qps: 1, max_size, id, token, rides_out: false };
    let spec = |(rank, member): (u32, &Member)| {
        let endpoint = if member.gpu.is_some() { None } else { Some(Box::new(endpoint(&wanted, member)?)) };
        Ok(MemberSpec {
            rank,
            ranks,
            transport: test.transport,
            gpu: member.gpu,
            library: collective.library.clone(),
            env: group.env.clone(),
            max_size,
            siblings: collective.ranks_per_host,
            endpoint,
        })
    };
    let specs = (0..).zip(&group.members).map(spec).collect::<Result<Vec<_>, Failure>>()?;
    let limit = test.deadline;
    let opened = on_all(group, |rank, agent, link| {
        let spec = Box::new(specs[rank].clone());
        async move {
            match agent.ask(Ask::OpenMember { link, spec }, limit).await? {
                Answer::MemberOpened(opened) => Ok(*opened),
                other => Err(unexpected(agent.host(), Stage::Open, &other)),
            }
        }
    })
    .await?;
    let tickets: Vec<Ticket> = opened.iter().map(|opened| opened.ticket.clone()).collect();
    same_versions(group, &opened)?;
    for (member, opened) in group.members.iter_mut().zip(opened) {
        member.opened = Some(opened);
    }
    let limit_ms = milliseconds(limit);
    on_all(group, |_, agent, link| {
        let tickets = tickets.clone();
        async move { agent.ask(Ask::JoinMember { link, tickets, limit_ms }, limit + GRACE).await.map(|_| ()) }
    })
    .await
    .map(drop)
}

/// Where a rank over host memory runs: by the host's devices in turn, and on adjacent cores if the plan names one.
fn endpoint(wanted: &Wanted<'_>, member: &Member) -> Result<RankEndpoint, Failure> {
    let name = &member.port.host;
    let host = wanted.hosts.iter().find(|host| *host.name == **name);
    let rails = host.map_or(0, |host| devices(host, Some(&member.facts), wanted.test.transport).len());
    let rail = member.port.rail % u32::try_from(rails).unwrap_or(u32::MAX).max(1);
    let port = Port { host: name.clone(), rail };
    let mut link = links::spec(wanted, Role::Initiator, &port, &member.facts)?;
    link.knobs.core = link.knobs.core.map(|core| core.saturating_add(member.port.rail));
    Ok(RankEndpoint { host: name.to_string(), link })
}

/// Ranks with different versions of the library could hang.
fn same_versions(group: &Group, opened: &[MemberOpened]) -> Result<(), Failure> {
    let version = |opened: &MemberOpened| opened.settings.get("nccl_version").cloned();
    let first = opened.first().and_then(version);
    match opened.iter().zip(&group.members).find(|(opened, _)| version(opened) != first) {
        None => Ok(()),
        Some((other, member)) => {
            let words = |version: Option<String>| version.unwrap_or_else(|| "of an unknown version".into());
            let one = &*group.members[0].port.host;
            let cause = format!("NCCL {} here, and {} at the other", words(version(other)), words(first));
            Err(Failure::new(Stage::Open, Kind::Configuration, cause)
                .at(&member.port.host)
                .with(one)
                .remedy(remedy::SAME_NCCL))
        }
    }
}

async fn measure(group: &mut Group, plan: &Plan, test: &Test, cell: &Cell) -> Result<Sample, Failure> {
    let ranks = u32::try_from(group.members.len()).unwrap_or(u32::MAX);
    let wrong = |cause: String| Failure::new(Stage::Measure, Kind::Configuration, cause);
    let Some(manner) = &cell.manner else { return Err(wrong("the case is not a collective".into())) };
    let collective = CollectiveSpec {
        op: cell.op,
        metric: cell.metric,
        size: cell.size,
        options: (**manner).clone(),
        exchange: None,
        beside: test.beside.as_ref().and_then(|beside| beside.op),
        window: test.window,
        warm_up: test.warm_up.into(),
        verify: test.verify,
        seed: plan.seed,
    };
    if collective.count(ranks).is_none() {
        let cause =
            format!("{} bytes cannot be divided into {} elements for {ranks} ranks", cell.size, manner.datatype.word());
        return Err(wrong(cause).remedy(remedy::DIVISIBLE_SIZES));
    }
    let alone = schedule::alone(test, group.members.len());
    // Flows that are measured alone take the window once more, and so do passes with a second communicator; the last one may be long.
    let windows = if collective.beside.is_some() { 4 } else { 1 + u32::from(alone > 0) };
    let limit = test.deadline + test.warm_up + test.window.at_most() * windows;
    let limit_ms = milliseconds(limit);
    let before = nics::read(group, &plan.hosts).await;
    let asked = Instant::now();
    let blocks = schedule::blocks(test, group.members.len(), cell.size, manner.datatype.bytes());
    let exchanges = blocks.as_ref().map(|all| exchanges(all, alone)).unwrap_or_default();
    let ask = || {
        on_all(group, |rank, agent, link| {
            let exchange = exchanges.get(rank).cloned().map(Box::new);
            let collective = Box::new(CollectiveSpec { exchange, ..collective.clone() });
            async move {
                match agent.ask(Ask::MeasureMember { link, collective, limit_ms }, limit + GRACE).await? {
                    Answer::MemberMeasured(measured) => Ok(*measured),
                    other => Err(unexpected(agent.host(), Stage::Measure, &other)),
                }
            }
        })
    };
    let mut accounts: Vec<CollectiveMeasurement> = ask().await?;
    let waited = asked.elapsed().into();
    let after = nics::read(group, &plan.hosts).await;
    let overlap = match test.beside.as_ref().and_then(|beside| beside.command.as_ref()) {
        Some(command) => Some(overlap::alongside(group, plan, command, &mut accounts, ask).await?),
        None => overlap::of_passes(&accounts),
    };
    let record = record(group, &accounts)?;
    let nics = nics::carried(group, &before, &after, &record).into();
    let demand = test.collective.as_ref().and_then(|collective| collective.carried_by);
    if let (Some(wanted), Some(silent)) = (demand, accounts.iter().position(|account| account.carried.is_none())) {
        let cause =
            format!("the plan demands {wanted}, and the log of rank {silent} does not say what carried its bytes");
        let host = &group.members[silent].port.host;
        return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).at(host).remedy(remedy::NCCL_LOG));
    }
    if let Some(wanted) = demand.filter(|wanted| *wanted != record.transport) {
        let cause = format!("the plan demands {wanted}, and {} carried the bytes", record.transport);
        group.record = Some(record);
        return Err(Failure::new(Stage::Measure, Kind::Configuration, cause).remedy(remedy::NCCL_CHOICE));
    }
    group.record = Some(record);
    let ports: Vec<(&str, &str)> = group.members.iter().map(Member::place).collect();
    let width = manner.datatype.bytes();
    let flows = blocks.map(|blocks| flows::flows(&ports, &blocks, width, &accounts)).unwrap_or_default().into();
    let overlap = overlap.map(Box::new);
    Ok(Sample { waited: Some(waited), nics, flows, overlap, ..sample(group, cell, &accounts)? })
}

fn sample(group: &Group, cell: &Cell, accounts: &[CollectiveMeasurement]) -> Result<Sample, Failure> {
    let all: Vec<&[Nanoseconds]> = accounts.iter().map(|account| account.times.as_slice()).collect();
    let timed = |account: &CollectiveMeasurement| (account.times.len(), account.batch);
    let (batches, batch) = timed(&accounts[0]);
    let is_other = |account: &CollectiveMeasurement| {
        timed(account) != (batches, batch) || account.times.contains(&Nanoseconds::ZERO)
    };
    let other = accounts.iter().position(is_other);
    let slowest = times::slowest(&all).filter(|_| batch > 0 && other.is_none()).ok_or_else(|| {
        let rank = other.unwrap_or(0);
        let (times, each) = timed(&accounts[rank]);
        let cause = format!(
            "the ranks do not agree on what was timed: rank 0 {batches} batches of {batch} operations, rank {rank} {times} of {each}"
        );
        let host = |rank: usize| &group.members[rank].port.host;
        Failure::new(Stage::Measure, Kind::Internal, cause).at(host(rank)).with(host(0))
    })?;
    let alone: Vec<&[Nanoseconds]> = accounts.iter().map(|account| account.alone.as_slice()).collect();
    let mut checked = railgauge_wire::step::Checked::default();
    for account in accounts {
        checked += account.checked;
    }
    let ranks = (0..).zip(&group.members).zip(accounts).map(|((rank, member), account)| {
        let own = times::distribution(&account.times, batch);
        RankAccount {
            rank,
            host: member.port.host.to_string(),
            device: member.opened.as_ref().map_or_else(String::new, |opened| opened.device.clone()),
            gpu: member.gpu,
            p50: own.p50,
            max: own.max,
            operations: account.batch.saturating_mul(account.times.len() as u64),
            checked: account.checked,
            carried: account.carried.as_ref().map(|carried| carried.transport),
            nics: account.carried.as_ref().map(|carried| carried.nics.clone()).unwrap_or_default(),
        }
    });
    let operations = slowest.len() as u64 * batch;
    let initiator = railgauge_wire::measure::Measurement {
        elapsed: slowest.iter().copied().sum(),
        operations,
        bytes: cell.size.saturating_mul(operations),
        cpu: accounts.iter().map(|account| account.cpu).max().unwrap_or_default(),
        latency: Some(Box::new(times::distribution(&slowest, batch))),
        ..Default::default()
    };
    let alone = times::slowest(&alone).map(|times| Box::new(times::distribution(&times, 1)));
    let gpus = times::gpus(group.members.iter().map(|member| &*member.port.host).zip(accounts));
    Ok(Sample { initiator, checked, ranks: ranks.collect(), gpus: gpus.into(), alone, ..Sample::default() })
}

pub(crate) async fn close(group: Group) {
    let mut closing = JoinSet::new();
    for Member { agent, link, .. } in group.members {
        closing.spawn(async move {
            let _ = agent.ask(Ask::Close { link }, CLOSE_LIMIT).await;
        });
    }
    while closing.join_next().await.is_some() {}
}

fn milliseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
}
