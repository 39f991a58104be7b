//! A flow, and what is known of it.

use serde::Serialize;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    #[error("too few flows were measured with both numbers")]
    TooFew,
    #[error("a value is missing or not to be trusted")]
    Missing,
    /// Low with the fewest queue pairs and normal with the most, but in its pass or in too many others some low flows fill no path: a
    /// path may be slow.
    #[error("they recover, but some flows of their pass or of too many others fill no path, so that one may be slow")]
    NoCompany,
    /// There are too few passes to rule out that slow paths look like full ones in all of them.
    #[error(
        "they recover and share paths by their rates, but so may flows on two slow paths, and the passes are too few"
    )]
    FewPasses,
    #[error("a flow by itself does not fill a path, so what fills one is unknown")]
    Unfilled,
    #[error("the flows together still lose too much with many, so that one of several paths may be slow")]
    LossRemains,
    #[error("hardly any flow has a path to itself, so what fills one is unknown")]
    Crowded,
    #[error("flows scatter too much with many to say which of them recovered")]
    Scatter,
}
