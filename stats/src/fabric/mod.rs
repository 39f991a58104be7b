//! Locates bad links of a fabric from the results of paths.
//!
//! A path's result is the minimum over its links, times noise. [`locate`] searches for the fewest links, cables or devices, each with one
//! effect, that make the results likely. It adds the part that explains most, then tries for every part found whether another one
//! explains the same results better, and stops when no part stands out. The search is greedy with exact differences of likelihoods, as in
//! Flock (Harsh et al. 2023); that a low path blames its links and a good one clears them is the idea of 007 (Arzani et al. 2018).
//!
//! With hashed routes a test has several candidate routes, equally likely, and its likelihood is the mean over them. Links that the tests
//! cannot separate are reported together: "one of these".
//!
//! Results are suspects. [`probes`] lists the next tests, which separate suspects and include known good links; [`confirm`] settles them
//! by those tests alone. All values are natural logarithms, higher is better.
//!
//! Contention is not modelled: tests of one round must not share a link, or the caller must know that a link carries them all. A part
//! that is bad at times shows only by its mean effect.

mod candidates;
mod confirm;
mod interest;
mod part;
mod probes;
mod search;
mod state;
mod suspect;
mod table;

pub use confirm::{Judgement, confirm};
pub use part::{Fabric, Link, Part};
pub use probes::{Ports, Probe, probes};
pub use suspect::{Findings, Suspect, locate};

pub type Route = Vec<u32>;

/// Results of the same ends and flow over the same routes used the same one of them; they count together.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    pub from: u32,
    pub to: u32,
    /// Distinguishes flows between the same two ports, such as the UDP source port.
    pub flow: u32,
    /// Candidate routes as link numbers, equally likely; one where the route is known.
    pub routes: Vec<Route>,
    /// Class of comparable results: 0 for paths within a leaf and 1 for paths between leaves where these differ by nature; otherwise one
    /// number everywhere.
    pub kind: u32,
    /// 0 for the screen, 1 and up for the rounds of probes.
    pub round: u32,
    pub value: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Smallest effect worth a name, as a difference of logarithms: 0.01 for 1 %.
    pub least: f64,
    /// Lower bound of the noise: standard deviation of results of good paths. 0 if not known.
    pub noise: f64,
}

impl Default for Setting {
    fn default() -> Self {
        Self { least: 0.01, noise: 0.0 }
    }
}

/// Fewest flows of a kind for judging their links: fewer give no useful centre and spread.
pub const FEWEST: usize = 8;
/// Assumed value of a test without arrivals: a thousandth of a good one.
pub const DEAD: f64 = -6.907_755_278_982_137;
