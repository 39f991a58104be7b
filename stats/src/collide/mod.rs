//! Collision or damage: flows at once that were measured with few and with many queue pairs.
//!
//! Where switches spread flows over equal paths by a hash, a flow with one queue pair takes one path, and k flows on a path have a
//! k-th of it each. With many queue pairs every flow uses all paths, and that loss vanishes. What a bad cable takes does not: that of
//! the flow's own port is lost with any number of queue pairs, and that of one of m paths is spread over all flows.
//!
//! A flow counts as colliding only if all of this holds. Everything else is told as not known, since a cable that was cleared falsely
//! is not looked for any more.
//!
//! 1. It is low with the fewest queue pairs, against the flows that have a path to themselves.
//! 2. It is normal with the most, against the other flows.
//! 3. Its company is there: flows of its pass that together fill one path ([`groups`]). Those on a slow path fill less than one.
//! 4. The mean loss vanishes with the most queue pairs. A slow path takes as much of all flows together as before.
//!
//! Two slow paths that mimic one full path are not told from it in one pass; `docs/statistics.md` has how often that happens.

mod groups;

pub use groups::{Grouped, groups};

use crate::{
    refusal::{Refusal, logs},
    robust::{MAD_TO_SIGMA, mad, median, quantile},
};

/// A flow is low with the fewest queue pairs if it is below the flows with a path of their own by more than this: the mildest
/// collision takes a third (three flows on two paths' worth), noise of single windows stays below it.
pub const LOW: f64 = 0.1;

/// A flow is low with the most queue pairs if it is below the median by more than this, or by three standard deviations of the flows:
/// sixteen queue pairs on sixteen paths spread by 5 to 7 % by chance.
pub const LOW_SPREAD: f64 = 0.2;

/// Where flows with the most queue pairs scatter so much that one at this loss would not stand out, nothing is told of recovery.
const WIDEST: f64 = 0.4;

/// A mean loss with the most queue pairs that is still none: so much the hash leaves by chance.
pub const REMAINS: f64 = 0.1;

/// If a flow reaches more than so many times what should be a flow with a path to itself, or if that could reach so many times more by
/// its ports, then hardly any flow has one.
const CROWDED: f64 = 1.25;

/// Fewest flows with both values.
pub const FEWEST: usize = 4;

/// A flow in one pass, with its rate as share of what its ports can do or in any unit that all share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowRates {
    /// With the fewest queue pairs; `None` if not measured.
    pub fewest: Option<f64>,
    /// With the most.
    pub most: Option<f64>,
}

/// What a flow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Not low.
    Normal,
    /// It shared a path with others while it had the fewest queue pairs.
    Collides {
        /// Flows on that path, itself among them.
        flows: usize,
    },
    /// Low with the most queue pairs: more paths do not help it.
    Suspect,
    /// Not known.
    Open(Why),
}

/// Why nothing is known of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It lacks a value.
    Missing,
    /// Low with the fewest queue pairs and normal with the most, but no other flows fill its path: it may be a slow one.
    NoCompany,
    /// The flows together lose too much with the most queue pairs: one of the paths may be slow.
    LossRemains,
    /// Hardly any flow has a path to itself: there are more flows than paths, and what fills a path is not known.
    Crowded,
    /// Flows with the most queue pairs scatter too much to say who recovered.
    Scatter,
}

/// What passes of flows at once say.
#[derive(Debug, Clone, PartialEq)]
pub struct Collisions {
    /// By pass and flow, in the order given.
    pub classes: Vec<Vec<Class>>,
    /// What a flow with a path to itself reaches with the fewest queue pairs.
    pub undisturbed: f64,
    /// Mean loss against that with the fewest queue pairs.
    pub loss_fewest: f64,
    /// Mean loss with the most, against the better of both.
    pub loss_most: f64,
}

impl Collisions {
    /// How many flows are of a class that `counts` says yes to, over all passes.
    pub fn count(&self, counts: impl Fn(Class) -> bool) -> usize {
        self.classes.iter().flatten().filter(|class| counts(**class)).count()
    }
}

