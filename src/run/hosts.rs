use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use railgauge_wire::{Answer, Ask, Failure, HostFacts, Kind, NanosecondsI64, Stage, remedy};

use super::{
    clocks::{Clocks, Reading},
    failures::unexpected,
    spine::Spine,
};
use tokio::task::JoinSet;

use crate::cluster::{self, Agent, AgentBinary, BringUp};
use railgauge_model::journal::{event::Event, stages::Stages};
use railgauge_model::plan::Plan;

#[derive(Default)]
pub(crate) struct Hosts {
    pub agents: BTreeMap<String, Agent>,
    pub facts: BTreeMap<String, HostFacts>,
    /// Wall clock of each host minus the controller's, in nanoseconds.
    pub walls: BTreeMap<String, NanosecondsI64>,
    pub lost: BTreeMap<String, Failure>,
    /// Longest time from an agent's greeting until its host's facts and clock were known.
    pub told_within: Duration,
    pub stages: Stages,
}

const CLEARED: Duration = Duration::from_secs(10);
/// Time for an agent to answer after a missed deadline, before its host is given up.
const PULSE_LIMIT: Duration = Duration::from_secs(5);
/// Time for a host to report its facts. Counters with a lifespan and library look-ups are the slow part.
const FACTS_LIMIT: Duration = Duration::from_secs(20);
/// Starts agents on every host and reads its facts. Ends early only if the run is halted.
pub(crate) async fn bring_up(plan: &Plan, run_id: &str, binary: AgentBinary, spine: &Spine) -> Hosts {
    let log = {
        let spine = spine.clone();
        cluster::LogSink::new(move |host: &str, line: &str| spine.log(host, line))
    };
    // The clocks first: the agent answers them at once, while its processor is not yet busy with its facts.
    let first = Reading::questions().into_iter().chain([Ask::Facts]).collect();
    let (launch, planned) = (plan.launch.clone(), plan.hosts.clone());
    let mut raised = cluster::bring_up_asking(launch, planned, run_id.to_owned(), binary, log, first);
    let begun = Instant::now();
    let mut hosts = Hosts::default();
    let mut asking = JoinSet::new();
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
                    hosts.stages = stages(begun.elapsed(), agent.took(), took);
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

fn stages(all: Duration, took: BringUp, facts: Duration) -> Stages {
    let BringUp { connect, deploy, start } = took;
    let waited = all.saturating_sub(connect + deploy + start + facts);
    Stages {
        connect: (waited + connect).into(),
        deploy: deploy.into(),
        start: start.into(),
        facts: facts.into(),
        ..Stages::default()
    }
}

impl Hosts {
    pub(crate) fn lose(&mut self, host: String, failure: Failure, spine: &Spine) {
        if !self.lost.contains_key(&host) {
            spine.emit(Event::HostLost { host: host.clone(), failure: failure.clone() });
            self.lost.insert(host.clone(), failure);
        }
        self.agents.remove(&host);
    }

    /// Gives up the hosts whose agents have ended. Hosts without further cases are checked only here.
    pub(crate) fn lose_gone(&mut self, spine: &Spine) {
        let gone = |(host, agent): (&String, &Agent)| Some((host.clone(), agent.lost()?));
        for (host, failure) in self.agents.iter().filter_map(gone).collect::<Vec<_>>() {
            self.lose(host, failure, spine);
        }
    }

    pub(crate) async fn lose_silent(&mut self, spine: &Spine) {
        let mut asking = JoinSet::new();
        for (host, agent) in self.agents.clone() {
            asking.spawn(async move { (host, without_pulse(&agent, Kind::Deadline).await) });
        }
        for (host, failure) in asking.join_all().await {
            if let Some(failure) = failure {
                self.lose(host, failure, spine);
            }
        }
    }

    pub(crate) async fn close(&mut self) {
        let mut leaving = JoinSet::new();
        for (_, agent) in std::mem::take(&mut self.agents) {
            leaving.spawn(async move { agent.close().await });
        }
        while leaving.join_next().await.is_some() {}
        cluster::cleared(CLEARED).await;
    }
}

async fn meet(agent: &Agent) -> Result<(HostFacts, Clocks), Failure> {
    let mut first = agent.first().await;
    let facts = first.pop().map_or_else(|| agent.send(Ask::Facts), |(_, facts)| facts);
    let clocks = Reading::asked(first).clocks(agent).await;
    let facts = match facts.within(FACTS_LIMIT).await? {
        Answer::Facts(facts) => *facts,
        other => return Err(unexpected(agent.host(), Stage::Facts, &other)),
    };
    Ok((facts, clocks?))
}

/// Why an agent must be given up: its pipe is closed, or it missed a deadline and does not answer a clock reading either.
pub(super) async fn without_pulse(agent: &Agent, kind: Kind) -> Option<Failure> {
    if let Some(lost) = agent.lost() {
        return Some(lost);
    }
    if kind != Kind::Deadline || agent.ask(Ask::Clock, PULSE_LIMIT).await.is_ok() {
        return None;
    }
    let cause = format!("the agent is connected but has not answered for {} s", PULSE_LIMIT.as_secs());
    Some(agent.lost().unwrap_or_else(|| {
        Failure::new(Stage::Converse, Kind::Lost, cause).at(agent.host()).remedy(remedy::CHECK_HOST_LOAD)
    }))
}
