//! What a kit (`docs/dev/bundle.md`) has of the hosts apart from a run: facts and their source files.

use std::{collections::BTreeMap, time::Duration};

use railgauge_model::plan::{Plan, model::Host};
use railgauge_wire::{Failure, HostFacts};

use super::{
    hosts,
    raw::{RawTree, raw},
    spine::Spine,
};
use crate::cluster::AgentBinary;

const LIMIT: Duration = Duration::from_secs(60);
pub(crate) const HOSTS: usize = 32;

#[derive(Default)]
pub(crate) struct Contact {
    pub facts: BTreeMap<String, HostFacts>,
    pub lost: BTreeMap<String, Failure>,
    /// Files of each of the first [`HOSTS`] hosts that answered, or why there are none.
    pub trees: BTreeMap<String, Result<RawTree, Failure>>,
}

impl Contact {
    pub(crate) fn is_whole(&self) -> bool {
        self.lost.is_empty()
            && self.facts.len() > 1
            && self.trees.len() == self.facts.len().min(HOSTS)
            && self.trees.values().all(Result::is_ok)
    }
}

pub(crate) async fn contact(plan: &Plan, run_id: &str, binary: AgentBinary, spine: &Spine) -> Contact {
    let mut hosts = hosts::bring_up(plan, run_id, binary, spine).await;
    let mut contact = Contact { facts: hosts.facts.clone(), lost: hosts.lost.clone(), ..Contact::default() };
    let is_up = |host: &&Host| hosts.agents.contains_key(&host.name);
    let mut reading = tokio::task::JoinSet::new();
    for host in plan.hosts.iter().filter(is_up).take(HOSTS) {
        let (agent, name) = (hosts.agents[&host.name].clone(), host.name.clone());
        reading.spawn(async move { (name, raw(&agent, LIMIT).await) });
    }
    while let Some(Ok((name, tree))) = reading.join_next().await {
        contact.trees.insert(name, tree);
    }
    hosts.close().await;
    contact
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{Kind, Stage};

    use super::*;

    #[test]
    fn contact_is_whole_only_with_everything_that_is_promised() {
        let failure = || Failure::new(Stage::Facts, Kind::Internal, "no".to_owned());
        let hosts = ["a", "b"].map(str::to_owned);
        let whole = || Contact {
            facts: hosts.iter().map(|host| (host.clone(), HostFacts::default())).collect(),
            trees: hosts.iter().map(|host| (host.clone(), Ok(RawTree::default()))).collect(),
            ..Contact::default()
        };
        assert!(whole().is_whole());
        assert!(!Contact { lost: [("c".to_owned(), failure())].into(), ..whole() }.is_whole());
        assert!(!Contact { trees: [("a".to_owned(), Ok(RawTree::default()))].into(), ..whole() }.is_whole());
        let mut without_tree = whole();
        without_tree.trees.insert("b".to_owned(), Err(failure()));
        assert!(!without_tree.is_whole());
    }
}
