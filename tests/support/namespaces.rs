//! Network namespaces that take the place of hosts and switches, and go away with the test.

use std::{fs, process::Command};

/// Where `ip netns` keeps their names.
const NAMES: &str = "/var/run/netns";

/// The namespaces of one test. All of them are deleted with it.
pub struct Spaces {
    prefix: String,
}

impl Spaces {
    /// None yet. `tag` tells those of one test from those of others that run at the same time.
    pub fn new(tag: &str) -> Self {
        Self { prefix: format!("rg{tag}{}-", std::process::id()) }
    }

    /// The whole name of one of them.
    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        let all = fs::read_dir(NAMES).into_iter().flatten().flatten();
        let names = all.filter_map(|entry| entry.file_name().into_string().ok());
        for space in names.filter(|name| name.starts_with(&self.prefix)) {
            run(&["ip", "netns", "del", &space]);
        }
    }
}

/// Whether a command succeeds.
pub fn run(words: &[&str]) -> bool {
    Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success())
}
