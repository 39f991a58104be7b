//! What to do about findings: one table, so that the words people read and the commands that programs act on are the same.

mod table;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use table::{REMEDIES, *};

use crate::border::text::quoted;

/// Where remedies of the preflight are explained.
pub const DOCS: &str = "docs/preflight.md#checks";

/// A remedy of the table. What a finding fills in stands in braces: `{interface}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// What programs know it by; it stays when the words change.
    pub id: &'static str,
    /// What people read; `{0}` is the first command.
    pub text: &'static str,
    /// The commands in it.
    pub commands: &'static [Template],
}

/// A command of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Template {
    /// As a shell takes it once everything in braces is filled in.
    pub command: &'static str,
    /// Whether it changes the host; if not, it only shows something.
    pub changes: bool,
}

/// A remedy of one finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Remedy {
    /// The id of its entry in the table.
    pub id: String,
    /// What people read.
    pub text: String,
    /// The commands in it.
    pub commands: Vec<Command>,
    /// Where it is explained.
    pub docs: String,
}

/// A command of a remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Command {
    /// As a shell takes it. What is not known of the host stands in capitals: `INTERFACE`.
    pub command: String,
    /// Whether it changes the host; if not, it only shows something.
    pub changes: bool,
}

impl Entry {
    /// The remedy with these values in place of the names in braces. Values come from hosts: each stays one word of the command.
    pub fn with(&self, values: &[(&str, &str)]) -> Remedy {
        let filled = |of: &Template| Command { command: fill(of.command, values), changes: of.changes };
        let commands: Vec<Command> = self.commands.iter().map(filled).collect();
        let mut text = self.text.to_owned();
        for (at, Command { command, .. }) in commands.iter().enumerate() {
            text = text.replace(&format!("{{{at}}}"), &format!("`{command}`"));
        }
        Remedy { id: self.id.to_owned(), text, commands, docs: DOCS.to_owned() }
    }
}

/// A command with values in place of names in braces; a name without a value in capitals.
fn fill(command: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut rest = command;
    while let Some((before, name, after)) = next(rest) {
        filled += before;
        match values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => filled += &quoted(value),
            None => filled += &name.to_uppercase(),
        }
        rest = after;
    }
    filled + rest
}

/// What stands before the next name in braces, the name, and what follows it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

impl From<Entry> for Remedy {
    fn from(entry: Entry) -> Self {
        entry.with(&[])
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_remedy_has_an_id_of_its_own_and_every_command_is_in_its_text() {
        let ids: BTreeSet<&str> = REMEDIES.iter().map(|entry| entry.id).collect();
        assert_eq!(ids.len(), REMEDIES.len());
        for entry in REMEDIES {
            for at in 0..entry.commands.len() {
                assert!(entry.text.contains(&format!("{{{at}}}")), "{entry:?}");
            }
            let remedy = Remedy::from(*entry);
            assert!(!remedy.text.contains('{') && !remedy.text.is_empty(), "{remedy:?}");
        }
    }

    #[test]
    fn a_value_is_one_word_of_its_command_and_nothing_of_it_is_filled_in_again() {
        let entry = Entry {
            id: "x",
            text: "{0}, then {1}",
            commands: &[
                Template { command: "ip link set {interface} mtu {mtu}", changes: true },
                Template { command: "ip link show {interface}", changes: false },
            ],
        };
        let remedy = entry.with(&[("interface", "{mtu}; reboot"), ("mtu", "9000")]);
        assert_eq!(remedy.commands[0].command, "ip link set '{mtu}; reboot' mtu 9000");
        assert_eq!(remedy.text, "`ip link set '{mtu}; reboot' mtu 9000`, then `ip link show '{mtu}; reboot'`");
        assert_eq!(Remedy::from(entry).commands[0].command, "ip link set INTERFACE mtu MTU");
    }
}
