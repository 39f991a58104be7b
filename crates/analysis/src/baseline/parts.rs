//! Parts replaced since a baseline was made: its demands belong to another part.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use railgauge_model::plan::baseline::{Baseline, HostPart, PartKind};
use serde::Serialize;

use crate::{
    history::{By, Fitted, Run, Shared, Slot, Stays, Swap, fitted},
    journal::Journal,
    words::count,
};

/// Parts named one by one in words.
const NAMED: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SinceReplaced {
    pub host: String,
    /// In words: `NIC mlx5_0`.
    pub part: String,
    pub by: By,
    pub old: String,
    pub new: String,
    /// Largest number of links behind a value of the baseline that this part is compared with: with more than one the
    /// value is not of the old part alone. 0 without a comparison.
    pub links: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct OtherParts {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<SinceReplaced>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<Shared>,
}

impl fmt::Display for OtherParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Vec::new();
        let (own, of_class): (Vec<_>, Vec<_>) = self.replaced.iter().partition(|one| one.links <= 1);
        for replaced in [own, of_class].into_iter().filter(|replaced| !replaced.is_empty()) {
            let one = |one: &SinceReplaced| {
                format!("{} of {} ({} {} → {})", one.part, one.host, one.by.word(), one.old, one.new)
            };
            let named: Vec<String> = replaced.iter().copied().take(NAMED).map(one).collect();
            let more = match replaced.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let named = named.join(", ");
            let links = replaced.iter().map(|one| one.links).max().unwrap_or_default();
            all.push(if links <= 1 {
                format!("replaced since the baseline, which was measured with the part before alone: {named}{more}")
            } else {
                let of = count(links, "link");
                format!("replaced since the baseline, whose values are of {of} of this kind: {named}{more}")
            });
        }
        if let Some(first) = self.shared.first() {
            let more = match self.shared.len() - 1 {
                0 => String::new(),
                more => format!(" ({more} more like it)"),
            };
            all.push(format!("{first}{more}"));
        }
        f.write_str(&all.join("; "))
    }
}

/// Known parts by slot, for a baseline. Excludes main boards: no value is of one alone.
pub(super) fn of_host(host: &str, slots: Vec<Fitted>) -> Vec<HostPart> {
    let part = |Fitted { slot, carries, mut ids }: Fitted| HostPart {
        host: host.to_owned(),
        kind: slot.kind,
        at: slot.at,
        carries,
        serial: ids.remove(&By::Serial),
        uuid: ids.remove(&By::Uuid),
        node_guid: ids.remove(&By::NodeGuid),
        second_guid: ids.remove(&By::SecondGuid),
    };
    slots.into_iter().filter(|fitted| fitted.slot.kind != PartKind::Board).map(part).collect()
}

/// Parts replaced during the runs of a baseline, whose values are of both, in order of time.
pub fn replaced_within(runs: &[Run]) -> Vec<SinceReplaced> {
    let one = |swap: Swap| SinceReplaced {
        host: swap.new.host.clone(),
        part: swap.new.first_name().to_owned(),
        by: swap.new.id.0,
        old: swap.old.id.1,
        new: swap.new.id.1,
        links: 0,
    };
    let swaps = follow(runs).swaps().into_iter();
    swaps.filter(|swap| swap.new.slot.kind != PartKind::Board).map(one).collect()
}

/// In order of time.
pub(super) fn follow(runs: &[Run]) -> Stays {
    let mut runs: Vec<&Run> = runs.iter().collect();
    runs.sort_by(|a, b| (a.started, &a.run_id).cmp(&(b.started, &b.run_id)));
    let mut stays = Stays::default();
    for (place, run) in runs.into_iter().enumerate() {
        run.hosts.iter().for_each(|(host, facts)| stays.run(place, host, &Arc::new(fitted(facts))));
    }
    stays
}

fn slot_of(part: &HostPart) -> Fitted {
    let ids = [
        (By::Serial, &part.serial),
        (By::Uuid, &part.uuid),
        (By::NodeGuid, &part.node_guid),
        (By::SecondGuid, &part.second_guid),
    ];
    Fitted {
        slot: Slot { kind: part.kind, at: part.at.clone() },
        carries: part.carries.clone(),
        ids: ids.into_iter().filter_map(|(by, id)| Some((by, id.clone()?))).collect(),
    }
}

/// An end of a row compared with a baseline: host, device (empty for a rank of a collective), and whether GPU memory was used.
pub(super) type End = (String, String, bool);

pub(super) struct Parts<'a> {
    baseline: &'a Baseline,
    journal: &'a Journal,
    known: OnceCell<Known>,
}

struct Known {
    swaps: BTreeMap<String, Vec<Swap>>,
    shared: Vec<Shared>,
}

impl<'a> Parts<'a> {
    pub(super) const fn new(baseline: &'a Baseline, journal: &'a Journal) -> Self {
        Self { baseline, journal, known: OnceCell::new() }
    }

    fn known(&self) -> &Known {
        self.known.get_or_init(|| {
            let mut then: BTreeMap<&str, Vec<Fitted>> = BTreeMap::new();
            for part in &self.baseline.parts {
                then.entry(&part.host).or_default().push(slot_of(part));
            }
            let mut stays = Stays::default();
            then.into_iter().for_each(|(host, slots)| stays.run(0, host, &Arc::new(slots)));
            for (host, up) in &self.journal.hosts {
                let mut slots = fitted(&up.facts);
                slots.retain(|fitted| fitted.slot.kind != PartKind::Board);
                stays.run(1, host, &Arc::new(slots));
            }
            let mut swaps: BTreeMap<String, Vec<Swap>> = BTreeMap::new();
            for swap in stays.swaps() {
                swaps.entry(swap.new.host.clone()).or_default().push(swap);
            }
            Known { swaps, shared: stays.shared() }
        })
    }

    /// `None` if all of them are those of the baseline.
    pub(super) fn of(&self, ends: &BTreeMap<End, usize>) -> Option<OtherParts> {
        if ends.is_empty() {
            return None;
        }
        let known = self.known();
        let mut replaced: BTreeSet<SinceReplaced> = BTreeSet::new();
        for ((host, device, cuda), links) in ends {
            let swaps = known.swaps.get(host).map_or(&[][..], Vec::as_slice);
            let machine = swaps.iter().any(|swap| swap.new.slot.kind == PartKind::Machine);
            let passes = |swap: &&Swap| match swap.new.slot.kind {
                PartKind::Machine | PartKind::Board => true,
                // Another machine implies other parts.
                _ if machine => false,
                PartKind::Gpu => *cuda,
                // A collective's library chooses the NICs: its ends have no device, so no part matches.
                PartKind::Card | PartKind::Module => {
                    [swap.old.left(), swap.new.came()].iter().any(|part| part.has_device(device))
                }
            };
            replaced.extend(swaps.iter().filter(passes).map(|swap| SinceReplaced {
                host: host.clone(),
                part: swap.new.first_name().to_owned(),
                by: swap.new.id.0,
                old: swap.old.id.1.clone(),
                new: swap.new.id.1.clone(),
                links: *links,
            }));
        }
        let hosts: BTreeSet<&String> = ends.keys().map(|(host, ..)| host).collect();
        let shared = known.shared.iter().filter(|one| hosts.iter().any(|host| one.hosts.contains(*host)));
        let shared = shared.cloned().collect();
        let found = OtherParts { replaced: replaced.into_iter().collect(), shared };
        (found != OtherParts::default()).then_some(found)
    }
}
