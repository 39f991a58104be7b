//! `[localise]`: how bad parts are looked for.

use super::{
    format::{Preset, Section, Shape, key},
    model::Localise,
    read::Table,
};

/// Keys of `[localise]`.
pub static LOCALISE: Section = Section {
    header: "[localise]",
    about: "How bad hosts, NICs, rails, groups and paths are looked for in the results.",
    keys: &[key(
        "least_effect",
        Shape::Percent(0.1, 50.0),
        Preset::Value("1"),
        "Smallest difference from good pairs that gets a name.",
    )],
};

/// Reads the table; what it does not say has its preset.
pub fn read(top: &Table<'_>) -> Localise {
    let table = top.table("localise");
    let preset = Localise::default();
    Localise { least_percent: table.percent("least_effect").map_or(preset.least_percent, |at| at.value) }
}
