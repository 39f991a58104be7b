//! Processes in containers: one `podman exec` or `docker exec` for each, and its streams. The engine and its service are determined by its
//! program and the variables of this process's environment (`DOCKER_HOST`, `CONTAINER_HOST`).

mod explain;
mod inspect;

use std::{collections::BTreeMap, future::ready, time::Duration};

use jiff::Timestamp;
use railgauge_model::plan::model::Host;
use railgauge_wire::remedy::{self, Entry, Remedy};

use super::{Connection, Launcher, Pending};
use crate::cluster::{
    child::child,
    pipe::{Behind, Pipe, ProcessEnd},
    trouble::Trouble,
};

/// Longest silence of an agent that is asked: a paused container does not answer. The same as for ssh.
const SILENCE: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy)]
pub(super) struct Engine(pub &'static str);

#[derive(Debug, Clone)]
struct Container {
    engine: Engine,
    name: String,
    user: Option<String>,
}

impl Container {
    fn with(&self, entry: Entry) -> Remedy {
        entry.with([("engine", self.engine.0), ("container", self.name.as_str())])
    }
}

impl Launcher for Engine {
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>> {
        let container = Container { engine: *self, name: host.address.clone(), user: host.user.clone() };
        let opened: Box<dyn Connection> = Box::new(container);
        Box::pin(ready(Ok(opened)))
    }

    fn late(&self, host: &Host) -> Pending<'static, Option<Trouble>> {
        let container = Container { engine: *self, name: host.address.clone(), user: None };
        let began = Timestamp::now();
        Box::pin(async move { explain::late(&container, &inspect::ask(&container).await, began) })
    }
}

impl Connection for Container {
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>> {
        let own = [self.engine.0, "exec", "--interactive"].map(str::to_owned);
        let user = self.user.iter().map(|user| format!("--user={user}"));
        let words: Vec<String> =
            own.into_iter().chain(user).chain([self.name.clone()]).chain(words.iter().cloned()).collect();
        let began = Timestamp::now();
        let started = child(&words, &BTreeMap::new(), self.with(remedy::ENGINE_CLIENT)).map(|pipe| {
            let container = self.clone();
            let explain = move |end: Option<ProcessEnd>, words: String| -> Pending<'static, Option<Trouble>> {
                Box::pin(async move {
                    let known = inspect::ask(&container).await;
                    explain::ended(end.as_ref(), &words, &known, &container, began)
                })
            };
            Pipe { way: Behind { silence: Some(SILENCE), explain: Some(Box::new(explain)) }, ..pipe }
        });
        Box::pin(ready(started))
    }

    fn may_share_files(&self) -> bool {
        true
    }

    /// A process in a container may outlive the program that started it.
    fn may_outlive(&self) -> bool {
        true
    }

    fn explain(&self, trouble: Trouble, end: &ProcessEnd, _words: &str) -> Trouble {
        match end {
            // A script of ours without output, or that received less than was sent: the stream was cut.
            ProcessEnd::Code(0) => trouble.cut(self.with(remedy::ENGINE_BY_HAND)),
            ProcessEnd::Code(126 | 127) => trouble.remedy_or(remedy::CONTAINER_IMAGE),
            _ => trouble.remedy_or(self.with(remedy::ENGINE_BY_HAND)),
        }
    }
}
