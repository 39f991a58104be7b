//! `[launch]`: how agents are started.

use std::{collections::BTreeMap, time::Duration};

use super::{
    keys::{Key, Preset, Section, Shape},
    mistake::Mistake,
    model::{HostKeys, Launch, Launcher, Ssh},
    table::{Table, wrong_in},
    words,
    wrong::nearest,
};

/// Keys of `[launch]`.
pub static LAUNCH: Section = Section {
    path: "launch",
    about: "How agents are started. A launcher is anything that gives a byte pipe to a process on a host.",
    keys: &[
        Key {
            name: "via",
            shape: Shape::Word(|| vec!["local", "ssh", "command"]),
            preset: Preset::Required,
            about: "`local`: every host is a process on this machine. `ssh`: OpenSSH, with your ssh_config. `command`: the words of `command`, then the agent's command line.",
            peers: "",
        },
        Key {
            name: "command",
            shape: Shape::Command,
            preset: Preset::Words("required with `via = \"command\"`"),
            about: "A command that runs what follows it on a host; `{host}` stands for the host's address, `{name}`, `{user}` and `{port}` for what the plan says of it. A text is split into words like a shell splits it, quotes honoured, but no shell runs it.",
            peers: "",
        },
        Key {
            name: "in_flight",
            shape: Shape::Whole(1, 4096),
            preset: Preset::Value("32"),
            about: "Hosts brought up at the same time.",
            peers: "",
        },
        Key {
            name: "retries",
            shape: Shape::Whole(0, 100),
            preset: Preset::Value("2"),
            about: "Further tries for a host that does not come up.",
            peers: "",
        },
        Key {
            name: "timeout",
            shape: Shape::Time("100ms", "1h"),
            preset: Preset::Value("\"20s\""),
            about: "Time for one try, from connecting to the agent's greeting.",
            peers: "",
        },
        Key {
            name: "keep_agent",
            shape: Shape::Flag,
            preset: Preset::Value("false"),
            about: "Whether agents stay on the hosts after the run.",
            peers: "",
        },
        Key {
            name: "agent_dir",
            shape: Shape::Text,
            preset: Preset::Words("a private directory under the user's cache directory"),
            about: "Absolute path of the directory on the hosts that holds the agent; it must allow programs to run.",
            peers: "",
        },
        Key {
            name: "env",
            shape: Shape::Environment,
            preset: Preset::Words("none"),
            about: "Environment variables of every agent.",
            peers: "",
        },
        Key {
            name: "ssh",
            shape: Shape::Table(&SSH),
            preset: Preset::Words("what your ssh_config says"),
            about: "What ssh is told; only with `via = \"ssh\"`.",
            peers: "",
        },
    ],
};

/// Keys of `[launch.ssh]`.
pub static SSH: Section = Section {
    path: "launch.ssh",
    about: "What ssh is told; everything not said here comes from your ssh_config. Only with `via = \"ssh\"`.",
    keys: &[
        Key {
            name: "config",
            shape: Shape::Path,
            preset: Preset::Words("`~/.ssh/config`"),
            about: "Another ssh_config (`ssh -F`); a relative path starts from the plan's directory.",
            peers: "",
        },
        Key { name: "user", shape: Shape::Text, preset: Preset::Words("ssh's"), about: "Login name.", peers: "" },
        Key {
            name: "port",
            shape: Shape::Whole(1, 65_535),
            preset: Preset::Words("ssh's"),
            about: "Port of sshd.",
            peers: "",
        },
        Key {
            name: "identity",
            shape: Shape::Path,
            preset: Preset::Words("ssh's"),
            about: "Private key file (`ssh -i`); a relative path starts from the plan's directory.",
            peers: "",
        },
        Key {
            name: "jump",
            shape: Shape::Texts,
            preset: Preset::Words("none"),
            about: "Jump hosts, first hop first (`ssh -J`): `[user@]host[:port]`.",
            peers: "",
        },
        Key {
            name: "host_keys",
            shape: Shape::Word(|| vec!["strict", "accept-new"]),
            preset: Preset::Value("\"strict\""),
            about: "`strict`: an unknown or changed host key is an error. `accept-new`: unknown keys are added, a changed key is an error.",
            peers: "",
        },
        Key {
            name: "known_hosts",
            shape: Shape::Path,
            preset: Preset::Words("`~/.ssh/known_hosts`"),
            about: "Another known_hosts file; a relative path starts from the plan's directory.",
            peers: "",
        },
    ],
};

