//! The table: a file for each part of the house, an entry for each remedy.

use super::Entry;

/// Entries as constants, and all of a file as `ALL` in the order of the file: `NAME = "id", "text", KIND "command";`. The kind of
/// a command says where it is run and whether it changes something there: `look` and `change` are for the host that the remedy
/// is about, `look_here` and `change_here` for the machine that runs railgauge.
macro_rules! remedies {
    ($($name:ident = $id:literal, $text:literal $(, $kind:ident $command:literal)*;)*) => {
        $(
            #[doc = concat!("`", $id, "`")]
            pub const $name: $crate::remedy::Entry = $crate::remedy::Entry {
                id: $id,
                text: $text,
                commands: &[$($crate::remedy::Template::$kind($command)),*],
            };
        )*
        pub(super) const ALL: &[$crate::remedy::Entry] = &[$($name),*];
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
