//! `via = "kubectl"`, and `[launch.kubectl]`: where the pods are.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::way::Way;
use crate::plan::{
    Key, Section, Table,
    format::{key, keys},
};

static KUBECTL: Section = Section {
    header: "[launch.kubectl]",
    about: "Where the pods are; everything else comes from your kubeconfig. Only with `via = \"kubectl\"`.",
    keys: keys! {
        "namespace": Text, Means("that of the context"), "Namespace of the pods (`kubectl --namespace`).";
        "context": Text, Means("the current one"), "Context of the kubeconfig (`kubectl --context`).";
        "kubeconfig": Path, Means("kubectl's"),
            "Another kubeconfig (`kubectl --kubeconfig`).";
        "container": Text, Means("the pod's default container"),
            "Container of the agents (`kubectl exec --container`).";
    },
};

/// Anything unset comes from the user's kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kubectl {
    /// That of the context if `None`.
    pub namespace: Option<String>,
    /// The current one of the kubeconfig if `None`.
    pub context: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    /// The pod's default container if `None`.
    pub container: Option<String>,
}

impl Kubectl {
    pub(super) const KEY: Key = key!(
        "kubectl": Table(&KUBECTL), Means("what your kubeconfig says"),
            "Where the pods are; only with `via = \"kubectl\"`."
    );

    pub(super) fn read(launch: &Table<'_>) -> Self {
        launch.table(Self::KEY.name).settings(|_| true)
    }
}

pub fn way(_: &Kubectl) -> Way {
    Way { words: "Kubernetes pods (kubectl exec)".into(), is_found_by_address: true, ..Way::default() }
}
