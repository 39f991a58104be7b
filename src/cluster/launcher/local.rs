//! Agents as child processes on this machine. Nothing is deployed.

use std::{collections::BTreeMap, future::ready};

use railgauge_model::plan::model::{Host, Launch};
use railgauge_wire::remedy;

use super::{Connection, Launcher, Pending};
use crate::cluster::{Pipe, ProcessEnd, Trouble, child::child};

struct Local;

pub(super) fn prepare(_launch: &Launch) -> Result<Box<dyn Launcher>, Trouble> {
    Ok(Box::new(Local))
}

impl Launcher for Local {
    fn open<'a>(&'a self, _host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>> {
        let opened: Box<dyn Connection> = Box::new(Self);
        Box::pin(ready(Ok(opened)))
    }
}

impl Connection for Local {
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>> {
        Box::pin(ready(child(words, &BTreeMap::new(), remedy::CHECK_SHELL_LIMITS)))
    }

    fn is_here(&self) -> bool {
        true
    }

    fn may_share_files(&self) -> bool {
        true
    }

    fn explain(&self, trouble: Trouble, end: &ProcessEnd, words: &str) -> Trouble {
        match end {
            ProcessEnd::Code(127) => trouble.remedy_or(remedy::INSTALL_COREUTILS),
            _ if words.is_empty() => trouble.remedy_or(remedy::CHECK_SHELL_LIMITS),
            _ => trouble,
        }
    }
}
