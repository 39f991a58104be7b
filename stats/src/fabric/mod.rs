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
pub use probes::{Ports, Probe, Route, probes};
pub use suspect::{Findings, Suspect};

use crate::refusal::Refusal;

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

/// Finds the suspects among all links, cables and devices that the tests pass.
///
/// A part is a suspect if its likelihood ratio exceeds what chance reaches once in a hundred healthy fabrics (Student's t for the spread,
/// Bonferroni over the parts that the tests separate).
///
/// # Errors
/// No kind with [`FEWEST`] flows, a value that is not finite, a route without links or with a link that the fabric does not have, or a
/// least effect or noise that is negative.
pub fn locate(fabric: &Fabric, tests: &[Test], setting: &Setting) -> Result<Findings, Refusal> {
    check(fabric, tests, setting)?;
    let first = table::Table::new(fabric, tests, setting)?;
    let candidates = candidates::Candidates::new(fabric, &first);
    let found = search::search(fabric, &first, &candidates, setting);
    // If most paths are low, the better cluster is good: no fault makes a path better.
    if let Some(second) = first.above() {
        let other = search::search(fabric, &second, &candidates, setting);
        if other.cost < found.cost {
            return Ok(suspect::findings(fabric, tests, &second, &candidates, other));
        }
    }
    Ok(suspect::findings(fabric, tests, &first, &candidates, found))
}

fn check(fabric: &Fabric, tests: &[Test], setting: &Setting) -> Result<(), Refusal> {
    if let Some(at) = tests.iter().position(|test| test.value.is_some_and(|value| !value.is_finite())) {
        return Err(Refusal::NotFinite { at });
    }
    if !(setting.least >= 0.0 && setting.least.is_finite() && setting.noise >= 0.0 && setting.noise.is_finite()) {
        return Err(Refusal::Parameter("the least effect and the noise are not negative"));
    }
    let links = fabric.links().len() as u32;
    let known = |test: &Test| {
        let all = |route: &Route| !route.is_empty() && route.iter().all(|&link| link < links);
        !test.routes.is_empty() && test.routes.len() <= usize::from(u16::MAX) && test.routes.iter().all(all)
    };
    if tests.iter().all(known) { Ok(()) } else { Err(Refusal::Parameter("a route has no links, or an unknown one")) }
}
