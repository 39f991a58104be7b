//! Distinguishes collisions from damage by concurrent flows, measured with few and with many queue pairs.
//!
//! Where switches hash flows onto equal paths, a flow with one queue pair takes one path, and k flows on a path get 1/k of it each. With
//! many queue pairs every flow uses all paths, and that loss vanishes. The loss by a bad cable remains: at the flow's own port for any
//! number of queue pairs, on one of m paths spread over all flows.
//!
//! A flow counts as colliding only if all of this holds. Otherwise the class is open, since a cable cleared falsely is not examined
//! again.
//!
//! 1. It is low with the fewest queue pairs, against the flows that have a path to themselves.
//! 2. It is normal with the most, against the other flows.
//! 3. Its pass has nothing odd: all low flows fill paths together ([`groups`]), and groups of a size fill as many as they are, within
//!    the noise. Flows on a slow path fill less than one.
//!    So few passes are odd that slow paths are ruled out. Two paths at half with one flow each look like one full path with two, but not in
//!    every draw of the hash: see [`power`].
//! 5. The mean loss vanishes with the most queue pairs. A slow path takes as much of all flows together as before.
//!    Where paths are fewer than flows, their lack excuses as much, and only half of the passes count in 4.
//!
//! Assumes that every pass hashes flows independently, that paths have the rate of a NIC port, and that flows that share a path fill it.

mod answer;
mod flow;
mod groups;
mod power;

use answer::Seen;
pub use answer::{Answer, Paths};
pub use flow::{Class, FlowRates, Why};
use flow::{FULL, UNLIKE};
pub use groups::{Groups, groups};
use power::Setting;

use std::collections::BTreeMap;

use crate::{
    refusal::{Refusal, logs},
    robust::{MAD_TO_SIGMA, mad, median, quantile},
};

/// A flow is low with the fewest queue pairs if it is below undisturbed flows by more than this. The mildest collision costs a third
/// (three flows on two paths); the noise of single windows stays below this.
pub const LOW: f64 = 0.1;

/// Lower bound of the threshold where noise is small; the threshold itself is three standard deviations.
const LOW_LEAST: f64 = 0.05;

/// Lower bound of the noise: headers, acknowledgements and windows cost a little of a shared path.
const NOISE_LEAST: f64 = 0.005;

/// Largest deviation from full paths of all groups of a size, in standard deviations.
const TOGETHER: f64 = 3.0;

/// A flow is low with the most queue pairs if it is below the median by more than this, or by three standard deviations of the flows.
/// Sixteen queue pairs on sixteen paths spread by 5 to 7 % by chance.
pub const LOW_SPREAD: f64 = 0.2;

/// Where flows with the most queue pairs scatter so much that one at this loss would not stand out, recovery is unknown.
const WIDEST: f64 = 0.4;

/// Largest mean loss with the most queue pairs that the hash leaves by chance.
pub const REMAINS: f64 = 0.1;

/// If a flow reaches this many times the assumed rate of an undisturbed flow, or its ports allow that, then hardly any flow has a path to
/// itself.
const CROWDED: f64 = 1.25;

pub const FEWEST: usize = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Collisions {
    /// By pass and flow, in the order given.
    pub classes: Vec<Vec<Class>>,
    pub undisturbed: f64,
    /// Mean loss relative to `undisturbed`.
    pub loss_fewest: f64,
    /// Mean loss with the most, relative to the better of both.
    pub loss_most: f64,
    pub odd: usize,
    /// Fewest passes that could rule out slow paths if none were odd; `None` if hundreds are not enough.
    pub needed: Option<usize>,
    pub paths: Paths,
}

impl Collisions {
    pub fn count(&self, counts: impl Fn(Class) -> bool) -> usize {
        self.classes.iter().flatten().filter(|class| counts(**class)).count()
    }
}

