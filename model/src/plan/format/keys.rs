//! Keys of the plan format. The tables of keys are next to the code that reads them; suggestions for unknown keys, the JSON Schema and the
//! tables of docs/plan-format.md derive from them.

use toml::de::DeValue;

#[derive(Debug)]
pub struct Section {
    /// Such as `[launch.ssh]` or `[[test]]`; empty for the top of the file.
    pub header: &'static str,
    pub about: &'static str,
    pub keys: &'static [Key],
}

#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub unset: Unset,
    pub about: &'static str,
    pub peers: &'static str,
}

/// One row: name, shape, what holds where the plan does not set it, what it does, and its names in other tools.
macro_rules! key {
    ($name:tt: $shape:expr, $unset:expr, $about:expr) => {
        $crate::plan::format::key!($name: $shape, $unset, $about, "")
    };
    ($name:tt: $shape:expr, $unset:expr, $about:expr, $peers:expr) => {{
        #[allow(unused_imports, reason = "not every row names both a shape and a default")]
        use $crate::plan::format::{Shape::*, Unset::*};
        $crate::plan::format::Key { name: $name, shape: $shape, unset: $unset, about: $about, peers: $peers }
    }};
}
pub(crate) use key;

macro_rules! keys {
    ($($name:tt: $shape:expr, $unset:expr, $about:expr $(, $peers:expr)?;)*) => {
        &[$($crate::plan::format::key!($name: $shape, $unset, $about $(, $peers)?)),*]
    };
}
pub(crate) use keys;

impl Key {
    /// Its long options in other tools, without dashes: `tx-depth`.
    pub fn peer_names(&self) -> impl Iterator<Item = String> {
        self.peers.split('`').filter_map(|word| word.strip_prefix("--")).map(|option| option.replace('_', "-"))
    }
}

