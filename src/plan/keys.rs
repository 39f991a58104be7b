//! What a key of the plan format is. The tables of keys stand beside the code that reads them; unknown-key
//! suggestions, the JSON Schema and the tables of docs/plan-format.md all derive from them.

use railgauge_wire::terms::{Aim, Op};
use toml::de::DeValue;

use super::plan_table::PLAN;

/// A table of the format.
#[derive(Debug)]
pub struct Section {
    /// Its header, such as `launch.ssh`; empty for the top of the file.
    pub path: &'static str,
    /// What it is for, in a sentence or two.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// What its value looks like.
    pub shape: Shape,
    /// What holds if it is left out.
    pub preset: Preset,
    /// What it does, in a sentence or two.
    pub about: &'static str,
    /// The same knob of perftest or NCCL; empty where there is none.
    pub peers: &'static str,
}

/// What holds if a key is left out.
#[derive(Debug, Clone, Copy)]
pub enum Preset {
    /// It must be given.
    Required,
    /// This TOML value.
    Value(&'static str),
    /// No fixed value; in words.
    Words(&'static str),
}

/// What a value looks like.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Text that is not empty.
    Text,
    /// A path; relative ones start from the plan's directory.
    Path,
    /// `true` or `false`.
    Flag,
    /// A whole number between these, both included.
    Whole(u64, u64),
    /// A whole number between these, or a list of them.
    Wholes(u64, u64),
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
    /// One of these words, or a list of them.
    Words(fn() -> Vec<&'static str>),
    /// Names and texts, or lists of texts of which every combination is meant.
    Matrix,
    /// A duration between these.
    Time(&'static str, &'static str),
    /// A size, a sweep, or a list of both.
    Sizes,
    /// `"64KiB..8MiB"`, or one size.
    SizeRange,
    /// A duration, a number of iterations, or an adaptive window.
    Window,
    /// A hostlist, or a list of them.
    Hosts,
    /// A list of texts.
    Texts,
    /// A command line, or a list of its words.
    Command,
    /// Names and texts.
    Environment,
    /// Names and hostlists.
    Groups,
    /// A list of pairs of host names.
    Pairs,
    /// Two group names.
    TwoGroups,
    /// `"aligned"`, `"crossed"`, or a list of rails.
    Rails,
    /// A list of rails.
    RailList,
    /// A number with a unit.
    Quantity,
    /// A percentage between these.
    Percent(f64, f64),
    /// A table.
    Table(&'static Section),
    /// Any number of tables.
    Tables(&'static Section),
}

impl Section {
    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Shape {
    /// The shape in words, for messages and the reference: "must be …".
    pub fn words(&self) -> String {
        match self {
            Self::Text => "a text".into(),
            Self::Path => "a path".into(),
            Self::Flag => "true or false".into(),
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::Wholes(least, most) => format!("a whole number from {least} to {most}, or a list of them"),
            Self::Word(words) => one_of(&words()),
            Self::Words(words) => format!("{}, or a list of them", one_of(&words())),
            Self::Matrix => "a table of names and texts, or lists of texts".into(),
            Self::Time(least, most) => format!("a duration from \"{least}\" to \"{most}\""),
            Self::Sizes => "a size, a sweep such as \"64..8MiB x2\", or a list of both".into(),
            Self::SizeRange => "a size or a range of sizes such as \"64KiB..8MiB\"".into(),
            Self::Window => {
                "\"2s\", \"1000 iterations\", or { confidence = \"2%\", at_least = \"1s\", at_most = \"10s\" }".into()
            }
            Self::Hosts => "a hostlist such as \"gpu[001-032]\", or a list of them".into(),
            Self::Texts => "a list of texts".into(),
            Self::Command => "a command line, or a list of its words".into(),
            Self::Environment => "a table of names and texts".into(),
            Self::Groups => "a table of group names and hostlists".into(),
            Self::Pairs => "a list of pairs of hosts such as [[\"a\", \"b\"], [\"a\", \"c\"]]".into(),
            Self::TwoGroups => "a list of two groups".into(),
            Self::Rails => "\"aligned\", \"crossed\", or a list of rails such as [0, 2]".into(),
            Self::RailList => "a list of rails such as [0, 2]".into(),
            Self::Quantity => "a number with a unit such as \"90 Gb/s\" or \"5us\"".into(),
            Self::Percent(least, most) => format!("a percentage from {least} to {most}"),
            Self::Table(_) => "a table".into(),
            Self::Tables(_) => "a list of tables".into(),
        }
    }

    /// Whether a value has the right TOML type; what is inside a text is looked at where it is read.
    pub fn fits(&self, value: &DeValue<'_>) -> bool {
        let texts =
            |value: &DeValue<'_>| value.as_array().is_some_and(|list| list.iter().all(|v| v.get_ref().is_str()));
        let wholes =
            |value: &DeValue<'_>| value.as_array().is_some_and(|list| list.iter().all(|v| v.get_ref().is_integer()));
        match self {
            Self::Text | Self::Path | Self::Word(_) | Self::Time(..) | Self::Quantity => value.is_str(),
            Self::Flag => value.is_bool(),
            Self::Words(_) => value.is_str() || texts(value),
            Self::Matrix => {
                value.as_table().is_some_and(|table| table.values().all(|v| v.get_ref().is_str() || texts(v.get_ref())))
            }
            Self::Whole(..) => value.is_integer(),
            Self::Wholes(..) => value.is_integer() || wholes(value),
            Self::SizeRange => value.is_str() || value.is_integer(),
            Self::Sizes => {
                let one = |value: &DeValue<'_>| value.is_str() || value.is_integer();
                one(value) || value.as_array().is_some_and(|list| list.iter().all(|v| one(v.get_ref())))
            }
            Self::Window => value.is_str() || value.is_table(),
            Self::Hosts | Self::Command => value.is_str() || texts(value),
            Self::Texts => texts(value),
            Self::TwoGroups => texts(value) && value.as_array().is_some_and(|list| list.len() == 2),
            Self::Pairs => value.as_array().is_some_and(|list| {
                list.iter().all(|v| texts(v.get_ref()) && v.get_ref().as_array().is_some_and(|list| list.len() == 2))
            }),
            Self::Rails => value.is_str() || wholes(value),
            Self::RailList => wholes(value),
            Self::Percent(..) => value.is_str() || value.is_integer() || value.is_float(),
            Self::Environment => value.as_table().is_some_and(|table| table.values().all(|v| v.get_ref().is_str())),
            Self::Groups => value.as_table().is_some_and(|table| table.values().all(|v| Self::Hosts.fits(v.get_ref()))),
            Self::Table(_) => value.is_table(),
            Self::Tables(_) => value.as_array().is_some_and(|list| list.iter().all(|v| v.get_ref().is_table())),
        }
    }
}

/// `"a", "b" or "c"`.
pub fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => format!("\"{word}\""),
        [words @ .., last] => {
            format!("{} or \"{last}\"", words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Operations, of pairs and of groups.
pub fn operations() -> Vec<&'static str> {
    Op::ALL.iter().map(|op| op.word()).collect()
}

/// Loops.
pub fn aims() -> Vec<&'static str> {
    Aim::ALL.iter().map(|aim| aim.word()).collect()
}

/// Every table of the format, in the order of the reference.
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
