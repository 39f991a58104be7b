//! Changes that may explain others. Only a declaration makes a new level good; a new driver or firmware is named with
//! what changed at the same time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_preflight as preflight;
use railgauge_wire::facts::HostFacts;
use serde::Serialize;

use super::calendar::date;
use crate::history::{Fitted, fitted};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Epoch {
    pub date: String,
    #[serde(skip)]
    pub day: i64,
    pub what: String,
    /// Empty for everywhere.
    pub hosts: Vec<String>,
    pub declared: bool,
}

/// Declared epochs without an effect, each with the reason: no night is on the other side of it. `nights` are in order.
pub(super) fn idle(declared: &[(i64, String)], nights: &[i64]) -> Vec<String> {
    let (Some(&first), Some(&last)) = (nights.first(), nights.last()) else { return Vec::new() };
    let why = |(day, what): &(i64, String)| {
        let place = match *day {
            day if day > last => format!("it is later than the last night, {}, and accepts nothing yet", date(last)),
            day if day < first => format!("it is earlier than the first night, {}, and accepts nothing", date(first)),
            _ => return None,
        };
        Some(format!("--epoch \"{} {what}\": {place}", date(*day)))
    };
    declared.iter().filter_map(why).collect()
}

/// Software of a host by name. Shared, because it is equal on most nights.
pub(super) type Software = std::sync::Arc<Vec<(String, String)>>;

/// The slots of a host. Shared, because they are equal on most nights.
pub(super) type Slots = std::sync::Arc<Vec<Fitted>>;

/// Interns equal software and slots.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    software: HashMap<Vec<(String, String)>, Software>,
    slots: HashMap<Vec<Fitted>, Slots>,
}

impl Shelf {
    pub(super) fn software(&mut self, facts: &HostFacts) -> Software {
        let list = preflight::software(facts);
        self.software.entry(list).or_insert_with_key(|list| Software::new(list.clone())).clone()
    }

    pub(super) fn slots(&mut self, facts: &HostFacts) -> Slots {
        self.slots.entry(fitted(facts)).or_insert_with_key(|list| Slots::new(list.clone())).clone()
    }
}

#[derive(Debug, Default)]
pub(super) struct Walk {
    hosts: HashMap<String, BTreeMap<String, String>>,
    version: String,
    declared: u64,
    found: BTreeMap<(i64, String), Vec<String>>,
    accepted: BTreeSet<(i64, String)>,
}

impl Walk {
    pub(super) fn declare(&mut self, day: i64, what: &str) {
        self.declared += 1;
        self.accepted.insert((day, what.to_owned()));
        self.found.insert((day, what.to_owned()), Vec::new());
    }

    pub(super) fn edit(&mut self, day: i64, what: &str) {
        self.found.insert((day, what.to_owned()), Vec::new());
    }

    pub(super) fn run(&mut self, day: i64, version: &str, hosts: &BTreeMap<String, Software>) {
        if self.version != version {
            if !self.version.is_empty() {
                let what = format!("railgauge: {} → {version}", self.version);
                self.found.insert((day, what), Vec::new());
            }
            version.clone_into(&mut self.version);
        }
        for (host, software) in hosts {
            let known = self.hosts.entry(host.clone()).or_default();
            for (fact, value) in software.iter() {
                match known.get_mut(fact) {
                    Some(old) if old != value => {
                        let what = format!("{fact}: {old} → {value}");
                        self.found.entry((day, what)).or_default().push(host.clone());
                        old.clone_from(value);
                    }
                    Some(_) => {}
                    None => _ = known.insert(fact.clone(), value.clone()),
                }
            }
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.declared
    }

    /// Latest first.
    pub(super) fn finish(self) -> Vec<Epoch> {
        let epoch = |(key, hosts): ((i64, String), Vec<String>)| {
            let declared = self.accepted.contains(&key);
            let (day, what) = key;
            Epoch { date: date(day), day, what, hosts, declared }
        };
        self.found.into_iter().rev().map(epoch).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn night(walk: &mut Walk, day: i64, version: &str, firmware: Option<&str>) {
        let list = firmware.map(|firmware| ("mlx5_0 firmware".to_owned(), firmware.to_owned()));
        let software = Software::new(list.into_iter().collect());
        walk.run(day, version, &[("a".to_owned(), software)].into());
    }

    #[test]
    fn an_epoch_on_no_side_of_any_night_is_told() {
        let declared = [3, 10, 15, 20, 21].map(|day| (day, "switches".to_owned()));
        let told = idle(&declared, &[10, 15, 20]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("1970-01-04 switches") && told[0].contains("earlier than the first night, 1970-01-11")
        );
        assert!(told[1].contains("1970-01-22 switches") && told[1].contains("later than the last night, 1970-01-21"));
        assert!(idle(&declared, &[]).is_empty());
    }

    #[test]
    fn new_firmware_and_versions_are_told_and_only_declarations_begin_epochs() {
        let mut walk = Walk::default();
        night(&mut walk, 1, "0.1", Some("28.1"));
        night(&mut walk, 2, "0.1", None);
        night(&mut walk, 3, "0.1", Some("28.1"));
        night(&mut walk, 4, "0.1", Some("28.2"));
        night(&mut walk, 5, "0.2", Some("28.2"));
        assert_eq!(walk.epoch(), 0);
        walk.declare(6, "new switch");
        assert_eq!(walk.epoch(), 1);
        let told: Vec<String> =
            walk.finish().into_iter().map(|epoch| format!("{} {}", epoch.day, epoch.what)).collect();
        assert_eq!(told, ["6 new switch", "5 railgauge: 0.1 → 0.2", "4 mlx5_0 firmware: 28.1 → 28.2"]);
    }
}