/// Classifies flows. A pass holds the flows that ran at once, the same ones with the fewest and with the most queue pairs. `full` is the
/// rate that the ports of a flow allow, in the unit of the rates, where known; `reordered` the share of flows with the fewest queue pairs
/// at which packets arrived out of order, where known.
///
/// # Errors
/// Fewer than [`FEWEST`] flows with both values, or a value that is not positive and finite.
pub fn collisions(passes: &[Vec<FlowRates>], full: Option<f64>, reordered: Option<f64>) -> Result<Collisions, Refusal> {
    let both = both(passes)?;
    let (fewest, most): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    let Alone { top, number: alone, undisturbed, noise } = Alone::among(&fewest)?;
    let best = quantile(&most, 0.9)?.max(undisturbed);
    let centre = median(&most)?;
    let (loss_fewest, loss_most) = (mean_loss(&fewest, undisturbed), mean_loss(&most, best));
    let spread = 3.0 * MAD_TO_SIGMA * mad(&most)? / centre;
    let cut = centre * (1.0 - spread.max(LOW_SPREAD));
    let per_pass = passes.iter().map(Vec::len).sum::<usize>() as f64 / passes.len() as f64;
    let number = number(alone as f64 / fewest.len() as f64, per_pass);
    // Where paths are fewer than flows, more queue pairs do not help.
    let lacking_paths = number.map_or(0.0, |number| 1.0 - (number / per_pass).min(1.0));
    let loses = |lacking: f64| loss_most > (lacking + REMAINS).max(loss_fewest / 2.0);
    let (remains, is_short) = (loses(lacking_paths), loses(0.0));
    let highest = fewest.iter().copied().fold(0.0, f64::max);
    let crowded = highest > top * CROWDED || full.is_some_and(|full| best < full / CROWDED);
    let lacking = (3.0 * noise).clamp(LOW_LEAST, LOW);
    let is_low = |flow: &FlowRates| flow.fewest.is_some_and(|rate| rate < undisturbed * (1.0 - lacking));
    let is_suspect = |flow: &FlowRates| flow.most.is_some_and(|rate| rate < cut);
    let scale = Scale { undisturbed, together: 1.0, noise, alone };
    let sort = |scale| passes.iter().map(|flows| Sorted::new(flows, scale, is_low, is_suspect)).collect::<Vec<_>>();
    let sorted = sort(Scale { together: together(&sort(scale))?, ..scale });
    let odd = sorted.iter().filter(|pass| pass.odd).count();
    let setting = Setting {
        load: load(alone, fewest.len()),
        noise,
        low: lacking,
        deviation: sorted.iter().map(|pass| pass.deviation).fold(noise, f64::max),
        cut: TOGETHER,
    };
    // Then the loss with the most queue pairs rules out nothing, and slow paths with many flows look full more often than is counted.
    let allowed = setting.allowed(if is_short { passes.len() / 2 } else { passes.len() });
    let class = |flow: &FlowRates, pass: &Sorted, at: usize| {
        if flow.fewest.is_none() || flow.most.is_none() {
            return Class::Open(Why::Missing);
        }
        match (pass.sizes[at], allowed) {
            _ if is_suspect(flow) => Class::Suspect,
            _ if !is_low(flow) => Class::Normal,
            _ if spread > WIDEST => Class::Open(Why::Scatter),
            _ if crowded => Class::Open(Why::Crowded),
            _ if undisturbed < best * (1.0 - LOW) => Class::Open(Why::Unfilled),
            _ if remains => Class::Open(Why::LossRemains),
            (Some(_), None) if !pass.odd => Class::Open(Why::FewPasses),
            (Some(flows), Some(allowed)) if !pass.odd && odd as u64 <= allowed => Class::Collides { flows },
            _ => Class::Open(Why::NoCompany),
        }
    };
    let of_pass = |(flows, pass): (&Vec<FlowRates>, &Sorted)| {
        flows.iter().enumerate().map(|(at, flow)| class(flow, pass, at)).collect()
    };
    let classes: Vec<Vec<Class>> = passes.iter().zip(&sorted).map(of_pass).collect();
    let rests: Vec<f64> = sorted.iter().filter(|pass| pass.odd).map(|pass| pass.rest).collect();
    let seen = Seen { passes, classes: &classes, odd: &rests, is_low: &is_low };
    let paths = Paths { number, ..seen.paths(reordered)? };
    Ok(Collisions { classes, undisturbed, loss_fewest, loss_most, odd, needed: setting.needed(), paths })
}

