//! The plan's command during a flow: run by the agents of its hosts from before the flow's window to after it.

use std::{collections::BTreeMap, time::Duration};

use railgauge_model::plan::{
    Plan,
    model::{BesideCommand, BesideOn, Test},
};
use railgauge_wire::{Answer, Ask, EarlyEnd, Errand, Failure, Kind, Stage, remedy};
use tokio::task::JoinSet;

use super::super::{
    failures::{host_of, unexpected},
    links::Link,
};
use crate::cluster::{self, Agent};

/// Time for an agent to start a command, or to end it with all its processes.
const LIMIT: Duration = Duration::from_secs(10);

/// Commands on hosts, once per host whatever the number of its flows. Dropping this ends all of them.
#[derive(Default)]
pub(super) struct Commands {
    running: Vec<Agent>,
    failed: BTreeMap<String, Failure>,
}

impl Commands {
    pub(super) async fn on_links(plan: &Plan, test: &Test, links: &[&Link]) -> Self {
        let Some(command) = test.beside.as_ref().and_then(|beside| beside.command.as_ref()) else {
            return Self::default();
        };
        let mut agents: BTreeMap<&str, &Agent> = BTreeMap::new();
        for link in links {
            // A read brings its bytes to the initiator.
            let (source, sink) = if test.op.pulls() { (&link.to, &link.from) } else { (&link.from, &link.to) };
            let (is_source, is_sink) = match command.on {
                BesideOn::Source => (true, false),
                BesideOn::Destination => (false, true),
                BesideOn::Both => (true, true),
            };
            let here = [(is_source, source), (is_sink, sink)].into_iter().filter(|(runs, _)| *runs);
            agents.extend(here.map(|(_, agent)| (agent.host(), agent)));
        }
        Self::start(plan, command, agents).await
    }

    /// `agents` by the names of their hosts.
    pub(super) async fn start(plan: &Plan, command: &BesideCommand, agents: BTreeMap<&str, &Agent>) -> Self {
        let mut commands = Self::default();
        let mut starting = JoinSet::new();
        for (name, agent) in agents {
            let filled = |host| cluster::filled_at(&command.words, Some(host), None).map_err(|trouble| trouble.failure);
            match host_of(&plan.hosts, name).and_then(filled) {
                Ok(words) => {
                    // Before it is known to run: it is ended in any case.
                    commands.running.push(agent.clone());
                    let agent = agent.clone();
                    starting.spawn(async move {
                        let begun = agent.ask(Ask::BeginErrand { words }, LIMIT).await;
                        (agent.host().to_owned(), begun)
                    });
                }
                Err(failure) => drop(commands.failed.insert(name.to_owned(), failure.at(name))),
            }
        }
        for (host, begun) in starting.join_all().await {
            let failure = match begun {
                Ok(Answer::Done) => continue,
                Ok(other) => unexpected(&host, Stage::Measure, &other),
                Err(failure) => failure,
            };
            commands.running.retain(|agent| agent.host() != host || failure.kind == Kind::Deadline);
            commands.failed.insert(host, failure);
        }
        commands
    }

    /// Why a link was measured without the command; `None` if it was measured with it, as far as known.
    pub(super) fn against(&self, link: &Link) -> Option<&Failure> {
        [link.from.host(), link.to.host()].into_iter().find_map(|host| self.failed.get(host))
    }

    pub(super) fn first_failure(&self) -> Option<&Failure> {
        self.failed.values().next()
    }

    /// Ends all commands and waits for all of their processes. A command that ended earlier is a failure of its host.
    pub(super) async fn end(&mut self) {
        let mut ending = JoinSet::new();
        for agent in &self.running {
            let agent = agent.clone();
            ending.spawn(async move { (agent.host().to_owned(), agent.ask(Ask::EndErrand, LIMIT).await) });
        }
        for (host, ended) in ending.join_all().await {
            let failure = match ended {
                Ok(Answer::Errand(errand)) => match failed(*errand) {
                    Some(failure) => failure.at(&host),
                    None => continue,
                },
                Ok(other) => unexpected(&host, Stage::Measure, &other),
                Err(failure) => failure,
            };
            // What kept it from starting is more informative.
            self.failed.entry(host).or_insert(failure);
        }
        self.running.clear();
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        for agent in &self.running {
            drop(agent.send(Ask::EndErrand));
        }
    }
}

fn failed(Errand { early, left }: Errand) -> Option<Failure> {
    if let Some(EarlyEnd { ran, status, said }) = early {
        let said = if said.is_empty() { "it said nothing".to_owned() } else { format!("it said: {said}") };
        let cause = format!(
            "the background command ended by itself after {:.1} s ({status}), so it was not measured with it; {said}",
            ran.seconds()
        );
        return Some(Failure::new(Stage::Measure, Kind::Configuration, cause).remedy(remedy::RUN_BESIDE_BY_HAND));
    }
    let numbers = left.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    (!left.is_empty()).then(|| {
        let cause = format!("processes of the background command were killed and are still there: {numbers}");
        Failure::new(Stage::Measure, Kind::Internal, cause).remedy(remedy::RUN_BESIDE_BY_HAND)
    })
}

#[cfg(test)]
mod tests {
    use railgauge_wire::Nanoseconds;

    use super::*;

    #[test]
    fn a_command_counts_only_while_it_runs() {
        assert!(failed(Errand::default()).is_none());
        let early =
            EarlyEnd { ran: Nanoseconds::from_millis(300), status: "exit status: 1".into(), said: "no space".into() };
        let cause = failed(Errand { early: Some(early), left: Vec::new() }).unwrap().cause;
        assert!(cause.contains("0.3 s") && cause.contains("exit status: 1") && cause.contains("no space"), "{cause}");
        let left = failed(Errand { early: None, left: vec![7] }).unwrap().cause;
        assert!(left.contains('7'), "{left}");
    }
}
