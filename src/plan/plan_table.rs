//! The top of a plan.

use toml::{Spanned, de::DeTable};

use super::{
    book::Book,
    hosts::{self, HOSTS},
    keys::{Key, Preset, Section, Shape},
    launch::{self, LAUNCH},
    mistake::Mistake,
    model::Plan,
    table::Table,
    test::{self, DEFAULTS, TEST},
};

/// Keys of the top of the file.
pub static PLAN: Section = Section {
    path: "",
    about: "The top of the file, before the first table.",
    keys: &[
        Key {
            name: "name",
            shape: Shape::Text,
            preset: Preset::Required,
            about: "Name of the plan, part of the run directory's name: letters, digits, `.`, `_` and `-`, at most 64.",
            peers: "",
        },
        Key {
            name: "description",
            shape: Shape::Text,
            preset: Preset::Words("none"),
            about: "What the plan is for; shown in the report.",
            peers: "",
        },
        Key {
            name: "seed",
            shape: Shape::Whole(0, i64::MAX as u64),
            preset: Preset::Value("1"),
            about: "Seed of everything random: schedules and the bytes that are verified. The same seed gives the same run.",
            peers: "",
        },
        Key {
            name: "launch",
            shape: Shape::Table(&LAUNCH),
            preset: Preset::Required,
            about: "How agents are started.",
            peers: "",
        },
        Key {
            name: "hosts",
            shape: Shape::Table(&HOSTS),
            preset: Preset::Required,
            about: "Which hosts take part.",
            peers: "",
        },
        Key {
            name: "defaults",
            shape: Shape::Table(&DEFAULTS),
            preset: Preset::Words("none"),
            about: "Keys for all tests.",
            peers: "",
        },
        Key {
            name: "test",
            shape: Shape::Tables(&TEST),
            preset: Preset::Required,
            about: "What is measured, one table for each test.",
            peers: "",
        },
    ],
};

/// Reads a whole plan. What cannot be read is written down in the book, and the plan is then of no use.
pub fn read<'a>(book: &'a Book<'a>, document: &'a Spanned<DeTable<'a>>) -> Plan {
    // The document's own span is the whole file: what is missing is marked at its beginning.
    let top = Table::new(book, &PLAN, 0..0, Some(document.get_ref()));
    let name = top.text("name");
    if let Some(name) = &name
        && !is_directory_name(&name.value)
    {
        let help = "use letters, digits, `.`, `_` and `-`, at most 64, and begin with a letter or digit";
        book.add(Mistake::at(name.span.clone(), format!("`{}` cannot name a plan", name.value)).help(help));
    }
    let launch = launch::read(&top.table("launch"), top.raw("launch").is_some());
    let hosts = hosts::read(&top.table("hosts"), top.raw("hosts").is_some(), &launch);
    let tests = test::read(&top, &hosts);
    Plan {
        name: name.map(|name| name.value).unwrap_or_default(),
        description: top.text("description").map(|text| text.value).unwrap_or_default(),
        seed: top.whole("seed").map_or(1, |seed| seed.value),
        launch,
        hosts: hosts.list,
        groups: hosts.groups,
        tests,
    }
}

fn is_directory_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.len() <= 64 && name.chars().all(allowed) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}
