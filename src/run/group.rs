//! The ranks of one collective: opened, joined, exercised together, closed. See `wire/src/group.rs`.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use railgauge_wire::{
    facts::HostFacts,
    failure::{Failure, Kind, Stage},
    group::{Carried, Exercise, Exercised, MemberOpened, MemberSpec, Ticket},
    link::LinkId,
    message::{Answer, Ask},
    terms::{GpuPath, LinkLayer, Transport},
};
use tokio::task::JoinSet;

use super::{
    event::{LinkRecord, RankAccount, Sample},
    hosts::unexpected,
    links::{CLOSE_LIMIT, fresh_id},
    times,
};
use crate::{
    cluster::Agent,
    plan::model::{Collective, Test},
    schedule::{Cell, Flow, Port},
};

/// How long other ranks may still speak after one failed: the first to notice is not always the one to blame.
const ATTRIBUTION: Duration = Duration::from_millis(2500);
/// What the controller waits longer than the agent, which gives up first and in its own words.
const GRACE: Duration = Duration::from_secs(8);

/// A host's agent and what the host is.
pub type End = (Agent, Arc<HostFacts>);

/// A group that stands.
pub struct Group {
    members: Vec<Member>,
    /// The environment its processes run in.
    pub env: BTreeMap<String, String>,
    /// What it turned out to be; known from the first exercise on.
    pub record: Option<LinkRecord>,
}

struct Member {
    agent: Agent,
    facts: Arc<HostFacts>,
    link: LinkId,
    port: Port,
    gpu: u32,
    opened: Option<MemberOpened>,
}

/// Opens and joins all ranks of a flow.
///
/// # Errors
/// The failure of the rank to blame, with its host's name. Whatever was opened is closed again.
pub async fn open(
    test: &Test,
    collective: &Collective,
    flow: &Flow,
    env: &BTreeMap<String, String>,
    ends: &BTreeMap<String, End>,
) -> Result<Group, Failure> {
    let mut group = Group { members: Vec::new(), env: env.clone(), record: None };
    for port in &flow.members {
        let (agent, facts) = ends.get(&*port.host).cloned().ok_or_else(|| {
            Failure::new(Stage::Open, Kind::Internal, format!("{}: the host is not there", port.host))
        })?;
        let gpu = test.gpus.get(port.rail as usize).copied().unwrap_or(port.rail);
        group.members.push(Member { agent, facts, link: fresh_id(), port: port.clone(), gpu, opened: None });
    }
    one_gpu_each(&group.members)?;
    match raise(&mut group, test, collective).await {
        Ok(()) => Ok(group),
        Err(failure) => {
            close(group).await;
            Err(failure)
        }
    }
}

/// GPUs that do not exist, and two ranks on one GPU: said before anything is started, where the facts tell.
fn one_gpu_each(members: &[Member]) -> Result<(), Failure> {
    let mut seen: BTreeMap<String, &Port> = BTreeMap::new();
    for Member { facts, port, gpu, .. } in members.iter().filter(|member| !member.facts.gpus.is_empty()) {
        let wrong = |cause: String| Failure::new(Stage::Open, Kind::Configuration, format!("{}: {cause}", port.host));
        let Some(found) = facts.gpus.get(*gpu as usize) else {
            let count = facts.gpus.len();
            return Err(wrong(format!("rank {} wants GPU {gpu}, and the host has {count}", port.rail))
                .help("GPUs count from 0; take fewer ranks_per_host, or name others in `gpus`"));
        };
        let Some(uuid) = &found.uuid else { continue };
        if let Some(other) = seen.insert(uuid.clone(), port) {
            return Err(wrong(format!(
                "rank {} and rank {} of {} are on one GPU ({uuid})",
                port.rail, other.rail, other.host
            ))
            .help("every rank needs a GPU of its own: two names of one machine cannot both have ranks on it"));
        }
    }
    Ok(())
}

