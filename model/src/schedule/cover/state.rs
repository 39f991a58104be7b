//! Rounds during the search: pairs of each round, load of every link, and cost.

use super::{
    demand::{Demand, ROUNDING},
    network::{Link, Network},
};

pub(super) type Flow = (u32, u32);

const NONE: u32 = u32::MAX;

/// Weight of a partly met need: gives the search a gradient.
const PROGRESS: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    pub both_ways: bool,
    /// A host has at most one flow of a round, whatever its ends.
    pub one_per_host: bool,
}

/// A round's seats are its ends, or its hosts where a host has at most one flow.
pub(super) struct State<'n> {
    pub network: &'n Network,
    pub demand: &'n Demand,
    manner: Manner,
    seats: usize,
    rounds: usize,
    at: Vec<Flow>,
    /// By link and round, in Gbit/s.
    load: Vec<f64>,
    /// Sum of [`State::wrong`].
    pub cost: f64,
    pub open: Vec<Link>,
    place: Vec<u32>,
}

impl<'n> State<'n> {
    pub fn new(network: &'n Network, demand: &'n Demand, manner: Manner, rounds: usize) -> Self {
        let seats = match manner.one_per_host {
            true => network.ends().iter().map(|end| end.host as usize + 1).max().unwrap_or_default(),
            false => network.ends().len(),
        };
        let links = network.rates().len();
        let mut state = Self {
            network,
            demand,
            manner,
            seats,
            rounds,
            at: vec![(NONE, NONE); seats * rounds],
            load: vec![0.0; links * rounds],
            cost: 0.0,
            open: demand.links().collect(),
            place: vec![NONE; links],
        };
        state.open.iter().zip(0..).for_each(|(link, place)| state.place[*link as usize] = place);
        state.cost = state.open.len() as f64;
        state
    }

    pub fn with_one_more(&self) -> Self {
        let mut more = Self::new(self.network, self.demand, self.manner, self.rounds + 1);
        for (round, flow) in self.all() {
            more.add(round, flow);
        }
        more
    }

    pub fn rounds(&self) -> usize {
        self.rounds
    }

    fn seat(&self, end: u32) -> usize {
        if self.manner.one_per_host { self.network.ends()[end as usize].host as usize } else { end as usize }
    }

    pub fn share_a_seat(&self, one: u32, other: u32) -> bool {
        self.seat(one) == self.seat(other)
    }

    /// Whether a flow is possible: its ends are of two hosts, and its way is known.
    pub fn may_be(&self, (from, to): Flow) -> bool {
        let host = |end: u32| self.network.ends()[end as usize].host;
        let known = |from, to| self.network.path(from, to).is_some();
        host(from) != host(to) && known(from, to) && (!self.manner.both_ways || known(to, from))
    }

    pub fn flow_at(&self, round: usize, end: u32) -> Option<Flow> {
        Some(self.at[round * self.seats + self.seat(end)]).filter(|flow| flow.0 != NONE)
    }

    pub fn all(&self) -> Vec<(usize, Flow)> {
        let numbered = self.at.iter().enumerate().filter(|(_, flow)| flow.0 != NONE);
        let first = |(place, flow): (usize, &Flow)| {
            (place % self.seats == self.seat(flow.0)).then_some((place / self.seats, *flow))
        };
        numbered.filter_map(first).collect()
    }

    pub fn add(&mut self, round: usize, flow: Flow) {
        self.sit(round, flow, flow);
        self.carry(round, flow, 1.0);
    }

    pub fn remove(&mut self, round: usize, flow: Flow) {
        self.sit(round, flow, (NONE, NONE));
        self.carry(round, flow, -1.0);
    }

    fn sit(&mut self, round: usize, (from, to): Flow, there: Flow) {
        for end in [from, to] {
            let seat = self.seat(end);
            self.at[round * self.seats + seat] = there;
        }
    }

    fn carry(&mut self, round: usize, (from, to): Flow, sign: f64) {
        self.carry_one_way(round, (from, to), sign);
        if self.manner.both_ways {
            self.carry_one_way(round, (to, from), sign);
        }
    }

    fn carry_one_way(&mut self, round: usize, (from, to): Flow, sign: f64) {
        let network = self.network;
        let gbps = sign * network.alone(from, to);
        for &link in network.path(from, to).unwrap_or_default() {
            if self.demand.lost[link as usize].is_some() {
                continue;
            }
            self.cost -= self.wrong(link, round);
            let load = &mut self.load[link as usize * self.rounds + round];
            *load += gbps;
            // Inexact sums of rates leave a remainder.
            if *load < 1e-6 {
                *load = 0.0;
            }
            self.cost += self.wrong(link, round);
            self.note(link);
        }
    }

    /// Cost of a link: no round loads it (1, less where a part is), or more flows pass it in this round than it carries (1 for each).
    fn wrong(&self, link: Link, round: usize) -> f64 {
        let most = self.most(link);
        let need = self.demand.need[link as usize];
        let missing = if is_loaded(most, need) { 0.0 } else { 1.0 - PROGRESS * most / need.max(f64::MIN_POSITIVE) };
        missing + self.excess(link, round)
    }

    pub fn is_crowded(&self, round: usize, (from, to): Flow) -> bool {
        let on = |from, to| {
            let path = self.network.path(from, to).unwrap_or_default();
            path.iter().any(|link| self.demand.lost[*link as usize].is_none() && self.excess(*link, round) > 0.0)
        };
        on(from, to) || self.manner.both_ways && on(to, from)
    }

    fn excess(&self, link: Link, round: usize) -> f64 {
        let (load, limit) = (self.load[link as usize * self.rounds + round], self.demand.limit[link as usize]);
        if load <= limit { 0.0 } else { (load - limit) * f64::from(self.demand.flows[link as usize]) / limit }
    }

    fn most(&self, link: Link) -> f64 {
        let from = link as usize * self.rounds;
        self.load[from..from + self.rounds].iter().fold(0.0, |most, load| most.max(*load))
    }

    fn note(&mut self, link: Link) {
        let is_open = !is_loaded(self.most(link), self.demand.need[link as usize]);
        let place = self.place[link as usize];
        match (is_open, place) {
            (true, NONE) => {
                self.place[link as usize] = self.open.len() as u32;
                self.open.push(link);
            }
            (false, place) if place != NONE => {
                self.open.swap_remove(place as usize);
                if let Some(moved) = self.open.get(place as usize) {
                    self.place[*moved as usize] = place;
                }
                self.place[link as usize] = NONE;
            }
            _ => {}
        }
    }
}

fn is_loaded(load: f64, need: f64) -> bool {
    load > 0.0 && load >= need * ROUNDING
}
