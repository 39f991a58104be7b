//! What was changed on purpose: from that night on a series is compared with nothing older.

use std::collections::{BTreeMap, HashMap};

use railgauge_wire::facts::HostFacts;
use serde::Serialize;

use super::calendar::date;
use crate::preflight;

/// Something that was changed on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Epoch {
    /// First night with it.
    pub date: String,
    /// The same, counted in days from 1970.
    #[serde(skip)]
    pub day: i64,
    /// What changed, from what to what, or what the command line says.
    pub what: String,
    /// Where; empty for everywhere.
    pub hosts: Vec<String>,
}

/// Software of a host by name. Shared: it is the same for most nights.
pub(super) type Software = std::sync::Arc<Vec<(String, String)>>;

/// Keeps one copy of equal software.
#[derive(Debug, Default)]
pub(super) struct Shelf(HashMap<Vec<(String, String)>, Software>);

impl Shelf {
    pub(super) fn software(&mut self, facts: &HostFacts) -> Software {
        let list = preflight::software(facts);
        self.0.entry(list).or_insert_with_key(|list| Software::new(list.clone())).clone()
    }
}

/// Walks the nights and counts every host's epochs.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// What is known of a host: the last value of every fact, and how often one changed.
    hosts: HashMap<String, (BTreeMap<String, String>, u64)>,
    version: String,
    /// Epochs of everything: the version of railgauge, and what was declared.
    common: u64,
    found: BTreeMap<(i64, String), Vec<String>>,
}

impl Walk {
    /// A declared epoch begins.
    pub(super) fn declare(&mut self, day: i64, what: &str) {
        self.common += 1;
        self.found.insert((day, what.to_owned()), Vec::new());
    }

    /// A night's run with what its hosts were. A fact that could not be read has not changed.
    pub(super) fn run(&mut self, day: i64, version: &str, hosts: &BTreeMap<String, Software>) {
        if self.version != version {
            if !self.version.is_empty() {
                let what = format!("railgauge: {} → {version}", self.version);
                self.declare(day, &what);
            }
            version.clone_into(&mut self.version);
        }
        for (host, software) in hosts {
            let (known, epochs) = self.hosts.entry(host.clone()).or_default();
            let mut changed = false;
            for (fact, value) in software.iter() {
                match known.get_mut(fact) {
                    Some(old) if old != value => {
                        let what = format!("{fact}: {old} → {value}");
                        self.found.entry((day, what)).or_default().push(host.clone());
                        old.clone_from(value);
                        changed = true;
                    }
                    Some(_) => {}
                    None => _ = known.insert(fact.clone(), value.clone()),
                }
            }
            *epochs += u64::from(changed);
        }
    }

    /// The present epoch of what these hosts measure together: it only ever grows.
    pub(super) fn epoch<'h>(&self, hosts: impl Iterator<Item = &'h str>) -> u64 {
        self.common + hosts.filter_map(|host| self.hosts.get(host)).map(|(_, epochs)| epochs).sum::<u64>()
    }

    /// Everything that was changed on purpose, the latest first.
    pub(super) fn finish(self) -> Vec<Epoch> {
        let epoch = |((day, what), hosts): ((i64, String), Vec<String>)| Epoch { date: date(day), day, what, hosts };
        self.found.into_iter().rev().map(epoch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn night(walk: &mut Walk, day: i64, version: &str, firmware: Option<&str>) -> u64 {
        let list = firmware.map(|firmware| ("mlx5_0 firmware".to_owned(), firmware.to_owned()));
        let software = Software::new(list.into_iter().collect());
        walk.run(day, version, &[("a".to_owned(), software)].into());
        walk.epoch(["a", "b"].into_iter())
    }

    #[test]
    fn new_firmware_versions_and_declarations_begin_epochs_and_unread_facts_do_not() {
        let mut walk = Walk::default();
        let first = night(&mut walk, 1, "0.1", Some("28.1"));
        assert_eq!(night(&mut walk, 2, "0.1", None), first);
        assert_eq!(night(&mut walk, 3, "0.1", Some("28.1")), first);
        assert_eq!(night(&mut walk, 4, "0.1", Some("28.2")), first + 1);
        assert_eq!(night(&mut walk, 5, "0.2", Some("28.2")), first + 2);
        walk.declare(6, "new switch");
        assert_eq!(walk.epoch(["c"].into_iter()), 2);
        let told: Vec<String> =
            walk.finish().into_iter().map(|epoch| format!("{} {}", epoch.day, epoch.what)).collect();
        assert_eq!(told, ["6 new switch", "5 railgauge: 0.1 → 0.2", "4 mlx5_0 firmware: 28.1 → 28.2"]);
    }
}
