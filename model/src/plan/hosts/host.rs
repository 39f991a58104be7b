//! A host, and its pod when a run is resumed: each host must be the same machine as before.

use serde::{Deserialize, Serialize};

use crate::plan::{PodList, allocation::Pod};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub name: String,
    /// The launcher's target; the name unless overridden.
    pub address: String,
    pub user: Option<String>,
    pub port: Option<u16>,
    /// In rail order; the agent finds them if empty. `mlx5_0:2` names port 2.
    pub devices: Vec<String>,
    /// Addresses or interfaces for TCP, in rail order; the agent finds them if empty.
    pub tcp: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unlike {
    /// Several pods run on its node, and none has its old name.
    #[error("several pods run on the node {host} ({}), and none of them is that of the run", pods.join(", "))]
    Several { host: String, pods: Vec<String> },
    /// Its pod runs on another node.
    #[error("the pod {pod} was on the node {host} and is on {node} now, which may be another machine")]
    Elsewhere {
        host: String,
        pod: String,
        /// The pod's current node.
        node: String,
    },
}

impl Unlike {
    pub fn host(&self) -> &str {
        match self {
            Self::Several { host, .. } | Self::Elsewhere { host, .. } => host,
        }
    }
}

/// Gives hosts their current pods: a recreated pod has another name, on the same node. A host with the name of its pod keeps it, and so
/// does one whose node runs no pod now: it fails at start-up with a message.
///
/// # Errors
/// A host could get a pod of another machine, or one of several; nothing is changed then.
pub fn again(hosts: &mut [Host], found: &PodList) -> Result<(), Unlike> {
    let now: Vec<String> = hosts.iter().map(|host| pod_of(host, found)).collect::<Result<_, _>>()?;
    for (host, pod) in hosts.iter_mut().zip(now) {
        host.address = pod;
    }
    Ok(())
}

fn pod_of(host: &Host, found: &PodList) -> Result<String, Unlike> {
    let (name, address) = (host.name.clone(), host.address.clone());
    let same = found.list.iter().find(|pod| pod.name == address);
    if name == address && same.is_some() {
        return Ok(address);
    }
    let there: Vec<&Pod> = found.list.iter().filter(|pod| pod.node == name).collect();
    match (there.as_slice(), same) {
        ([one], _) => Ok(one.name.clone()),
        ([], None) => Ok(address),
        ([], Some(pod)) => Err(Unlike::Elsewhere { host: name, pod: address, node: pod.node.clone() }),
        (_, Some(pod)) if pod.node == name => Ok(address),
        (several, _) => Err(Unlike::Several { host: name, pods: several.iter().map(|pod| pod.name.clone()).collect() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(hosts: &[(&str, &str)], pods: &[(&str, &str)]) -> Result<Vec<String>, Unlike> {
        let host = |(name, address): &(&str, &str)| Host {
            name: (*name).into(),
            address: (*address).into(),
            user: None,
            port: None,
            devices: vec![],
            tcp: vec![],
        };
        let mut hosts: Vec<Host> = hosts.iter().map(host).collect();
        let pod = |(name, node): &(&str, &str)| Pod { name: (*name).into(), node: (*node).into() };
        let found = PodList { list: pods.iter().map(pod).collect(), others: Vec::new() };
        let told = again(&mut hosts, &found);
        told.map(|()| hosts.into_iter().map(|host| host.address).collect())
    }

    const RUN: [(&str, &str); 2] = [("n1", "rg-a"), ("n2", "rg-b")];

    #[test]
    fn a_pod_that_was_made_anew_is_found_by_its_node() {
        assert_eq!(now(&RUN, &[("rg-x", "n1"), ("rg-b", "n2")]).unwrap(), ["rg-x", "rg-b"]);
        // Two pods of a StatefulSet have swapped places.
        assert_eq!(now(&RUN, &[("rg-a", "n2"), ("rg-b", "n1")]).unwrap(), ["rg-b", "rg-a"]);
        // Nothing runs on its node: it is lost under its old name.
        assert_eq!(now(&RUN, &[("rg-b", "n2"), ("rg-x", "n9")]).unwrap(), ["rg-a", "rg-b"]);
    }

    #[test]
    fn several_pods_of_a_node_are_kept_apart() {
        // One more pod than before: the one of the run still exists.
        assert_eq!(now(&RUN, &[("rg-0", "n1"), ("rg-a", "n1"), ("rg-b", "n2")]).unwrap(), ["rg-a", "rg-b"]);
        let told = now(&RUN, &[("rg-x", "n1"), ("rg-y", "n1"), ("rg-b", "n2")]).unwrap_err();
        assert_eq!(told, Unlike::Several { host: "n1".into(), pods: vec!["rg-x".into(), "rg-y".into()] });
        // Hosts with the names of their pods keep them, whatever nodes are called.
        let own = [("rg-a", "rg-a"), ("rg-b", "rg-b")];
        assert_eq!(now(&own, &[("rg-a", "n1"), ("rg-b", "n1"), ("rg-c", "rg-a")]).unwrap(), ["rg-a", "rg-b"]);
        assert_eq!(now(&own, &[("rg-x", "n1"), ("rg-b", "n1")]).unwrap(), ["rg-a", "rg-b"]);
    }

    #[test]
    fn a_pod_on_another_node_is_not_the_host_that_it_was() {
        let told = now(&RUN, &[("rg-a", "n9"), ("rg-b", "n2")]).unwrap_err();
        assert_eq!(told, Unlike::Elsewhere { host: "n1".into(), pod: "rg-a".into(), node: "n9".into() });
        assert_eq!(told.host(), "n1");
    }
}
