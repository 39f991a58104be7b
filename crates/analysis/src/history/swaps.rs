use std::collections::{BTreeMap, HashMap};

use super::{
    slots::{By, Slot},
    stays::{Stay, Stays},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    pub old: Stay,
    pub new: Stay,
    pub from: Option<Stay>,
    pub to: Option<Stay>,
}

impl Stays {
    /// In order of time.
    ///
    /// Ignores an id in two slots of one run: a placeholder, or shared by several parts such as both ends of a cable. Time is O(n log n) in the number of stays, for any ids.
    pub fn swaps(&self) -> Vec<Swap> {
        let ways = Ways::of(self);
        let mut slots: BTreeMap<(&str, &Slot), BTreeMap<By, Vec<usize>>> = BTreeMap::new();
        for (at, stay) in self.all.iter().enumerate().filter(|(at, _)| !ways.doubtful[*at]) {
            slots.entry((&stay.host, &stay.slot)).or_default().entry(stay.id.0).or_default().push(at);
        }
        let mut swaps = Vec::new();
        for known in slots.values() {
            for (by, stays) in known {
                for two in stays.windows(2) {
                    let [old, new] = [&self.all[two[0]], &self.all[two[1]]];
                    // The more specific id decides where both have it.
                    if old.id == new.id || known.range(..by).any(|(_, stays)| self.is_told(stays, old, new)) {
                        continue;
                    }
                    let owned = |at: usize| self.all[at].clone();
                    let from = ways.before[two[1]].map(owned);
                    if from.as_ref().is_some_and(|from| is_renumbered(from, new)) {
                        continue;
                    }
                    let to = ways.after[two[0]].map(owned);
                    swaps.push(Swap { old: old.clone(), new: new.clone(), from, to });
                }
            }
        }
        swaps.sort_by(|a, b| (a.new.runs.0, &a.new.host, &a.new.slot).cmp(&(b.new.runs.0, &b.new.host, &b.new.slot)));
        swaps
    }

    /// Whether one of these stays was known while the old part was there, and one while the new one was.
    fn is_told(&self, stays: &[usize], old: &Stay, new: &Stay) -> bool {
        let during = |other: &Stay| {
            let first = stays.partition_point(|at| self.all[*at].runs.1 < other.runs.0);
            stays.get(first).is_some_and(|at| self.all[*at].runs.0 <= other.runs.1)
        };
        during(old) && during(new)
    }
}

struct Ways {
    before: Vec<Option<usize>>,
    after: Vec<Option<usize>>,
    doubtful: Vec<bool>,
}

impl Ways {
    fn of(stays: &Stays) -> Self {
        let all = &stays.all;
        let mut of_id: HashMap<usize, Vec<usize>> = HashMap::new();
        stays.id_of.iter().enumerate().for_each(|(at, id)| of_id.entry(*id).or_default().push(at));
        let mut ways =
            Self { before: vec![None; all.len()], after: vec![None; all.len()], doubtful: vec![false; all.len()] };
        for (id, of_id) in &mut of_id {
            of_id.sort_by_key(|at| all[*at].runs);
            let is_elsewhere = |a: usize, b: usize| (&all[a].host, &all[a].slot) != (&all[b].host, &all[b].slot);
            for two in of_id.windows(2) {
                ways.before[two[1]] = if is_elsewhere(two[0], two[1]) { Some(two[0]) } else { ways.before[two[0]] };
            }
            for two in of_id.windows(2).rev() {
                ways.after[two[0]] = if is_elsewhere(two[0], two[1]) { Some(two[1]) } else { ways.after[two[1]] };
            }
            of_id.iter().for_each(|at| ways.doubtful[*at] = stays.latest[*id].doubtful);
        }
        ways
    }
}

