//! Which part of a cluster is bad, told from the results of pairs.
//!
//! A pair's result is the minimum over everything it passes, so one bad host makes all its pairs bad and with them every
//! partner look suspicious. [`localise`] therefore works like a person would: it settles what good pairs look like
//! ([`Level`]), takes the part whose pairs are *all* low first, sets these pairs aside, looks again, and stops
//! when no part stands out (a median peel, greedy as in the set covers of Kompella et al. 2005). Single low pairs that
//! are left are suspect paths. Parts reach from one direction of one NIC to a rail, a leaf switch or the boundary between
//! two groups; a larger part is named only if its members are low one by one, so that two bad hosts do not become a bad
//! switch.
//!
//! All values are natural logarithms of something for which higher is better (negate the logarithm of a latency).
//! What is named is a suspect. [`probes`] lists the few tests that settle it and [`judge`] settles it; [`lanes`] tells
//! whether only some of the paths of a bad pair are bad.

mod clusters;
mod confirm;
mod cover;
mod cuts;
mod lanes;
mod links;
mod model;
mod part;
mod partners;
mod probes;
mod shaky;
mod split;
mod states;
mod suspect;

pub use clusters::TwoClusters;
pub use confirm::{Doubt, Judgement, Settled, judge, settle};
pub use lanes::{FEWEST_LANES, Lanes, lanes};
pub use part::{Part, Port, Way};
pub use probes::{Probe, Role, TESTS, probes};
pub use suspect::{Evidence, Suspect};

use crate::refusal::Refusal;
pub use crate::robust::Level;

/// Fewest hosts among which one can be told from the others: with three, a bad host and a bad path look alike as soon as
/// a test fails.
pub const FEWEST_HOSTS: usize = 4;

/// What must at least be seen: a pair at half the rate of the others, or one that takes twice as long, as a difference of logarithms. A NIC
/// that came up at half its speed or width, or one of two links of a bond that is down, does that.
pub const HALF: f64 = std::f64::consts::LN_2;

/// One measured pair. Results of the same pair and path may occur several times; their median counts, once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub from: Port,
    pub to: Port,
    /// What tells apart the ways through the fabric between the same two ends, such as the UDP source port; the same
    /// number everywhere if they were not told apart.
    pub path: u32,
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting<'a> {
    /// Group of each host (hosts under the same leaf switch), by the host's number; empty if not known.
    pub groups: &'a [u32],
    /// Smallest effect worth a name, as a difference of logarithms: 0.01 for 1 %.
    pub least: f64,
    /// Standard deviation of repeated results of one pair, as far as known; the noise is never taken to be less. 0 if
    /// not known.
    pub noise: f64,
    /// Whether a pair's result speaks of one direction only, from `from` to `to`.
    pub directed: bool,
    /// Whether pairs between groups are worse than pairs within one by nature, as latencies are. Otherwise two groups whose
    /// pairs between them are low have something bad between them, or less between them than within; with three groups or
    /// more, that all are alike tells the second.
    pub two_levels: bool,
}

/// How many times the known noise the spread of a few values may be by chance: of six, 1.5 times or more in one of ten.
const KNOWN: f64 = 1.5;

impl Setting<'_> {
    /// Whether the spread of a level is not taken from its values but known: [`Setting::noise`], where they spread no more than chance
    /// makes a few of them.
    pub fn knows(&self, level: &Level) -> bool {
        self.noise > 0.0 && level.scale <= KNOWN * self.noise
    }

    /// Whether a pair crosses from one group to another.
    pub(crate) fn between(&self, from: Port, to: Port) -> bool {
        let group = |port: Port| self.groups.get(port.host as usize);
        group(from) != group(to)
    }
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self { groups: &[], least: 0.01, noise: 0.0, directed: false, two_levels: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// Named parts, the worst first.
    pub suspects: Vec<Suspect>,
    /// What good pairs look like: one entry, or one for pairs within a group and one for pairs between groups if these
    /// differ.
    pub levels: Vec<Level>,
    /// For each pair given: the position in `levels` that it was compared with.
    pub level_of: Vec<usize>,
    /// Ends that are no suspects and have no good pair either, because all their partners are suspects or all their few
    /// pairs are low. They are neither good nor bad. (One good pair shows that both its ends are good.)
    pub unjudged: Vec<Port>,
    /// How many standard errors a part had to be below the centre.
    pub cut: f64,
    /// How many standard deviations a single pair had to be below the centre.
    pub link_cut: f64,
    /// For each of `levels`: the difference from which on a single pair would stand out.
    pub seen_from: Vec<f64>,
    /// Positions of pairs that were good and that no suspect touches, one for each way: what is measured again as a control.
    pub controls: Vec<usize>,
    /// Whether most pairs are low, so that the better cluster and not the majority shows what good pairs reach.
    pub premise: bool,
    /// The clusters into which the results fall, if these are two that nothing separates.
    pub two_clusters: Option<TwoClusters>,
}

