//! Locates the bad part of a cluster from the results of pairs.
//!
//! A pair's result is the minimum over everything it passes, so one bad host makes all its pairs bad and every partner suspicious.
//! [`localise`] settles what good pairs look like ([`Level`]), takes the part whose pairs are *all* low first, sets these pairs aside,
//! and repeats until no part stands out (a median peel, greedy as in the set covers of Kompella et al. 2005). Single low pairs that are
//! left are suspect paths. Parts reach from one direction of one NIC to a rail, a leaf switch or the boundary between two groups. A
//! larger part is named only if its members are low one by one, so that two bad hosts do not become a bad switch.
//!
//! All values are natural logarithms of something for which higher is better (negate the logarithm of a latency). The result names
//! suspects: [`probes`] lists the few tests that settle one, [`judge`] settles it, and [`lanes`] shows whether only some paths of a bad
//! pair are bad.

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
mod suspect;

pub use confirm::{Settled, judge, settle};
pub use lanes::{FEWEST_LANES, Lanes, lanes};
pub use part::{Part, Port, Way};
pub use partners::TESTS;
pub use probes::{Probe, Role, probes};
pub use suspect::localise;

pub use crate::robust::Level;
use crate::shift::Interval;

/// With three hosts, a bad host and a bad path look alike as soon as a test fails.
pub const FEWEST_HOSTS: usize = 4;

/// Effect that must be detectable, as a difference of logarithms: half the rate, or twice the time. A NIC at half its speed or width, or
/// one of two links of a bond being down, causes it.
pub const HALF: f64 = std::f64::consts::LN_2;

/// Results of the same pair and path may occur several times; their median counts, once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub from: Port,
    pub to: Port,
    /// Distinguishes the ways through the fabric between the same two ends, such as the UDP source port; the same number everywhere if
    /// they are not distinguished.
    pub path: u32,
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting<'a> {
    /// Group of each host (hosts under the same leaf switch), by the host's number; empty if not known.
    pub groups: &'a [u32],
    /// Smallest effect worth a name, as a difference of logarithms: 0.01 for 1 %.
    pub least: f64,
    /// Lower bound of the noise: standard deviation of repeated results of one pair. 0 if not known.
    pub noise: f64,
    pub directed: bool,
    /// Whether pairs between groups are worse than pairs within one by nature, as latencies are. Otherwise low pairs between two groups
    /// mean something bad between them, or less capacity between groups; with three groups or more, equality of all shows the second.
    pub two_levels: bool,
}

/// Ratio of the spread of a few values to the known noise that chance may cause: six exceed 1.5 in one of ten cases.
const KNOWN: f64 = 1.5;

impl Setting<'_> {
    /// Whether a level's spread is [`Setting::noise`], not estimated: where its values spread no more than chance explains.
    pub fn knows(&self, level: &Level) -> bool {
        self.noise > 0.0 && level.scale <= KNOWN * self.noise
    }

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

/// A part that stands out. All numbers are differences of logarithms unless noted.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    pub part: Part,
    /// Median difference of its pairs from good pairs; negative.
    pub effect: f64,
    /// By kind of its pairs, within a group and between groups; where the fabric gives less between groups, an end's effect there may be
    /// smaller.
    pub effects: [Option<f64>; 2],
    /// 95 % interval of the effect (of the pseudomedian, by the signed rank distribution); `None` below six pairs. It ignores that the
    /// part was picked for being low; the probes' interval is free of that bias.
    pub interval: Option<Interval>,
    /// The effect in standard errors.
    pub z: f64,
    /// For a way: the part of the effect that suspects at its ends explain; otherwise 0.
    pub explained: f64,
    pub evidence: Evidence,
    /// Parts that touch the same pairs, or all but a few, so that the results do not separate them.
    pub alternatives: Vec<Part>,
    /// Whether good pairs of the same kind (within a group, between groups) show what it could reach.
    pub peers: bool,
    /// Share of its low results, where that and not their median made it a suspect.
    pub share: Option<f64>,
    /// Whether it is only checked because one end of a low path must be: shown only if it proves bad.
    pub latent: bool,
    /// Whether it remains if an end proves good: not shown otherwise.
    pub instead: bool,
    /// Whether the results are explained nearly as well without it, or do not separate good from bad: nothing confirms it then.
    pub contested: bool,
    /// Whether an end is low both when it sends and when it receives, in at least two results each.
    pub both_ways: bool,
    /// Number of suspects listed with it, which are as many tries for chance.
    pub looks: usize,
    pub under: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Indices of its results in the given pairs: those that touch no other suspect, if there are three of them.
    pub pairs: Vec<usize>,
    /// Different results of pairs and paths among them, without repeats.
    pub n: usize,
    /// How many of these are low by more than half of the effect.
    pub low: usize,
    pub partners: usize,
}

