//! Brings hosts up and learns what they are.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use railgauge_wire::{
    facts::HostFacts,
    failure::{Failure, Kind, Stage},
    message::{Answer, Ask},
    remedy,
    terms::Transport,
    unit::{Nanoseconds, NanosecondsI64},
};

use super::spine::{Halt, Spine};
use crate::cluster::{self, Agent, AgentBinary};
use railgauge_model::journal::event::Event;
use railgauge_model::plan::{Plan, model::Host};

/// Hosts that answered, and why the others did not.
#[derive(Default)]
pub struct Hosts {
    /// Running agents by host name.
    pub agents: BTreeMap<String, Agent>,
    /// What each host that answered is.
    pub facts: BTreeMap<String, HostFacts>,
    /// Wall clock of each host minus the controller's, in nanoseconds.
    pub walls: BTreeMap<String, NanosecondsI64>,
    /// Why a host cannot be used, by host name.
    pub lost: BTreeMap<String, Failure>,
    /// Longest time from an agent's greeting until its host's facts and clock were known.
    pub told_within: Duration,
}

/// Time for the hosts of tries that were given up to be cleared up.
const CLEARED: Duration = Duration::from_secs(10);
/// How long a host may take to say what it is. Counters with a lifespan and library look-ups are the slow part.
const FACTS_LIMIT: Duration = Duration::from_secs(20);
/// How long a clock reading may take.
const CLOCK_LIMIT: Duration = Duration::from_secs(5);
/// Clock readings per host; the one with the shortest round trip counts.
const CLOCK_READINGS: usize = 5;

/// Starts agents on every host and asks each what it is. Ends early only if the run is halted.
pub async fn bring_up(plan: &Plan, run_id: &str, binary: AgentBinary, spine: &Spine) -> Hosts {
    let log = {
        let spine = spine.clone();
        cluster::LogSink::new(move |host: &str, line: &str| spine.log(host, line))
    };
    let mut raised = cluster::bring_up(plan.launch.clone(), plan.hosts.clone(), run_id.to_owned(), binary, log);
    let mut hosts = Hosts::default();
    let mut asking = tokio::task::JoinSet::new();
    let mut open = true;
    while open || !asking.is_empty() {
        tokio::select! {
            next = raised.recv(), if open => match next {
                Some((name, Ok(agent))) => {
                    asking.spawn(async move {
                        let greeted = Instant::now();
                        let known = meet(&agent).await;
                        (name, agent, known, greeted.elapsed())
                    });
                }
                Some((name, Err(failure))) => hosts.lose(name, failure, spine),
                None => open = false,
            },
            Some(met) = asking.join_next() => match met {
                Ok((name, agent, Ok((facts, Clocks { offset, half, wall })), took)) => {
                    hosts.told_within = hosts.told_within.max(took);
                    let (facts_copy, clock) = (Box::new(facts.clone()), Some((offset, half)));
                    spine.emit(Event::HostUp { host: name.clone(), facts: facts_copy, clock, wall: Some(wall) });
                    hosts.walls.insert(name.clone(), wall);
                    hosts.facts.insert(name.clone(), facts);
                    hosts.agents.insert(name, agent);
                }
                Ok((name, agent, Err(failure), _)) => {
                    agent.close().await;
                    hosts.lose(name, failure, spine);
                }
                Err(error) => spine.log("controller", &format!("a host's greeting was dropped: {error}")),
            },
            _ = spine.halting() => break,
        }
    }
    hosts
}

impl Hosts {
    /// Gives a host up for the rest of the run.
    pub fn lose(&mut self, host: String, failure: Failure, spine: &Spine) {
        if !self.lost.contains_key(&host) {
            spine.emit(Event::HostLost { host: host.clone(), failure: failure.clone() });
            self.lost.insert(host.clone(), failure);
        }
        self.agents.remove(&host);
    }

    /// Says goodbye to every agent at once.
    pub async fn close(&mut self) {
        let mut leaving = tokio::task::JoinSet::new();
        for (_, agent) in std::mem::take(&mut self.agents) {
            leaving.spawn(async move { agent.close().await });
        }
        while leaving.join_next().await.is_some() {}
        cluster::cleared(CLEARED).await;
    }
}

/// A host's clocks against the controller's.
#[derive(Clone, Copy)]
pub struct Clocks {
    /// Monotonic clock of the host minus the controller's.
    pub offset: NanosecondsI64,
    /// Half the round trip: how far off the offset may be.
    pub half: Nanoseconds,
    /// Wall clock of the host minus the controller's.
    wall: NanosecondsI64,
}

