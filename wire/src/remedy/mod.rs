//! Remedies. Messages and journals hold the id of an entry of one table and the values that it fills in; readers make the words and the
//! commands from the table.

mod table;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeStruct as _};

pub use table::*;

use crate::{gather::Gather, shell::quoted};

pub const DOCS: &str = "docs/remedies.md";
pub const VALUES: usize = 12;

pub const LONGEST: usize = 1024;

/// As JSON it also has its words (`text`), its `commands` and the place of its explanation (`docs`); these are not read back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Remedy {
    pub id: Cow<'static, str>,
    /// By name; texts read from elsewhere have at most [`LONGEST`] bytes.
    #[serde(default, deserialize_with = "short")]
    pub values: BTreeMap<Cow<'static, str>, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Command {
    /// Shell command. Unknown names of the host are in capitals: `INTERFACE`.
    pub command: String,
    pub changes: bool,
    pub on: Place,
    /// Unknown names in capitals: the command cannot run as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl Entry {
    pub fn find(id: &str) -> Option<&'static Self> {
        all().find(|entry| entry.id == id)
    }

    pub fn with<V: Into<String>>(&self, values: impl IntoIterator<Item = (&'static str, V)>) -> Remedy {
        let values = values.into_iter().map(|(name, value)| (Cow::Borrowed(name), value.into())).gathered();
        Remedy { id: Cow::Borrowed(self.id), values }
    }

    /// Values are from hosts: each stays one word of its command.
    fn commands(&self, values: &BTreeMap<Cow<'static, str>, String>) -> Vec<Command> {
        let filled = |of: &Template| {
            let mut missing = Vec::new();
            let command = fill(&without_unknown(of.command, values), |name, in_path| {
                match values.get(name).filter(|value| is_word(value, in_path)) {
                    Some(value) => quoted(value),
                    None => {
                        missing.push(name.to_uppercase());
                        name.to_uppercase()
                    }
                }
            });
            Command { command, changes: of.changes, on: of.on, missing }
        };
        self.commands.iter().map(filled).collect()
    }
}

impl Remedy {
    pub fn text(&self) -> String {
        let Some(entry) = Entry::find(&self.id) else {
            return format!("remedy {:?} is not known to this version of railgauge", self.id);
        };
        let commands = entry.commands(&self.values);
        fill(entry.text, |name, _| match name.parse::<usize>() {
            Ok(at) => commands.get(at).map_or_else(String::new, |one| format!("`{}`", one.command)),
            Err(_) => match self.values.get(name) {
                Some(value) if !value.is_empty() => value.clone(),
                _ => name.to_uppercase(),
            },
        })
    }

    /// Fills in a host of a failure if the words name it and its value is unknown. A name in a command alone is an address, not one of
    /// the plan's names.
    pub(crate) fn name(&mut self, name: &'static str, host: &str) {
        let is_told = Entry::find(&self.id).is_some_and(|entry| entry.text.contains(&format!("{{{name}}}")));
        if is_told {
            self.values.entry(Cow::Borrowed(name)).or_insert_with(|| host.to_owned());
        }
    }

    pub fn commands(&self) -> Vec<Command> {
        Entry::find(&self.id).map_or_else(Vec::new, |entry| entry.commands(&self.values))
    }

    pub fn docs(&self) -> String {
        format!("{DOCS}#{}", self.id)
    }
}

/// Whether a value is safe in a command: no option, and for one name of a path no other path.
fn is_word(value: &str, in_path: bool) -> bool {
    let leads_away = in_path && (value.contains('/') || value == "..");
    !value.is_empty() && !value.starts_with('-') && !leads_away
}

/// Removes bracketed parts with an unknown value, each with one space, and the other brackets.
fn without_unknown(template: &str, values: &BTreeMap<Cow<'static, str>, String>) -> String {
    let is_known = |name: &str| values.get(name).is_some_and(|value| is_word(value, false));
    let mut kept = String::new();
    let mut rest = template;
    while let Some((before, (part, after))) =
        rest.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once(']')?)))
    {
        kept += before;
        if next(part).is_none_or(|(_, name, _)| is_known(name)) {
            kept += part;
            rest = after;
        } else {
            rest = after.strip_prefix(' ').unwrap_or(after);
        }
    }
    kept += rest;
    kept.truncate(kept.trim_end().len());
    kept
}

/// Replaces every name in braces; `value` gets whether the name is a part of a path. The inserted text is not searched again.
fn fill(text: &str, mut value: impl FnMut(&str, bool) -> String) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = next(rest) {
        filled += before;
        filled += &value(name, before.ends_with('/') || after.starts_with('/'));
        rest = after;
    }
    filled + rest
}

/// The text before the next name in braces, the name, and the rest.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

