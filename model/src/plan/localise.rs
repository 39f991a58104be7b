use std::collections::{BTreeMap, BTreeSet, HashSet};

use railgauge_wire::Transport;

use super::{
    Host, LAST_RAIL, Rails, Section, Table, Test, Words,
    format::keys,
    hosts,
    model::{Localise, Waiver},
};

pub static LOCALISE: Section = Section {
    header: "[localise]",
    about: "How bad hosts, NICs, rails, groups and paths are looked for in the results.",
    keys: keys! {
        "least_effect": Percent(0.1, 50.0), Is("1"),
            "Smallest difference from good pairs that is reported, and smallest change that `trend` reports. \
             `compare` has `--margin`.";
        "confirm": Flag, Is("true"),
            "Whether the run measures suspects again after its tests, five times, with known-good partners, and \
             takes slow collectives apart.";
        "waive": Texts, Means("none"),
            "Components known to be bad, which are measured and reported but fail nothing: hosts (with NICs and \
             paths; also `gpu[07-08]` outside the plan), groups (with uplinks), `rail 3` (as a whole), or `all`, \
             which also waives two clusters of values and too much noise.";
        "at_most": Time("1s", "1h"), Is("\"5min\""),
            "Time to measure suspects again; no further round starts later.";
        "ports": Whole(0, 32), Is("8"),
            "Queue pairs or streams over which a confirmed path is then measured, one at a time, three times each, \
             to find slow ports of equal paths. 0: none.";
    },
};

/// Reads the table, with defaults for missing keys. `hosts`, `groups` and the rails of `tests` can be waived.
pub fn read(top: &Table<'_>, list: &[Host], groups: &BTreeMap<String, Vec<String>>, tests: &[Test]) -> Localise {
    let table = top.table("localise");
    let (preset, rails) = (Localise::default(), rails(list, tests));
    Localise {
        least_percent: table.percent("least_effect").map_or(preset.least_percent, |at| at.value),
        confirm: table.flag("confirm").map_or(preset.confirm, |at| at.value),
        at_most: table.time("at_most").map_or(preset.at_most, |at| at.value.into()),
        ports: table.whole("ports").map_or(preset.ports, |at| at.value),
        waive: (table.texts("waive").into_iter().flat_map(|at| at.value))
            .flat_map(|text| waiver(&table, &text, list, groups, rails.as_ref()))
            .collect(),
    }
}

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
                // Without a list there is one, whatever interface the route uses.
                Transport::Tcp => host.tcp.len().max(1),
                _ if host.devices.is_empty() => return None,
                _ => host.devices.len(),
            };
            found.extend(0..u32::try_from(rails).unwrap_or(u32::MAX));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// What one text waives; empty after reporting why it cannot.
fn waiver(
    table: &Table<'_>,
    text: &Words,
    list: &[Host],
    groups: &BTreeMap<String, Vec<String>>,
    rails: Option<&BTreeSet<u32>>,
) -> Vec<Waiver> {
    let name = text.text.as_str();
    let is_rail = |name: &str| name.strip_prefix("rail ").is_some_and(|number| number.trim().parse::<u32>().is_ok());
    if (name == "all" || is_rail(name)) && (list.iter().any(|host| host.name == name) || groups.contains_key(name)) {
        let message = format!("`{name}` is a host or group of this plan, but has another meaning here");
        table.wrong(text.span.clone(), message, "rename the host or group, so that nothing is waived by accident");
        return Vec::new();
    }
    if name == "all" {
        return vec![Waiver::All];
    }
    if let Some(rail) = name.strip_prefix("rail ").and_then(|number| number.trim().parse().ok()) {
        if rails.map_or(u64::from(rail) <= LAST_RAIL, |rails| rails.contains(&rail)) {
            return vec![Waiver::Rail(rail)];
        }
        let help = match rails {
            Some(rails) => {
                let rails: Vec<String> = rails.iter().map(u32::to_string).collect();
                format!("rails are counted from 0; the tests measure {}", rails.join(", "))
            }
            None => format!("rails are 0 to {LAST_RAIL}"),
        };
        table.wrong(text.span.clone(), format!("no test of this plan measures rail {rail}"), help);
        return Vec::new();
    }
    if groups.contains_key(name) {
        return vec![Waiver::Group(name.to_owned())];
    }
    // Also hosts not in the plan: removed ones, or those that Slurm did not give this time.
    hosts::list(table, text).into_iter().flatten().map(Waiver::Host).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::path::Path;

    use crate::plan::{model::Waiver, parse};

    /// A removed host is no longer in the plan; Slurm may not have given another this time.
    #[test]
    fn hosts_are_waived_whether_the_plan_has_them_or_not() {
        let waive = |part: &str| {
            let plan = format!(
                "name = \"p\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = \"gpu[1-2]\", groups = {{ rack7 = \"gpu1\" }} }}\n\
                 localise = {{ waive = [\"{part}\"] }}\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n\
                 sizes = \"1KiB\"\n"
            );
            parse("p.toml", &plan, Path::new("."))
                .map(|(plan, _)| plan.localise.waive)
                .map_err(|error| error.to_string())
        };
        let host = |name: &str| Waiver::Host(name.to_owned());
        assert_eq!(waive("gpu1").unwrap(), [host("gpu1")]);
        assert_eq!(waive("gpu[8-9]").unwrap(), [host("gpu8"), host("gpu9")]);
        assert_eq!(waive("rack7").unwrap(), [Waiver::Group("rack7".into())]);
        assert!(waive("gpu 9").is_err() && waive("rail 9").is_err());
    }
}
