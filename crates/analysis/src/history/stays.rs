//! Time spans of parts in slots. A stay consists of the runs in which the part was read there. A run in which nothing
//! could be read does not end a stay; one in which the part is read elsewhere does.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use railgauge_wire::facts::port_name;

use super::slots::{By, Fitted, PartKind, Slot};

/// From a run on: the name of a slot, and the devices of its part.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    since: usize,
    name: String,
    carries: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    pub host: String,
    pub slot: Slot,
    pub id: (By, String),
    /// Positions of the first and the last run in which it was read there. In between it was read nowhere else, and no other part there.
    pub runs: (usize, usize),
    /// In order of time; never empty.
    names: Vec<Named>,
}

#[derive(Debug, Clone, Copy)]
pub struct Seated<'s> {
    pub host: &'s str,
    pub kind: PartKind,
    pub run: usize,
    carries: &'s [String],
}

impl Seated<'_> {
    /// Whether the part had a device, which may have its port: `mlx5_0:2`.
    pub fn has_device(&self, device: &str) -> bool {
        let (device, _) = port_name(device);
        self.carries.iter().any(|name| name == device)
    }

    pub(super) fn shares_a_name(&self, other: &Self) -> bool {
        self.carries.iter().any(|name| other.carries.contains(name))
    }
}

impl Stay {
    pub fn name(&self) -> &str {
        self.names.last().map_or("", |named| &named.name)
    }

    pub fn first_name(&self) -> &str {
        self.names.first().map_or("", |named| &named.name)
    }

    pub fn came(&self) -> Seated<'_> {
        self.seated(self.names.first(), self.runs.0)
    }

    pub fn left(&self) -> Seated<'_> {
        self.seated(self.names.last(), self.runs.1)
    }

    fn seated<'s>(&'s self, named: Option<&'s Named>, run: usize) -> Seated<'s> {
        let carries = named.map_or(&[][..], |named| named.carries.as_slice());
        Seated { host: &self.host, kind: self.slot.kind, run, carries }
    }

    fn is_in(&self, host: &str, slot: &Slot) -> bool {
        self.host == host && self.slot == *slot
    }
}

#[derive(Debug, Default)]
pub struct Stays {
    pub(super) all: Vec<Stay>,
    pub(super) id_of: Vec<usize>,
    ids: HashMap<(PartKind, By, String), usize>,
    pub(super) latest: Vec<Latest>,
    now: HashMap<String, Now>,
}

#[derive(Debug)]
pub(super) struct Latest {
    pub stay: usize,
    pub doubtful: bool,
}

#[derive(Debug)]
struct Now {
    slots: Arc<Vec<Fitted>>,
    told: Vec<usize>,
    known: BTreeMap<(Slot, By), usize>,
}

impl Stays {
    /// Adds a run, by its position in time, with the slots of a host. A host that is absent from a run has lost
    /// nothing; an id that is absent in a run of its host is unknown then.
    pub fn run(&mut self, place: usize, host: &str, slots: &Arc<Vec<Fitted>>) {
        let mut before = self.now.remove(host);
        // Most nights equal the one before, and share its data.
        if let Some(same) = before.take_if(|same| Arc::ptr_eq(&same.slots, slots) && self.are_latest(&same.told)) {
            same.told.iter().for_each(|at| self.all[*at].runs.1 = place);
            self.now.insert(host.to_owned(), same);
            return;
        }
        let mut known = before.map(|before| before.known).unwrap_or_default();
        let mut told = Vec::new();
        for fitted in slots.iter() {
            for (by, id) in &fitted.ids {
                let key = (fitted.slot.clone(), *by);
                let here = known.get(&key).copied().filter(|at| self.all[*at].id.1 == *id);
                let at = self.read(place, host, fitted, (*by, id), here);
                told.push(at);
                known.insert(key, at);
            }
        }
        self.now.insert(host.to_owned(), Now { slots: slots.clone(), told, known });
    }

    fn are_latest(&self, stays: &[usize]) -> bool {
        stays.iter().all(|at| {
            let latest = &self.latest[self.id_of[*at]];
            latest.doubtful || latest.stay == *at
        })
    }

    /// Notes an id in a slot and returns its stay; `here` is the slot's last known stay of that id.
    fn read(&mut self, place: usize, host: &str, fitted: &Fitted, (by, id): (By, &str), here: Option<usize>) -> usize {
        let next = self.latest.len();
        let number = *self.ids.entry((fitted.slot.kind, by, id.to_owned())).or_insert(next);
        if number == next {
            self.latest.push(Latest { stay: usize::MAX, doubtful: false });
        }
        let latest = &mut self.latest[number];
        // The same run has it elsewhere, too.
        latest.doubtful |=
            self.all.get(latest.stay).is_some_and(|last| last.runs.1 == place && !last.is_in(host, &fitted.slot));
        let at = here.filter(|at| latest.doubtful || latest.stay == *at).unwrap_or(self.all.len());
        latest.stay = at;
        let named = || Named { since: place, name: fitted.name(), carries: fitted.carries.clone() };
        match self.all.get_mut(at) {
            Some(stay) => {
                stay.runs.1 = place;
                if stay.names.last().is_none_or(|last| last.carries != fitted.carries) {
                    stay.names.push(named());
                }
            }
            None => {
                self.all.push(Stay {
                    host: host.to_owned(),
                    slot: fitted.slot.clone(),
                    id: (by, id.to_owned()),
                    runs: (place, place),
                    names: vec![named()],
                });
                self.id_of.push(number);
            }
        }
        at
    }

    /// The slots of every host with the last known part, unless that was read elsewhere since.
    pub fn known(&self) -> BTreeMap<String, Vec<Fitted>> {
        let mut all: BTreeMap<String, BTreeMap<&Slot, Fitted>> = BTreeMap::new();
        for (host, now) in &self.now {
            for ((slot, by), at) in &now.known {
                let latest = &self.latest[self.id_of[*at]];
                if !latest.doubtful && latest.stay != *at {
                    continue;
                }
                let stay = &self.all[*at];
                let fitted = all.entry(host.clone()).or_default().entry(slot).or_insert_with(|| Fitted {
                    slot: slot.clone(),
                    carries: stay.names.last().map(|named| named.carries.clone()).unwrap_or_default(),
                    ids: BTreeMap::new(),
                });
                fitted.ids.insert(*by, stay.id.1.clone());
            }
        }
        all.into_iter().map(|(host, slots)| (host, slots.into_values().collect())).collect()
    }

    pub fn hosts(&self) -> BTreeSet<&str> {
        self.now.keys().map(String::as_str).collect()
    }
}