/// Separated neither by suspects nor by the kinds of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoClusters {
    pub good: f64,
    pub bad: f64,
    /// By pair: whether it is in the better one; `None` for neither: a suspect explains it, or it is of the other kind of pairs.
    pub is_good: Vec<Option<bool>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    TooFew,
    NoControls,
    /// Controls were as low as the suspect, or lay as far apart.
    Unsteady,
    /// All results were bad, but there are too few.
    AllOfFew,
    Mixed,
    Unclear,
    /// Good now, and low as a whole before. Many pairs at once are not low by chance, but a few measured alone put less load on what they
    /// share.
    UnderLoad,
    /// Bad again, but other explanations fit nearly as well, or nothing separates good results from bad ones.
    Contested,
}

/// Effects are median differences from control pairs, as differences of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judgement {
    Confirmed {
        effect: f64,
        /// 95 % interval, or what so few results allow.
        interval: Option<Interval>,
        /// The low direction, where the probes went both ways and one of them is fine.
        way: Way,
        n: usize,
        /// Whether every result is below every control by several times their spread, which chance does not cause on a busy machine.
        far: bool,
    },
    /// Low in some results and good in others, beyond what controls show.
    Intermittent {
        effect: f64,
        share: f64,
        n: usize,
        far: bool,
    },
    /// An end that is low with some partners, nearly throughout, and good with all others: the ways to those are low, not the end.
    Ways {
        effect: f64,
        n: usize,
    },
    Cleared {
        effect: f64,
        n: usize,
    },
    Open {
        n: usize,
        doubt: Doubt,
    },
}

impl Judgement {
    pub const fn wants_more(&self) -> bool {
        matches!(self, Self::Open { doubt: Doubt::AllOfFew | Doubt::Mixed | Doubt::Unclear | Doubt::Unsteady, .. })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    pub suspects: Vec<Suspect>,
    /// Levels of good pairs: one, or one within groups and one between them if these differ.
    pub levels: Vec<Level>,
    /// By pair: its index in `levels`.
    pub level_of: Vec<usize>,
    /// Ends that are not suspects and have no good pair, because all their partners are suspects or all their few pairs are low. They are
    /// neither good nor bad. (One good pair shows that both its ends are good.)
    pub unjudged: Vec<Port>,
    /// Required distance of a part from the centre, in standard errors.
    pub cut: f64,
    /// Required distance of a single pair from the centre, in standard deviations.
    pub link_cut: f64,
    /// By level: the difference from which a single pair would stand out.
    pub seen_from: Vec<f64>,
    /// Indices of good pairs that no suspect touches, one for each way, to be measured again as controls.
    pub controls: Vec<usize>,
    /// Whether most pairs are low, so that the better cluster and not the majority shows what good pairs reach.
    pub premise: bool,
    /// The two clusters of the results, if nothing explains them.
    pub two_clusters: Option<TwoClusters>,
}

/// A part must be lower than its explanation by this factor to be bad itself.
const LOWER: f64 = 1.3;
/// Most measurements of a suspect's probes: more of the same settle nothing.
pub const MOST_BATCHES: usize = 3;

impl Findings {
    /// Whether the report shows a suspect once all are judged. A suspect that is only checked to be sure is shown if it proves bad. One
    /// that a larger suspect or an end that is bad at times explains is shown only if it is bad throughout while the other is open.
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
            // If one way makes an end low, its good ways are not shown.
            let needless = matches!(own, Some(Judgement::Cleared { .. })) && ends.clone().any(one_way);
            if needless || !ends.all(good) {
                return false;
            }
        }
        let explained = of.under.iter().any(|&larger| match (judgements.get(larger), &self.suspects[larger]) {
            // A path to a bad end counts only where it is clearly worse than the end.
            (Some(Judgement::Confirmed { effect, .. }), larger) => {
                larger.part.is_shared() || of.effect > LOWER * effect
            }
            (Some(Judgement::Intermittent { .. }), _) => true,
            (Some(Judgement::Cleared { .. } | Judgement::Ways { .. }), _) => false,
            // Mixed results: the end may be bad instead of any of its paths.
            (Some(Judgement::Open { doubt: Doubt::Mixed, .. }), larger) if !larger.latent => true,
            (_, larger) => !larger.latent && !own.is_some_and(|own| matches!(own, Judgement::Confirmed { .. })),
        });
        !explained
    }
}
