use std::{process::Stdio, sync::Arc, time::Duration};

use railgauge_model::plan::model::Kubectl;
use tokio::{process::Command, time::timeout};

const PROGRAM: &str = "kubectl";

#[derive(Debug, Clone)]
pub(super) struct Client(Arc<Where>);

#[derive(Debug)]
struct Where {
    options: Vec<String>,
    kubectl: Kubectl,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAnswer {
    NotStarted(String),
    Refused(String),
    Late(Duration),
    NotThere,
}

impl Client {
    pub(super) fn new(kubectl: &Kubectl) -> Self {
        let mut options = Vec::new();
        options.extend(kubectl.kubeconfig.iter().map(|path| format!("--kubeconfig={}", path.display())));
        options.extend(kubectl.context.iter().map(|context| format!("--context={context}")));
        options.extend(kubectl.namespace.iter().map(|namespace| format!("--namespace={namespace}")));
        Self(Arc::new(Where { options, kubectl: kubectl.clone() }))
    }

    pub(super) fn exec(&self, pod: &str) -> impl Iterator<Item = String> {
        let container = self.container().into_iter().map(|container| format!("--container={container}"));
        let own = ["exec", "--stdin", pod].map(str::to_owned);
        [PROGRAM.to_owned()]
            .into_iter()
            .chain(self.0.options.iter().cloned())
            .chain(own)
            .chain(container)
            .chain(["--".to_owned()])
    }

    /// `None` for that of the context.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.0.kubectl.namespace.as_deref()
    }

    /// `None` for the pod's default.
    pub(super) fn container(&self) -> Option<&str> {
        self.0.kubectl.container.as_deref()
    }

    /// Values of the plan for remedies, so that their commands reach what this client reaches.
    pub(super) fn place(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Kubectl { namespace, context, kubeconfig, container } = &self.0.kubectl;
        let kubeconfig = kubeconfig.as_ref().map(|path| path.display().to_string());
        [
            ("namespace", namespace.clone()),
            ("context", context.clone()),
            ("kubeconfig", kubeconfig),
            ("container", container.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// The JSON answer of `kubectl get …`.
    ///
    /// # Errors
    /// No answer within `limit`, or no success.
    pub(super) async fn get(&self, words: &[&str], limit: Duration) -> Result<Vec<u8>, NoAnswer> {
        let asked = Command::new(PROGRAM)
            .args(&self.0.options)
            .arg("get")
            .args(words)
            .args(["--output=json", &format!("--request-timeout={}s", limit.as_secs().max(1))])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        match timeout(limit, asked).await {
            Ok(Ok(output)) if output.status.success() => Ok(output.stdout),
            Ok(Ok(output)) => Err(NoAnswer::Refused(String::from_utf8_lossy(&output.stderr).into_owned())),
            Ok(Err(error)) => Err(NoAnswer::NotStarted(error.to_string())),
            Err(_) => Err(NoAnswer::Late(limit)),
        }
    }
}
