use super::{Key, Section, Shape, Unset};
use crate::plan::{PLAN, WINDOW, test_table::pattern};

pub fn markdown() -> String {
    blocks().into_iter().map(|(name, text)| format!("{}\n{text}{}\n\n", open(&name), close(&name))).collect()
}

/// The tables by name: `keys launch.ssh`, `patterns`.
pub fn blocks() -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = sections()
        .into_iter()
        .filter(|section| section.path() != "defaults")
        .chain([&WINDOW])
        .map(|section| {
            (format!("keys {}", if section.header.is_empty() { "plan" } else { section.path() }), keys(section))
        })
        .collect();
    let patterns = pattern::NAMES.iter().map(|(name, about)| format!("| `{name}` | {about} |\n"));
    list.push(("patterns".into(), format!("| pattern | pairs |\n| --- | --- |\n{}", patterns.collect::<String>())));
    list
}

pub fn open(name: &str) -> String {
    format!("<!-- {name} -->")
}

pub fn close(name: &str) -> String {
    format!("<!-- end {name} -->")
}

/// The value without words that the page says once.
fn short(key: &Key) -> String {
    let repeated = [
        "a whole number from ",
        "a duration from ",
        " such as \"gpu[001-032]\"",
        " such as \"90 Gb/s\" or \"5us\"",
        " such as \"25MiB\"",
        " such as \"64..8MiB x2\"",
        " such as \"64KiB..8MiB\"",
        " such as [0, 2]",
    ];
    match key.shape {
        Shape::Words(names) if names().len() > 20 => "names of checks".to_owned(),
        shape => {
            let text = repeated.iter().fold(shape.words(), |text, words| text.replace(words, ""));
            text.strip_prefix("a ").unwrap_or(&text).replace(", or a list of them", " or list")
        }
    }
}

fn keys(section: &Section) -> String {
    let mut text = "| key | value | default | what it does |\n| --- | --- | --- | --- |\n".to_owned();
    for key in section.keys {
        let unset = match key.unset {
            Unset::Required => "**required**".to_owned(),
            Unset::Is(value) => format!("`{value}`"),
            Unset::Means(words) => words.to_owned(),
        };
        let about = match key.peers {
            "" => key.about.to_owned(),
            peers => format!("{} Elsewhere: {peers}.", key.about),
        };
        let row = [format!("`{}`", key.name), short(key), unset, about];
        let row: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

pub fn sections() -> Vec<&'static Section> {
    fn walk(section: &'static Section, into: &mut Vec<&'static Section>) {
        if into.iter().any(|known| std::ptr::eq(*known, section)) {
            return;
        }
        into.push(section);
        for key in section.keys {
            if let Shape::Table(inner) | Shape::Tables(inner) = key.shape {
                walk(inner, into);
            }
        }
    }
    let mut list = Vec::new();
    walk(&PLAN, &mut list);
    list
}
