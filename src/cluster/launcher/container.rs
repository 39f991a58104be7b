//! A process in a container, through a client that runs what follows on its command line there: `podman exec`, `docker exec`, `kubectl exec`.

use std::{collections::BTreeMap, future::ready, time::Duration};

use railgauge_model::plan::model::Host;
use railgauge_wire::{
    Kind, Stage,
    remedy::{self, Remedy},
};

use super::{Connection, Launcher, Pending};
use crate::cluster::{Behind, Pipe, ProcessEnd, Trouble, child::child};

/// Longest silence of an agent that is asked: a paused container does not answer. The same as for ssh. The question after a third of it
/// also keeps proxies, load balancers and kubelets from cutting an idle stream (kubernetes#64949: after 5 min).
const SILENCE: Duration = Duration::from_secs(15);

pub(super) struct Container {
    /// The client's command line, up to the words of the process.
    pub client: Vec<String>,
    /// For people: `the pod rg-1`.
    pub name: String,
    /// Words of the client that tell that the status is the process's own. Without them the status is that of kubectl, which is 0 also for
    /// a cut stream (kubernetes#73056). Empty where it always is the process's.
    pub tells: &'static str,
    pub by_hand: Remedy,
}

impl Connection for Container {
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>> {
        let words: Vec<String> = self.client.iter().chain(words).cloned().collect();
        let started = child(&words, &BTreeMap::new(), self.by_hand.clone()).map(|pipe| {
            let (name, tells, remedy) = (self.name.clone(), self.tells, self.by_hand.clone());
            let explain = move |end: Option<ProcessEnd>, words: String| -> Pending<'static, Option<Trouble>> {
                Box::pin(ready(ended(&name, end.as_ref(), words.contains(tells), remedy)))
            };
            Pipe { way: Behind { silence: Some(SILENCE), explain: Some(Box::new(explain)) }, ..pipe }
        });
        Box::pin(ready(started))
    }

    /// An image may have the agents where a controller of the same image has them, and containers may mount what this machine or all nodes
    /// share.
    fn may_share_files(&self) -> bool {
        true
    }

    fn explain(&self, trouble: Trouble, end: &ProcessEnd, _words: &str) -> Trouble {
        match end {
            // kubectl may lose a part of what it sends (kubernetes#15702) or drop an answer (kubernetes#131189): a script of ours without
            // output, or that received less, is tried again.
            ProcessEnd::Code(0) => trouble.cut(self.by_hand.clone()),
            ProcessEnd::Code(126 | 127) => trouble.remedy_or(remedy::CONTAINER_IMAGE),
            _ => trouble.remedy_or(self.by_hand.clone()),
        }
    }
}

/// What a container's client says of the end of a process, `None` if it is still there. `is_own` is whether the status is the process's own:
/// a client whose stream was cut may end with 0 or 1.
fn ended(name: &str, end: Option<&ProcessEnd>, is_own: bool, remedy: Remedy) -> Option<Trouble> {
    let lost = |cause| Trouble::lasting(Stage::Connect, Kind::Lost, cause);
    let cause = match end {
        None => format!("nothing comes from {name}"),
        Some(ProcessEnd::Code(137)) => {
            let cause = format!("the process in {name} was killed by signal 9 (SIGKILL)");
            return Some(lost(cause).remedy(remedy::CONTAINER_KILLED));
        }
        Some(ProcessEnd::Code(0 | 1)) if !is_own => format!("the client of {name} ended before the process in it"),
        Some(_) => return None,
    };
    Some(Trouble { passing: true, ..lost(cause).remedy(remedy) })
}

/// The engine and its service are determined by its program and the variables of this process's environment (`DOCKER_HOST`,
/// `CONTAINER_HOST`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine(pub &'static str);

impl Launcher for Engine {
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>> {
        let own = [self.0, "exec", "--interactive"].map(str::to_owned);
        let user = host.user.iter().map(|user| format!("--user={user}"));
        let container: Box<dyn Connection> = Box::new(Container {
            client: own.into_iter().chain(user).chain([host.address.clone()]).collect(),
            name: format!("the container {}", host.address),
            tells: "",
            by_hand: remedy::ENGINE_BY_HAND.with([("engine", self.0), ("container", host.address.as_str())]),
        });
        Box::pin(ready(Ok(container)))
    }
}