/// The rates of flows that have both, with the fewest and with the most queue pairs.
fn both(passes: &[Vec<FlowRates>]) -> Result<Vec<(f64, f64)>, Refusal> {
    let values = || passes.iter().flatten();
    logs(&values().flat_map(|flow| [flow.fewest, flow.most]).flatten().collect::<Vec<_>>())?;
    let both: Vec<(f64, f64)> = values().filter_map(|flow| flow.fewest.zip(flow.most)).collect();
    if both.len() < FEWEST { Err(Refusal::TooFew { need: FEWEST, got: both.len() }) } else { Ok(both) }
}

fn mean_loss(rates: &[f64], of: f64) -> f64 {
    rates.iter().map(|rate| 1.0 - (rate / of).min(1.0)).sum::<f64>() / rates.len() as f64
}

/// Flows with a path to themselves.
struct Alone {
    /// The upper tenth of all flows begins here.
    top: f64,
    number: usize,
    undisturbed: f64,
    noise: f64,
}

impl Alone {
    fn among(fewest: &[f64]) -> Result<Self, Refusal> {
        // With as many flows as paths a third of them is alone on one: the upper tenth is among these.
        let top = quantile(fewest, 0.9)?;
        let alone: Vec<f64> = fewest.iter().copied().filter(|rate| *rate > top * (1.0 - LOW)).collect();
        let logs: Vec<f64> = alone.iter().map(|rate| rate.ln()).collect();
        let noise = (MAD_TO_SIGMA * mad(&logs)?).max(NOISE_LEAST);
        Ok(Self { top, number: alone.len(), undisturbed: median(&alone)?, noise })
    }
}

/// Number of equal paths, from the share of flows with a path to themselves; `None` if all or none have one.
fn number(alone: f64, per_pass: f64) -> Option<f64> {
    (alone > 0.0 && alone < 1.0).then(|| 1.0 / (1.0 - alone.powf(1.0 / (per_pass - 1.0))))
}

/// Flows on a path on average, at the lower end of what the share of flows with a path to themselves allows: e^−load (Poisson), with
/// 1.645 standard errors of that share.
fn load(alone: usize, flows: usize) -> f64 {
    let n = flows as f64;
    let share = (alone as f64 + 0.5) / (n + 1.0);
    let most = share + 1.645 * (share * (1.0 - share) / n).sqrt();
    // With one flow on a hundred paths hardly anything collides, so there is no result.
    -most.min(0.99).ln()
}

/// Rate of flows that share a path, relative to one alone: the median of all paths that flows fill together. Congestion control costs a
/// little, and one flow alone may leave gaps that several fill.
fn together(passes: &[Sorted]) -> Result<f64, Refusal> {
    let filled: Vec<f64> = passes.iter().flat_map(|pass| &pass.filled).copied().collect();
    if filled.is_empty() {
        return Ok(1.0);
    }
    Ok(median(&filled)?.clamp(1.0 - UNLIKE, 1.0 + UNLIKE))
}

#[derive(Debug, Clone, Copy)]
struct Scale {
    undisturbed: f64,
    /// Rate of flows that share a good path, relative to `undisturbed`.
    together: f64,
    noise: f64,
    alone: usize,
}

struct Sorted {
    /// By flow: how many fill its path, itself included; `None` for flows that are not low or fill no path.
    sizes: Vec<Option<usize>>,
    /// Whether some low flows fill no path, or all of a size together do not fill theirs.
    odd: bool,
    /// What the low flows carry beyond the paths that they fill, in paths.
    rest: f64,
    /// The largest standard deviation of the sums of groups of a size, in paths.
    deviation: f64,
    filled: Vec<f64>,
}

