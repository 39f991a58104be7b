use serde::{Deserialize, Serialize};

use super::way::Way;
use crate::plan::{Host, Key, Table, command, format::key};

const EXAMPLE: &str = "ip netns exec {host}";

/// A command line in which `{host}` is the host's address (and `{name}`, `{user}`, `{port}` are other values of it); the agent's command
/// line follows it. Already split into words; no shell is involved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command(pub Vec<String>);

impl FromIterator<String> for Command {
    fn from_iter<I: IntoIterator<Item = String>>(words: I) -> Self {
        Self(words.into_iter().collect())
    }
}

impl Command {
    pub(super) const KEY: Key = key!(
        "command": Command, Means("required with `via = \"command\"`"),
            "A command that runs what follows it on a host; `{host}` is replaced by the host's address, `{name}`, \
             `{user}` and `{port}` for what the plan says of it. A text is split into words like a shell splits it, \
             quotes honoured, but no shell runs it."
    );

    pub(super) fn read(launch: &Table<'_>) -> Self {
        let key = Self::KEY.name;
        if launch.written(key).is_none() {
            let span = launch.written("via").unwrap_or(launch.span.clone());
            launch.wrong(span, "via = \"command\" requires `command`", format!("for example command = \"{EXAMPLE}\""));
            return Self(Vec::new());
        }
        Self(command::read(launch, key, EXAMPLE))
    }

    pub(super) fn judge(&self, launch: &Table<'_>, hosts: &[Host]) {
        let (key, words) = (Self::KEY.name, &self.0);
        let Some(span) = launch.written(key) else { return };
        if hosts.len() > 1 && !words.is_empty() && !self.says("host") && !self.says("name") {
            let message = "`command` does not contain `{host}`: all agents would run in the same place";
            launch.wrong(span, message, "put {host} where the command needs the host's address");
        }
        command::judge(launch, key, words, hosts.iter());
    }

    fn says(&self, place: &str) -> bool {
        command::places(&self.0).any(|name| name == place)
    }
}

pub fn way(command: &Command) -> Way {
    Way {
        words: format!("command: {}", command.0.join(" ")),
        is_found_by_address: !command.says("name"),
        uses: ["user", "port"].into_iter().filter(|key| command.says(key)).collect(),
        is_one_machine: false,
    }
}
