//! What the API server says of a pod: the fields of Kubernetes' Pod (core/v1) that explain the end of a process in it.

use std::time::Duration;

use jiff::Timestamp;
use railgauge_model::border::{self, text};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::client::NoAnswer;

#[derive(Debug)]
pub(super) enum Known {
    Pod(Box<Pod>),
    Nothing(NoAnswer),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct List {
    pub items: Vec<Pod>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Pod {
    pub metadata: Metadata,
    pub spec: Spec,
    pub status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub name: String,
    pub deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub node_name: String,
    pub containers: Vec<Named>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Such as `Evicted` or `NodeLost`.
    pub reason: String,
    pub message: String,
    pub conditions: Vec<Condition>,
    pub container_statuses: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    pub name: String,
    pub state: State,
    pub last_state: State,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub waiting: Option<Waiting>,
    pub terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Waiting {
    /// Such as `ContainerCreating` or `ImagePullBackOff`.
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Terminated {
    /// Such as `OOMKilled` or `Error`.
    pub reason: String,
    pub exit_code: i32,
    pub finished_at: Option<String>,
}

impl Terminated {
    /// Whether it ended after a moment, within the accuracy of two machines' clocks.
    pub(super) fn is_after(&self, moment: Timestamp) -> bool {
        /// Most difference between the clocks of the node and of this machine; times are in whole seconds.
        const SKEW: Duration = Duration::from_secs(5);
        let ended = self.finished_at.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        ended.is_some_and(|ended| ended.saturating_add(SKEW).is_ok_and(|ended| ended > moment))
    }
}

/// A document of the API server. Its texts are untrusted: they are made printable.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    let mut value: Value = serde_json::from_slice(bytes)?;
    border::clean(&mut value, text::printable);
    border::typed(&value)
}
