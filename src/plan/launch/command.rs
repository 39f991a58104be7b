//! `command`: the words that run an agent on a host.

use crate::plan::{
    grammar::{nearest, words},
    mistakes::Mistake,
    model::Host,
    read::Table,
};

/// Reads the command's words; empty after saying what is wrong.
pub fn read(launch: &Table<'_>) -> Vec<String> {
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
                launch.book.add(line.mistake(wrong));
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
    for name in placeholders(&words) {
        if !KNOWN.contains(&name) && nearest(name, KNOWN.iter().copied()).is_some() {
            let help = "the placeholders are {host}, {name}, {user} and {port}";
            add(format!("`command` has no placeholder `{{{name}}}`"), help);
        }
    }
    words
}

/// What stands for something of the host.
const KNOWN: &[&str] = &["host", "name", "user", "port"];

fn placeholders(words: &[String]) -> impl Iterator<Item = &str> {
    let inside = |word| str::split(word, '{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    words.iter().flat_map(move |word| inside(word))
}

/// Says which placeholders mean nothing for the hosts that there are.
pub fn judge(launch: &Table<'_>, words: &[String], hosts: &[Host]) {
    let Some(span) = launch.written("command") else { return };
    let add = |message: String, help: &str| launch.book.add(Mistake::at(span.clone(), message).help(help));
    let says = |name: &str| placeholders(words).any(|known| known == name);
    if hosts.len() > 1 && !words.is_empty() && !says("host") && !says("name") {
        let message = "`command` does not say `{host}`: every agent would run at the same place";
        add(message.into(), "put {host} where the host's address belongs");
    }
    for (key, lacking) in [
        ("user", hosts.iter().find(|host| host.user.is_none())),
        ("port", hosts.iter().find(|host| host.port.is_none())),
    ] {
        if let Some(host) = lacking.filter(|_| says(key)) {
            let message = format!("`command` says `{{{key}}}`, and {} has no {key}", host.name);
            add(message, "set it in [[hosts.override]]");
        }
    }
}