/// Tells collisions from damage. A pass holds the flows that ran at once, the same ones with the fewest and with the most queue pairs.
/// `full` is the rate that the ports of a flow let pass, in the unit of the rates, where that is known.
///
/// # Errors
/// Fewer than [`FEWEST`] flows with both values, or a value that is not positive and finite.
pub fn collisions(passes: &[Vec<FlowRates>], full: Option<f64>) -> Result<Collisions, Refusal> {
    let values = || passes.iter().flatten();
    let all: Vec<f64> = values().flat_map(|flow| [flow.fewest, flow.most]).flatten().collect();
    logs(&all)?;
    let both: Vec<(f64, f64)> = values().filter_map(|flow| flow.fewest.zip(flow.most)).collect();
    if both.len() < FEWEST {
        return Err(Refusal::TooFew { need: FEWEST, got: both.len() });
    }
    let (fewest, most): (Vec<f64>, Vec<f64>) = both.iter().copied().unzip();
    // With as many flows as paths a third of them is alone on one: the upper tenth is among these.
    let undisturbed = quantile(&fewest, 0.9)?;
    let best = quantile(&most, 0.9)?.max(undisturbed);
    let centre = median(&most)?;
    let mean_loss =
        |rates: &[f64], of: f64| rates.iter().map(|rate| 1.0 - (rate / of).min(1.0)).sum::<f64>() / rates.len() as f64;
    let (loss_fewest, loss_most) = (mean_loss(&fewest, undisturbed), mean_loss(&most, best));
    let spread = 3.0 * MAD_TO_SIGMA * mad(&most)? / centre;
    let cut = centre * (1.0 - spread.max(LOW_SPREAD));
    let remains = loss_most > REMAINS.max(loss_fewest / 2.0);
    let top = fewest.iter().copied().fold(0.0, f64::max);
    let crowded = top > undisturbed * CROWDED || full.is_some_and(|full| best < full / CROWDED);
    let is_low = |flow: &&FlowRates| flow.fewest.is_some_and(|rate| rate < undisturbed * (1.0 - LOW));
    let shares =
        |flows: &Vec<FlowRates>| flows.iter().filter(is_low).filter_map(|flow| Some(flow.fewest? / best)).collect();
    let company = groups(&passes.iter().map(shares).collect::<Vec<Vec<f64>>>());
    let class = |flow: &FlowRates, company: Option<Grouped>| {
        let (Some(_), Some(most)) = (flow.fewest, flow.most) else { return Class::Open(Why::Missing) };
        match company {
            _ if most < cut => Class::Suspect,
            None => Class::Normal,
            Some(_) if spread > WIDEST => Class::Open(Why::Scatter),
            Some(_) if crowded => Class::Open(Why::Crowded),
            Some(_) if remains => Class::Open(Why::LossRemains),
            Some(Grouped::Path { flows }) => Class::Collides { flows },
            Some(Grouped::Open) => Class::Open(Why::NoCompany),
        }
    };
    let of_pass = |(flows, company): (&Vec<FlowRates>, Vec<Grouped>)| {
        let mut company = company.into_iter();
        flows.iter().map(|flow| class(flow, if is_low(&flow) { company.next() } else { None })).collect()
    };
    let classes = passes.iter().zip(company).map(of_pass).collect();
    Ok(Collisions { classes, undisturbed, loss_fewest, loss_most })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(rates: &[(f64, f64)]) -> Vec<FlowRates> {
        rates.iter().map(|(fewest, most)| FlowRates { fewest: Some(*fewest), most: Some(*most) }).collect()
    }

    fn classes(rates: &[(f64, f64)]) -> Vec<Class> {
        collisions(&[pass(rates)], None).unwrap().classes.remove(0)
    }

    const PAIR: Class = Class::Collides { flows: 2 };

    #[test]
    fn two_flows_at_half_that_recover_share_a_path() {
        let found = classes(&[(1.0, 0.97), (0.5, 0.98), (0.5, 0.96), (0.99, 0.98), (1.01, 0.97)]);
        assert_eq!(found, [Class::Normal, PAIR, PAIR, Class::Normal, Class::Normal]);
        // Where senders are not served alike, the path is full all the same.
        let uneven = classes(&[(1.0, 0.97), (0.42, 0.98), (0.57, 0.96), (0.99, 0.98), (1.01, 0.97)]);
        assert_eq!(uneven, found);
    }

    #[test]
    fn one_flow_at_half_that_recovers_has_no_company() {
        let found = classes(&[(1.0, 0.97), (0.5, 0.98), (0.98, 0.96), (0.99, 0.98), (1.01, 0.97)]);
        assert_eq!(found[1], Class::Open(Why::NoCompany));
        // Three at half: which of them is the odd one nobody knows.
        let three = classes(&[(1.0, 0.97), (0.5, 0.98), (0.5, 0.96), (0.5, 0.98), (1.01, 0.97), (1.0, 0.97)]);
        assert_eq!(three[1..4], [Class::Open(Why::NoCompany); 3]);
    }

    #[test]
    fn a_flow_that_is_low_with_all_numbers_stays_a_suspect() {
        let found = classes(&[(1.0, 0.97), (0.5, 0.5), (0.98, 0.96), (0.99, 0.98), (1.01, 0.97), (1.0, 0.97)]);
        assert_eq!(found[1], Class::Suspect);
        assert_eq!(found.iter().filter(|class| **class == Class::Normal).count(), 5);
        // Low only with many queue pairs is no collision either.
        assert_eq!(classes(&[(1.0, 0.97), (1.0, 0.5), (0.98, 0.96), (0.99, 0.98), (1.01, 0.97)])[1], Class::Suspect);
    }

    #[test]
    fn a_slow_path_that_all_flows_share_in_the_end_clears_nobody() {
        // One of four paths at half: with 16 queue pairs all flows lose an eighth, and none stands out.
        let found = collisions(
            &[pass(&[(1.0, 0.87), (0.25, 0.88), (0.25, 0.87), (1.0, 0.88), (1.0, 0.86), (1.0, 0.87)])],
            None,
        )
        .unwrap();
        assert_eq!(found.count(|class| matches!(class, Class::Collides { .. })), 0);
        assert!(found.loss_most > 0.1, "{found:?}");
    }

    #[test]
    fn a_single_queue_pair_that_cannot_fill_the_path_is_no_collision() {
        // 40 of 100 with one queue pair: two on a path do not hurt each other, three do.
        let third = 1.0 / 3.0;
        let found =
            classes(&[(0.4, 1.0), (0.4, 0.99), (third, 1.0), (third, 0.98), (third, 0.99), (0.4, 1.0), (0.4, 1.0)]);
        assert_eq!(found.iter().filter(|class| **class == (Class::Collides { flows: 3 })).count(), 3);
        assert_eq!(found.iter().filter(|class| **class == Class::Normal).count(), 4);
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let mut flows = pass(&[(1.0, 0.97), (0.5, 0.98), (0.5, 0.96), (0.99, 0.98), (1.01, 0.97)]);
        flows[2].most = None;
        let found = collisions(&[flows.clone()], None).unwrap();
        assert_eq!(found.classes[0][2], Class::Open(Why::Missing));
        // Its share of the path is known all the same.
        assert_eq!(found.classes[0][1], PAIR);
        assert!(collisions(&[flows[..4].to_vec()], None).is_err());
        flows[0].fewest = Some(f64::NAN);
        assert!(collisions(&[flows], None).is_err());
    }
}
