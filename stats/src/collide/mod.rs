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
//! 3. Its pass has nothing odd: all low flows fill paths together ([`groups`]), and groups of a size fill as many as they are, within
//!    the noise. Flows on a slow path fill less than one.
//! 4. So few passes are odd that slow paths are ruled out. Two paths at half with one flow each look like one full path with two, but
//!    not in every draw of the hash: [`power`] says how many passes of how many show that.
//! 5. The mean loss vanishes with the most queue pairs. A slow path takes as much of all flows together as before.
//!
//! It rests on this: every pass draws the paths anew, paths have the rate of a NIC port, and flows that share a path fill it.

mod groups;
mod power;

pub use groups::{Groups, groups};
use power::Setting;

use std::collections::BTreeMap;

use crate::{
    refusal::{Refusal, logs},
    robust::{MAD_TO_SIGMA, mad, median, quantile},
};

/// A flow is low with the fewest queue pairs if it is below the flows with a path of their own by more than this: the mildest
/// collision takes a third (three flows on two paths' worth), noise of single windows stays below it.
pub const LOW: f64 = 0.1;

/// Where noise is small a flow is low if it is below by three standard deviations, and by this at least.
const LOW_LEAST: f64 = 0.05;

/// Noise is never taken to be less: headers, acknowledgements and windows cost a little of a path that several flows share.
const NOISE_LEAST: f64 = 0.005;

/// A path counts as filled by flows whose shares add up to it within this. Which of several flows of about one share go together is not
/// known, and shares are uneven: so it is wide, and what all groups fill together is judged by the noise.
const FULL: f64 = 0.1;

/// So much more or less than one flow alone do several move together on a good path. Half of the mildest damage: paths of which most are
/// slow are not taken for good ones.
const UNLIKE: f64 = power::MILDEST / 2.0;

/// Groups of a size together are off from full paths by no more than so many standard deviations.
const TOGETHER: f64 = 3.0;

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

pub const FEWEST: usize = 4;

/// A flow in one pass, with its rate as share of what its ports can do or in any unit that all share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowRates {
    /// With the fewest queue pairs; `None` if not measured.
    pub fewest: Option<f64>,
    pub most: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Not low.
    Normal,
    /// It shared a path with others while it had the fewest queue pairs.
    Collides { flows: usize },
    /// Low with the most queue pairs: more paths do not help it.
    Suspect,
    /// Not known.
    Open(Why),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    Missing,
    /// Low with the fewest queue pairs and normal with the most, but in its pass or in too many others some low flows fill no path: a
    /// path may be slow.
    NoCompany,
    /// There are too few passes to rule out that slow paths look like full ones in all of them.
    FewPasses,
    /// One queue pair does not fill a path, so that what fills one is not known.
    Unfilled,
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
    /// Passes in which some low flows fill no path.
    pub odd: usize,
    /// Fewest passes that would tell collisions from slow paths if none were odd; `None` if hundreds are not enough.
    pub needed: Option<usize>,
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
    let top = quantile(&fewest, 0.9)?;
    let alone: Vec<f64> = fewest.iter().copied().filter(|rate| *rate > top * (1.0 - LOW)).collect();
    let undisturbed = median(&alone)?;
    let logs: Vec<f64> = alone.iter().map(|rate| rate.ln()).collect();
    let noise = (MAD_TO_SIGMA * mad(&logs)?).max(NOISE_LEAST);
    let best = quantile(&most, 0.9)?.max(undisturbed);
    let centre = median(&most)?;
    let mean_loss =
        |rates: &[f64], of: f64| rates.iter().map(|rate| 1.0 - (rate / of).min(1.0)).sum::<f64>() / rates.len() as f64;
    let (loss_fewest, loss_most) = (mean_loss(&fewest, undisturbed), mean_loss(&most, best));
    let spread = 3.0 * MAD_TO_SIGMA * mad(&most)? / centre;
    let cut = centre * (1.0 - spread.max(LOW_SPREAD));
    let remains = loss_most > REMAINS.max(loss_fewest / 2.0);
    let highest = fewest.iter().copied().fold(0.0, f64::max);
    let crowded = highest > top * CROWDED || full.is_some_and(|full| best < full / CROWDED);
    let lacking = (3.0 * noise).clamp(LOW_LEAST, LOW);
    let is_low = |flow: &FlowRates| flow.fewest.is_some_and(|rate| rate < undisturbed * (1.0 - lacking));
    let is_suspect = |flow: &FlowRates| flow.most.is_some_and(|rate| rate < cut);
    let scale = Scale { undisturbed, together: 1.0, noise, alone: alone.len() };
    let sort = |scale| passes.iter().map(|flows| Sorted::new(flows, scale, is_low, is_suspect)).collect::<Vec<_>>();
    let sorted = sort(Scale { together: together(&sort(scale))?, ..scale });
    let odd = sorted.iter().filter(|pass| pass.odd).count();
    let setting = Setting {
        load: load(alone.len(), fewest.len()),
        noise,
        low: lacking,
        deviation: sorted.iter().map(|pass| pass.deviation).fold(noise, f64::max),
        cut: TOGETHER,
    };
    let allowed = setting.allowed(passes.len());
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
    let classes = passes.iter().zip(&sorted).map(of_pass).collect();
    Ok(Collisions { classes, undisturbed, loss_fewest, loss_most, odd, needed: setting.needed() })
}