impl Sorted {
    fn new(
        flows: &[FlowRates],
        scale: Scale,
        is_low: impl Fn(&FlowRates) -> bool,
        is_suspect: impl Fn(&FlowRates) -> bool,
    ) -> Self {
        let low: Vec<usize> = (0..flows.len()).filter(|at| is_low(&flows[*at])).collect();
        let full = scale.undisturbed * scale.together;
        let shares: Vec<f64> = low.iter().map(|at| flows[*at].fewest.unwrap_or_default() / full).collect();
        let found = groups(&shares, FULL);
        let mut sizes = vec![None; flows.len()];
        let mut filled = Vec::new();
        let mut by_size: BTreeMap<usize, Filled> = BTreeMap::new();
        for path in &found.paths {
            path.iter().for_each(|at| sizes[low[*at]] = Some(path.len()));
            let sum = path.iter().map(|at| shares[*at]).sum::<f64>();
            let of_size = by_size.entry(path.len().min(3)).or_default();
            of_size.paths += 1.0;
            of_size.sum += sum;
            of_size.squares += path.iter().map(|at| shares[*at].powi(2)).sum::<f64>();
            filled.push(sum);
        }
        let deviations: Vec<f64> = by_size.values().map(|filled| filled.deviation(scale)).collect();
        let is_off = |(filled, deviation): (&Filled, &f64)| (filled.sum - filled.paths).abs() > TOGETHER * deviation;
        // A flow that stays low with the most queue pairs is a suspect, which explains it.
        let left = found.left.iter().any(|at| !is_suspect(&flows[low[*at]]));
        // By the sum: groups that take a flow too many or too few are off by little each, and together by much.
        let rest = shares.iter().sum::<f64>() - found.paths.len() as f64;
        // The share of a flow without a value is unknown.
        let unknown = flows.iter().any(|flow| flow.fewest.is_none());
        let odd = left || unknown || by_size.values().zip(&deviations).any(is_off);
        Self { sizes, odd, rest, deviation: deviations.into_iter().fold(0.0, f64::max), filled }
    }
}

#[derive(Default)]
struct Filled {
    paths: f64,
    sum: f64,
    squares: f64,
}

