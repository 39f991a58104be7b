//! Links whose ends have other parts on the two sides, by serial number or another id that stays with a part.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
};

use jiff::Timestamp;
use railgauge_model::schedule::Flow;
use railgauge_wire::facts::HostFacts;
use serde::Serialize;

use crate::history::{By, Fitted, PartKind, Shared, Stay, Stays, Swap, fitted};

/// Parts named per cell; a collective may have thousands.
const NAMED: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherPart {
    pub host: String,
    /// In words: `NIC mlx5_0`.
    pub part: String,
    pub by: By,
    pub before: String,
    pub after: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<(String, String)>,
}

/// `NIC mlx5_0 of gpu003 is another part (serial number MT3 → MT9, before: NIC mlx5_0 of gpu007)`.
impl fmt::Display for OtherPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, part, by, before, after, was } = self;
        write!(f, "{part} of {host} is another part ({} {before} → {after}", by.word())?;
        if let Some((host, part)) = was {
            write!(f, ", before: {part} of {host}")?;
        }
        f.write_str(")")
    }
}

#[derive(Debug, Default)]
pub(super) struct Looks {
    pub swaps: Vec<Swap>,
    pub shared: Vec<Shared>,
}

type Slots = BTreeMap<String, Arc<Vec<Fitted>>>;

#[derive(Debug, Default)]
pub(super) struct SideSlots(Vec<(Timestamp, Slots)>);

impl SideSlots {
    pub(super) fn add(&mut self, started: Timestamp, hosts: &BTreeMap<String, HostFacts>) {
        self.0.push((started, hosts.iter().map(|(host, facts)| (host.clone(), Arc::new(fitted(facts)))).collect()));
    }

    /// In order of time.
    pub(super) fn follow(mut self) -> Stays {
        self.0.sort_by_key(|(started, _)| *started);
        let mut stays = Stays::default();
        for (place, (_, hosts)) in self.0.iter().enumerate() {
            hosts.iter().for_each(|(host, slots)| stays.run(place, host, slots));
        }
        stays
    }
}

impl Looks {
    /// Compares what was last known on each side; a run in which nothing could be read has no effect.
    pub(super) fn new(before: &Stays, after: &Stays) -> Self {
        let sides = [before, after].map(Stays::known);
        let mut shared: BTreeMap<(PartKind, By, String), Shared> = BTreeMap::new();
        for one in [before, after].into_iter().flat_map(Stays::shared) {
            shared.entry((one.kind, one.by, one.id.clone())).or_insert(one);
        }
        let mut stays = Stays::default();
        for (place, known) in sides.into_iter().enumerate() {
            for (host, mut slots) in known {
                // An id on several parts identifies nothing; other ids of the part do.
                for Fitted { slot, ids, .. } in &mut slots {
                    ids.retain(|by, id| !shared.contains_key(&(slot.kind, *by, id.clone())));
                }
                stays.run(place, &host, &Arc::new(slots));
            }
        }
        let swaps = stays.swaps();
        for one in stays.shared() {
            shared.entry((one.kind, one.by, one.id.clone())).or_insert(one);
        }
        Self { swaps, shared: shared.into_values().collect() }
    }
}

pub(super) struct Others<'s> {
    of: HashMap<&'s str, Vec<&'s Swap>>,
}

impl<'s> Others<'s> {
    pub(super) fn new(swaps: &'s [Swap]) -> Self {
        let mut of: HashMap<&str, Vec<&Swap>> = HashMap::new();
        let machines: HashSet<&str> =
            swaps.iter().filter(|swap| swap.new.slot.kind == PartKind::Machine).map(|swap| &*swap.new.host).collect();
        for swap in swaps {
            // Another machine implies other parts.
            if swap.new.slot.kind == PartKind::Machine || !machines.contains(&*swap.new.host) {
                of.entry(&swap.new.host).or_default().push(swap);
            }
        }
        Self { of }
    }

    /// Replaced parts on a link's path: the first of them, and the number of others. The NICs of a collective, and the
    /// GPU of any link, are unknown.
    pub(super) fn of(&self, flow: &Flow, devices: Option<&[Arc<str>; 2]>) -> (Vec<OtherPart>, usize) {
        let (mut found, mut more) = (Vec::new(), 0);
        if self.of.is_empty() {
            return (found, more);
        }
        for (end, host) in ends(flow) {
            for swap in self.of.get(host).into_iter().flatten() {
                let passes = match swap.new.slot.kind {
                    PartKind::Machine | PartKind::Board => true,
                    PartKind::Gpu => false,
                    PartKind::Card | PartKind::Module => end.zip(devices).is_some_and(|(end, devices)| {
                        [swap.old.left(), swap.new.came()].iter().any(|part| part.has_device(&devices[end]))
                    }),
                };
                match passes {
                    true if found.len() < NAMED => found.push(other(swap)),
                    true => more += 1,
                    false => {}
                }
            }
        }
        (found, more)
    }
}

