//! How long which part was in which slot. A stay is made of the runs in which the part was read there: a run in which nothing could
//! be read ends none, and one in which the part is read elsewhere does.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use railgauge_wire::facts::port_name;

use super::slots::{By, Fitted, PartKind, Slot};

/// What a slot was called, and what its part carried, from a run on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    since: usize,
    name: String,
    carries: Vec<String>,
}

/// A part in a slot, from one run to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// The host.
    pub host: String,
    /// The slot.
    pub slot: Slot,
    /// By what it is known, and that.
    pub id: (By, String),
    /// Places of the first and the last run in which it was read there. Between the two it was read nowhere else, and nothing else there.
    pub runs: (usize, usize),
    /// The slot's names, in the order of time; there is one at least.
    names: Vec<Named>,
}

/// A part as it was in its slot at the beginning or the end of its stay.
#[derive(Debug, Clone, Copy)]
pub struct Seated<'s> {
    /// The host.
    pub host: &'s str,
    /// What kind of part it is.
    pub kind: PartKind,
    /// Place of the run.
    pub run: usize,
    /// Devices and interfaces that it carried then.
    carries: &'s [String],
}

impl Seated<'_> {
    /// Whether the part carried a device, which may be named with its port: `mlx5_0:2`.
    pub fn has_device(&self, device: &str) -> bool {
        let (device, _) = port_name(device);
        self.carries.iter().any(|name| name == device)
    }

    /// Whether a device of the one is called as one of the other.
    pub(super) fn shares_a_name(&self, other: &Self) -> bool {
        self.carries.iter().any(|name| other.carries.contains(name))
    }
}

impl Stay {
    /// The slot in words, as it was at the end.
    pub fn name(&self) -> &str {
        self.names.last().map_or("", |named| &named.name)
    }

    /// The slot in words, as it was when the part was read there first.
    pub fn first_name(&self) -> &str {
        self.names.first().map_or("", |named| &named.name)
    }

    /// The part at the beginning of its stay.
    pub fn came(&self) -> Seated<'_> {
        self.seated(self.names.first(), self.runs.0)
    }

    /// The part at the end of its stay.
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

    /// It as it was before a run, or from that run on.
    fn cut(&self, run: usize, last_before: usize, before: bool) -> Self {
        let mut part = self.clone();
        part.names.retain(|named| (named.since < run) == before);
        // It had its last name before already.
        if part.names.is_empty() {
            part.names.extend(self.names.last().cloned());
        }
        part.runs = if before { (self.runs.0, last_before) } else { (run, self.runs.1.max(run)) };
        part
    }
}

/// Follows the parts of hosts from run to run.
#[derive(Debug, Default)]
pub struct Stays {
    pub(super) all: Vec<Stay>,
    /// By the number of a stay: the number of its id.
    pub(super) id_of: Vec<usize>,
    ids: HashMap<(PartKind, By, String), usize>,
    /// By the number of an id.
    pub(super) latest: Vec<Latest>,
    /// What is in the slots of a host.
    now: HashMap<String, Now>,
    /// The card that a device or interface of a host stands for.
    names: HashMap<(String, String, By), usize>,
    renamed: BTreeMap<(usize, String, String), (By, Renamed)>,
}

/// Where an id was read last.
#[derive(Debug)]
pub(super) struct Latest {
    pub stay: usize,
    /// Whether it was read in two slots in one run.
    pub doubtful: bool,
}

/// A name that stands for another card: numbers of the stays, and the last run of its host before.
#[derive(Debug)]
struct Renamed {
    old: usize,
    new: usize,
    before: usize,
}

/// What is known of the slots of a host.
#[derive(Debug)]
struct Now {
    /// As they were told in its last run.
    slots: Arc<Vec<Fitted>>,
    /// Numbers of the stays of what was told then.
    told: Vec<usize>,
    /// The last known part of every slot.
    known: BTreeMap<(Slot, By), usize>,
    /// Its last run.
    last: usize,
}

