//! `[localise]`: how bad parts are looked for.

use std::{collections::BTreeMap, time::Duration};

use super::{
    format::{Preset, Section, Shape, key},
    mistakes::Mistake,
    model::{Host, Localise, Waiver},
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
            "waive",
            Shape::Texts,
            Preset::Words("none"),
            "Parts whose being bad is known: hosts and groups of the plan (with their NICs, paths, uplinks and \
             boundaries), `rail 3`, or `all`. They are measured and told, and do not make the run fail.",
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

/// Reads the table; what it does not say has its preset. `hosts` and `groups` are the names that can be waived.
pub fn read(top: &Table<'_>, hosts: &[Host], groups: &BTreeMap<String, Vec<String>>) -> Localise {
    let table = top.table("localise");
    let preset = Localise::default();
    Localise {
        least_percent: table.percent("least_effect").map_or(preset.least_percent, |at| at.value),
        confirm: table.flag("confirm").map_or(preset.confirm, |at| at.value),
        at_most: table.time("at_most").map_or(preset.at_most, |at| Duration::from_nanos(at.value)),
        ports: table.whole("ports").map_or(preset.ports, |at| at.value),
        waive: waivers(&table, hosts, groups),
    }
}

fn waivers(table: &Table<'_>, hosts: &[Host], groups: &BTreeMap<String, Vec<String>>) -> Vec<Waiver> {
    let mut found = Vec::new();
    for text in table.texts("waive").into_iter().flat_map(|at| at.value) {
        let name = text.text.as_str();
        let rail = name.strip_prefix("rail ").and_then(|number| number.trim().parse().ok());
        found.extend(match rail {
            _ if name == "all" => Some(Waiver::All),
            Some(rail) => Some(Waiver::Rail(rail)),
            None if hosts.iter().any(|host| host.name == name) => Some(Waiver::Host(name.to_owned())),
            None if groups.contains_key(name) => Some(Waiver::Group(name.to_owned())),
            None => {
                let mistake = Mistake::at(text.span.clone(), format!("`{name}` is no part that can be waived"));
                table.book.add(mistake.help("name a host or a group of this plan, `rail 0`, or `all`"));
                None
            }
        });
    }
    found
}
