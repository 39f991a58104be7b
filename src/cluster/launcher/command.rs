//! Any command that runs what follows it somewhere: `ip netns exec {host}`, `kubectl exec -i {host} --`, `docker exec -i {host}`, `srun -u
//! … -w {host}`. No shell takes part: the template's words, then the process's words.

use std::{collections::BTreeMap, future::ready};

use railgauge_model::plan::model::{Command, Host, Launch};
use railgauge_wire::remedy;

use super::{Connection, Launcher, Pending};
use crate::cluster::{Pipe, ProcessEnd, Trouble, child::child, template::filled};

struct Template(Vec<String>);

struct Filled(Vec<String>);

pub(super) fn prepare(command: &Command, _launch: &Launch) -> Result<Box<dyn Launcher>, Trouble> {
    Ok(Box::new(Template(command.0.clone())))
}

impl Launcher for Template {
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>> {
        let opened = filled(&self.0, host).map(|words| -> Box<dyn Connection> { Box::new(Filled(words)) });
        Box::pin(ready(opened))
    }
}

impl Connection for Filled {
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>> {
        let words: Vec<String> = self.0.iter().chain(words).cloned().collect();
        Box::pin(ready(child(&words, &BTreeMap::new(), remedy::LAUNCH_COMMAND_PROGRAM)))
    }

    /// True for a network namespace or a container with mounts.
    fn may_share_files(&self) -> bool {
        true
    }

    fn explain(&self, trouble: Trouble, end: &ProcessEnd, _words: &str) -> Trouble {
        match end {
            ProcessEnd::Code(127) => trouble.remedy_or(remedy::LAUNCH_COMMAND_PROGRAM),
            _ => trouble.remedy_or(remedy::LAUNCH_COMMAND),
        }
    }
}
