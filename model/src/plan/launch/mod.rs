/// Passes the list of launchers to a macro of the caller, as `Variant(data: Type) = module: "about";` each. The module's name is the word
/// of `via`. A launcher is one file here, with its type, settings and key, and one in `src/cluster/launcher/`, which does the work.
#[macro_export]
macro_rules! launchers {
    ($use:ident) => {
        $use! {
            Local = local: "every host is a process on this machine.";
            Ssh(ssh: Ssh) = ssh: "OpenSSH, with your ssh_config.";
            Slurm(slurm: Slurm) = slurm: "steps of the Slurm allocation that railgauge runs in.";
            Kubectl(kubectl: Kubectl) = kubectl: "kubectl exec into Kubernetes pods.";
            Podman = podman: "podman exec into containers.";
            Docker = docker: "docker exec into containers.";
            Command(command: Command) = command: "the words of `command`, then the agent's command line.";
        }
    };
}

macro_rules! declare {
    ($($variant:ident $(($data:ident: $type:ident))? = $module:ident: $about:literal;)*) => {
        $(mod $module;)*

        pub mod settings {
            $($(pub use super::$module::$type;)?)*
        }
        use settings::*;

        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Launcher {
            $(#[doc = $about] $variant $(($type))?,)*
        }

        impl Launcher {
            pub const WORDS: &[&str] = &[$(stringify!($module)),*];
            const OWN: &[(&str, &Key)] = &[$($((stringify!($module), &$type::KEY),)?)*];

            pub const fn word(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($module),)*
                }
            }

            pub fn way(&self) -> Way {
                match self {
                    $(Self::$variant $(($data))? => $module::way($($data)?),)*
                }
            }

            /// Reads the settings of this launcher, and also those of others, to report mistakes in them.
            fn read(word: Option<&str>, launch: &Table<'_>) -> Option<Self> {
                let mut chosen = None;
                $(
                    let is_chosen = word == Some(stringify!($module));
                    if is_chosen $(|| matches!($type::KEY.shape, Shape::Table(_)))? {
                        let read = Self::$variant $(($type::read(launch)))?;
                        chosen = if is_chosen { Some(read) } else { chosen };
                    }
                )*
                chosen
            }
        }

        pub static LAUNCH: Section = Section {
            header: "[launch]",
            about: "How agents are started. A launcher is anything that gives a byte pipe to a process on a host.",
            keys: &tables_last([
                VIA,
                $($($type::KEY,)?)*
                IN_FLIGHT,
                RETRIES,
                TIMEOUT,
                KEEP_AGENT,
                AGENT_DIR,
                ENV,
                SEND_ENV,
            ]),
        };

        const WAYS: &str = concat!($("`", stringify!($module), "`: ", $about, " "),*).trim_ascii_end();
    };
}

mod way;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Host, Key, Mistake, Section, Shape, Table, format::key};
use crate::border::text::is_printable;

pub use ssh::{HostKeys, judge_argument};
pub use way::Way;

launchers!(declare);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    pub via: Launcher,
    pub in_flight: usize,
    pub retries: u32,
    /// Time limit of one attempt, from connecting to the agent's greeting.
    pub timeout: Duration,
    /// Whether agents' files stay on the hosts after the run.
    pub keep_agent: bool,
    /// Directory on the hosts for agents; a private one under the user's cache directory if `None`.
    pub agent_dir: Option<String>,
    pub env: BTreeMap<String, String>,
    /// Names of additional variables, with values from the controller's environment.
    pub send_env: Vec<String>,
}

const VIA: Key = key!("via": Word(|| Launcher::WORDS.to_vec()), Required, WAYS);
const IN_FLIGHT: Key = key!("in_flight": Whole(1, 4096), Is("32"), "Hosts brought up at once.");
const RETRIES: Key = key!("retries": Whole(0, 100), Is("2"), "Retries for each host.");
const TIMEOUT: Key = key!(
    "timeout": Time("100ms", "1h"), Is("\"20s\""), "Time limit of one attempt, from connecting to the agent's greeting."
);
const KEEP_AGENT: Key = key!("keep_agent": Flag, Is("false"), "Whether agents stay on the hosts after the run.");
const AGENT_DIR: Key = key!(
    "agent_dir": Text, Means("a private directory under the user's cache directory"),
        "Absolute path of the agent's directory on the hosts; it must allow programs to run."
);
const ENV: Key = key!(
    "env": Environment, Means("none"),
        "Environment variables of every agent. The run directory contains them, with the plan."
);
const SEND_ENV: Key = key!(
    "send_env": Texts, Means("none"),
        "Names of environment variables that agents get with their values where railgauge runs, as ssh's `SendEnv`. \
         The values are not stored."
);