impl Stays {
    /// A run, by its place in time, with the slots of a host. A host that is in no run has lost nothing; an id that is not there
    /// in a run of its host is not known then.
    pub fn run(&mut self, place: usize, host: &str, slots: &Arc<Vec<Fitted>>) {
        let before = self.now.remove(host);
        // Most nights are like the one before, and share what they tell.
        if let Some(mut same) = before {
            let is_latest = |at: &usize| {
                let latest = &self.latest[self.id_of[*at]];
                latest.doubtful || latest.stay == *at
            };
            if Arc::ptr_eq(&same.slots, slots) && same.told.iter().all(is_latest) {
                same.told.iter().for_each(|at| self.all[*at].runs.1 = place);
                same.last = place;
                self.now.insert(host.to_owned(), same);
                return;
            }
            self.look(place, host, slots, (same.known, Some(same.last)));
        } else {
            self.look(place, host, slots, (BTreeMap::new(), None));
        }
    }

    fn look(
        &mut self,
        place: usize,
        host: &str,
        slots: &Arc<Vec<Fitted>>,
        (mut known, before): (BTreeMap<(Slot, By), usize>, Option<usize>),
    ) {
        let mut told = Vec::new();
        for fitted in slots.iter() {
            for (by, id) in &fitted.ids {
                let key = (fitted.slot.clone(), *by);
                let here = known.get(&key).copied().filter(|at| self.all[*at].id.1 == *id);
                let at = self.read(place, host, fitted, (*by, id), here);
                told.push(at);
                known.insert(key, at);
                if fitted.slot.kind == PartKind::Card {
                    self.called(place, host, &fitted.carries, at, before);
                }
            }
        }
        self.now.insert(host.to_owned(), Now { slots: slots.clone(), told, known, last: place });
    }

    /// An id was read in a slot; `here` is the stay of the same id that the slot was known to have last. The number of its stay.
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

    /// The names that a card has in a run.
    fn called(&mut self, place: usize, host: &str, names: &[String], at: usize, before: Option<usize>) {
        let by = self.all[at].id.0;
        for name in names {
            let old = self.names.insert((host.to_owned(), name.clone(), by), at);
            let (Some(old), Some(before)) = (old, before) else { continue };
            if self.id_of[old] == self.id_of[at] || self.all[old].slot == self.all[at].slot {
                continue;
            }
            let key = (place, host.to_owned(), name.clone());
            let known = self.renamed.get(&key).map(|(by, _)| *by);
            if known.is_none_or(|known| by < known) {
                self.renamed.insert(key, (by, Renamed { old, new: at, before }));
            }
        }
    }

    /// Names of devices and interfaces that stand for another card since a run although no card took the place of another: the names, the
    /// card that they stood for, and the one that they stand for since.
    pub(super) fn renamed(&self) -> Vec<(Vec<String>, Stay, Stay)> {
        let mut found: BTreeMap<(usize, usize, usize, usize), Vec<String>> = BTreeMap::new();
        for ((place, _, name), (_, Renamed { old, new, before })) in &self.renamed {
            let doubtful = [old, new].into_iter().any(|at| self.latest[self.id_of[*at]].doubtful);
            // One of the two cards is where it was, under another name.
            let stayed = self.all[*old].runs.1 >= *place || self.all[*new].runs.0 < *place;
            if stayed && !doubtful {
                found.entry((*place, *before, *old, *new)).or_default().push(name.clone());
            }
        }
        let told = |((place, before, old, new), names): ((usize, usize, usize, usize), Vec<String>)| {
            (names, self.all[old].cut(place, before, true), self.all[new].cut(place, before, false))
        };
        found.into_iter().map(told).collect()
    }

    /// The slots of every host with what is known of their parts: what was read last of each, unless it was read elsewhere since.
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

    /// Every host that was in a run.
    pub fn hosts(&self) -> BTreeSet<&str> {
        self.now.keys().map(String::as_str).collect()
    }
}
