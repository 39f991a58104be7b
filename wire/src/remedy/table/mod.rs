//! The table of remedies: a file for each part of the house.

use serde::{Deserialize, Serialize};

/// Names in braces, as `{interface}`, are filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub id: &'static str,
    /// `{0}` is the first command, `{name}` a value.
    pub text: &'static str,
    pub commands: &'static [Template],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Template {
    /// Shell command with names in braces. A part in brackets, `[--context {context}]`, is omitted if its value is unknown.
    pub command: &'static str,
    pub changes: bool,
    pub on: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    Host,
    Controller,
}

macro_rules! kinds {
    ($($kind:ident = $changes:literal, $on:ident;)*) => {
        impl Template {
            $(const fn $kind(command: &'static str) -> Self {
                Self { command, changes: $changes, on: Place::$on }
            })*
        }
    };
}

kinds! {
    look = false, Host;
    change = true, Host;
    look_here = false, Controller;
    change_here = true, Controller;
}

/// The id of an entry: its name in small letters, with `-` for `_`.
const fn id<const N: usize>(name: &str) -> [u8; N] {
    let (mut id, mut at) = ([b'-'; N], 0);
    while at < N {
        if name.as_bytes()[at] != b'_' {
            id[at] = name.as_bytes()[at].to_ascii_lowercase();
        }
        at += 1;
    }
    id
}

/// Entries as constants, and all of a file as `ALL` in the order of the file: `NAME = "text", KIND "command";`. The kind of
/// a command says where it is run and whether it changes something there: `look` and `change` are for the host that the remedy
/// is about, `look_here` and `change_here` for the machine that runs railgauge.
macro_rules! remedies {
    ($($name:ident = $text:literal $(, $kind:ident $command:literal)*;)*) => {
        $(
            #[doc = $text]
            pub const $name: $crate::remedy::table::Entry = $crate::remedy::table::Entry {
                id: {
                    const ID: [u8; stringify!($name).len()] = $crate::remedy::table::id(stringify!($name));
                    match std::str::from_utf8(&ID) {
                        Ok(id) => id,
                        Err(_) => $text,
                    }
                },
                text: $text,
                commands: &[$($crate::remedy::table::Template::$kind($command)),*],
            };
        )*
        pub(super) const ALL: &[$crate::remedy::table::Entry] = &[$($name),*];
    };
}

macro_rules! files {
    ($($file:ident),*) => {
        $(mod $file;)*
        pub use self::{$($file::*),*};

        pub fn all() -> impl Iterator<Item = &'static Entry> {
            [$($file::ALL),*].into_iter().flatten()
        }
    };
}
files!(preflight, hosts, containers, run, parts, agent, fabric, gpu, topology);
