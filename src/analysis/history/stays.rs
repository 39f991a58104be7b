//! How long which part was in which slot, run by run, and what was replaced.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::slots::{By, Fitted, PartKind, Slot};

/// A part in a slot, from one run to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    /// The host.
    pub host: String,
    /// The slot.
    pub slot: Slot,
    /// The slot in words, as it was last.
    pub name: String,
    /// Devices and interfaces that it carried last.
    pub carries: Vec<String>,
    /// By what it is known, and that.
    pub id: (By, String),
    /// Places of the first and the last run in which it was there.
    pub runs: (usize, usize),
}

/// A slot that has another part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// What was there before.
    pub old: Stay,
    /// What is there since.
    pub new: Stay,
    /// Where what is there now was before, if it was in another slot.
    pub from: Option<Stay>,
    /// Where what was there before went to, if it came to another slot.
    pub to: Option<Stay>,
}

/// Follows the parts of hosts from run to run.
#[derive(Debug, Default)]
pub struct Stays {
    all: Vec<Stay>,
    /// What is in the slots of a host.
    now: HashMap<String, Now>,
}

/// What was in the slots of a host in its last run.
#[derive(Debug)]
struct Now {
    /// As they were told.
    slots: Arc<Vec<Fitted>>,
    /// Numbers of the stays.
    stays: BTreeMap<(Slot, By), usize>,
}

impl Stays {
    /// A run, by its place in time, with the slots of a host. A host that is in no run has lost nothing; an id that is not there
    /// in a run of its host is not known then.
    pub fn run(&mut self, place: usize, host: &str, slots: &Arc<Vec<Fitted>>) {
        let before = match self.now.remove(host) {
            // Most nights are like the one before, and share what they tell.
            Some(before) if Arc::ptr_eq(&before.slots, slots) => {
                before.stays.values().for_each(|at| self.all[*at].runs.1 = place);
                self.now.insert(host.to_owned(), before);
                return;
            }
            before => before,
        };
        let before = before.map(|before| before.stays).unwrap_or_default();
        let mut now = BTreeMap::new();
        for fitted in slots.iter() {
            for (by, id) in &fitted.ids {
                let key = (fitted.slot.clone(), *by);
                let same = before.get(&key).copied().filter(|at| self.all[*at].id.1 == *id);
                let at = same.unwrap_or(self.all.len());
                if at == self.all.len() {
                    self.all.push(Stay {
                        host: host.to_owned(),
                        slot: fitted.slot.clone(),
                        name: fitted.name(),
                        carries: fitted.carries.clone(),
                        id: (*by, id.clone()),
                        runs: (place, place),
                    });
                }
                self.all[at].runs.1 = place;
                now.insert(key, at);
            }
        }
        self.now.insert(host.to_owned(), Now { slots: slots.clone(), stays: now });
    }

    /// Everything that was replaced, in the order of time.
    ///
    /// An id that is in two slots at once is none: nobody filled it in, or it stands on several parts, such as both ends of a cable.
    pub fn swaps(&self) -> Vec<Swap> {
        let mut of_id: HashMap<(PartKind, By, &str), Vec<&Stay>> = HashMap::new();
        for stay in &self.all {
            of_id.entry(key(stay)).or_default().push(stay);
        }
        of_id.values_mut().for_each(|stays| stays.sort_by_key(|stay| stay.runs));
        let doubtful: BTreeSet<(PartKind, By, &str)> =
            of_id.iter().filter(|(_, stays)| is_twice(stays)).map(|(key, _)| *key).collect();
        let mut slots: BTreeMap<(&str, &Slot), BTreeMap<By, Vec<&Stay>>> = BTreeMap::new();
        for stay in self.all.iter().filter(|stay| !doubtful.contains(&key(stay))) {
            slots.entry((&stay.host, &stay.slot)).or_default().entry(stay.id.0).or_default().push(stay);
        }
        let mut swaps = Vec::new();
        for known in slots.values() {
            for (by, stays) in known {
                for two in stays.windows(2).filter(|two| two[0].id != two[1].id) {
                    let [old, new] = [two[0], two[1]];
                    // What tells more decides where it is known of both.
                    let more = known.range(..by).any(|(_, stays)| is_told(stays, old, new));
                    if more {
                        continue;
                    }
                    let others = |stay| of_id.get(&key(stay)).map(Vec::as_slice).unwrap_or_default();
                    let elsewhere = |other: &&&Stay| (&other.host, &other.slot) != (&new.host, &new.slot);
                    let from = others(new).iter().filter(elsewhere).rfind(|other| other.runs.1 < new.runs.0);
                    let to = others(old).iter().filter(elsewhere).find(|other| other.runs.0 > old.runs.1);
                    let owned = |stay: &&Stay| (*stay).clone();
                    swaps.push(Swap { old: old.clone(), new: new.clone(), from: from.map(owned), to: to.map(owned) });
                }
            }
        }
        swaps.sort_by(|a, b| (a.new.runs.0, &a.new.host, &a.new.slot).cmp(&(b.new.runs.0, &b.new.host, &b.new.slot)));
        swaps
    }
}

fn key(stay: &Stay) -> (PartKind, By, &str) {
    (stay.slot.kind, stay.id.0, &stay.id.1)
}

/// Whether two of these stays of one id, in the order of their beginnings, were at the same time.
fn is_twice(stays: &[&Stay]) -> bool {
    stays.windows(2).any(|two| two[1].runs.0 <= two[0].runs.1)
}

