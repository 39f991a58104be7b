//! Other differences between the sides: the hosts' configuration, and the plans' settings of the tests.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use railgauge_preflight::{self as preflight, Change};
use railgauge_wire::HostFacts;
use serde::Serialize;

use crate::{
    history::{Run, Stay, Stays, Swap, fitted},
    settings::{self, Difference},
};

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Configuration {
    /// Facts of hosts that changed from the last run before to the last run after.
    pub hosts: Vec<Change>,
    pub tests: Vec<Setting>,
    /// Changes of parts and facts within one side, whose runs then are not repeats of each other: of the runs before, and of those after.
    pub within: [Vec<Change>; 2],
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub test: String,
    /// In the resolved plan: `knobs.depth`.
    pub key: String,
    /// Empty if not set.
    pub before: String,
    /// Empty if not set.
    pub after: String,
}

#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub started: Timestamp,
    hosts: BTreeMap<String, HostFacts>,
    tests: BTreeMap<String, BTreeMap<String, String>>,
    imported: bool,
}

impl Seen {
    pub(super) fn take(run: &mut Run) -> Self {
        let of = if run.imported { settings::told } else { settings::all };
        let tests = run.plan.tests.iter().map(|test| (test.name.clone(), of(test))).collect();
        Self { started: run.started, hosts: std::mem::take(&mut run.hosts), tests, imported: run.imported }
    }

    fn settings_until(&self, after: &Self) -> Vec<Setting> {
        let both = self.tests.iter().filter_map(|(test, before)| Some((test, before, after.tests.get(test)?)));
        let mut found: Vec<Setting> = both.flat_map(|(test, before, after)| different(test, before, after)).collect();
        if self.imported || after.imported {
            found.retain(|setting| {
                let is_told =
                    |seen: &Self| seen.tests.get(&setting.test).is_some_and(|keys| keys.contains_key(&setting.key));
                is_told(self) && is_told(after)
            });
        }
        found
    }
}

/// From the first and the last run of each side.
pub(super) fn configuration(sides: &[Option<(Seen, Seen)>; 2]) -> Configuration {
    let [Some((before_first, before_last)), Some((after_first, after_last))] = sides else {
        return Configuration::default();
    };
    Configuration {
        hosts: changes(&before_last.hosts, &after_last.hosts),
        tests: before_last.settings_until(after_last),
        within: [changes(&before_first.hosts, &before_last.hosts), changes(&after_first.hosts, &after_last.hosts)],
    }
}

/// Between two looks at a cluster: replaced parts first, then facts.
fn changes(before: &BTreeMap<String, HostFacts>, after: &BTreeMap<String, HostFacts>) -> Vec<Change> {
    let mut stays = Stays::default();
    for (place, hosts) in [before, after].into_iter().enumerate() {
        hosts.iter().for_each(|(host, facts)| stays.run(place, host, &Arc::new(fitted(facts))));
    }
    let replaced = stays.swaps().into_iter().map(|swap| {
        let Swap { old, new, from, to, .. } = &swap;
        let elsewhere = |id: &str, stay: Option<&Stay>, when: &str| match stay {
            Some(stay) => format!("{id}, {when}: {} of {}", stay.name(), stay.host),
            None => id.to_owned(),
        };
        Change {
            fact: format!("{} {}", swap.new.first_name().to_owned(), new.id.0.word()),
            before: Some(elsewhere(&old.id.1, to.as_ref(), "after")),
            after: Some(elsewhere(&new.id.1, from.as_ref(), "before")),
            hosts: vec![new.host.clone()],
        }
    });
    replaced.chain(preflight::between(before, after)).collect()
}

pub(super) fn different(
    test: &str,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<Setting> {
    let setting = |Difference { name, before, now }| Setting {
        test: test.to_owned(),
        key: name,
        before: before.unwrap_or_default(),
        after: now.unwrap_or_default(),
    };
    settings::differences(before, after).into_iter().map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_that_two_hosts_exchanged_are_told_with_where_they_were() {
        use railgauge_wire::{Card, Label};
        let hosts = |serials: [&str; 3]| {
            let of = |(host, serial): (&str, &str)| {
                let label = Label { serial: Some(serial.to_owned()), ..Label::default() };
                let mut facts = HostFacts::default();
                facts.parts.cards =
                    vec![Card { pci: "0000:18:00.0".into(), devices: vec!["mlx5_0".into()], label, ..Card::default() }];
                (host.to_owned(), facts)
            };
            ["a", "b", "c"].into_iter().zip(serials).map(of).collect::<BTreeMap<_, _>>()
        };
        let found = changes(&hosts(["MT1", "MT2", "MT3"]), &hosts(["MT2", "MT1", "MT3"]));
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].fact.as_str(), found[0].hosts[0].as_str()), ("NIC mlx5_0 serial number", "a"));
        assert_eq!(found[0].before.as_deref(), Some("MT1, after: NIC mlx5_0 of b"));
        assert_eq!(found[0].after.as_deref(), Some("MT2, before: NIC mlx5_0 of b"));
        assert_eq!(changes(&hosts(["MT1", "MT1", "MT3"]), &hosts(["MT1", "MT9", "MT3"])), []);
    }

    #[test]
    fn what_an_imported_run_was_not_told_is_no_difference() {
        let seen = |imported, settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let (tests, hosts) = (BTreeMap::from([("bw".to_owned(), settings)]), BTreeMap::new());
            Seen { started: Timestamp::UNIX_EPOCH, hosts, tests, imported }
        };
        let ours = seen(false, &[("window.Duration", "3"), ("sizes", "[1]"), ("knobs.depth", "7")]);
        let theirs = seen(true, &[("sizes", "[2]")]);
        let keys = |found: Vec<Setting>| found.into_iter().map(|one| one.key).collect::<Vec<_>>();
        assert_eq!(keys(ours.settings_until(&theirs)), ["sizes"]);
        assert_eq!(keys(theirs.settings_until(&ours)), ["sizes"]);
        // For two runs of railgauge, a setting that only one has is a difference.
        let bare = seen(false, &[("sizes", "[2]")]);
        assert_eq!(keys(ours.settings_until(&bare)), ["knobs.depth", "sizes", "window.Duration"]);
    }

    #[test]
    fn settings_are_compared_key_by_key() {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let before = map(&[("op", "write"), ("knobs.depth", "128")]);
        let after = map(&[("op", "write"), ("knobs.depth", "256"), ("knobs.mtu", "1024")]);
        let setting = |key: &str, before: &str, after: &str| Setting {
            test: "bw".into(),
            key: key.into(),
            before: before.into(),
            after: after.into(),
        };
        assert_eq!(
            different("bw", &before, &after),
            [setting("knobs.depth", "128", "256"), setting("knobs.mtu", "", "1024")]
        );
        assert_eq!(different("bw", &before, &before), []);
    }
}