/// Moves keys with tables to the end, as TOML needs them written.
const fn tables_last<const N: usize>(keys: [Key; N]) -> [Key; N] {
    let mut sorted = keys;
    let (mut to, mut tables) = (0, false);
    loop {
        let mut from = 0;
        while from < N {
            if matches!(keys[from].shape, Shape::Table(_)) == tables {
                sorted[to] = keys[from];
                to += 1;
            }
            from += 1;
        }
        if tables {
            return sorted;
        }
        tables = true;
    }
}

impl Launcher {
    /// Reports keys of `[launch]` that have no effect for these hosts.
    pub fn judge(&self, launch: &Table<'_>, hosts: &[Host]) {
        if let Self::Command(command) = self {
            command.judge(launch, hosts);
        }
    }
}

pub fn read(launch: &Table<'_>, there: bool) -> Launch {
    let given = if there { launch.word("via") } else { None };
    let via = Launcher::read(given.as_ref().map(|given| given.value), launch).unwrap_or(Launcher::Local);
    // A wrong `via` has been reported; its settings are then not judged.
    for (given, (word, key)) in given.iter().flat_map(|given| Launcher::OWN.iter().map(move |own| (given, own))) {
        if let Some(span) = launch.name_span(key.name).filter(|_| given.value != *word) {
            let mistake = Mistake::at(span, format!("`{}` does not apply with via = \"{}\"", key.name, given.value))
                .also(given.span.clone(), "because of this")
                .help(format!("leave it out, or set via = \"{word}\""));
            launch.book.add(mistake);
        }
    }
    Launch {
        via,
        in_flight: launch.whole("in_flight").map_or(1, |at| at.value),
        retries: launch.whole("retries").map_or(0, |at| at.value),
        timeout: launch.time("timeout").map_or(Duration::ZERO, |at| at.value.into()),
        keep_agent: launch.flag("keep_agent").is_some_and(|at| at.value),
        agent_dir: agent_dir(launch),
        env: environment(launch),
        send_env: sent(launch),
    }
}

fn sent(launch: &Table<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let env = launch.raw("env");
    let written = env.as_ref().and_then(|raw| raw.value.as_table());
    for name in launch.texts("send_env").into_iter().flat_map(|list| list.value) {
        if !is_variable(&name.text) {
            launch.book.add(no_variable(&name.text, name.span));
        } else if written.is_some_and(|env| env.iter().any(|(key, _)| key.get_ref() == &name.text)) {
            launch.wrong(name.span, format!("`{}` is also in `env`", name.text), "leave it out of one of them");
        } else if !names.contains(&name.text) {
            names.push(name.text);
        }
    }
    names
}

fn is_variable(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn no_variable(name: &str, span: std::ops::Range<usize>) -> Mistake {
    Mistake::at(span, format!("`{name}` is not a valid name of an environment variable"))
        .help("use letters, digits and `_`; do not start with a digit")
}

fn agent_dir(launch: &Table<'_>) -> Option<String> {
    let directory = launch.text("agent_dir")?;
    if directory.value.starts_with('/') {
        return Some(directory.value);
    }
    let mistake =
        Mistake::at(directory.span, format!("`agent_dir` must be an absolute path, not \"{}\"", directory.value))
            .help("`~` and `$HOME` are not expanded");
    launch.book.add(mistake);
    None
}

fn environment(launch: &Table<'_>) -> BTreeMap<String, String> {
    let Some(raw) = launch.raw("env") else { return BTreeMap::new() };
    let mut variables = BTreeMap::new();
    for (name, value) in raw.value.as_table().into_iter().flatten() {
        let word = name.get_ref().as_ref();
        let text = value.get_ref().as_str().unwrap_or_default();
        if !is_variable(word) {
            launch.book.add(no_variable(word, name.span()));
        }
        if !is_printable(text) {
            let what = "a line break, or an invisible or control character";
            let message = format!("the value of `{word}` contains {what}");
            launch.wrong(value.span(), message, "write it on one line, without that character");
        }
        variables.insert(word.to_owned(), text.to_owned());
    }
    variables
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::LAUNCH;
    use crate::plan::{format::Shape, parse};

    #[test]
    fn every_word_of_via_is_a_launcher_of_its_own() {
        let via = LAUNCH.keys.iter().find(|key| key.name == "via").unwrap();
        let Shape::Word(words) = &via.shape else { panic!("{:?}", via.shape) };
        for word in words() {
            let command = if word == "command" { "command = [\"x\", \"{host}\"]\n" } else { "" };
            let text = format!(
                "name = \"p\"\n[launch]\nvia = \"{word}\"\n{command}[hosts]\nnames = [\"a\", \"b\"]\n[[test]]\nop = \"write\"\n\
                 metric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1KiB\"\n"
            );
            let (plan, _) =
                parse("p.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{word}: {mistakes:?}"));
            assert_eq!(plan.launch.via.word(), word);
            let told = serde_json::to_value(&plan.launch.via).unwrap();
            let told = told.as_str().or(told.as_object().and_then(|entry| entry.keys().next().map(String::as_str)));
            assert_eq!(told, Some(word));
        }
    }
}
