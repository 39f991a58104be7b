use std::{ops::Range, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::Way;
use crate::plan::{
    format::{Key, Section, key, keys},
    mistakes::Mistake,
    read::Table,
};

static SSH: Section = Section {
    header: "[launch.ssh]",
    about: "Options for ssh; everything else comes from your ssh_config. Only with `via = \"ssh\"`.",
    keys: keys! {
        "config": Path, Means("`~/.ssh/config`"),
            "Another ssh_config (`ssh -F`); a relative path is relative to the plan's directory.";
        "user": Text, Means("ssh's"), "Login name.";
        "port": Whole(1, 65_535), Means("ssh's"), "Port of sshd.";
        "identity": Path, Means("ssh's"),
            "Private key file (`ssh -i`); a relative path is relative to the plan's directory.";
        "jump": Texts, Means("none"), "Jump hosts, first hop first (`ssh -J`): `[user@]host[:port]`.";
        "host_keys": Word(|| vec!["strict", "accept-new"]), Is("\"strict\""),
            "`strict`: an unknown or changed host key is an error. `accept-new`: unknown keys are added, a changed \
             key is an error.";
        "known_hosts": Path, Means("`~/.ssh/known_hosts`"),
            "Another known_hosts file; a relative path is relative to the plan's directory.";
    },
};

/// Anything unset comes from the user's ssh_config.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
        let harmless = |name: &str| {
            let text = table.text(name)?;
            if !text.value.starts_with('-') && !text.value.contains(char::is_whitespace) {
                return Some(text.value);
            }
            table.book.add(not_an_argument(&text.value, text.span));
            None
        };
        let jump = table.texts("jump").map(|list| list.value).unwrap_or_default();
        for hop in &jump {
            let bad =
                hop.text.is_empty() || hop.text.starts_with('-') || hop.text.contains([',', ' ', '\t', '\n', '\0']);
            if bad {
                table.wrong(hop.span.clone(), format!("\"{}\" is not a jump host", hop.text), "each element is one hop: [user@]host[:port]");
            }
        }
        Self {
            config: table.path("config").map(|at| at.value),
            user: harmless("user"),
            port: table.whole("port").map(|at| at.value),
            identity: table.path("identity").map(|at| at.value),
            jump: jump.into_iter().map(|hop| hop.text).collect(),
            host_keys: match table.word("host_keys").map(|at| at.value) {
                Some("accept-new") => HostKeys::AcceptNew,
                _ => HostKeys::Strict,
            },
            known_hosts: table.path("known_hosts").map(|at| at.value),
        }
    }
}

pub fn way(ssh: &Ssh) -> &dyn Way {
    ssh
}

impl Way for Ssh {
    fn words(&self) -> String {
        "ssh".into()
    }

    fn is_found_by_address(&self) -> bool {
        true
    }

    fn uses(&self, _key: &str) -> bool {
        true
    }
}

/// A value that the called program would parse as an option, or as two arguments.
pub fn not_an_argument(text: &str, span: Range<usize>) -> Mistake {
    Mistake::at(span, format!("\"{text}\" cannot be passed to ssh"))
        .help("it must not start with `-` or contain spaces")
}
