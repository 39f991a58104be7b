//! Which link of the fabric is bad, told from the results of paths.
//!
//! A path's result is the minimum over the links that it passes, times noise. [`locate`] asks which few links, cables or
//! devices, each with one effect, make the results likely. It adds the part that explains most, then tries for every part
//! found whether another one explains the same results better, and stops when nothing explains enough to stand out among
//! all parts of the fabric. The search is greedy with exact differences of likelihoods, as in Flock (Harsh et al. 2023);
//! that a low path blames its links and a good one clears them is the idea of 007 (Arzani et al. 2018).
//!
//! Where routes are hashed a test has several candidate routes, equally likely, and its likelihood is the mean over them. Links
//! that the tests cannot tell apart are reported together: "one of these".
//!
//! What is found is a suspect. [`probes`] lists the next tests, which tell suspects apart and pass them beside known good
//! links; [`confirm`] settles them by those tests alone. All values are natural logarithms, higher is better.
//!
//! Contention is not modelled: tests of one round must share no link, or the caller must know that a link carries them all. A
//! part that is bad at times only is found as far as its mean effect is.

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

/// One measured path. Results of the same ends and flow over the same routes took the same one of them; they count together.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    pub from: u32,
    pub to: u32,
    /// What tells apart the flows between the same two ports, such as the UDP source port.
    pub flow: u32,
    /// Candidate routes, equally likely; each the numbers of the links passed. One where the route is known.
    pub routes: Vec<Route>,
    /// What good results have in common: 0 for paths within a leaf and 1 for paths between leaves where these differ by
    /// nature, the same number everywhere where they do not.
    pub kind: u32,
    /// 0 for the screen, 1 and up for the rounds of probes.
    pub round: u32,
    /// Natural logarithm of the result; `None` if nothing arrived.
    pub value: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Smallest effect worth a name, as a difference of logarithms: 0.01 for 1 %.
    pub least: f64,
    /// Standard deviation of results of good paths, as far as known; the noise is never taken to be less. 0 if not known.
    pub noise: f64,
}

impl Default for Setting {
    fn default() -> Self {
        Self { least: 0.01, noise: 0.0 }
    }
}

/// Fewest flows of a kind by which their links are judged: a centre and a spread of fewer say little.
pub const FEWEST: usize = 8;
/// What a test of which nothing arrived is taken for: a thousandth of what is good.
pub const DEAD: f64 = -6.907_755_278_982_137;

/// Names the suspects among all links, cables and devices that the tests pass.
///
/// A part is a suspect if its likelihood ratio exceeds what chance reaches once in a hundred healthy fabrics (Student's t
/// for the spread, Bonferroni over the parts that the tests tell apart).
///
/// # Errors
/// No kind with [`FEWEST`] flows, a value that is not finite, a route without links or with a link that the fabric does not have, or a
/// least effect or noise that is negative.
pub fn locate(fabric: &Fabric, tests: &[Test], setting: &Setting) -> Result<Findings, Refusal> {
    check(fabric, tests, setting)?;
    let first = table::Table::new(fabric, tests, setting)?;
    let candidates = candidates::Candidates::new(fabric, &first);
    let found = search::search(fabric, &first, &candidates, setting);
    // Where most paths are low, the better cluster is what is good: no fault makes a path better than it should be.
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
