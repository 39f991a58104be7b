//! What all flows of a test show together. A fault of a port follows the port, one of a path moves with the hash.

use std::collections::BTreeMap;

use serde::Serialize;

use super::flow::{Class, FULL, FlowRates, UNLIKE};
use crate::{refusal::Refusal, robust::median};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Flows share paths, and with the most queue pairs their loss vanishes.
    Collisions,
    /// One of the paths has [`Paths::slow`] of the rate of the others.
    SlowPath,
    /// Flows of a port are low in every pass, with all numbers of queue pairs.
    SlowPort,
    /// No flow shares a path, and packets arrive out of order: every flow uses all paths.
    Sprayed,
    /// No flow shares a path, for an unknown reason.
    Even,
    #[default]
    Open,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Paths {
    pub answer: Answer,
    /// Ends that are low in every pass, as numbered in [`FlowRates::ends`].
    pub ports: Vec<u32>,
    /// Share of the rate of the others that the slow path has.
    pub slow: Option<f64>,
    /// Number of equal paths, from the share of flows with a path to themselves; `None` if all or none have one.
    pub number: Option<f64>,
    /// With up to so many equal paths a hash would have put two flows on one with [`SURE`].
    pub excluded: f64,
}

const SURE: f64 = 0.95;

/// Fewest flows of a port that show whether a fault follows it, and fewest passes with the same loss that show a slow path.
const FEWEST: usize = 3;

/// Share of them that may look otherwise by chance.
const CHANCE: f64 = 0.1;

/// A slow path is named if it has and lacks this much of a path: less is within the noise of groups.
const APART: f64 = FULL + UNLIKE;

/// Share of flows at which packets must arrive out of order, and that must be normal then.
const MOST_FLOWS: f64 = 1.0 - CHANCE;

pub(super) struct Seen<'a> {
    pub passes: &'a [Vec<FlowRates>],
    pub classes: &'a [Vec<Class>],
    /// What low flows that fill no path have together, in each pass with such flows.
    pub odd: &'a [f64],
    pub is_low: &'a dyn Fn(&FlowRates) -> bool,
}

impl Seen<'_> {
    /// `reordered` is the share of flows with the fewest queue pairs at which packets arrived out of order, where known.
    pub(super) fn paths(&self, reordered: Option<f64>) -> Result<Paths, Refusal> {
        let flows = self.passes.iter().map(Vec::len).sum::<usize>() as f64;
        let per_pass = flows / self.passes.len() as f64;
        let ports = self.always(CHANCE, |_, class| class == Class::Suspect);
        let slow = self.slow()?;
        let of = |is: fn(Class) -> bool| self.classes.iter().flatten().filter(|class| is(**class)).count() as f64;
        let normal = of(|class| class == Class::Normal) / flows;
        let pairs: f64 = self.passes.iter().map(|pass| (pass.len() * (pass.len() - 1)) as f64 / 2.0).sum();
        let excluded = pairs / -(1.0 - SURE).ln();
        let answer = if !ports.is_empty() {
            Answer::SlowPort
        } else if slow.is_some() {
            Answer::SlowPath
        } else if of(|class| matches!(class, Class::Collides { .. })) > 0.0 {
            Answer::Collisions
        } else if excluded < per_pass {
            Answer::Open
        } else if normal >= MOST_FLOWS && reordered.is_some_and(|share| share >= MOST_FLOWS) {
            Answer::Sprayed
        } else if normal >= 1.0 - CHANCE / per_pass {
            Answer::Even
        } else {
            Answer::Open
        };
        Ok(Paths { answer, ports, slow: slow.filter(|_| answer == Answer::SlowPath), number: None, excluded })
    }

    /// Ends whose flows are of a kind in every pass, except for this share.
    fn always(&self, chance: f64, is: impl Fn(&FlowRates, Class) -> bool) -> Vec<u32> {
        let mut ends: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for (flow, class) in self.passes.iter().flatten().zip(self.classes.iter().flatten()) {
            for end in flow.ends.into_iter().filter(|_| flow.fewest.is_some() && flow.most.is_some()) {
                let (hits, of) = ends.entry(end).or_default();
                (*hits, *of) = (*hits + usize::from(is(flow, *class)), *of + 1);
            }
        }
        let always = |(hits, of): (usize, usize)| of >= FEWEST && hits as f64 >= (1.0 - chance) * of as f64;
        ends.into_iter().filter(|(_, counts)| always(*counts)).map(|(end, _)| end).collect()
    }

    /// The rate of one slow path, if the low flows that fill no path have it together in nearly all passes that have such flows.
    fn slow(&self) -> Result<Option<f64>, Refusal> {
        let rests = self.odd;
        if rests.len() < FEWEST || !self.always(0.0, |flow, _| (self.is_low)(flow)).is_empty() {
            return Ok(None);
        }
        let share = median(rests)?;
        let alike = rests.iter().filter(|rest| (*rest - share).abs() <= FULL).count();
        let chance = CHANCE * self.passes.len() as f64;
        let one = alike as f64 >= chance.max(FEWEST as f64) && (rests.len() - alike) as f64 <= chance;
        Ok((one && (APART..=1.0 - APART).contains(&share)).then_some(share))
    }
}