/// Flows on a path on average, at the lower end of what the share of flows with a path to themselves leaves open: e^−load (Poisson), with
/// 1.645 standard errors of that share.
fn load(alone: usize, flows: usize) -> f64 {
    let n = flows as f64;
    let share = (alone as f64 + 0.5) / (n + 1.0);
    let most = share + 1.645 * (share * (1.0 - share) / n).sqrt();
    // With one flow on a hundred paths hardly anything collides, and nothing is told.
    -most.min(0.99).ln()
}

/// What flows that share a path move together, in parts of what one by itself does: the median of all paths that flows fill together. Congestion
/// control costs a little, and one flow by itself may leave gaps that several fill.
fn together(passes: &[Sorted]) -> Result<f64, Refusal> {
    let filled: Vec<f64> = passes.iter().flat_map(|pass| &pass.filled).copied().collect();
    if filled.is_empty() {
        return Ok(1.0);
    }
    Ok(median(&filled)?.clamp(1.0 - UNLIKE, 1.0 + UNLIKE))
}

/// What a flow with a path to itself moves.
#[derive(Debug, Clone, Copy)]
struct Scale {
    undisturbed: f64,
    /// What flows that share a good path move together, in parts of that.
    together: f64,
    noise: f64,
    alone: usize,
}

/// The flows of a pass, sorted to paths.
struct Sorted {
    /// By flow: how many fill its path, itself among them; `None` for flows that are not low, and for those that fill none.
    sizes: Vec<Option<usize>>,
    /// Whether some low flows fill no path, or all of a size together do not fill theirs.
    odd: bool,
    /// The largest standard deviation of what groups of a size fill together, in paths.
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
        // A flow that stays low with the most queue pairs is told as a suspect, and explains itself.
        let left = found.left.iter().any(|at| !is_suspect(&flows[low[*at]]));
        // What a flow without a value took of a path nobody knows.
        let unknown = flows.iter().any(|flow| flow.fewest.is_none());
        let odd = left || unknown || by_size.values().zip(&deviations).any(is_off);
        Self { sizes, odd, deviation: deviations.into_iter().fold(0.0, f64::max), filled }
    }
}

#[derive(Default)]
struct Filled {
    paths: f64,
    sum: f64,
    squares: f64,
}

impl Filled {
    /// Standard deviation of the sum: that of each share, and that of the median (1.2533 s / √n) that all are held against.
    fn deviation(&self, scale: Scale) -> f64 {
        let of_median = (self.paths * 1.2533).powi(2) / scale.alone as f64;
        scale.noise * (self.squares + of_median).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(rates: &[(f64, f64)]) -> Vec<FlowRates> {
        rates.iter().map(|(fewest, most)| FlowRates { fewest: Some(*fewest), most: Some(*most) }).collect()
    }

    /// So many passes alike: what one of them cannot show, as many can.
    const PASSES: usize = 24;

    fn classes(rates: &[(f64, f64)]) -> Vec<Class> {
        collisions(&vec![pass(rates); PASSES], None).unwrap().classes.remove(0)
    }

    #[test]
    fn few_passes_do_not_rule_out_two_slow_paths() {
        let rates = [(1.0, 0.97), (0.5, 0.98), (0.5, 0.96), (0.99, 0.98), (1.01, 0.97)];
        let found = collisions(&vec![pass(&rates); 2], None).unwrap();
        assert_eq!(found.classes[0][1..3], [Class::Open(Why::FewPasses); 2]);
        assert!(found.needed.is_some_and(|needed| needed > 2 && needed <= PASSES), "{found:?}");
        // What was odd once too often in other passes clears nobody in this one.
        let odd = [(1.0, 0.97), (0.5, 0.98), (0.99, 0.96), (0.99, 0.98), (1.01, 0.97)];
        let mixed = [vec![pass(&rates); PASSES / 2], vec![pass(&odd); PASSES / 2]].concat();
        let found = collisions(&mixed, None).unwrap();
        assert_eq!((found.classes[0][1], found.odd), (Class::Open(Why::NoCompany), PASSES / 2));
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
    fn a_single_queue_pair_that_cannot_fill_the_path_tells_nothing() {
        // 40 of 100 with one queue pair: two on a path do not hurt each other, three do, and nobody knows what a path has.
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
        let found = collisions(&vec![flows.clone(); PASSES], None).unwrap();
        assert_eq!(found.classes[0][2], Class::Open(Why::Missing));
        // Its share of the path is known all the same.
        assert_eq!(found.classes[0][1], PAIR);
        assert!(collisions(&[flows[..4].to_vec()], None).is_err());
        flows[0].fewest = Some(f64::NAN);
        assert!(collisions(&[flows], None).is_err());
    }
}
