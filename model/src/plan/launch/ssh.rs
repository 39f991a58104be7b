use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::way::Way;
use crate::plan::{
    Key, Section, Table,
    format::{key, keys},
    read::file::Fault,
};

static SSH: Section = Section {
    header: "[launch.ssh]",
    about: "Options for ssh; everything else comes from your ssh_config. Only with `via = \"ssh\"`.",
    keys: keys! {
        "config": Path, Means("`~/.ssh/config`"),
            "Another ssh_config (`ssh -F`).";
        "user": Text, Means("ssh's"), "Login name.";
        "port": Whole(1, 65_535), Means("ssh's"), "Port of sshd.";
        "identity": Path, Means("ssh's"),
            "Private key file (`ssh -i`).";
        "jump": Texts, Means("none"), "Jump hosts, first hop first (`ssh -J`): `[user@]host[:port]`.";
        "host_keys": Word(|| vec!["strict", "accept-new"]), Is("\"strict\""),
            "`strict`: an unknown or changed host key is an error. `accept-new`: only a changed one; unknown keys \
             are added.";
        "known_hosts": Path, Means("`~/.ssh/known_hosts`"),
            "Another known_hosts file.";
    },
};

/// Anything unset comes from the user's ssh_config.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ssh {
    pub config: Option<PathBuf>,
    pub user: Option<String>,
    pub port: Option<u16>,
    pub identity: Option<PathBuf>,
    pub jump: Vec<String>,
    pub host_keys: HostKeys,
    pub known_hosts: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostKeys {
    /// Unknown or changed keys are errors.
    #[default]
    Strict,
    /// Unknown keys are added, changed keys are errors.
    AcceptNew,
}

impl Ssh {
    pub(super) const KEY: Key = key!(
        "ssh": Table(&SSH), Means("what your ssh_config says"), "Options for ssh; only with `via = \"ssh\"`."
    );

    pub(super) fn read(launch: &Table<'_>) -> Self {
        let table = &launch.table(Self::KEY.name);
        judge_argument(table, "user");
        for hop in table.texts("jump").into_iter().flat_map(|list| list.value) {
            let bad =
                hop.text.is_empty() || hop.text.starts_with('-') || hop.text.contains([',', ' ', '\t', '\n', '\0']);
            if bad {
                let message = format!("\"{}\" is not a jump host", hop.text);
                table.wrong(hop.span, message, "each element is one hop: [user@]host[:port]");
            }
        }
        judge_file(table, "config");
        judge_file(table, "identity");
        // `accept-new` creates the file.
        if table.text("host_keys").is_none_or(|keys| keys.value != "accept-new") {
            judge_file(table, "known_hosts");
        }
        table.settings(|_| true)
    }
}

pub fn way(_: &Ssh) -> Way {
    Way { words: "ssh".into(), is_found_by_address: true, uses: vec!["user", "port"], ..Way::default() }
}

/// Reports a path without a file. ssh itself expands `~` and `%`.
fn judge_file(table: &Table<'_>, key: &str) {
    let is_expanded = table.text(key).is_some_and(|text| text.value.starts_with('~') || text.value.contains('%'));
    if let Some(path) = table.path(key).filter(|_| !is_expanded)
        && let Err(fault) = std::fs::File::open(&path.value).map_err(Fault::from)
    {
        table.wrong(path.span, format!("the file of `{key}` {fault}"), fault.help());
    }
}

/// Reports a value that the called program would parse as an option, or as two arguments.
pub fn judge_argument(table: &Table<'_>, key: &str) {
    if let Some(text) =
        table.text(key).filter(|text| text.value.starts_with('-') || text.value.contains(char::is_whitespace))
    {
        let message = format!("\"{}\" cannot be passed to ssh", text.value);
        table.wrong(text.span, message, "it must not start with `-` or contain spaces");
    }
}
