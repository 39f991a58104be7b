//! `[localise]`: how bad parts are looked for.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use railgauge_wire::terms::Transport;

use super::{
    format::{Preset, Section, Shape, key},
    mistakes::Mistake,
    model::{Host, Localise, Rails, Test, Waiver},
    read::{Table, Words},
    test_table::LAST_RAIL,
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
            "Smallest difference from good pairs that gets a name, and smallest change over the nights that `trend` reports. `compare` has `--margin`.",
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
             boundaries), `rail 3` (as a whole, not one NIC on it), or `all`. They are measured and told, and do not make the run fail. `all` also waives \
             two clusters of values, and noise in which a bad part would not show.",
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

/// Reads the table; what it does not say has its preset. `hosts`, `groups` and the rails of `tests` can be waived.
pub fn read(top: &Table<'_>, hosts: &[Host], groups: &BTreeMap<String, Vec<String>>, tests: &[Test]) -> Localise {
    let table = top.table("localise");
    let preset = Localise::default();
    Localise {
        least_percent: table.percent("least_effect").map_or(preset.least_percent, |at| at.value),
        confirm: table.flag("confirm").map_or(preset.confirm, |at| at.value),
        at_most: table.time("at_most").map_or(preset.at_most, |at| at.value.into()),
        ports: table.whole("ports").map_or(preset.ports, |at| at.value),
        waive: waivers(&table, hosts, groups, rails(hosts, tests).as_ref()),
    }
}

/// Rails that the pairs of these tests can have; `None` where a host has as many as it turns out to have.
fn rails(hosts: &[Host], tests: &[Test]) -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for test in tests.iter().filter(|test| test.collective.is_none()) {
        if let Rails::Only(rails) = &test.rails {
            found.extend(rails);
            continue;
        }
        let members: HashSet<&str> = test.hosts.iter().map(String::as_str).collect();
        for host in hosts.iter().filter(|host| members.contains(host.name.as_str())) {
            let rails = match test.transport {
                // Without a list there is one, whatever interface the route takes.
                Transport::Tcp => host.tcp.len().max(1),
                _ if host.devices.is_empty() => return None,
                _ => host.devices.len(),
            };
            found.extend(0..u32::try_from(rails).unwrap_or(u32::MAX));
        }
    }
    // Of a plan without a test that could be read nobody knows.
    (!found.is_empty()).then_some(found)
}

/// What one text waives; `None` after saying that it is no part of this plan.
fn waiver(
    table: &Table<'_>,
    text: &Words,
    hosts: &[Host],
    groups: &BTreeMap<String, Vec<String>>,
    rails: Option<&BTreeSet<u32>>,
) -> Option<Waiver> {
    let name = text.text.as_str();
    let is_rail = |name: &str| name.strip_prefix("rail ").is_some_and(|number| number.trim().parse::<u32>().is_ok());
    if (name == "all" || is_rail(name)) && (hosts.iter().any(|host| host.name == name) || groups.contains_key(name)) {
        let mistake = Mistake::at(
            text.span.clone(),
            format!("`{name}` is a host or group of this plan, but has another meaning here"),
        );
        table.book.add(mistake.help("rename the host or group, so that nothing is waived by accident"));
        return None;
    }
    if name == "all" {
        return Some(Waiver::All);
    }
    if let Some(rail) = name.strip_prefix("rail ").and_then(|number| number.trim().parse().ok()) {
        if rails.map_or(u64::from(rail) <= LAST_RAIL, |rails| rails.contains(&rail)) {
            return Some(Waiver::Rail(rail));
        }
        let help = match rails {
            Some(rails) => {
                let rails: Vec<String> = rails.iter().map(u32::to_string).collect();
                format!("rails are counted from 0; the tests measure {}", rails.join(", "))
            }
            None => format!("rails are 0 to {LAST_RAIL}"),
        };
        let mistake = Mistake::at(text.span.clone(), format!("no test of this plan measures rail {rail}"));
        table.book.add(mistake.help(help));
        return None;
    }
    if hosts.iter().any(|host| host.name == name) {
        return Some(Waiver::Host(name.to_owned()));
    }
    if groups.contains_key(name) {
        return Some(Waiver::Group(name.to_owned()));
    }
    let mistake = Mistake::at(text.span.clone(), format!("`{name}` is not a part that can be waived"));
    let known = hosts.iter().map(|host| host.name.as_str()).chain(groups.keys().map(String::as_str)).chain(["all"]);
    let help = match table.book.nearest_host(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "name a host or a group of this plan, `rail 0`, or `all`".to_owned(),
    };
    table.book.add(mistake.help(help));
    None
}

fn waivers(
    table: &Table<'_>,
    hosts: &[Host],
    groups: &BTreeMap<String, Vec<String>>,
    rails: Option<&BTreeSet<u32>>,
) -> Vec<Waiver> {
    let texts = table.texts("waive").into_iter().flat_map(|at| at.value);
    texts.filter_map(|text| waiver(table, &text, hosts, groups, rails)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::path::Path;

    use crate::plan::parse;

    #[test]
    fn a_waived_part_that_is_not_there_is_told_with_the_nearest_name() {
        let wrong = |part: &str| {
            let plan = format!(
                "name = \"p\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = \"gpu[1-2]\", groups = {{ rack7 = \"gpu1\" }} }}\n\
                 localise = {{ waive = [\"{part}\"] }}\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n\
                 sizes = \"1KiB\"\n"
            );
            parse("p.toml", &plan, Path::new(".")).unwrap_err().to_string()
        };
        for (part, near) in [("gpv1", "gpu1"), ("rak7", "rack7"), ("al", "all")] {
            let text = wrong(part);
            assert!(text.contains(&format!("did you mean `{near}`?")), "{text}");
        }
        assert!(wrong("gpu9").contains("name a host or a group of this plan"));
    }
}