async fn raise(group: &mut Group, test: &Test, collective: &Collective) -> Result<(), Failure> {
    let ranks = u32::try_from(group.members.len()).unwrap_or(u32::MAX);
    let max_size = test.sizes.iter().copied().max().unwrap_or(8);
    let specs: Vec<MemberSpec> = (0..)
        .zip(&group.members)
        .map(|(rank, member)| MemberSpec {
            rank,
            ranks,
            fabric: test.fabric,
            gpu: Some(member.gpu),
            library: collective.library.clone(),
            env: group.env.clone(),
            max_size,
        })
        .collect();
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

/// Ranks with different versions of the library would hang, or worse.
fn same_versions(group: &Group, opened: &[MemberOpened]) -> Result<(), Failure> {
    let version = |opened: &MemberOpened| opened.settings.get("nccl_version").cloned();
    let first = opened.first().and_then(version);
    match opened.iter().zip(&group.members).find(|(opened, _)| version(opened) != first) {
        None => Ok(()),
        Some((other, member)) => {
            let words = |version: Option<String>| version.unwrap_or_else(|| "of an unknown version".into());
            let cause = format!(
                "{}: NCCL {} here, and {} at {}",
                member.port.host,
                words(version(other)),
                words(first),
                group.members[0].port.host
            );
            Err(Failure::new(Stage::Open, Kind::Configuration, cause)
                .help("install one version on all hosts, or name one with `library`"))
        }
    }
}

/// Asks the same of every rank at once. After a first failure the others have a moment to say what they know.
async fn on_all<T: Send + 'static, F>(group: &Group, ask: impl Fn(usize, Agent, LinkId) -> F) -> Result<Vec<T>, Failure>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for (rank, member) in group.members.iter().enumerate() {
        let asked = ask(rank, member.agent.clone(), member.link);
        running.spawn(async move { (rank, asked.await) });
    }
    let mut answers: Vec<Option<T>> = group.members.iter().map(|_| None).collect();
    let mut failures: Vec<(usize, Failure)> = Vec::new();
    let mut until = None;
    loop {
        let next = match until {
            None => running.join_next().await,
            Some(until) => tokio::time::timeout_at(until, running.join_next()).await.unwrap_or(None),
        };
        match next {
            None => break,
            Some(Ok((rank, Ok(answer)))) => answers[rank] = Some(answer),
            Some(Ok((rank, Err(failure)))) => {
                until.get_or_insert_with(|| tokio::time::Instant::now() + ATTRIBUTION);
                failures.push((rank, failure));
            }
            Some(Err(error)) => {
                let cause = format!("a rank's request was dropped: {error}");
                failures.push((0, Failure::new(Stage::Converse, Kind::Internal, cause)));
            }
        }
    }
    let answers: Vec<T> = answers.into_iter().flatten().collect();
    if failures.is_empty() && answers.len() == group.members.len() {
        return Ok(answers);
    }
    Err(to_blame(group, failures))
}

/// The failure that explains the others: a lost host, then one of a rank's own, then a host that does not answer, and
/// only then a rank that waited for the others in vain.
fn to_blame(group: &Group, mut failures: Vec<(usize, Failure)>) -> Failure {
    for member in &group.members {
        if let Some(lost) = member.agent.lost() {
            return lost;
        }
    }
    failures.sort_by_key(|(rank, failure)| {
        let order = match (failure.kind, failure.stage) {
            (Kind::Lost, _) => 0,
            (Kind::Deadline, Stage::Converse) => 2,
            (Kind::Deadline, _) => 3,
            (Kind::Fabric | Kind::Aborted, _) => 2,
            _ => 1,
        };
        (order, *rank)
    });
    let others = failures.len().saturating_sub(1);
    let Some((_, mut failure)) = failures.into_iter().next() else {
        return Failure::new(Stage::Measure, Kind::Internal, "a rank gave no answer".to_owned());
    };
    if others > 0 && failure.kind == Kind::Deadline {
        failure.cause.push_str(&format!("; {others} other ranks of {} gave up too", group.members.len()));
    }
    failure
}

/// Measures one cell.
///
/// # Errors
/// The failure of the rank to blame, with its host's name.
pub async fn measure(group: &mut Group, test: &Test, cell: &Cell, seed: u64) -> Result<Sample, Failure> {
    let ranks = u32::try_from(group.members.len()).unwrap_or(u32::MAX);
    let host = group.members[0].port.host.clone();
    let wrong = |cause: String| Failure::new(Stage::Measure, Kind::Configuration, format!("{host}: {cause}"));
    let Some(manner) = &cell.manner else { return Err(wrong("the case is no collective".into())) };
    let exercise = Exercise {
        op: cell.op,
        aim: cell.aim,
        size: cell.size,
        manner: (**manner).clone(),
        window: test.window,
        warm_up: u64::try_from(test.warm_up.as_nanos()).unwrap_or(u64::MAX),
        verify: test.verify,
        seed,
    };
    if exercise.count(ranks).is_none() {
        let cause =
            format!("{} bytes do not divide into {} elements for {ranks} ranks", cell.size, manner.datatype.word());
        return Err(wrong(cause).help("take sizes that divide by the number of ranks and the width of an element"));
    }
    let limit = test.deadline + test.warm_up + super::pair::longest(test.window);
    let limit_ms = milliseconds(limit);
    let accounts: Vec<Exercised> = on_all(group, |_, agent, link| {
        let exercise = Box::new(exercise.clone());
        async move {
            match agent.ask(Ask::Exercise { link, exercise, limit_ms }, limit + GRACE).await? {
                Answer::Exercised(exercised) => Ok(*exercised),
                other => Err(unexpected(agent.host(), Stage::Measure, &other)),
            }
        }
    })
    .await?;
    let record = record(group, &accounts)?;
    if let Some(wanted) = test.collective.as_ref().and_then(|c| c.carried_by).filter(|w| *w != record.transport) {
        let cause = format!("{host}: the plan demands {wanted}, and {} carried the bytes", record.transport);
        group.record = Some(record);
        return Err(Failure::new(Stage::Measure, Kind::Configuration, cause)
            .help("NCCL's choice and its reasons are in its log: NCCL_DEBUG=INFO; see NCCL_IB_HCA and NCCL_NET"));
    }
    group.record = Some(record);
    sample(group, cell, &accounts)
}

