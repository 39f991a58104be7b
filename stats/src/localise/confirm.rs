//! Judges a suspect by further tests.
//!
//! It is compared with control pairs measured in the same rounds, so that changes of the whole cluster are in both samples. The rank test
//! prevents false names from skewed and heavy-tailed noise, and separates results of two kinds from results that are low throughout.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Doubt, Judgement, Part, Probe, Role, Setting, Suspect, Way,
    model::CLOSE,
    shaky::{GLITCHES, NEARLY_ALL, ONE_OF_SEVERAL, at_least, by_way},
    split::split,
};
use crate::{
    rank::mann_whitney,
    robust::{MAD_TO_SIGMA, median_in_place},
    shift::{Interval, shift},
};

pub(super) const FEWEST: usize = 3;
/// False alarm probability of one suspect: three standard deviations of a normal distribution.
pub(super) const FALSE_ALARM: f64 = 0.001_349_9;
/// The same where several suspects are judged: over all of them.
const FALSE_ALARM_OF_ALL: f64 = 0.002;
/// Probability that chance makes a good part look bad at times. Below [`FALSE_ALARM`], since only a few controls show how often good
/// pairs are low.
const FALSE_SHAKY: f64 = 1e-4;
/// Where so many low results are this probable, or make up less than this share, they are what controls show too.
const AS_CONTROLS: (f64, f64) = (0.05, 0.2);
pub(super) const LIKE: f64 = 1.0 / 3.0;
/// Effect in standard deviations from which single results can be classified: half of it is then 2, which one good result in 44 exceeds.
const TELLS: f64 = 4.0;
/// Share of controls that may be as low as the suspect, or in a lower state, before they are unusable.
pub(super) const UNSTEADY: f64 = 0.2;
/// Good results that clear a part that is bad in some: with half of them bad, chance gives so many once in a thousand times.
const CLEARS: usize = 10;
/// An effect is far if it exceeds the spread of the controls by this factor.
const FAR: f64 = 3.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    pub judgement: Judgement,
    pub part: Part,
    /// Parts that the probes could not separate from it.
    pub alternatives: Vec<Part>,
    pub told_apart: bool,
    pub bad: usize,
    pub controls: usize,
    /// Change of the controls' level since the first results, as a difference of logarithms.
    pub moved: f64,
}

/// Judges a suspect by its probes and the controls: `results` are pairs of a probe and the natural logarithm of its result, without those
/// that failed. Results with [`Role::Control`] count whichever suspect they were planned for.
pub fn judge(suspect: &Suspect, results: &[(Probe, f64)], setting: &Setting<'_>) -> Judgement {
    settle(suspect, results, setting).judgement
}