/// Facts and clocks of one host.
async fn meet(agent: &Agent) -> Result<(HostFacts, Clocks), Failure> {
    let facts = match agent.ask(Ask::Facts, FACTS_LIMIT).await? {
        Answer::Facts(facts) => *facts,
        other => return Err(unexpected(agent.host(), Stage::Facts, &other)),
    };
    Ok((facts, clocks(agent).await?))
}

/// Compares the clocks of one host with the controller's.
///
/// # Errors
/// The agent is gone, or does not answer.
pub async fn clocks(agent: &Agent) -> Result<Clocks, Failure> {
    let mut best: Option<Clocks> = None;
    for _ in 0..CLOCK_READINGS {
        let before = controller_clock();
        let answer = agent.ask(Ask::Clock, CLOCK_LIMIT).await?;
        let after = controller_clock();
        let here = wall_clock();
        let Answer::Clock { monotonic, realtime } = answer else {
            return Err(unexpected(agent.host(), Stage::Facts, &answer));
        };
        // Cristian's algorithm (1989): the reading belongs to the middle of the round trip, give or take half of it.
        let half = (after - before) / 2;
        // Clocks count nanoseconds since a start or since 1970: what does not fit into an i64 (292 years) is none.
        let (Ok(monotonic), Ok(realtime)) = (NanosecondsI64::try_from(monotonic), NanosecondsI64::try_from(realtime))
        else {
            let cause = format!("its clock cannot be: {monotonic} ns, and {realtime} ns since 1970");
            return Err(Failure::new(Stage::Facts, Kind::Internal, cause).at(agent.host()));
        };
        let offset = monotonic.earlier(before + half);
        if best.is_none_or(|best| half < best.half) {
            best = Some(Clocks { offset, half, wall: realtime.earlier(here).later(half) });
        }
    }
    best.ok_or_else(|| Failure::new(Stage::Facts, Kind::Internal, "no clock reading").at(agent.host()))
}

/// The responder's monotonic clock minus the initiator's now.
///
/// # Errors
/// One of the agents is gone, or does not answer.
pub async fn apart(from: &Agent, to: &Agent) -> Result<NanosecondsI64, Failure> {
    let (from, to) = tokio::try_join!(clocks(from), clocks(to))?;
    Ok(to.offset - from.offset)
}

/// The controller's monotonic clock: the time since an arbitrary moment of this process.
pub fn controller_clock() -> Nanoseconds {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    // Counted from one hour before the first reading, so that differences to it stay positive.
    Nanoseconds::from(START.get_or_init(Instant::now).elapsed()).saturating_add(Nanoseconds::from_secs(3_600))
}

/// The controller's wall clock: the time since 1970.
pub fn wall_clock() -> Nanoseconds {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().into()
}

/// The failure for an answer that does not belong to its question.
pub fn unexpected(host: &str, stage: Stage, answer: &Answer) -> Failure {
    let text = format!("{answer:?}");
    let text: String = text.chars().take(80).collect();
    Failure::new(stage, Kind::Internal, format!("unexpected reply from the agent: {text}"))
        .at(host)
        .remedy(remedy::REBUILD_BOTH)
}

/// Devices of a host for one fabric, in rail order: those the plan names, else those the host offers.
pub fn devices(host: &Host, facts: Option<&HostFacts>, transport: Transport) -> Vec<String> {
    let named = match transport {
        Transport::Verbs => &host.devices,
        Transport::Tcp => &host.tcp,
        Transport::Nccl => return Vec::new(),
    };
    match (named.is_empty(), transport, facts) {
        (false, ..) => named.clone(),
        (true, Transport::Verbs, Some(facts)) => active_ports(facts),
        _ => Vec::new(),
    }
}

/// Every active port of every RDMA device, `mlx5_0` or `mlx5_0:2`.
fn active_ports(facts: &HostFacts) -> Vec<String> {
    let ports = facts.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    ports
        .filter(|(_, port)| port.state.as_deref().is_some_and(|state| state.contains("ACTIVE")))
        .map(|(device, port)| match port.number {
            1 => device.name.clone(),
            n => format!("{}:{n}", device.name),
        })
        .collect()
}

/// Why a run that has no host left ends.
pub fn nobody(halt: Option<Halt>) -> String {
    match halt {
        Some(Halt::NoSpace(why)) => why,
        _ => "no host could be used".into(),
    }
}