/// Reads `[launch]`.
pub fn read(launch: &Table<'_>, there: bool) -> Launch {
    let via = if there { launch.word("via") } else { None };
    let via = match via.as_ref().map(|via| via.value) {
        Some("ssh") => Launcher::Ssh(ssh(&launch.table("ssh"))),
        Some("command") => Launcher::Command(command(launch)),
        _ => Launcher::Local,
    };
    // A wrong `via` has been said; what belongs to it is then not judged.
    if launch.written("via").is_some() {
        for (key, wanted, fits) in [
            ("ssh", "ssh", matches!(via, Launcher::Ssh(_))),
            ("command", "command", matches!(via, Launcher::Command(_))),
        ] {
            if let (Some(span), Some(given)) = (launch.name_span(key).filter(|_| !fits), launch.word("via")) {
                let mistake = Mistake::at(span, format!("`{key}` has no meaning with via = \"{}\"", given.value))
                    .also(given.span, "because of this")
                    .help(format!("leave it out, or say via = \"{wanted}\""));
                launch.book.add(mistake);
            }
        }
    }
    Launch {
        via,
        in_flight: launch.whole("in_flight").map_or(1, |at| at.value),
        retries: launch.whole("retries").map_or(0, |at| at.value),
        timeout: Duration::from_nanos(launch.time("timeout").map_or(0, |at| at.value)),
        keep_agent: launch.flag("keep_agent").is_some_and(|at| at.value),
        agent_dir: agent_dir(launch),
        env: environment(launch),
    }
}

fn agent_dir(launch: &Table<'_>) -> Option<String> {
    let directory = launch.text("agent_dir")?;
    if directory.value.starts_with('/') {
        return Some(directory.value);
    }
    let mistake =
        Mistake::at(directory.span, format!("`agent_dir` must be an absolute path, not \"{}\"", directory.value))
            .help("no shell expands it: `~` and `$HOME` mean nothing here");
    launch.book.add(mistake);
    None
}

fn environment(launch: &Table<'_>) -> BTreeMap<String, String> {
    let Some(raw) = launch.raw("env") else { return BTreeMap::new() };
    let mut variables = BTreeMap::new();
    for (name, value) in raw.value.as_table().into_iter().flatten() {
        let word = name.get_ref().as_ref();
        let text = value.get_ref().as_str().unwrap_or_default();
        let first = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !first || !word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let mistake = Mistake::at(name.span(), format!("`{word}` is no name of an environment variable"));
            launch.book.add(mistake.help("names are letters, digits and `_`, and do not begin with a digit"));
        }
        if text.contains(['\0', '\n', '\r']) {
            let mistake = Mistake::at(value.span(), format!("the value of `{word}` holds a line break or a zero byte"));
            launch.book.add(mistake.help("write it on one line"));
        }
        variables.insert(word.to_owned(), text.to_owned());
    }
    variables
}

fn command(launch: &Table<'_>) -> Vec<String> {
    if launch.written("command").is_none() {
        let span = launch.written("via").unwrap_or(launch.span.clone());
        let mistake = Mistake::at(span, "`command` is missing: via = \"command\" needs one");
        launch.book.add(mistake.help("for example command = \"ip netns exec {host}\""));
        return Vec::new();
    }
    let is_text = launch.raw("command").is_some_and(|raw| raw.value.is_str());
    let Some(given) = launch.texts("command") else { return Vec::new() };
    let words = match given.value.as_slice() {
        [line] if is_text => match words::split(&line.text) {
            Ok(words) => words,
            Err(wrong) => {
                launch.book.add(wrong_in(launch.book, &line.span, line.start, wrong));
                return Vec::new();
            }
        },
        list => list.iter().map(|word| word.text.clone()).collect(),
    };
    let add = |message: String, help: &str| launch.book.add(Mistake::at(given.span.clone(), message).help(help));
    if words.first().is_none_or(String::is_empty) {
        add("`command` is empty".into(), "for example command = \"ip netns exec {host}\"");
        return words;
    }
    if words.iter().any(|word| word.contains('\0')) {
        add("`command` holds a zero byte".into(), "no program can be given one");
    }
    for word in &words {
        for name in word.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name) {
            let known = ["host", "name", "user", "port"];
            if !known.contains(&name) && nearest(name, known).is_some() {
                let message = format!("`command` has no placeholder `{{{name}}}`");
                add(message, "the placeholders are {host}, {name}, {user} and {port}");
            }
        }
    }
    if !words.iter().any(|word| word.contains("{host}") || word.contains("{name}")) {
        add(
            "`command` does not say `{host}`: every agent would run at the same place".into(),
            "put {host} where the host's address belongs",
        );
    }
    words
}

fn ssh(table: &Table<'_>) -> Ssh {
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
        let bad = hop.text.is_empty() || hop.text.starts_with('-') || hop.text.contains([',', ' ', '\t', '\n', '\0']);
        if bad {
            let mistake = Mistake::at(hop.span.clone(), format!("\"{}\" is no jump host", hop.text));
            table.book.add(mistake.help("each element is one hop: [user@]host[:port]"));
        }
    }
    Ssh {
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

/// What would be taken for an option, or for two arguments, by the program it is given to.
pub fn not_an_argument(text: &str, span: std::ops::Range<usize>) -> Mistake {
    Mistake::at(span, format!("\"{text}\" cannot be passed to ssh")).help("it must not begin with `-` or hold spaces")
}