/// As [`judge`], with the evidence.
///
/// - Confirmed: lower than the controls by the rank test at 0.00135, by the least effect, by a third of what made it a
///   suspect, and, where the effect is 4 standard deviations or more, in 80 % of the results.
/// - Intermittent: where the effect is that large, more results lie beyond half of it than the controls' share of such
///   results explains (binomial, 0.0001), but not 80 %.
/// - Cleared: no result lies beyond half of the effect, or of ten no more than of the controls, and an effect of half the
///   suspected size is ruled out (the lower end of a 90 % interval). A part suspected of being bad at times needs ten results.
/// - Open otherwise, and where the results do not separate good from bad ([`Suspect::contested`]).
pub fn settle(suspect: &Suspect, results: &[(Probe, f64)], setting: &Setting<'_>) -> Settled {
    let residual = |(probe, value): &(Probe, f64)| value - probe.level.centre - probe.explained;
    let of = |role: Role| results.iter().filter(move |(probe, _)| probe.role == role);
    let raw: Vec<(Probe, f64)> = of(Role::Control).map(|result| (result.0, residual(result))).collect();
    // With less load alongside, pairs between groups may gain where pairs within one do not.
    let between = |probe: &Probe| setting.between(probe.from, probe.to);
    let centre = |kind: Option<bool>| {
        let of = raw.iter().filter(|(probe, _)| kind.is_none_or(|kind| between(probe) == kind));
        let mut of: Vec<f64> = of.map(|(_, r)| *r).collect();
        (of.len() >= FEWEST).then(|| median_in_place(&mut of))
    };
    let (own, any) = ([centre(Some(false)), centre(Some(true))], centre(None));
    // Controls of the other kind serve only where both kinds were alike at first.
    let alike =
        raw.iter().all(|(control, _)| results.iter().all(|(probe, _)| probe.level.centre == control.level.centre));
    let centred = |(probe, r): (Probe, f64)| {
        let centre = own[usize::from(between(&probe))].or(any.filter(|_| alike));
        centre.map(|centre| (probe, r - centre))
    };
    let controls: Vec<f64> = raw.iter().filter_map(|result| Some(centred(*result)?.1)).collect();
    let of_kind = |kind: bool| raw.iter().filter(move |(probe, _)| between(probe) == kind).map(|(_, r)| *r).collect();
    let (within, across): (Vec<f64>, Vec<f64>) = (of_kind(false), of_kind(true));
    let states = states_apart([&controls[..], &within, &across].into_iter());
    let with_value = of(Role::Suspect).count();
    let all: Vec<(Probe, f64)> = of(Role::Suspect).filter_map(|result| centred((result.0, residual(result)))).collect();
    let mut settled = Settled {
        judgement: Judgement::Open { n: with_value, doubt: Doubt::TooFew },
        part: suspect.part.clone(),
        alternatives: suspect.alternatives.clone(),
        told_apart: false,
        bad: 0,
        controls: controls.len(),
        moved: 0.0,
    };
    if all.iter().map(|(_, r)| r).chain(&controls).any(|r| !r.is_finite()) || with_value < FEWEST {
        return settled;
    }
    if all.len() < FEWEST || controls.len() < FEWEST {
        return Settled { judgement: Judgement::Open { n: with_value, doubt: Doubt::NoControls }, ..settled };
    }
    settled.moved = median_in_place(&mut raw.iter().map(|(_, r)| *r).collect::<Vec<_>>());
    let scene = Scene::new(suspect, &all, (&controls, states), setting);
    let fits = scene.fits(&mut settled, &all, setting);
    let is_only = suspect.alternatives.is_empty();
    let is_own = |(probe, _): &&(Probe, f64)| is_only || touches(&settled.part, probe, setting);
    let own: Vec<(Probe, f64)> = all.iter().filter(is_own).copied().collect();
    settled.bad = own.iter().filter(|(_, r)| scene.is_bad(*r)).count();
    settled.judgement = scene.judge(suspect, &own, setting);
    // What lies between two sides is low for all pairs that cross it: otherwise it is not a partition.
    let is_part_of_cut = matches!((&settled.judgement, &settled.part), (Judgement::Intermittent { .. }, Part::Cut(_)));
    if let Judgement::Confirmed { n, .. } | Judgement::Intermittent { n, .. } = settled.judgement
        && (!fits || is_part_of_cut)
    {
        settled.judgement = Judgement::Open { n, doubt: Doubt::Mixed };
    }
    // A host is bad at times only where more than one of its NICs is.
    if let (Judgement::Intermittent { n, .. }, Part::Host(host, _)) = (settled.judgement, &settled.part)
        && scene.is_one_nic(*host, &own)
    {
        settled.judgement = Judgement::Open { n, doubt: Doubt::Mixed };
    }
    // For an end that is bad in one direction, the other direction says nothing of its ways.
    let bad_way = match settled.judgement {
        Judgement::Confirmed { way, .. } => way,
        _ => suspect.part.way(),
    };
    let counts = |probe: &Probe| bad_way == Way::Both || probe.way == bad_way;
    let told = own.iter().filter(|(probe, _)| counts(probe));
    if let Judgement::Confirmed { effect, n, .. } | Judgement::Intermittent { effect, n, .. } = settled.judgement
        && let lost = effect.min(scene.effect)
        && -lost >= TELLS * scene.scale
        && let Some(sure) = by_way(&settled.part, told.map(|(probe, r)| (probe, *r < lost / 2.0)))
    {
        settled.judgement = match sure {
            true => Judgement::Ways { effect, n },
            false => Judgement::Open { n, doubt: Doubt::Mixed },
        };
    }
    // Two partners in one direction and others in the other: the ways to the two may be bad.
    if let Judgement::Confirmed { way, n, .. } = settled.judgement
        && way != Way::Both
        && suspect.part.is_end()
        && suspect.part.way() != way
    {
        let partners = |is_low: bool| -> BTreeSet<u32> {
            let of = own.iter().map(|(probe, _)| probe).filter(|probe| (probe.way == way) == is_low);
            of.map(|probe| if probe.way == Way::Send { probe.to.host } else { probe.from.host }).collect()
        };
        if partners(true).len() < FEWEST && partners(true).is_disjoint(&partners(false)) {
            settled.judgement = Judgement::Open { n, doubt: Doubt::Mixed };
        }
    }
    // Where all controls fell as far as the suspect had been, equality with them shows nothing.
    if let Judgement::Cleared { n, .. } = settled.judgement
        && settled.moved < scene.limit()
    {
        settled.judgement = Judgement::Open { n, doubt: Doubt::Unsteady };
    }
    if let Judgement::Confirmed { n, .. } | Judgement::Intermittent { n, .. } = settled.judgement
        && suspect.contested
    {
        settled.judgement = Judgement::Open { n, doubt: Doubt::Contested };
    }
    let way = match settled.judgement {
        Judgement::Confirmed { way, .. } => way,
        Judgement::Intermittent { .. } if !suspect.both_ways => scene.way_of_bad(&own),
        Judgement::Intermittent { .. } => Way::Both,
        _ => return settled,
    };
    if settled.part.is_end() {
        settled.part = settled.part.only(way);
        return settled;
    }
    // Something between groups is low in one direction only, and so are its alternatives.
    if let Some((probe, _)) = own.iter().find(|(probe, _)| way != Way::Both && probe.way == way) {
        let one_way = |part: Part| {
            let way = part.way_of(probe.from, setting.groups);
            if way == Way::Both { part } else { part.only(way) }
        };
        settled.alternatives = settled.alternatives.into_iter().map(one_way).collect();
        settled.part = one_way(settled.part);
    }
    settled
}

