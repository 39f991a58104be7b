use std::time::Duration;

use railgauge_model::{
    border::{self, text},
    plan::{
        self,
        allocation::{self, PodList},
        model::{Host, Kubectl, Pods},
    },
};
use railgauge_wire::{
    Failure, Kind, Stage, natural,
    remedy::{self, Entry},
};
use serde::Deserialize;

use super::client::Client;

/// Time for the API server to list pods: a thousand of them are some megabytes.
const LIMIT: Duration = Duration::from_secs(20);

/// Fields of a Kubernetes Pod (core/v1).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct List {
    items: Vec<Pod>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    phase: String,
}

pub fn pods(kubectl: &Kubectl, wanted: &Pods) -> Result<PodList, Failure> {
    let client = Client::new(kubectl);
    let failure = |cause: String| failed(&client, wanted, cause, remedy::KUBECTL_BY_HAND);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failure(format!("kubectl cannot be waited for: {error}")))?;
    let selector = format!("--selector={}", wanted.selector);
    let answer = runtime.block_on(client.get(&["pods", &selector], LIMIT));
    let answer = answer.map_err(|why| failure(format!("the pods of the plan cannot be listed: {why}")))?;
    read(&answer).map(sorted).map_err(|error| failure(format!("kubectl's list of pods cannot be read: {error}")))
}

/// Its texts are untrusted: they are made printable.
fn read(bytes: &[u8]) -> serde_json::Result<List> {
    let mut value = serde_json::from_slice(bytes)?;
    border::clean(&mut value, text::printable);
    border::typed(&value)
}

/// Gives the hosts of a resumed run their current pods.
///
/// # Errors
/// The API server does not answer, or a host of the run may be another machine now.
pub fn pods_again(kubectl: &Kubectl, wanted: &Pods, hosts: &mut [Host]) -> Result<(), Failure> {
    let found = pods(kubectl, wanted)?;
    plan::again(hosts, &found).map_err(|unlike| {
        let client = Client::new(kubectl);
        failed(&client, wanted, unlike.to_string(), remedy::KUBECTL_OTHER_PODS).at(unlike.host())
    })
}

fn failed(client: &Client, wanted: &Pods, cause: String, remedy: Entry) -> Failure {
    let values = client.place().chain([("selector", wanted.selector.clone())]);
    Failure::new(Stage::Connect, Kind::Configuration, cause).remedy(remedy.with(values))
}

struct Keyed(String, allocation::Pod);

impl AsRef<str> for Keyed {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

fn sorted(list: List) -> PodList {
    let (mut running, mut others) = (Vec::new(), Vec::new());
    for pod in list.items {
        let (name, node) = (pod.metadata.name, pod.spec.node_name);
        match pod.status.phase.as_str() {
            "Running" if pod.metadata.deletion_timestamp.is_none() => {
                running.push(Keyed(format!("{node} {name}"), allocation::Pod { name, node }));
            }
            "Running" => others.push(format!("{name} is being deleted")),
            phase => others.push(format!("{name} is {phase}")),
        }
    }
    natural::sort(&mut running);
    PodList { list: running.into_iter().map(|keyed| keyed.1).collect(), others }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_run_are_in_the_order_of_their_nodes_and_the_others_are_told() {
        let text = r#"{"items": [
            {"metadata": {"name": "rg-a"}, "spec": {"nodeName": "gpu10"}, "status": {"phase": "Running"}},
            {"metadata": {"name": "rg-b"}, "spec": {"nodeName": "gpu9"}, "status": {"phase": "Running"}},
            {"metadata": {"name": "rg-c"}, "spec": {}, "status": {"phase": "Pending"}},
            {"metadata": {"name": "rg-d", "deletionTimestamp": "2026-11-25T07:00:00Z"}, "status": {"phase": "Running"}}]}"#;
        let found = sorted(serde_json::from_str(text).unwrap());
        let names: Vec<(&str, &str)> = found.list.iter().map(|pod| (pod.name.as_str(), pod.node.as_str())).collect();
        assert_eq!(names, [("rg-b", "gpu9"), ("rg-a", "gpu10")]);
        assert_eq!(found.others, ["rg-c is Pending", "rg-d is being deleted"]);
    }
}
