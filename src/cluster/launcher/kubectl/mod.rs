//! Processes in pods of Kubernetes: one `kubectl exec` for each, and its streams.
//!
//! | file | holds |
//! | --- | --- |
//! | `client` | kubectl's arguments and answers |
//! | `pod` | what the API server says of a pod |
//! | `explain` | what that and kubectl's output mean |
//! | `inquiry` | the state of pods, for many hosts at once |
//! | `find` | the pods that a selector finds |

mod client;
mod explain;
mod find;
mod inquiry;
mod pod;

use std::{collections::BTreeMap, future::ready, time::Duration};

use jiff::Timestamp;
use railgauge_model::plan::model::{Host, Kubectl, Launch};
use railgauge_wire::remedy;

use super::{Connection, Launcher, Pending};
use crate::cluster::{
    child::child,
    pipe::{Behind, Pipe, ProcessEnd},
    trouble::Trouble,
};
use client::Client;
use explain::Exec;
use inquiry::Inquiry;

pub use find::{pods, pods_again};

/// Longest silence of an agent that is asked; the same as for ssh. The question after a third of it also keeps proxies, load balancers and
/// kubelets from cutting an idle stream (kubernetes#64949: after 5 min).
const SILENCE: Duration = Duration::from_secs(15);

struct Cluster {
    client: Client,
    inquiry: Inquiry,
}

struct Pod {
    client: Client,
    inquiry: Inquiry,
    name: String,
}

pub(super) fn prepare(kubectl: &Kubectl, _launch: &Launch) -> Result<Box<dyn Launcher>, Trouble> {
    let client = Client::new(kubectl);
    Ok(Box::new(Cluster { inquiry: Inquiry::new(client.clone()), client }))
}

impl Launcher for Cluster {
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>> {
        let (client, inquiry, name) = (self.client.clone(), self.inquiry.clone(), host.address.clone());
        let pod: Box<dyn Connection> = Box::new(Pod { client, inquiry, name });
        Box::pin(ready(Ok(pod)))
    }

    fn late(&self, host: &Host) -> Pending<'static, Option<Trouble>> {
        let (client, inquiry, name) = (self.client.clone(), self.inquiry.clone(), host.address.clone());
        let began = Timestamp::now();
        Box::pin(async move {
            let known = inquiry.ask(&name).await;
            explain::late(&Exec { client: &client, pod: &name, began }, &known)
        })
    }
}

impl Connection for Pod {
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>> {
        let words: Vec<String> = self.client.exec(&self.name).chain(words.iter().cloned()).collect();
        let began = Timestamp::now();
        let started = child(&words, &BTreeMap::new(), remedy::KUBECTL_CLIENT).map(|pipe| {
            let (client, inquiry, name) = (self.client.clone(), self.inquiry.clone(), self.name.clone());
            let explain = move |end: Option<ProcessEnd>, words: String| -> Pending<'static, Option<Trouble>> {
                Box::pin(async move {
                    let known = inquiry.ask(&name).await;
                    explain::ended(end.as_ref(), &words, &known, &Exec { client: &client, pod: &name, began })
                })
            };
            Pipe { way: Behind { silence: Some(SILENCE), explain: Some(Box::new(explain)) }, ..pipe }
        });
        Box::pin(ready(started))
    }

    /// An image may have the agents where a controller of the same image has them, and pods may mount what all nodes share.
    fn may_share_files(&self) -> bool {
        true
    }

    /// A process in a container continues when its stream is cut.
    fn may_outlive(&self) -> bool {
        true
    }

    fn explain(&self, trouble: Trouble, end: &ProcessEnd, words: &str) -> Trouble {
        let exec = Exec { client: &self.client, pod: &self.name, began: Timestamp::now() };
        match end {
            // kubectl also returns 0 for a cut stream (kubernetes#73056), and may lose a part of what it sends (kubernetes#15702): a script
            // of ours without output, or that received less, is tried again.
            ProcessEnd::Code(0) if explain::drops(words) => trouble.cut(exec.with(remedy::KUBECTL_DROPPED)),
            ProcessEnd::Code(0) => trouble.cut(exec.with(remedy::KUBECTL_CUT)),
            ProcessEnd::Code(126 | 127) => trouble.remedy_or(remedy::CONTAINER_IMAGE),
            _ => trouble.remedy_or(exec.with(remedy::KUBECTL_BY_HAND)),
        }
    }
}