fn sample(group: &Group, cell: &Cell, accounts: &[Exercised]) -> Result<Sample, Failure> {
    let all: Vec<&[u64]> = accounts.iter().map(|account| account.times.as_slice()).collect();
    let batch = accounts.iter().map(|account| account.batch).max().unwrap_or(0);
    let slowest = times::slowest(&all).filter(|_| batch > 0).ok_or_else(|| {
        let cause = format!("{}: the ranks do not agree on what was timed", group.members[0].port.host);
        Failure::new(Stage::Measure, Kind::Internal, cause)
    })?;
    let mut checked = railgauge_wire::step::Checked::default();
    for account in accounts {
        super::pair::add(&mut checked, account.checked);
    }
    let ranks = (0..).zip(&group.members).zip(accounts).map(|((rank, member), account)| {
        let own = times::distribution(&account.times, batch);
        RankAccount {
            rank,
            host: member.port.host.to_string(),
            device: member.opened.as_ref().map_or_else(String::new, |opened| opened.device.clone()),
            gpu: Some(member.gpu),
            p50: own.p50,
            max: own.max,
        }
    });
    let operations = slowest.len() as u64 * batch;
    let initiator = railgauge_wire::measure::Measurement {
        elapsed: slowest.iter().sum(),
        operations,
        bytes: operations.saturating_mul(cell.size),
        cpu: accounts.iter().map(|account| account.cpu).max().unwrap_or(0),
        latency: Some(times::distribution(&slowest, batch)),
        ..Default::default()
    };
    Ok(Sample {
        together: None,
        initiator,
        responder: None,
        checked,
        from_counters: BTreeMap::new(),
        to_counters: BTreeMap::new(),
        contaminated: Vec::new(),
        ranks: ranks.collect(),
    })
}

/// What carried the bytes of the group: the slowest kind any rank has evidence of.
fn record(group: &Group, accounts: &[Exercised]) -> Result<LinkRecord, Failure> {
    let slowness = |carried: &&Carried| match carried.transport {
        Transport::NcclSocket => 3,
        Transport::NcclIb => 2,
        Transport::NcclShm => 1,
        _ => 0,
    };
    let first = &group.members[0];
    let Some(carried) = accounts.iter().filter_map(|account| account.carried.as_ref()).max_by_key(slowness) else {
        let cause = format!("{}: NCCL's log does not say what carried the bytes", first.port.host);
        return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause)
            .help("the library may be built without its log, or an environment file of NCCL turns it off"));
    };
    let nvlink = group.members.iter().all(|member| {
        member.facts.gpus.get(member.gpu as usize).and_then(|gpu| gpu.nvlinks).is_some_and(|links| links > 0)
    });
    let link_layer = carried.link_layer.unwrap_or(match carried.transport {
        Transport::NcclP2p if nvlink => LinkLayer::Nvlink,
        Transport::NcclP2p => LinkLayer::Pcie,
        Transport::NcclSocket => LinkLayer::Ethernet,
        _ => LinkLayer::Loopback,
    });
    // A network without GPUDirect copies through the host: nothing of it was demanded, and the record says so.
    let gpu_path =
        accounts.iter().filter_map(|a| a.carried.as_ref()).map(|c| c.gpu_path).max_by_key(|path| match path {
            GpuPath::Staged => 2,
            GpuPath::None => 0,
            _ => 1,
        });
    let mut settings = first.opened.as_ref().map(|opened| opened.settings.clone()).unwrap_or_default();
    for account in accounts {
        for (words, count) in account.carried.iter().flat_map(|carried| &carried.evidence) {
            settings.insert(format!("carried: {words}"), count.to_string());
        }
    }
    let device = |member: &Member| member.opened.as_ref().map_or_else(String::new, |opened| opened.device.clone());
    Ok(LinkRecord {
        transport: carried.transport,
        link_layer,
        gpu_path: gpu_path.unwrap_or(GpuPath::None),
        software: false,
        from_device: device(first),
        to_device: group.members.last().map(device).unwrap_or_default(),
        rate_gbps: None,
        mtu: 0,
        settings,
    })
}

/// Ends every rank's process. An agent that does not answer is left to its end of life.
pub async fn close(group: Group) {
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
