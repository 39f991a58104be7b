//! Ends the series of a link where a part on its path was replaced. A card with a GUID starts a new series by that; this module is for
//! parts with only a serial number: a cable, a network interface, a machine that took over another's name.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{Key, Through, Watch};
use crate::history::{By, PartKind, Subject, Swap};

pub(super) struct Joined {
    pub key: Key,
    pub about: usize,
    pub points: Vec<(usize, f64)>,
}

/// Divides series at the runs in which a part on their path is first read to be another one. Values with the same parts
/// are one series, even if a part came back.
///
/// Collectives are not divided: the parts on their path are unknown, and in a large one something is replaced every
/// week. GPUs do not divide series: records do not say which GPU of a host an end used.
pub(super) fn broken(
    all: Vec<Joined>,
    swaps: &[Swap],
    (subjects, through): (&[Subject], &Through),
    words: &mut Vec<Arc<str>>,
) -> Vec<Joined> {
    let mut of_host: HashMap<&str, Vec<&Swap>> = HashMap::new();
    let tells = |swap: &&Swap| {
        swap.new.id.0 == By::Serial
            && matches!(swap.new.slot.kind, PartKind::Machine | PartKind::Card | PartKind::Module)
    };
    // They are in order of time.
    swaps.iter().filter(tells).for_each(|swap| of_host.entry(&swap.new.host).or_default().push(swap));
    if of_host.is_empty() {
        return all;
    }
    let mut numbers = Numbers { of: HashMap::new(), words };
    let mut divided = Vec::with_capacity(all.len());
    for one in all {
        let Watch::Subject { subject, .. } = one.key.watch else {
            divided.push(one);
            continue;
        };
        let flow = &subjects[subject].flow;
        let at = |end: usize| {
            let host = if end == 0 { &flow.from.host } else { &flow.to.host };
            let passes = |swap: &&Swap| {
                let (part, devices) = (swap.new.came(), through.at(subject, swap.new.runs.0));
                part.kind == PartKind::Machine || devices.is_some_and(|devices| part.has_device(&devices[end]))
            };
            let known = of_host.get(&**host).filter(|_| flow.members.is_empty()).into_iter().flatten();
            known.copied().filter(passes).collect::<Vec<&Swap>>()
        };
        divide(one, [at(0), at(1)], &mut numbers, &mut divided);
    }
    divided
}

struct Numbers<'w> {
    of: HashMap<(usize, String), usize>,
    words: &'w mut Vec<Arc<str>>,
}

impl Numbers<'_> {
    fn of(&mut self, device: usize, parts: String) -> usize {
        if parts.is_empty() {
            return device;
        }
        let (known, words) = (&mut self.of, &mut *self.words);
        *known.entry((device, parts)).or_insert_with_key(|(device, parts)| {
            let name = match &*words[*device] {
                "" => parts.clone(),
                device => format!("{device}, {parts}"),
            };
            words.push(name.into());
            words.len() - 1
        })
    }
}

/// Replaced parts of one end: by kind and place, first and present id. A device has one card, whatever its slot.
type Others<'s> = BTreeMap<(PartKind, &'s str), (&'s str, &'s str)>;

fn divide(one: Joined, swaps: [Vec<&Swap>; 2], numbers: &mut Numbers<'_>, divided: &mut Vec<Joined>) {
    let Joined { key, about, points } = one;
    let mut next = [0, 0];
    let mut others = [Others::new(), Others::new()];
    let mut hardware = key.hardware;
    // The parts for each value.
    let with: Vec<[usize; 2]> = points
        .iter()
        .map(|(place, _)| {
            for end in [0, 1] {
                let due = swaps[end][next[end]..].iter().take_while(|swap| swap.new.runs.0 <= *place).count();
                for swap in &swaps[end][next[end]..next[end] + due] {
                    let slot = &swap.new.slot;
                    let at = if slot.kind == PartKind::Card { "" } else { slot.at.as_str() };
                    others[end].entry((slot.kind, at)).or_insert((&swap.old.id.1, "")).1 = &swap.new.id.1;
                }
                next[end] += due;
                if due > 0 {
                    hardware[end] = numbers.of(key.hardware[end], words_of(&others[end]));
                }
            }
            hardware
        })
        .collect();
    let same = with.first().is_none_or(|first| with.iter().all(|one| one == first));
    if same {
        // A GUID already distinguishes what was there before and since.
        divided.push(Joined { key, about, points });
        return;
    }
    let first = divided.len();
    for (point, hardware) in points.into_iter().zip(with) {
        match divided[first..].iter_mut().find(|known| known.key.hardware == hardware) {
            Some(known) => known.points.push(point),
            None => {
                let key = super::history::Key { hardware, ..key.clone() };
                divided.push(Joined { key, about, points: vec![point] });
            }
        }
    }
}

/// `NIC MT0099, machine S2`; empty where every part is the first one.
fn words_of(others: &Others<'_>) -> String {
    let other = others.iter().filter(|(_, (first, now))| first != now);
    other.map(|((kind, _), (_, now))| format!("{} {now}", kind.noun())).collect::<Vec<_>>().join(", ")
}
