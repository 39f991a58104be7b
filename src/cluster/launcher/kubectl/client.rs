use std::{io, process::Stdio, time::Duration};

use railgauge_model::{border::text, plan::model::Kubectl};
use tokio::{process::Command, time::timeout};

const PROGRAM: &str = "kubectl";

/// kubectl's arguments.
#[derive(Debug)]
pub(super) struct Client(Kubectl);

impl Client {
    pub(super) fn new(kubectl: &Kubectl) -> Self {
        Self(kubectl.clone())
    }

    fn options(&self) -> Vec<String> {
        let Kubectl { kubeconfig, context, namespace, .. } = &self.0;
        let kubeconfig = kubeconfig.iter().map(|path| format!("--kubeconfig={}", path.display()));
        let context = context.iter().map(|context| format!("--context={context}"));
        let namespace = namespace.iter().map(|namespace| format!("--namespace={namespace}"));
        kubeconfig.chain(context).chain(namespace).collect()
    }

    pub(super) fn exec(&self, pod: &str) -> Vec<String> {
        let container = self.0.container.iter().map(|container| format!("--container={container}"));
        let own = ["exec", "--stdin", pod].map(str::to_owned);
        let words = [PROGRAM.to_owned()].into_iter().chain(self.options()).chain(own);
        words.chain(container).chain(["--".to_owned()]).collect()
    }

    /// Values of the plan for remedies, so that their commands reach what this client reaches.
    pub(super) fn place(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Kubectl { namespace, context, kubeconfig, container } = &self.0;
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
    /// kubectl does not start, fails, or does not answer in time.
    pub(super) async fn get(&self, words: &[&str], limit: Duration) -> io::Result<Vec<u8>> {
        let asked = Command::new(PROGRAM)
            .args(self.options())
            .arg("get")
            .args(words)
            .args(["--output=json", &format!("--request-timeout={}s", limit.as_secs().max(1))])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        match timeout(limit, asked).await {
            Ok(Ok(output)) if output.status.success() => Ok(output.stdout),
            Ok(Ok(output)) => {
                let last = output.stderr.trim_ascii().rsplit(|byte| *byte == b'\n').next();
                Err(io::Error::other(text::line(last.unwrap_or_default())))
            }
            Ok(Err(error)) => Err(io::Error::other(format!("cannot start kubectl: {error}"))),
            Err(_) => Err(io::Error::other(format!("no answer within {} s", limit.as_secs()))),
        }
    }
}
