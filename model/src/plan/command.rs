use super::{
    Host, Table,
    grammar::{nearest, words},
};

const KNOWN: &[&str] = &["host", "name", "user", "port"];

pub const VALUE: &str = "value";

pub fn read(table: &Table<'_>, key: &str, example: &str) -> Vec<String> {
    read_with(table, key, example, &[])
}

/// [`read`] for a command with these placeholders in addition to those of a host.
pub fn read_with(table: &Table<'_>, key: &str, example: &str, further: &[&str]) -> Vec<String> {
    let is_text = table.raw(key).is_some_and(|raw| raw.value.is_str());
    let Some(given) = table.texts(key) else { return Vec::new() };
    let words = match given.value.as_slice() {
        [line] if is_text => match words::split(&line.text) {
            Ok(words) => words,
            Err(wrong) => {
                table.book.add(line.mistake(wrong));
                return Vec::new();
            }
        },
        list => list.iter().map(|word| word.text.clone()).collect(),
    };
    let add = |message: String, help: &str| table.wrong(given.span.clone(), message, help);
    if words.first().is_none_or(String::is_empty) {
        add(format!("`{key}` is empty"), &format!("for example {key} = \"{example}\""));
        return words;
    }
    let known = || KNOWN.iter().chain(further).copied();
    for name in places(&words) {
        if !known().any(|place| place == name) && nearest(name, known()).is_some() {
            let all: Vec<String> = known().map(|place| format!("{{{place}}}")).collect();
            add(format!("`{key}` has no placeholder `{{{name}}}`"), &format!("the placeholders are {}", and(&all)));
        }
    }
    words
}

fn and(all: &[String]) -> String {
    match all {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        all => all.concat(),
    }
}

pub fn judge<'h>(table: &Table<'_>, key: &str, words: &[String], hosts: impl Iterator<Item = &'h Host> + Clone) {
    let Some(span) = table.written(key) else { return };
    for (place, lacking) in [
        ("user", hosts.clone().find(|host| host.user.is_none())),
        ("port", hosts.clone().find(|host| host.port.is_none())),
    ] {
        if let Some(host) = lacking.filter(|_| places(words).any(|name| name == place)) {
            let message = format!("`{key}` uses `{{{place}}}`, but {} has no {place}", host.name);
            table.wrong(span.clone(), message, "set it in [[hosts.override]]");
        }
    }
}

pub fn is_of_a_host(words: &[String]) -> bool {
    places(words).any(|name| KNOWN.contains(&name))
}

pub fn has_value(words: &[String]) -> bool {
    places(words).any(|name| name == VALUE)
}

pub fn places(words: &[String]) -> impl Iterator<Item = &str> {
    let inside = |word| str::split(word, '{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    words.iter().flat_map(move |word| inside(word))
}