/// Whether a probe passes a part, an end in either direction.
fn touches(part: &Part, probe: &Probe, setting: &Setting<'_>) -> bool {
    let part = if part.is_end() { part.clone().only(Way::Both) } else { part.clone() };
    part.passed(probe.from, probe.to, setting.groups)
}

struct Scene<'a> {
    controls: &'a [f64],
    scale: f64,
    effect: f64,
    /// Distance of the two states of controls, if they have two.
    states: Option<f64>,
}

impl<'a> Scene<'a> {
    fn new(
        suspect: &Suspect,
        all: &[(Probe, f64)],
        (controls, states): (&'a [f64], Option<f64>),
        setting: &Setting<'_>,
    ) -> Self {
        let mut away: Vec<f64> = controls.iter().map(|control| control.abs()).collect();
        let small = controls.len() as f64 / (controls.len() - 1) as f64;
        let now = MAD_TO_SIGMA * median_in_place(&mut away) * small;
        let before = all.iter().map(|(probe, _): &(Probe, f64)| probe.level.scale).fold(0.0, f64::max);
        // Measured in pairs of one kind, it is the suspect's effect there.
        let across = all.iter().filter(|(probe, _)| setting.between(probe.from, probe.to)).count();
        let effect = match (suspect.effects, across) {
            ([Some(within), _], 0) => within,
            ([_, Some(between)], n) if n == all.len() => between,
            _ => suspect.effect,
        };
        let suspected = (effect - suspect.explained).min(-setting.least);
        // A result that is low by chance suspects an end of little; what most of its pairs lose now may be far more.
        let now_lost = median_in_place(&mut all.iter().map(|(_, r)| *r).collect::<Vec<_>>());
        let effect = suspected.min(now_lost);
        Self { controls, scale: now.max(before).max(setting.noise), effect, states }
    }

    fn tells(&self) -> bool {
        -self.effect >= TELLS * self.scale
    }

    fn limit(&self) -> f64 {
        self.effect / 2.0
    }

    fn is_bad(&self, residual: f64) -> bool {
        residual < self.limit()
    }

    /// Chooses the likeliest of a part and its alternatives, with those nearly as likely. Returns whether it fits.
    fn fits(&self, settled: &mut Settled, all: &[(Probe, f64)], setting: &Setting<'_>) -> bool {
        if settled.alternatives.is_empty() {
            return true;
        }
        let weigh = |part: Part| {
            let mut seen = [[0_usize; 2]; 2];
            for (probe, residual) in all {
                seen[usize::from(touches(&part, probe, setting))][usize::from(self.is_bad(*residual))] += 1;
            }
            // Flows between two sides may be good with few others at once, each as likely; otherwise only by chance.
            let [[_, elsewhere], [good, bad]] = seen;
            let of = |n: usize| if n > 0 { n as f64 * ((good + bad) as f64 / n as f64).ln() } else { 0.0 };
            let (own, wrong) = match part {
                Part::Cut(_) | Part::Boundary(..) => (of(good) + of(bad), elsewhere),
                _ => (0.0, elsewhere + good),
            };
            (
                part,
                own - wrong as f64 * GLITCHES.ln(),
                bad > 0 && at_least(wrong, all.len(), GLITCHES) >= ONE_OF_SEVERAL,
            )
        };
        let parts = [settled.part.clone()].into_iter().chain(std::mem::take(&mut settled.alternatives));
        let weighed: Vec<_> = parts.map(weigh).collect();
        let least = weighed.iter().map(|(_, cost, _)| *cost).fold(f64::INFINITY, f64::min);
        settled.told_apart = weighed.iter().any(|(_, cost, _)| *cost > least + CLOSE);
        let mut likely = weighed.into_iter().filter(|(_, cost, _)| *cost <= least + CLOSE);
        let Some((part, _, fits)) = likely.next() else { return false };
        settled.part = part;
        settled.alternatives = likely.map(|(part, _, _)| part).collect();
        fits
    }

    /// Whether the bad results at a host are those of one of its NICs, and the others have no more than chance gives.
    fn is_one_nic(&self, host: u32, own: &[(Probe, f64)]) -> bool {
        let mut rails: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        for (probe, r) in own {
            let port = if probe.from.host == host { probe.from } else { probe.to };
            let count = rails.entry(port.rail).or_default();
            *count = (count.0 + 1, count.1 + usize::from(self.is_bad(*r)));
        }
        let sum = |of: fn(&(usize, usize)) -> usize| rails.values().map(of).sum::<usize>();
        let worst = rails.values().max_by_key(|(_, bad)| *bad).copied().unwrap_or_default();
        let (others, bad) = (sum(|of| of.0) - worst.0, sum(|of| of.1) - worst.1);
        rails.len() > 1 && at_least(bad, others, GLITCHES) > ONE_OF_SEVERAL
    }

    /// The direction of bad results, where the other has none and chance hardly explains that.
    fn way_of_bad(&self, own: &[(Probe, f64)]) -> Way {
        let of = |way: Way| {
            let results = || own.iter().filter(move |(probe, _)| probe.way == way);
            (results().count() as f64, results().filter(|(_, r)| self.is_bad(*r)).count() as i32)
        };
        let is_only = |(n, bad): (f64, i32), (others, none): (f64, i32)| {
            none == 0 && (n / (n + others)).powi(bad) < ONE_OF_SEVERAL
        };
        match (of(Way::Send), of(Way::Receive)) {
            (send, receive) if is_only(send, receive) => Way::Send,
            (send, receive) if is_only(receive, send) => Way::Receive,
            _ => Way::Both,
        }
    }

    fn judge(&self, suspect: &Suspect, own: &[(Probe, f64)], setting: &Setting<'_>) -> Judgement {
        let n = own.len();
        let open = |doubt: Doubt| Judgement::Open { n, doubt };
        if n < FEWEST {
            return open(Doubt::TooFew);
        }
        let low_controls = self.controls.iter().filter(|control| self.is_bad(**control)).count();
        if self.tells() && low_controls as f64 > UNSTEADY * self.controls.len() as f64 {
            return open(Doubt::Unsteady);
        }
        let all = Outcome::new(self, own, Way::Both);
        let hidden = |apart: f64| !all.far && apart > all.effect.min(self.effect).abs() / 2.0;
        if self.states.is_some_and(hidden) {
            return open(Doubt::Unsteady);
        }
        let may_differ = setting.directed && !suspect.both_ways;
        let one_way = |way: Way| Some(Outcome::new(self, own, way)).filter(|outcome| may_differ && outcome.n >= 2);
        // One direction is fine if it is closer to good pairs than to the other direction.
        let fine = |good: &Outcome, low: &Outcome| {
            low.all_low(self)
                && good.effect > low.effect / 2.0
                && (good.bad as f64 <= (1.0 - NEARLY_ALL) * good.n as f64 || !self.tells())
        };
        let (way, found) = match (one_way(Way::Send), one_way(Way::Receive)) {
            (Some(send), Some(receive)) if fine(&receive, &send) => (Way::Send, send),
            (Some(send), Some(receive)) if fine(&send, &receive) => (Way::Receive, receive),
            _ => (Way::Both, all),
        };
        let enough = (self.effect * LIKE).min(-setting.least);
        let looks = suspect.looks.max(1) as f64;
        let false_alarm = FALSE_ALARM.min(FALSE_ALARM_OF_ALL / looks);
        let throughout = !self.tells() || found.bad as f64 >= NEARLY_ALL * found.n as f64;
        if found.p < false_alarm && found.effect <= enough && throughout {
            return Judgement::Confirmed { effect: found.effect, interval: found.interval, way, n, far: found.far };
        }
        let found = Outcome::new(self, own, Way::Both);
        let share = found.bad as f64 / n as f64;
        let shown = (low_controls + 1) as f64 / (self.controls.len() + 2) as f64;
        if self.tells() && found.bad > 0 {
            let rate = shown.min(GLITCHES.max(low_controls as f64 / self.controls.len() as f64));
            let beyond = at_least(found.bad, n, rate) < FALSE_SHAKY;
            if beyond && share < NEARLY_ALL && found.bad_effect <= enough {
                return Judgement::Intermittent { effect: found.bad_effect, share, n, far: found.bad_far };
            }
            let (chance, most) = AS_CONTROLS;
            // Among many low paths some are low again by chance; an end that was low with several partners has more evidence.
            let (rate, chance, enough_results) = match suspect.share {
                Some(_) => (shown, chance, 2 * CLEARS),
                None => (shown.max(GLITCHES), chance / looks, CLEARS),
            };
            let as_controls = n >= enough_results && share <= most && at_least(found.bad, n, rate) > chance;
            return match as_controls && found.effect > enough {
                true if suspect.part.is_shared() => open(Doubt::UnderLoad),
                true => Judgement::Cleared { effect: found.effect, n },
                false if found.bad == n => open(Doubt::AllOfFew),
                false => open(Doubt::Mixed),
            };
        }
        let ruled_out = found.lower.is_some_and(|lower| lower > self.effect / 2.0) || found.least_is_good(self);
        let enough_results = suspect.share.is_none() || n >= CLEARS || suspect.latent;
        let none_bad = found.bad == 0 || !self.tells();
        if none_bad && ruled_out && enough_results && found.effect > enough {
            if suspect.part.is_shared() {
                return open(Doubt::UnderLoad);
            }
            return Judgement::Cleared { effect: found.effect, n };
        }
        open(Doubt::Unclear)
    }
}

struct Outcome {
    effect: f64,
    interval: Option<Interval>,
    /// Lower end of a 90 % interval.
    lower: Option<f64>,
    p: f64,
    n: usize,
    bad: usize,
    bad_effect: f64,
    far: bool,
    bad_far: bool,
    lowest: f64,
}

impl Outcome {
    fn new(scene: &Scene<'_>, results: &[(Probe, f64)], way: Way) -> Self {
        let of_way = results.iter().filter(|(probe, _)| way == Way::Both || probe.way == way);
        let residuals: Vec<f64> = of_way.map(|(_, residual)| *residual).collect();
        let n = residuals.len();
        let mut low: Vec<f64> = residuals.iter().copied().filter(|r| scene.is_bad(*r)).collect();
        let at = |level: f64| shift(scene.controls, &residuals, level).ok();
        let of = at(0.95);
        let lowest_control = scene.controls.iter().copied().fold(f64::INFINITY, f64::min);
        let highest_control = scene.controls.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let apart = (highest_control - lowest_control).max(scene.scale);
        let far = |values: &[f64]| {
            let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            !values.is_empty() && lowest_control - highest > FAR * apart
        };
        Self {
            effect: of.map_or(0.0, |shift| shift.estimate),
            interval: of.and_then(|shift| shift.interval),
            lower: at(0.90).and_then(|shift| shift.interval).map(|interval| interval.low),
            p: mann_whitney(&residuals, scene.controls).map_or(1.0, |test| test.less),
            n,
            bad: low.len(),
            far: far(&residuals),
            bad_far: far(&low),
            bad_effect: if low.is_empty() { 0.0 } else { median_in_place(&mut low) },
            lowest: residuals.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }

    fn all_low(&self, scene: &Scene<'_>) -> bool {
        self.bad == self.n || !scene.tells() && self.effect < scene.limit()
    }

    /// Whether the lowest result is good: within two standard deviations of the controls' centre, and within half of the effect.
    /// within half of the effect.
    fn least_is_good(&self, scene: &Scene<'_>) -> bool {
        self.lowest > scene.limit() && self.lowest > -2.0 * scene.scale
    }
}

/// How far the two states of controls lie apart, where these are in two: the largest distance among the samples given. Pairs
/// within groups and pairs between groups are samples of their own. Each is compared with its own median, and where that lies
/// in the upper state of one and in the lower of the other, both together have three states or hide theirs.
fn states_apart<'a>(samples: impl Iterator<Item = &'a [f64]>) -> Option<f64> {
    samples.filter_map(apart).max_by(f64::total_cmp)
}

fn apart(controls: &[f64]) -> Option<f64> {
    let mut sorted = controls.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let found = split(&sorted, FEWEST)?;
    let at = sorted.partition_point(|control| *control < found.from);
    let (low, high) = sorted.split_at_mut(at);
    // A glitch or two are not a second state.
    let rarer = low.len().min(high.len()) as f64;
    (rarer > UNSTEADY * controls.len() as f64).then(|| median_in_place(high) - median_in_place(low))
}
