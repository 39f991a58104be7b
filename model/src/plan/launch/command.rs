//! `command`: the words that run an agent on a host.

use crate::plan::{command, mistakes::Mistake, model::Host, read::Table};

const EXAMPLE: &str = "ip netns exec {host}";

/// Reads the command's words; empty after saying what is wrong.
pub fn read(launch: &Table<'_>) -> Vec<String> {
    if launch.written("command").is_none() {
        let span = launch.written("via").unwrap_or(launch.span.clone());
        let mistake = Mistake::at(span, "`command` is missing: via = \"command\" needs one");
        launch.book.add(mistake.help(format!("for example command = \"{EXAMPLE}\"")));
        return Vec::new();
    }
    command::read(launch, "command", EXAMPLE)
}

/// Says which placeholders mean nothing for the hosts that there are.
pub fn judge(launch: &Table<'_>, words: &[String], hosts: &[Host]) {
    let Some(span) = launch.written("command") else { return };
    let says = |place: &str| command::places(words).any(|name| name == place);
    if hosts.len() > 1 && !words.is_empty() && !says("host") && !says("name") {
        let message = "`command` does not say `{host}`: every agent would run at the same place";
        launch.book.add(Mistake::at(span, message).help("put {host} where the host's address belongs"));
    }
    command::judge(launch, "command", words, hosts.iter());
}