/// Whether one of these was known while the old part was there, and one while the new one was.
fn is_told(stays: &[&Stay], old: &Stay, new: &Stay) -> bool {
    let during = |other: &Stay| stays.iter().any(|stay| stay.runs.0 <= other.runs.1 && other.runs.0 <= stay.runs.1);
    during(old) && during(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(at: &str, ids: &[(By, &str)]) -> Fitted {
        let ids = ids.iter().map(|(by, id)| (*by, (*id).to_owned())).collect();
        Fitted { slot: Slot { kind: PartKind::Card, at: at.into() }, carries: vec!["mlx5_0".into()], ids }
    }

    /// A host with the ids of its card.
    type Host<'a> = (&'a str, &'a [(By, &'a str)]);

    /// What was replaced when hosts had cards with these ids, run by run.
    fn swaps(runs: &[&[Host<'_>]]) -> Vec<Swap> {
        let mut stays = Stays::default();
        for (place, hosts) in runs.iter().enumerate() {
            for (host, ids) in *hosts {
                stays.run(place, host, &Arc::new(vec![card("0000:18:00", ids)]));
            }
        }
        stays.swaps()
    }

    const S: By = By::Serial;
    const G: By = By::NodeGuid;

    #[test]
    fn cards_that_two_hosts_exchange_are_followed() {
        let found = swaps(&[
            &[("a", &[(S, "1")]), ("b", &[(S, "2")])],
            &[("a", &[(S, "1")]), ("b", &[(S, "2")])],
            &[("a", &[(S, "2")]), ("b", &[(S, "1")])],
        ]);
        assert_eq!(found.len(), 2);
        let told = |swap: &Swap| {
            let host = |stay: &Option<Stay>| stay.as_ref().map(|stay| (stay.host.clone(), stay.runs));
            (swap.new.host.clone(), swap.old.id.1.clone(), swap.new.id.1.clone(), host(&swap.from), host(&swap.to))
        };
        let there = |host: &str, runs| Some((host.to_owned(), runs));
        assert_eq!(told(&found[0]), ("a".into(), "1".into(), "2".into(), there("b", (0, 1)), there("b", (2, 2))));
        assert_eq!(told(&found[1]), ("b".into(), "2".into(), "1".into(), there("a", (0, 1)), there("a", (2, 2))));
    }

    #[test]
    fn a_new_part_comes_from_nowhere_and_the_old_one_is_gone() {
        let found = swaps(&[&[("a", &[(S, "1")])], &[("a", &[(S, "9")])]]);
        assert_eq!((found.len(), found[0].from.is_none(), found[0].to.is_none()), (1, true, true));
    }

    #[test]
    fn an_id_on_two_hosts_at_once_is_none() {
        let same: &[Host<'_>] = &[("a", &[(S, "12345")]), ("b", &[(S, "12345")])];
        // Also when one of them is put right later, or moves.
        assert_eq!(swaps(&[same, same, &[("a", &[(S, "7")]), ("b", &[(S, "12345")])]]), []);
        // Where another id is known, that one counts.
        let found = swaps(&[
            &[("a", &[(S, "12345"), (G, "g1")]), ("b", &[(S, "12345"), (G, "g2")])],
            &[("a", &[(S, "12345"), (G, "g3")]), ("b", &[(S, "12345"), (G, "g2")])],
        ]);
        assert_eq!((found.len(), found[0].new.id.clone()), (1, (G, "g3".to_owned())));
    }

    #[test]
    fn what_is_not_known_on_some_nights_has_not_changed() {
        let found = swaps(&[&[("a", &[(S, "1")])], &[("a", &[])], &[("b", &[])], &[("a", &[(S, "1")])]]);
        assert_eq!(found, []);
        // An agent that may read serial numbers from now on finds no other card.
        assert_eq!(swaps(&[&[("a", &[(G, "g1")])], &[("a", &[(S, "1"), (G, "g1")])]]), []);
        // Replaced while nothing could be read.
        assert_eq!(swaps(&[&[("a", &[(S, "1")])], &[("a", &[])], &[("a", &[(S, "2")])]]).len(), 1);
    }

    #[test]
    fn a_serial_number_tells_more_than_a_guid() {
        // Somebody gave the card another GUID.
        assert_eq!(swaps(&[&[("a", &[(S, "1"), (G, "g1")])], &[("a", &[(S, "1"), (G, "g2")])]]), []);
        // One swap of which both tell is one.
        let found = swaps(&[&[("a", &[(S, "1"), (G, "g1")])], &[("a", &[(S, "2"), (G, "g2")])]]);
        assert_eq!((found.len(), found[0].new.id.0), (1, S));
        // The serial number was known before only.
        let found = swaps(&[&[("a", &[(S, "1"), (G, "g1")])], &[("a", &[(G, "g2")])]]);
        assert_eq!((found.len(), found[0].new.id.0), (1, G));
    }

    #[test]
    fn a_card_that_comes_back_was_elsewhere_meanwhile() {
        let found = swaps(&[
            &[("a", &[(S, "1")]), ("b", &[(S, "2")])],
            &[("a", &[(S, "2")]), ("b", &[(S, "1")])],
            &[("a", &[(S, "1")]), ("b", &[(S, "2")])],
        ]);
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|swap| swap.from.is_some()));
    }
}
