//! `[localise]`: how bad parts are looked for.

use std::time::Duration;

use super::{
    format::{Preset, Section, Shape, key},
    model::Localise,
    read::Table,
};

/// Keys of `[localise]`.
pub static LOCALISE: Section = Section {
    header: "[localise]",
    about: "How bad hosts, NICs, rails, groups and paths are looked for in the results.",
    keys: &[
        key(
            "least_effect",
            Shape::Percent(0.1, 50.0),
            Preset::Value("1"),
            "Smallest difference from good pairs that gets a name.",
        ),
        key(
            "confirm",
            Shape::Flag,
            Preset::Value("true"),
            "Whether the run measures suspects again after its tests, each with known-good partners, five times, and \
             takes slow collectives apart.",
        ),
        key(
            "at_most",
            Shape::Time("1s", "1h"),
            Preset::Value("\"5min\""),
            "Time for that, from its beginning; no further round of it begins later.",
        ),
        key(
            "ports",
            Shape::Whole(0, 32),
            Preset::Value("8"),
            "Queue pairs or streams over which a path that was confirmed is then measured one at a time, three times \
             each: switches with equal paths choose by the source port, and each queue pair has its own. 0: not at all.",
        ),
    ],
};

/// Reads the table; what it does not say has its preset.
pub fn read(top: &Table<'_>) -> Localise {
    let table = top.table("localise");
    let preset = Localise::default();
    Localise {
        least_percent: table.percent("least_effect").map_or(preset.least_percent, |at| at.value),
        confirm: table.flag("confirm").map_or(preset.confirm, |at| at.value),
        at_most: table.time("at_most").map_or(preset.at_most, |at| Duration::from_nanos(at.value)),
        ports: table.whole("ports").map_or(preset.ports, |at| at.value),
    }
}