/// How much lower than what would explain it a part must be to be bad itself.
const LOWER: f64 = 1.3;
/// Most times that the probes of a suspect are measured: more of the same settles nothing.
pub const MOST_BATCHES: usize = 3;

impl Findings {
    /// Whether a suspect is to be spoken of once all have been judged. One that is only looked at to be sure is not, unless it
    /// proves bad. What a larger suspect or an end that is bad at times explains is not, unless it is bad throughout while
    /// the other is open.
    pub fn shows(&self, suspect: usize, judgements: &[Judgement]) -> bool {
        let bad =
            |judgement: &Judgement| matches!(judgement, Judgement::Confirmed { .. } | Judgement::Intermittent { .. });
        let of = &self.suspects[suspect];
        let own = judgements.get(suspect);
        if of.latent && !own.is_some_and(bad) {
            return false;
        }
        // An end that is low on the way to some partners only is good, if a way is named.
        if let Some(Judgement::Ways { .. }) = own {
            let mut ways = self.suspects.iter().zip(judgements);
            return !ways.any(|(way, judged)| way.part.is_link() && way.under.contains(&suspect) && bad(judged));
        }
        if of.instead {
            let mut ends = of.under.iter().filter(|&&larger| self.suspects[larger].part.is_end());
            let one_way = |end: &usize| matches!(judgements.get(*end), Some(Judgement::Ways { .. }));
            let good = |end: &usize| one_way(end) || matches!(judgements.get(*end), Some(Judgement::Cleared { .. }));
            // Of the ways of an end that one of them makes low, those that are good need no words.
            let needless = matches!(own, Some(Judgement::Cleared { .. })) && ends.clone().any(one_way);
            if needless || !ends.all(good) {
                return false;
            }
        }
        let explained = of.under.iter().any(|&larger| match (judgements.get(larger), &self.suspects[larger]) {
            // A path to a bad end is one of its own only where it is clearly worse than the end.
            (Some(Judgement::Confirmed { effect, .. }), larger) => {
                larger.part.is_shared() || of.effect > LOWER * effect
            }
            (Some(Judgement::Intermittent { .. }), _) => true,
            (Some(Judgement::Cleared { .. } | Judgement::Ways { .. }), _) => false,
            // Some of its results were bad: what is bad may be the end, whichever of its paths it was.
            (Some(Judgement::Open { doubt: Doubt::Mixed, .. }), larger) if !larger.latent => true,
            (_, larger) => !larger.latent && !own.is_some_and(|own| matches!(own, Judgement::Confirmed { .. })),
        });
        !explained
    }
}

/// Names the suspects among all parts that the pairs touch.
///
/// Sources: the shorth's centre and scale (Andrews et al. 1972), one reweighting step (Rousseeuw & Leroy 1987); a part's
/// median against 1.2533 s / √n, the standard error of a median of normal values. A part is a suspect below 4 standard
/// errors, or more where so many parts are looked at, or so few pairs were measured, that chance would reach 4 in more
/// than one run of a hundred (Šidák–Bonferroni over parts, Student's t for the scale).
///
/// # Errors
/// Fewer than [`FEWEST_HOSTS`] hosts, a value that is not finite, a host without a group where groups are given, or a
/// least effect that is negative.
pub fn localise(pairs: &[Pair], setting: &Setting<'_>) -> Result<Findings, Refusal> {
    check(pairs, setting)?;
    let table = cover::Table::new(pairs, setting);
    let mut cover = cover::Cover::new(&table, setting);
    let best = model::explain(table, &mut cover, setting);
    let shaky = shaky::shaky(&best.table, &cover, &best.taken, &best.links.found);
    Ok(suspect::findings(best, &cover, shaky))
}

fn check(pairs: &[Pair], setting: &Setting<'_>) -> Result<(), Refusal> {
    if let Some(at) = pairs.iter().position(|p| !p.value.is_finite()) {
        return Err(Refusal::NotFinite { at });
    }
    if !(setting.least >= 0.0 && setting.least.is_finite() && setting.noise >= 0.0 && setting.noise.is_finite()) {
        return Err(Refusal::Parameter("the least effect and the noise are not negative"));
    }
    let mut hosts: Vec<u32> = pairs.iter().flat_map(|p| [p.from.host, p.to.host]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() < FEWEST_HOSTS {
        return Err(Refusal::TooFew { need: FEWEST_HOSTS, got: hosts.len() });
    }
    let grouped = setting.groups.is_empty() || hosts.iter().all(|&h| (h as usize) < setting.groups.len());
    if grouped { Ok(()) } else { Err(Refusal::Parameter("a host has no group although groups are given")) }
}
