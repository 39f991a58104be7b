use std::time::Duration;

use railgauge_model::{
    border::text,
    plan::{
        self,
        allocation::{self, PodList},
        model::{Host, Kubectl, Pods},
    },
};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    natural, remedy,
};

use super::{
    client::{Client, NoAnswer},
    explain,
    pod::{self, List},
};

/// Time for the API server to list pods: a thousand of them are some megabytes.
const LIMIT: Duration = Duration::from_secs(20);

pub fn pods(kubectl: &Kubectl, wanted: &Pods) -> Result<PodList, Failure> {
    let client = Client::new(kubectl);
    let selector = format!("--selector={}", wanted.selector);
    let failure = |cause: String| Failure::new(Stage::Connect, Kind::Configuration, cause);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failure(format!("kubectl cannot be waited for: {error}")))?;
    let answer =
        runtime.block_on(client.get(&["pods", &selector], LIMIT)).map_err(|none| untold(&none, &client, wanted))?;
    pod::read(&answer).map(sorted).map_err(|error| {
        let remedy = remedy::KUBECTL_CONFIG.with(client.place());
        failure(format!("kubectl's list of pods cannot be read: {error}")).remedy(remedy)
    })
}

/// Gives the hosts of a resumed run their current pods.
///
/// # Errors
/// The API server does not answer, or a host of the run may be another machine now.
pub fn pods_again(kubectl: &Kubectl, wanted: &Pods, hosts: &mut [Host]) -> Result<(), Failure> {
    let found = pods(kubectl, wanted)?;
    plan::again(hosts, &found).map_err(|unlike| {
        let selector = [("selector", wanted.selector.clone())];
        let remedy = remedy::KUBECTL_OTHER_PODS.with(Client::new(kubectl).place().chain(selector));
        Failure::new(Stage::Connect, Kind::Configuration, unlike.to_string()).remedy(remedy).at(unlike.host())
    })
}

fn untold(none: &NoAnswer, client: &Client, wanted: &Pods) -> Failure {
    let (kind, remedy) = explain::unlisted(none);
    let words = match none {
        NoAnswer::NotStarted(error) => format!("cannot start kubectl: {error}"),
        NoAnswer::Refused(words) => text::line(words.lines().last().unwrap_or_default().as_bytes()),
        NoAnswer::NotThere => "there are none".to_owned(),
        NoAnswer::Late(limit) => format!("no answer within {} s", limit.as_secs()),
    };
    let cause = format!("the pods of the plan cannot be listed: {words}");
    let selector = [("selector", wanted.selector.clone())];
    Failure::new(Stage::Connect, kind, cause).remedy(remedy.with(client.place().chain(selector)))
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
