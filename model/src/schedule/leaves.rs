use std::collections::HashMap;

use super::{circle, draw};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub host: u32,
    /// Number of its leaf switch; `None` where unknown.
    pub leaf: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paired {
    /// Pairs of ends by index, sender first. In a round an end is in at most one pair.
    pub rounds: Vec<Vec<(u32, u32)>>,
    pub unplaced: Vec<u32>,
    pub alone: Vec<u32>,
    pub leaves_apart: usize,
}

/// The ends below each leaf, leaves by first appearance; and ends without a leaf.
fn by_leaf(places: &[Place]) -> (Vec<Vec<u32>>, Vec<u32>) {
    let (mut leaves, mut unplaced): (Vec<(u32, Vec<u32>)>, Vec<u32>) = Default::default();
    let mut known = HashMap::new();
    for (end, place) in (0..).zip(places) {
        let Some(leaf) = place.leaf else {
            unplaced.push(end);
            continue;
        };
        let at = *known.entry(leaf).or_insert_with(|| {
            leaves.push((leaf, Vec::new()));
            leaves.len() - 1
        });
        leaves[at].1.push(end);
    }
    (leaves.into_iter().map(|(_, ends)| ends).collect(), unplaced)
}

/// Every end with the others below its leaf: a tournament by the circle method at every leaf, all at the same time; this many random
/// rounds, or all of them. Ends of one host are not paired. Roles alternate between rounds.
pub fn same_leaf(places: &[Place], rounds: Option<u32>, seed: u64) -> Paired {
    let (leaves, unplaced) = by_leaf(places);
    let mut paired = Paired { unplaced, ..Paired::default() };
    for ends in &leaves {
        let all = circle::rounds(ends.len());
        let chosen = match rounds {
            Some(wanted) => draw::distinct(all, wanted as usize, seed),
            None => (0..all).collect(),
        };
        for (number, round) in chosen.into_iter().enumerate() {
            if paired.rounds.len() <= number {
                paired.rounds.push(Vec::new());
            }
            let pairs = circle::round(ends.len(), round).map(|(a, b)| (ends[a], ends[b]));
            let apart = pairs.filter(|&(a, b)| places[a as usize].host != places[b as usize].host);
            paired.rounds[number].extend(apart.map(|(a, b)| if number.is_multiple_of(2) { (a, b) } else { (b, a) }));
        }
    }
    paired.finish(places)
}

/// Every end with partners below other leaves: this many rounds, or as many as it takes until all pairs of leaves in `connected` have met
/// and every end has had a partner. A leaf meets as many others in a round as it has ends; remaining ends meet further ones. The seed
/// chooses which ends of two leaves meet; ends and roles change from round to round. No two ends meet again before all possible ones have
/// met: a round has fewer pairs rather than repeated ones.
pub fn cross_leaf(places: &[Place], rounds: Option<u32>, seed: u64, connected: impl Fn(u32, u32) -> bool) -> Paired {
    let (leaves, unplaced) = by_leaf(places);
    let mut table = Table::new(places, &leaves, seed);
    let mut meetings: Vec<Meeting> = (0..circle::rounds(leaves.len()))
        .flat_map(|round| circle::round(leaves.len(), round).collect::<Vec<_>>())
        .filter(|&(a, b)| connected(leaf_of(places, &leaves[a]), leaf_of(places, &leaves[b])))
        .map(|(a, b)| Meeting { leaves: (a, b), times: 0, closed: false })
        .collect();
    let mut paired = Paired { unplaced, ..Paired::default() };
    // Each round is the first one for two leaves or for an end: this many are always enough.
    let most = rounds.map_or(meetings.len() + places.len(), |rounds| rounds as usize);
    while paired.rounds.len() < most {
        let settled = |meeting: &Meeting| meeting.times > 0 || meeting.closed;
        if rounds.is_none() && meetings.iter().all(settled) && !table.has_idle(&meetings) {
            break;
        }
        let number = paired.rounds.len();
        let mut round = table.round(&mut meetings, number);
        if round.is_empty() && number > 0 {
            table.met += 1;
            round = table.round(&mut meetings, number);
        }
        if round.is_empty() {
            break;
        }
        paired.rounds.push(round);
    }
    paired.leaves_apart =
        leaves.len() * leaves.len().saturating_sub(1) / 2 - meetings.iter().filter(|meeting| meeting.times > 0).count();
    paired.finish(places)
}

fn leaf_of(places: &[Place], ends: &[u32]) -> u32 {
    ends.first().and_then(|end| places[*end as usize].leaf).unwrap_or_default()
}

impl Paired {
    fn finish(mut self, places: &[Place]) -> Self {
        self.rounds.retain(|round| !round.is_empty());
        let mut has_partner = vec![false; places.len()];
        self.rounds.iter().flatten().for_each(|&(a, b)| {
            has_partner[a as usize] = true;
            has_partner[b as usize] = true;
        });
        let alone = (0..).zip(places).filter(|&(end, place)| place.leaf.is_some() && !has_partner[end as usize]);
        self.alone = alone.map(|(end, _)| end).collect();
        self
    }
}