impl Filled {
    /// Standard deviation of the sum: that of each share, and that of the median (1.2533 s / √n) that all are compared with.
    fn deviation(&self, scale: Scale) -> f64 {
        let of_median = (self.paths * 1.2533).powi(2) / scale.alone as f64;
        scale.noise * (self.squares + of_median).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(rates: &[(f64, f64)]) -> Vec<FlowRates> {
        let flow = |(at, (fewest, most)): (usize, &(f64, f64))| FlowRates {
            fewest: Some(*fewest),
            most: Some(*most),
            ends: [at as u32, 100 + at as u32],
        };
        rates.iter().enumerate().map(flow).collect()
    }

    const PASSES: usize = 24;

    fn classes(rates: &[(f64, f64)]) -> Vec<Class> {
        collisions(&vec![pass(rates); PASSES], None, None).unwrap().classes.remove(0)
    }

    #[test]
    fn few_passes_do_not_rule_out_two_slow_paths() {
        let rates = [(1.0, 0.97), (0.5, 0.98), (0.5, 0.96), (0.99, 0.98), (1.01, 0.97)];
        let found = collisions(&vec![pass(&rates); 2], None, None).unwrap();
        assert_eq!(found.classes[0][1..3], [Class::Open(Why::FewPasses); 2]);
        assert!(found.needed.is_some_and(|needed| needed > 2 && needed <= PASSES), "{found:?}");
        // One odd pass too many leaves the flows of every pass open.
        let odd = [(1.0, 0.97), (0.5, 0.98), (0.99, 0.96), (0.99, 0.98), (1.01, 0.97)];
        let mixed = [vec![pass(&rates); PASSES / 2], vec![pass(&odd); PASSES / 2]].concat();
        let found = collisions(&mixed, None, None).unwrap();
        assert_eq!((found.classes[0][1], found.odd), (Class::Open(Why::NoCompany), PASSES / 2));
    }

    const PAIR: Class = Class::Collides { flows: 2 };

    #[test]
    fn two_flows_at_half_that_recover_share_a_path() {
        let found = classes(&[(1.0, 0.97), (0.5, 0.98), (0.5, 0.96), (0.99, 0.98), (1.01, 0.97)]);
        assert_eq!(found, [Class::Normal, PAIR, PAIR, Class::Normal, Class::Normal]);
        // Uneven senders fill the path all the same.
        let uneven = classes(&[(1.0, 0.97), (0.42, 0.98), (0.57, 0.96), (0.99, 0.98), (1.01, 0.97)]);
        assert_eq!(uneven, found);
    }

    #[test]
    fn one_flow_at_half_that_recovers_has_no_company() {
        let found = classes(&[(1.0, 0.97), (0.5, 0.98), (0.98, 0.96), (0.99, 0.98), (1.01, 0.97)]);
        assert_eq!(found[1], Class::Open(Why::NoCompany));
        // Three at half: which one is odd is unknown.
        let three = classes(&[(1.0, 0.97), (0.5, 0.98), (0.5, 0.96), (0.5, 0.98), (1.01, 0.97), (1.0, 0.97)]);
        assert_eq!(three[1..4], [Class::Open(Why::NoCompany); 3]);
    }

    #[test]
    fn a_flow_that_is_low_with_all_numbers_stays_a_suspect() {
        let found = classes(&[(1.0, 0.97), (0.5, 0.5), (0.98, 0.96), (0.99, 0.98), (1.01, 0.97), (1.0, 0.97)]);
        assert_eq!(found[1], Class::Suspect);
        assert_eq!(found.iter().filter(|class| **class == Class::Normal).count(), 5);
        // Low only with many queue pairs is not a collision either.
        assert_eq!(classes(&[(1.0, 0.97), (1.0, 0.5), (0.98, 0.96), (0.99, 0.98), (1.01, 0.97)])[1], Class::Suspect);
    }

    #[test]
    fn a_slow_path_that_all_flows_share_in_the_end_clears_nobody() {
        // One of four paths at half: with 16 queue pairs all flows lose an eighth, and none stands out.
        let found = collisions(
            &[pass(&[(1.0, 0.87), (0.25, 0.88), (0.25, 0.87), (1.0, 0.88), (1.0, 0.86), (1.0, 0.87)])],
            None,
            None,
        )
        .unwrap();
        assert_eq!(found.count(|class| matches!(class, Class::Collides { .. })), 0);
        assert!(found.loss_most > 0.1, "{found:?}");
    }

    #[test]
    fn a_single_queue_pair_that_cannot_fill_the_path_tells_nothing() {
        // 40 of 100 with one queue pair: two on a path do not slow each other, three do, and the path's rate is unknown.
        let third = 1.0 / 3.0;
        let found =
            classes(&[(0.4, 1.0), (0.4, 0.99), (third, 1.0), (third, 0.98), (third, 0.99), (0.4, 1.0), (0.4, 1.0)]);
        assert_eq!(found.iter().filter(|class| **class == Class::Open(Why::Unfilled)).count(), 3);
        assert_eq!(found.iter().filter(|class| **class == Class::Normal).count(), 4);
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let mut flows = pass(&[(1.0, 0.97), (0.5, 0.98), (0.5, 0.96), (0.99, 0.98), (1.01, 0.97)]);
        flows[2].most = None;
        let found = collisions(&vec![flows.clone(); PASSES], None, None).unwrap();
        assert_eq!(found.classes[0][2], Class::Open(Why::Missing));
        // Its share of the path is known all the same.
        assert_eq!(found.classes[0][1], PAIR);
        assert!(collisions(&[flows[..4].to_vec()], None, None).is_err());
        flows[0].fewest = Some(f64::NAN);
        assert!(collisions(&[flows], None, None).is_err());
    }
}