impl From<Entry> for Remedy {
    fn from(entry: Entry) -> Self {
        Self { id: Cow::Borrowed(entry.id), values: BTreeMap::new() }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

fn short<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Cow<'static, str>, String>, D::Error> {
    let mut values = BTreeMap::<Cow<'static, str>, String>::deserialize(from)?;
    for value in values.values_mut().filter(|value| value.len() > LONGEST) {
        value.truncate(value.floor_char_boundary(LONGEST));
        value.push('…');
    }
    Ok(values)
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Remedy", 5)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("values", &self.values)?;
        fields.serialize_field("text", &self.text())?;
        fields.serialize_field("commands", &self.commands())?;
        fields.serialize_field("docs", &self.docs())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(text: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut rest = text;
        while let Some((_, name, after)) = next(rest) {
            found.insert(name);
            rest = after;
        }
        found
    }

    #[test]
    fn every_remedy_has_an_id_of_its_own_and_every_command_is_in_its_text() {
        let ids: BTreeSet<&str> = all().map(|entry| entry.id).collect();
        assert_eq!(ids.len(), all().count());
        for entry in all() {
            assert!(entry.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{entry:?}");
            let told = names(entry.text);
            for at in 0..entry.commands.len() {
                assert!(told.contains(at.to_string().as_str()), "{entry:?}");
            }
            for at in told.iter().filter_map(|name| name.parse::<usize>().ok()) {
                assert!(at < entry.commands.len(), "{entry:?}");
            }
            let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            assert!(told.iter().all(is_name), "{entry:?}");
            let values: BTreeSet<&str> = entry.commands.iter().flat_map(|one| names(one.command)).chain(told).collect();
            assert!(values.len() <= VALUES, "{entry:?}");
            let remedy = Remedy::from(*entry);
            assert!(!remedy.text().contains('{') && !remedy.text().is_empty(), "{remedy:?}");
        }
    }

    #[test]
    fn a_value_is_one_word_of_its_command_and_nothing_of_it_is_filled_in_again() {
        let remedy = INTERFACE_MTU.with([("interface", "{mtu}; reboot"), ("mtu", "9000")]);
        assert_eq!(remedy.commands()[0].command, "ip link set '{mtu}; reboot' mtu 9000");
        assert!(remedy.text().contains("`ip link set '{mtu}; reboot' mtu 9000`"), "{remedy}");
        assert_eq!(Remedy::from(INTERFACE_MTU).commands()[0].command, "ip link set INTERFACE mtu MTU");
    }

    #[test]
    fn what_is_not_known_or_cannot_be_stays_in_capitals() {
        let command = |remedy: Remedy| remedy.commands().remove(0);
        let told = command(INTERFACE_MTU.with([("interface", "eth1")]));
        assert_eq!((told.command.as_str(), told.missing), ("ip link set eth1 mtu MTU", vec!["MTU".to_owned()]));
        for option in ["", "-oProxyCommand=reboot", "--help"] {
            let told = command(ACCEPT_JUMP_KEY.with([("jump_host", option)]));
            assert_eq!((told.command.as_str(), told.missing.len()), ("ssh JUMP_HOST", 1));
        }
        let away = [("interface", "../../../etc/x"), ("file", ".."), ("priority", "3")];
        assert_eq!(command(ECN_ON.with(away)).command, "echo 1 > /sys/class/net/INTERFACE/ecn/FILE/enable/3");
    }

    #[test]
    fn options_stand_where_their_values_are_known() {
        let command =
            |values: &[(&'static str, &str)]| KUBECTL_BY_HAND.with(values.iter().copied()).commands().remove(1).command;
        assert_eq!(command(&[("pod", "rg-a")]), "kubectl exec --stdin rg-a -- sh -c 'echo here'");
        let all =
            [("context", "a b"), ("kubeconfig", "/x/[{pod}]"), ("pod", "rg-a"), ("container", "c"), ("namespace", "n")];
        assert_eq!(
            command(&all),
            "kubectl --kubeconfig '/x/[{pod}]' --context 'a b' exec --stdin rg-a --namespace n --container c -- sh -c 'echo here'"
        );
        let end = KUBECTL_BY_HAND.with([("context", "--x")]).commands().remove(0);
        assert_eq!((end.command.as_str(), end.missing.len()), ("kubectl get pods --output wide", 0));
    }

    #[test]
    fn values_from_elsewhere_are_cut() {
        let text = serde_json::json!({ "id": "interface-mtu", "values": { "mtu": "é".repeat(1 << 20) } }).to_string();
        let read: Remedy = serde_json::from_str(&text).unwrap();
        assert!(read.values["mtu"].len() <= LONGEST + '…'.len_utf8());
    }

    #[test]
    fn words_are_made_where_they_are_read() {
        let told = serde_json::to_string(&INTERFACE_MTU.with([("interface", "eth1"), ("mtu", "9000")])).unwrap();
        let lie = told.replace("ip link", "rm -r");
        assert_ne!(told, lie);
        let read: Remedy = serde_json::from_str(&lie).unwrap();
        assert_eq!(read.commands()[0].command, "ip link set eth1 mtu 9000");
        assert_eq!(serde_json::to_string(&read).unwrap(), told);
    }

    #[test]
    fn a_remedy_that_the_table_does_not_have_says_so_and_has_no_commands() {
        let read: Remedy = serde_json::from_str(r#"{"id":"of-tomorrow","commands":[]}"#).unwrap();
        assert!(read.text().contains("of-tomorrow") && read.commands().is_empty());
    }
}
