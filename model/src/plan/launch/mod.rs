//! `[launch]`: how agents are started.

mod command;
mod keys;
mod ssh;

use std::{collections::BTreeMap, time::Duration};

use super::{
    mistakes::Mistake,
    model::{Launch, Launcher},
    read::Table,
};
use crate::border::text::is_printable;

pub use command::judge as judge_command;
pub use keys::LAUNCH;
pub use ssh::not_an_argument;

/// Reads `[launch]`.
pub fn read(launch: &Table<'_>, there: bool) -> Launch {
    let via = if there { launch.word("via") } else { None };
    let ssh = ssh::read(&launch.table("ssh"));
    let via = match via.as_ref().map(|via| via.value) {
        Some("ssh") => Launcher::Ssh(ssh),
        Some("command") => Launcher::Command(command::read(launch)),
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
        send_env: sent(launch),
    }
}

/// The names in `send_env`.
fn sent(launch: &Table<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let env = launch.raw("env");
    let written = env.as_ref().and_then(|raw| raw.value.as_table());
    for name in launch.texts("send_env").into_iter().flat_map(|list| list.value) {
        if !is_variable(&name.text) {
            launch.book.add(no_variable(&name.text, name.span));
        } else if written.is_some_and(|env| env.iter().any(|(key, _)| key.get_ref() == &name.text)) {
            let mistake = Mistake::at(name.span, format!("`{}` is in `env` too", name.text));
            launch.book.add(mistake.help("leave it out of one of them"));
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
    Mistake::at(span, format!("`{name}` is not the name of an environment variable"))
        .help("names are letters, digits and `_`, and do not begin with a digit")
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
        if !is_variable(word) {
            launch.book.add(no_variable(word, name.span()));
        }
        if !is_printable(text) {
            let what = "a line break, or a character that cannot be seen or steers a terminal";
            let mistake = Mistake::at(value.span(), format!("the value of `{word}` holds {what}"));
            launch.book.add(mistake.help("write it on one line, without that character"));
        }
        variables.insert(word.to_owned(), text.to_owned());
    }
    variables
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::LAUNCH;
    use crate::plan::{format::Shape, model::Launcher, parse};

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
            let told = match plan.launch.via {
                Launcher::Local => "local",
                Launcher::Ssh(_) => "ssh",
                Launcher::Command(_) => "command",
            };
            assert_eq!(told, word);
        }
    }
}