/// What holds where the plan does not set a key.
#[derive(Debug, Clone, Copy)]
pub enum Unset {
    Required,
    /// This value, as TOML.
    Is(&'static str),
    /// In words.
    Means(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Text,
    /// A path; relative ones start from the plan's directory.
    Path,
    Flag,
    Whole(u64, u64),
    Wholes(u64, u64),
    Word(fn() -> Vec<&'static str>),
    Words(fn() -> Vec<&'static str>),
    Matrix,
    Time(&'static str, &'static str),
    Size,
    Sizes,
    /// `"64KiB..8MiB"`, or one size.
    SizeRange,
    Window,
    Hosts,
    Texts,
    Command,
    Environment,
    Versions,
    Frequencies,
    Groups,
    Places,
    Pairs,
    TwoGroups,
    TwoHosts,
    Rails,
    RailList,
    Quantity,
    Percent(f64, f64),
    /// A value of the shape of each key, or a table with one value for each end.
    PerEnd(&'static Section),
    Table(&'static Section),
    Tables(&'static Section),
}

impl Section {
    pub fn path(&self) -> &'static str {
        self.header.trim_matches(['[', ']'])
    }

    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Shape {
    /// What a value must be, and an example; the words of shapes with limits or words of their own are incomplete.
    fn told(&self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("a string", "\"text\""),
            Self::Path => ("a path", "\"path/to/file\""),
            Self::Flag => ("true or false", "true"),
            Self::Matrix => {
                ("a table of names and strings, or lists of strings", "{ NCCL_ALGO = [\"Ring\", \"Tree\"] }")
            }
            Self::Sizes => ("a size, a sweep such as \"64..8MiB x2\", or a list of both", "\"64..8MiB x2\""),
            Self::Size => ("a size such as \"25MiB\"", "\"25MiB\""),
            Self::SizeRange => ("a size or a range of sizes such as \"64KiB..8MiB\"", "\"64KiB..8MiB\""),
            Self::Window => (
                "\"2s\", \"1000 iterations\", or { confidence = \"2%\", at_least = \"1s\", at_most = \"10s\" }",
                "\"2s\"",
            ),
            Self::Hosts => ("a hostlist such as \"gpu[001-032]\", or a list of them", "[\"gpu[001-032]\"]"),
            Self::Texts => ("a list of strings", "[\"text\"]"),
            Self::Command => ("a command line, or a list of its words", "\"ip netns exec {host}\""),
            Self::Environment => ("a table of names and strings", "{ NCCL_DEBUG = \"INFO\" }"),
            Self::Versions => ("a table of names and versions", "{ mlx5_core = \"28.43.1014\" }"),
            Self::Frequencies => ("a table of names and frequencies such as \"10/s\"", "{ symbol_error = \"10/s\" }"),
            Self::Groups => ("a table of group names and hostlists", "{ rack1 = \"gpu[001-016]\" }"),
            Self::Places => {
                ("a path, or a table of hostlists and places", "{ \"gpu[001-016]\" = \"rack12/u[01-16]\" }")
            }
            Self::Pairs => {
                ("a list of pairs of names such as [[\"a\", \"b\"], [\"a\", \"c\"]]", "[[\"gpu001\", \"gpu002\"]]")
            }
            Self::TwoGroups => ("a list of two groups", "[\"rack1\", \"rack2\"]"),
            Self::TwoHosts => ("a list of two hosts", "[\"gpu001\", \"gpu002\"]"),
            Self::Rails => ("\"aligned\", \"crossed\", \"each\", or a list of rails such as [0, 2]", "[0, 2]"),
            Self::RailList => ("a list of rails such as [0, 2]", "[0, 2]"),
            Self::Quantity => ("a number with a unit such as \"90 Gb/s\" or \"5us\"", "\"90 Gb/s\""),
            Self::PerEnd(ends) => ends.keys[0].shape.told(),
            Self::Table(_) => ("a table", "{ … }"),
            Self::Tables(_) => ("a list of tables", "[{ … }]"),
            Self::Time(..) => ("a duration", "\"2s\""),
            Self::Percent(..) => ("a percentage", "\"5%\""),
            Self::Whole(..) | Self::Wholes(..) => ("a whole number", ""),
            Self::Word(words) | Self::Words(words) => ("a word", words().first().copied().unwrap_or_default()),
        }
    }

    /// For messages and the reference: "must be …".
    pub fn words(&self) -> String {
        let words = self.told().0;
        match self {
            Self::Whole(least, most) => format!("{words} from {least} to {most}"),
            Self::Wholes(least, most) => format!("{words} from {least} to {most}, or a list of them"),
            Self::Word(words) => one_of(&words()),
            Self::Words(words) => format!("{}, or a list of them", one_of(&words())),
            Self::PerEnd(ends) => format!("{}, or {{ from = …, to = … }}", ends.keys[0].shape.words()),
            Self::Time(least, most) => format!("{words} from \"{least}\" to \"{most}\""),
            Self::Percent(least, most) => format!("{words} from {least} to {most}"),
            _ => words.into(),
        }
    }

    pub fn example(&self) -> String {
        match self {
            Self::Whole(least, _) | Self::Wholes(least, _) => least.to_string(),
            Self::Word(_) | Self::Words(_) => format!("\"{}\"", self.told().1),
            Self::PerEnd(ends) => ends.keys[0].shape.example(),
            _ => self.told().1.into(),
        }
    }

    /// Whether a value has the right TOML type; the content of a text is checked where it is read.
    pub fn fits(&self, value: &DeValue<'_>) -> bool {
        let all = || value.as_array().is_some_and(|list| list.iter().all(|value| self.fits_inside(value.get_ref())));
        let pair = || value.as_array().is_some_and(|list| list.len() == 2);
        let values = || value.as_table().is_some_and(|table| table.values().all(|v| self.fits_inside(v.get_ref())));
        match self {
            Self::Text | Self::Path | Self::Word(_) | Self::Time(..) | Self::Size => value.is_str(),
            Self::Flag => value.is_bool(),
            Self::Whole(..) => value.is_integer(),
            // The reader of a quantity knows which unit a number lacks.
            Self::Percent(..) | Self::Quantity => value.is_str() || value.is_integer() || value.is_float(),
            Self::SizeRange => value.is_str() || value.is_integer(),
            Self::Window => value.is_str() || value.is_table(),
            Self::Wholes(..) => value.is_integer() || all(),
            Self::Sizes => value.is_str() || value.is_integer() || all(),
            Self::Hosts | Self::Command | Self::Rails | Self::Words(_) => value.is_str() || all(),
            Self::TwoGroups | Self::TwoHosts => pair() && all(),
            Self::Texts | Self::Pairs | Self::RailList | Self::Tables(_) => all(),
            Self::Environment | Self::Versions | Self::Frequencies | Self::Groups | Self::Matrix => values(),
            Self::Places => value.is_str() || values(),
            Self::PerEnd(ends) => value.is_table() || ends.keys[0].shape.fits(value),
            Self::Table(_) => value.is_table(),
        }
    }

    /// Whether a value has the right TOML type for a list element or table value of this shape.
    pub fn fits_inside(&self, value: &DeValue<'_>) -> bool {
        match self {
            Self::Wholes(..) | Self::Rails | Self::RailList => value.is_integer(),
            Self::Sizes => value.is_str() || value.is_integer(),
            Self::Pairs => Self::TwoGroups.fits(value),
            Self::Groups | Self::Matrix => Self::Hosts.fits(value),
            Self::Tables(_) => value.is_table(),
            Self::PerEnd(ends) => ends.keys[0].shape.fits_inside(value),
            _ => value.is_str(),
        }
    }
}

/// `expected "a" or "b"`, `expected one of "a", "b", "c"`.
pub fn expected(words: &[&str]) -> String {
    match words {
        [] | [_] | [_, _] => format!("expected {}", one_of(words)),
        more => format!("expected one of {}", quoted(more)),
    }
}

/// `"a", "b" or "c"`.
pub fn one_of(words: &[&str]) -> String {
    match words {
        [] | [_] => quoted(words),
        [words @ .., last] => format!("{} or \"{last}\"", quoted(words)),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}
