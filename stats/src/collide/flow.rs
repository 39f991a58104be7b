//! A flow, and what is known of it.

use super::power::MILDEST;

/// Flows fill a path if their shares sum to it within this. It is wide because the grouping of flows is unknown and shares are uneven;
/// the sum over all groups is judged by the noise.
pub(super) const FULL: f64 = 0.1;

/// Largest difference between flows that share a good path and one flow alone. Half of the mildest damage, so that mostly slow paths do
/// not pass as good.
pub(super) const UNLIKE: f64 = MILDEST / 2.0;

/// A flow in one pass. Rates are shares of the ports' rate, or in any unit common to all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowRates {
    pub fewest: Option<f64>,
    pub most: Option<f64>,
    /// Numbers of the ports at its ends, different ones for sending and receiving.
    pub ends: [u32; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Not low.
    Normal,
    /// Shared a path with others while it had the fewest queue pairs.
    Collides { flows: usize },
    /// Low with the most queue pairs: more paths do not help it.
    Suspect,
    /// Not known, with the reason.
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
    Unfilled,
    /// The flows together lose too much with the most queue pairs: one of the paths may be slow.
    LossRemains,
    /// Hardly any flow has a path to itself, so the rate of a full path is unknown.
    Crowded,
    Scatter,
}