fn ends(flow: &Flow) -> Vec<(Option<usize>, &str)> {
    if flow.members.is_empty() {
        vec![(Some(0), &*flow.from.host), (Some(1), &*flow.to.host)]
    } else {
        flow.hosts().into_iter().map(|host| (None, &**host)).collect()
    }
}

fn other(swap: &Swap) -> OtherPart {
    let was = |stay: &Stay| (stay.host.clone(), stay.name().to_owned());
    OtherPart {
        host: swap.new.host.clone(),
        part: swap.new.first_name().to_owned(),
        by: swap.new.id.0,
        before: swap.old.id.1.clone(),
        after: swap.new.id.1.clone(),
        was: swap.from.as_ref().map(was),
    }
}

#[cfg(test)]
mod tests {
    use railgauge_model::schedule::Port;
    use railgauge_wire::facts::{Card, Label};

    use super::*;

    /// With the serial numbers of their first and second card.
    fn look(hosts: &[(&str, [&str; 2])]) -> BTreeMap<String, HostFacts> {
        let of = |(host, serials): &(&str, [&str; 2])| {
            let card = |(number, serial): (usize, &&str)| Card {
                pci: format!("0000:1{number}:00.0"),
                devices: vec![format!("mlx5_{number}")],
                label: Label { serial: Some((*serial).to_owned()), ..Label::default() },
                ..Card::default()
            };
            let mut facts = HostFacts::default();
            facts.parts.cards = serials.iter().enumerate().map(card).collect();
            ((*host).to_owned(), facts)
        };
        hosts.iter().map(of).collect()
    }

    fn looks(runs: [&[BTreeMap<String, HostFacts>]; 2]) -> Looks {
        let [before, after] = runs.map(|runs| {
            let mut side = SideSlots::default();
            // Runs are added in reverse order.
            for (at, hosts) in runs.iter().enumerate().rev() {
                side.add(Timestamp::from_second(i64::try_from(at).unwrap()).unwrap(), hosts);
            }
            side.follow()
        });
        Looks::new(&before, &after)
    }

    fn passing(looks: &Looks, from: (&str, &str), to: (&str, &str)) -> Vec<String> {
        let port = |host: &str| Port { host: host.into(), rail: 0 };
        let flow = Flow::pair(port(from.0), port(to.0));
        let (parts, more) = Others::new(&looks.swaps).of(&flow, Some(&[from.1.into(), to.1.into()]));
        assert_eq!(more, 0);
        parts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_link_has_another_part_only_where_it_passes_one() {
        let before = look(&[("a", ["MT1", "MT2"]), ("b", ["MT3", "MT4"])]);
        let after = look(&[("a", ["MT1", "MT4"]), ("b", ["MT3", "MT2"])]);
        let looks = looks([&[before], &[after]]);
        assert_eq!(passing(&looks, ("a", "mlx5_0"), ("b", "mlx5_0")), [""; 0]);
        let found = passing(&looks, ("a", "mlx5_1:2"), ("b", "mlx5_0"));
        assert_eq!(
            found,
            ["NIC mlx5_1 of a is another part (serial number MT2 → MT4, before: NIC mlx5_1 of b)"],
            "a port of the device is the device's"
        );
        assert_eq!(passing(&looks, ("a", "mlx5_1"), ("b", "mlx5_1")).len(), 2);
    }

    #[test]
    fn an_id_of_two_hosts_of_one_side_is_no_part_that_moved() {
        let before = look(&[("a", ["MT1", "MT2"]), ("b", ["MT1", "MT4"])]);
        let after = look(&[("a", ["MT7", "MT2"]), ("b", ["MT1", "MT4"])]);
        let looks = looks([&[before], &[after]]);
        assert_eq!(passing(&looks, ("a", "mlx5_0"), ("b", "mlx5_0")), [""; 0]);
        assert_eq!(looks.shared.iter().map(|one| (one.id.as_str(), one.in_slots)).collect::<Vec<_>>(), [("MT1", 2)]);
    }

    #[test]
    fn the_last_known_part_of_a_side_counts_and_not_that_of_its_last_run() {
        let own = || look(&[("a", ["MT1", "MT2"]), ("b", ["MT3", "MT4"])]);
        let exchanged = || look(&[("a", ["MT3", "MT2"]), ("b", ["MT1", "MT4"])]);
        let unread = || look(&[("a", ["", ""]), ("b", ["", ""])]);
        let looks = looks([&[own(), own()], &[exchanged(), exchanged(), unread()]]);
        assert_eq!(looks.swaps.len(), 2, "{:?}", looks.swaps);
    }
}