struct Meeting {
    leaves: (usize, usize),
    times: u32,
    closed: bool,
}

struct Table<'p> {
    places: &'p [Place],
    ends: Vec<Vec<u32>>,
    partners: Vec<u32>,
    taken: Vec<bool>,
    /// How often two ends have met, smaller end first; and how often all possible pairs have.
    times: HashMap<(u32, u32), u32>,
    met: u32,
    free: Vec<usize>,
    left: usize,
}

impl<'p> Table<'p> {
    fn new(places: &'p [Place], leaves: &[Vec<u32>], seed: u64) -> Self {
        let drawn = |(number, ends): (u64, &Vec<u32>)| {
            let order = draw::distinct(ends.len(), ends.len(), seed.wrapping_add(number));
            order.into_iter().map(|place| ends[place]).collect()
        };
        let ends = (0..).zip(leaves).map(drawn).collect();
        let (partners, taken) = (vec![0; places.len()], vec![false; places.len()]);
        Self { places, ends, partners, taken, times: HashMap::new(), met: 0, free: Vec::new(), left: 0 }
    }

    fn has_idle(&self, meetings: &[Meeting]) -> bool {
        let idle = |leaf: usize| self.ends[leaf].iter().any(|end| self.partners[*end as usize] == 0);
        let fits = |(a, b): (usize, usize)| {
            let other = |x: &u32, y: &u32| self.places[*x as usize].host != self.places[*y as usize].host;
            let new = |x: &u32| self.partners[*x as usize] == 0;
            self.ends[a].iter().any(|x| self.ends[b].iter().any(|y| (new(x) || new(y)) && other(x, y)))
        };
        meetings.iter().any(|meeting| {
            let (a, b) = meeting.leaves;
            (idle(a) || idle(b)) && fits((a, b))
        })
    }

    /// The next round: first leaves that have not met, then all others in turn, as long as two of them have a free end.
    fn round(&mut self, meetings: &mut [Meeting], number: usize) -> Vec<(u32, u32)> {
        self.taken.fill(false);
        self.free = self.ends.iter().map(Vec::len).collect();
        self.left = self.free.iter().sum();
        let mut round = Vec::new();
        let mut order: Vec<usize> = (0..meetings.len()).collect();
        loop {
            let before = round.len();
            order.sort_by_key(|place| meetings[*place].times);
            for &place in &order {
                if self.left < 2 {
                    return round;
                }
                let meeting = &mut meetings[place];
                if let Some((a, b)) = self.pair(meeting.leaves, number) {
                    *self.times.entry((a.min(b), a.max(b))).or_default() += 1;
                    self.free[meeting.leaves.0] -= 1;
                    self.free[meeting.leaves.1] -= 1;
                    self.left -= 2;
                    for end in [a, b] {
                        self.partners[end as usize] += 1;
                        self.taken[end as usize] = true;
                    }
                    meeting.times += 1;
                    round.push(if number.is_multiple_of(2) { (a, b) } else { (b, a) });
                } else if meeting.times == 0 && self.never(meeting.leaves) {
                    meeting.closed = true;
                }
            }
            if round.len() == before {
                return round;
            }
        }
    }

    /// Two free ends of different hosts that have not met more often than all others, those with the fewest partners. Ties rotate over the
    /// other leaf from round to round, so that all ends find a partner in every round.
    fn pair(&self, (a, b): (usize, usize), number: usize) -> Option<(u32, u32)> {
        if self.free[a] == 0 || self.free[b] == 0 {
            return None;
        }
        let free = |leaf: usize| {
            let all = self.ends[leaf].iter().copied().enumerate();
            all.filter(|(_, end)| !self.taken[*end as usize]).collect::<Vec<_>>()
        };
        let (mut left, right) = (free(a), free(b));
        left.sort_by_key(|(_, end)| self.partners[*end as usize]);
        let host = |end: u32| self.places[end as usize].host;
        let times = |x: u32, y: u32| self.times.get(&(x.min(y), x.max(y))).copied().unwrap_or(0);
        let all = self.ends[b].len();
        left.iter().find_map(|&(at, x)| {
            let fits = right.iter().filter(|&&(_, y)| host(y) != host(x) && times(x, y) == self.met);
            let next =
                fits.min_by_key(|&&(place, y)| (self.partners[y as usize], (place + all - (at + number) % all) % all));
            next.map(|&(_, y)| (x, y))
        })
    }

    fn never(&self, (a, b): (usize, usize)) -> bool {
        let host = |end: &u32| self.places[*end as usize].host;
        self.ends[a].iter().all(|x| self.ends[b].iter().all(|y| host(x) == host(y)))
    }
}

#[cfg(test)]
mod tests;