/// Whether only the address of a part's slot changed: the host keeps the name that it had there.
fn is_renumbered(from: &Stay, new: &Stay) -> bool {
    from.host == new.host && new.came().shares_a_name(&from.left())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::history::slots::{Fitted, PartKind};

    fn card(at: &str, ids: &[(By, &str)]) -> Fitted {
        let ids = ids.iter().map(|(by, id)| (*by, (*id).to_owned())).collect();
        Fitted { slot: Slot { kind: PartKind::Card, at: at.into() }, carries: vec!["mlx5_0".into()], ids }
    }

    type Host<'a> = (&'a str, &'a [(By, &'a str)]);

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
        // Also if one of them is corrected later, or moves.
        assert_eq!(swaps(&[same, same, &[("a", &[(S, "7")]), ("b", &[(S, "12345")])]]), []);
        // Another id counts where it is known.
        let found = swaps(&[
            &[("a", &[(S, "12345"), (G, "g1")]), ("b", &[(S, "12345"), (G, "g2")])],
            &[("a", &[(S, "12345"), (G, "g3")]), ("b", &[(S, "12345"), (G, "g2")])],
        ]);
        assert_eq!((found.len(), found[0].new.id.clone()), (1, (G, "g3".to_owned())));
    }

    #[test]
    fn slots_that_are_numbered_anew_have_the_same_parts() {
        let at =
            |place: &str, device: &str, id: &str| Fitted { carries: vec![device.into()], ..card(place, &[(S, id)]) };
        let mut stays = Stays::default();
        stays.run(0, "a", &Arc::new(vec![at("0000:18:00", "mlx5_0", "1"), at("0000:19:00", "mlx5_1", "2")]));
        stays.run(1, "a", &Arc::new(vec![at("0000:19:00", "mlx5_0", "1"), at("0000:1a:00", "mlx5_1", "2")]));
        assert_eq!(stays.swaps(), []);
        // Names of two exchanged cards belong to their slots.
        stays.run(2, "a", &Arc::new(vec![at("0000:19:00", "mlx5_0", "2"), at("0000:1a:00", "mlx5_1", "1")]));
        assert_eq!(stays.swaps().len(), 2);
    }

    /// Forged: a hundred thousand serial numbers in one slot, and one that changes slot in every run. One step along an
    /// id's stays finds where it was, so this stays fast.
    #[test]
    fn a_hundred_thousand_serial_numbers_are_followed_in_one_pass() {
        const RUNS: usize = 100_000;
        let mut stays = Stays::default();
        for run in 0..RUNS {
            let id = run.to_string();
            stays.run(run, "a", &Arc::new(vec![card("0000:18:00", &[(S, &id), (G, "g")])]));
            let host = if run % 2 == 0 { "b" } else { "c" };
            let other = format!("x{run}");
            let ids: [(By, &str); 1] = [(S, "wanders")];
            stays.run(run, host, &Arc::new(vec![card("0000:18:00", &ids)]));
            let host = if run % 2 == 0 { "c" } else { "b" };
            stays.run(run, host, &Arc::new(vec![card("0000:18:00", &[(S, &other)])]));
        }
        let swaps = stays.swaps();
        assert_eq!(swaps.len(), 3 * (RUNS - 1));
        let wanders = swaps.iter().filter(|swap| swap.new.id.1 == "wanders");
        assert!(wanders.clone().all(|swap| swap.from.as_ref().is_some_and(|from| from.runs.1 + 1 == swap.new.runs.0)));
        assert_eq!(wanders.count(), RUNS - 1);
    }

    #[test]
    fn what_is_not_known_on_some_nights_has_not_changed() {
        let found = swaps(&[&[("a", &[(S, "1")])], &[("a", &[])], &[("b", &[])], &[("a", &[(S, "1")])]]);
        assert_eq!(found, []);
        // An agent that starts to read serial numbers does not find another card.
        assert_eq!(swaps(&[&[("a", &[(G, "g1")])], &[("a", &[(S, "1"), (G, "g1")])]]), []);
        // Replaced while nothing could be read.
        assert_eq!(swaps(&[&[("a", &[(S, "1")])], &[("a", &[])], &[("a", &[(S, "2")])]]).len(), 1);
    }

    #[test]
    fn a_serial_number_tells_more_than_a_guid() {
        // The card received another GUID.
        assert_eq!(swaps(&[&[("a", &[(S, "1"), (G, "g1")])], &[("a", &[(S, "1"), (G, "g2")])]]), []);
        // Both ids show the same swap.
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

    #[test]
    fn a_card_that_was_lent_while_its_host_was_down_moved_there_and_back() {
        let both: &[Host<'_>] = &[("a", &[(S, "1")]), ("b", &[(S, "2")])];
        let lent: &[Host<'_>] = &[("b", &[(S, "1")])];
        let found = swaps(&[both, both, lent, lent, both]);
        // The slot of the other host had it for two runs; its own slot never had another known one.
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|swap| swap.new.host == "b"));
        let from = found[0].from.as_ref().map(|from| (from.host.as_str(), from.runs));
        assert_eq!((found[0].new.runs, from), ((2, 3), Some(("a", (0, 1)))));
        assert_eq!(found[1].to.as_ref().map(|to| (to.host.as_str(), to.runs)), Some(("a", (4, 4))));
    }

    #[test]
    fn runs_in_which_nothing_is_read_end_no_stay() {
        let (read, unread): (&[Host<'_>], &[Host<'_>]) = (&[("a", &[(S, "1")])], &[("a", &[])]);
        let [one] = swaps(&[read, unread, read, unread, &[("a", &[(S, "2")])]]).try_into().unwrap();
        assert_eq!((one.old.runs, one.new.runs), ((0, 2), (4, 4)));
    }

    #[test]
    fn what_was_read_last_of_a_slot_is_known_unless_it_was_read_elsewhere_since() {
        let mut stays = Stays::default();
        let one = |ids: &[(By, &str)]| Arc::new(vec![card("0000:18:00", ids)]);
        for host in ["a", "b"] {
            stays.run(0, host, &one(&[(S, host)]));
            stays.run(1, host, &Arc::new(Vec::new()));
        }
        let ids = |stays: &Stays| {
            let known = stays.known().into_iter();
            known.map(|(host, slots)| (host, slots[0].ids[&S].clone())).collect::<Vec<_>>()
        };
        assert_eq!(ids(&stays), [("a".into(), "a".into()), ("b".into(), "b".into())]);
        stays.run(2, "b", &one(&[(S, "a")]));
        assert_eq!(ids(&stays), [("b".into(), "a".into())]);
    }
}
