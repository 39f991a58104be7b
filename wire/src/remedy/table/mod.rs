//! The table: a file for each part of the house, an entry for each remedy.

mod agent;
mod containers;
mod fabric;
mod gpu;
mod hosts;
mod parts;
mod preflight;
mod run;
mod topology;

pub use self::{agent::*, containers::*, fabric::*, gpu::*, hosts::*, parts::*, preflight::*, run::*, topology::*};
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
use remedies;

pub fn all() -> impl Iterator<Item = &'static Entry> {
    let all = [
        preflight::ALL,
        hosts::ALL,
        containers::ALL,
        run::ALL,
        parts::ALL,
        agent::ALL,
        fabric::ALL,
        gpu::ALL,
        topology::ALL,
    ];
    all.into_iter().flatten()
}
