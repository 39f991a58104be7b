//! Cost of an explanation, with its spread and its share of low results.

use super::{
    ALL, ALONE, CLOSE_CUT, CUT, CUTS, Expected, FAST, FEW, FEW_PATHS, Fit, Found, LOW, MARGIN, NONE, NORMAL_WIDTH,
    SHARE, SIMPLE, STEPS, Taken, cuts_of, ends, is_half, is_many, price::loss,
};
use crate::{
    localise::{
        Part, Setting,
        cover::{Cover, Table},
    },
    robust::{Level, MAD_TO_SIGMA, SMALLEST, median_in_place},
};

/// Tried scales, relative to the median estimate.
const SCALES: [f64; 5] = [0.6, 0.7, 0.8, 0.9, 1.0];

impl<'a> Fit<'a> {
    pub(super) fn new(
        table: &'a Table,
        cover: &'a Cover,
        prices: &'a [f64],
        levels: [Level; 2],
        setting: &Setting<'_>,
    ) -> Self {
        let cut = cuts_of(&levels, setting, ends(cover), CUT);
        let mut fit = Self {
            table,
            cover,
            prices,
            levels,
            kinds: table.cells.iter().map(|cell| cell.stratum as u8).collect(),
            left: table.left(levels),
            expected: vec![Expected::default(); table.cells.len()],
            taken: Vec::new(),
            place: vec![NONE; cover.parts.len()],
            cap: 0.0,
            low: 0,
            usual: 0.0,
            cut,
            with_ends: true,
            with_cuts: true,
            open: Vec::new(),
        };
        fit.set_share(0);
        fit
    }

    /// Sets the cost of a low result that no part explains, by the share and the spread of such results.
    pub(super) fn set_share(&mut self, low: usize) {
        let n = self.left.len() as f64;
        self.low = low;
        self.usual = -(1.0 - low as f64 / n).max(1e-9).ln();
        let mut lows: Vec<f64> = (0..self.left.len())
            .filter(|&at| self.is_low(at))
            .map(|at| self.left[at] - self.expected[at].effect)
            .collect();
        let scale = self.levels[0].scale.min(self.levels[1].scale);
        // Shares of a part that is not full are at least as likely as low results that nothing explains.
        let mut wide = self.taken.iter().map(|taken| taken.spread).fold(scale, f64::max);
        if low > 0 && lows.len() >= 3 {
            lows.sort_unstable_by(f64::total_cmp);
            wide = wide.max((lows[lows.len() * 9 / 10] - lows[lows.len() / 10]) / NORMAL_WIDTH);
        }
        let apart = (wide / scale).ln();
        self.cap = loss(1.0) + apart - ((low.max(1)) as f64 / n).ln();
    }

    fn count_share(&mut self) -> usize {
        let low = (0..self.left.len()).filter(|&at| self.is_low(at)).count();
        self.set_share(low);
        low
    }

    /// Required saving beyond a part's price: more where it may be low by chance, as with a share of all ways.
    pub(super) fn margin(&self) -> f64 {
        self.margin_of(self.low)
    }

    fn margin_of(&self, low: usize) -> f64 {
        let share = low as f64 / self.left.len() as f64;
        if self.is_share(low) { MARGIN * (1.0 + (share / SHARE).min(3.0)) } else { MARGIN }
    }

    /// Whether so many low results are a share of all ways, and not single paths.
    fn is_share(&self, low: usize) -> bool {
        2 * low > FEW_PATHS || is_half(low, self.left.len())
    }

    /// A share of all ways is also an explanation with a price.
    fn share_price(&self, low: usize) -> f64 {
        if low > 0 { MARGIN + 0.5 * (self.left.len() as f64).ln() } else { 0.0 }
    }

    /// What explaining that many low results saves beyond their own cost: good results cost less where fewer are low, and a share of all
    /// ways has a price.
    pub(super) fn relief(&self, explained: usize) -> f64 {
        let (n, was) = (self.left.len() as f64, self.low);
        let is = was.saturating_sub(explained);
        let usual = |low: usize| -(1.0 - low as f64 / n).max(1e-9).ln();
        let costs = |low: usize| self.share_price(low) + self.margin_of(low);
        (n - was as f64) * (usual(was) - usual(is)) + costs(was) - costs(is)
    }

    /// Whether a part may be all that is wrong: one that hosts share, or an end that leaves no low result. A share of all ways makes
    /// several of an end's few results low, too.
    pub(super) fn is_alone(&self, part: &Part, explained: usize) -> bool {
        part.is_shared() || self.low > 0 && explained >= self.low
    }

    /// Searches, with the share of unexplained low results and the spread from the search itself.
    pub(super) fn settle(&mut self, setting: &Setting<'_>) -> Found {
        let mut best = Found::new(self.levels);
        for _ in 0..STEPS {
            self.drop_from(0);
            self.expected.fill(Expected::default());
            self.search();
            let (scale, was) = (self.spread(setting), self.low);
            let apart = |(new, old): (&f64, &Level)| *new > 1.1 * old.scale || 1.1 * *new < old.scale;
            let is_same = !scale.iter().zip(&self.levels).any(apart);
            (0..2).for_each(|kind| self.levels[kind].scale = scale[kind]);
            let low = self.count_share();
            let cost = self.cost();
            if cost < best.cost {
                let (taken, expected) = (self.taken.clone(), self.expected.clone());
                best = Found { cost, taken, expected, low, ..Found::new(self.levels) };
            }
            if is_same && 20 * low.abs_diff(was) <= low {
                break;
            }
        }
        best
    }

    /// Replaces a partition by each other one, and keeps the cheapest and those nearly as cheap.
    pub(super) fn try_other_cuts(&mut self, found: &mut Found) {
        let is_cut = |taken: &Taken| self.cover.cuts.contains(&taken.part);
        let Some(number) = found.taken.iter().position(is_cut) else { return };
        self.levels = found.levels;
        self.drop_from(0);
        found.taken.iter().for_each(|taken| self.take(*taken));
        self.expected.clone_from(&found.expected);
        let mut costs: Vec<(f64, usize)> = Vec::new();
        for cut in self.cover.cuts.clone() {
            if found.taken.iter().enumerate().any(|(other, taken)| other != number && taken.part == cut) {
                continue;
            }
            self.exchange(number, cut);
            self.count_share();
            if self.holds_for(number) {
                costs.push((self.cost(), cut));
            }
        }
        costs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(&(cost, cut)) = costs.first() else { return };
        self.exchange(number, cut);
        let low = self.count_share();
        let near = costs[1..].iter().filter(|(other, _)| *other < cost + CLOSE_CUT).take(CUTS);
        let other_cuts = near.map(|(_, cut)| *cut).collect();
        let (taken, expected) = (self.taken.clone(), self.expected.clone());
        *found = Found { cost, levels: self.levels, taken, expected, low, other_cuts };
    }

    fn exchange(&mut self, number: usize, part: usize) {
        let was = std::mem::replace(&mut self.taken[number].part, part);
        self.place[was] = NONE;
        self.place[part] = number as u32;
        for at in [was, part].into_iter().flat_map(|part| &self.cover.cells[part]) {
            self.expected[*at as usize] = self.expected_of(*at as usize, None);
        }
    }

    /// By kind, the scale at which the results that are not low cost least.
    fn spread(&self, setting: &Setting<'_>) -> [f64; 2] {
        let pooled = self.levels[0].centre == self.levels[1].centre;
        let of_kind = |kind: usize| {
            let of = (0..self.left.len()).filter(|&at| pooled || self.kind(at) == kind);
            let of = of.filter(|&at| !self.is_low(at) && self.expected[at].spread == 0.0);
            let left: Vec<f64> = of.map(|at| self.left[at] - self.expected[at].effect).collect();
            let was = self.levels[kind].scale;
            if left.len() < 2 * FEW {
                return was;
            }
            let mut away: Vec<f64> = left.iter().map(|left| left.abs()).collect();
            let middle = (MAD_TO_SIGMA * median_in_place(&mut away)).max(setting.noise).max(SMALLEST).max(was / 20.0);
            let cost = |scale: f64| left.iter().map(|left| loss(left / scale) + scale.ln()).sum::<f64>();
            let scales = SCALES.map(|factor| (factor * middle).max(setting.noise).max(SMALLEST));
            scales.into_iter().min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(middle)
        };
        let first = of_kind(0);
        [first, if pooled { first } else { of_kind(1) }]
    }

    pub(super) fn kind(&self, at: usize) -> usize {
        usize::from(self.kinds[at])
    }

    pub(super) fn scale(&self, at: usize) -> f64 {
        self.levels[self.kind(at)].scale
    }

    pub(super) fn cost_of(&self, at: usize, expected: Expected) -> f64 {
        let scale = self.scale(at);
        let away = self.left[at] - expected.effect;
        let usual = if expected.spread > 0.0 {
            let spread = scale.hypot(expected.spread);
            // Some unequal shares are larger, and with few others at once a flow gets all.
            let shared = loss(-(away / spread).abs()) + (spread / scale).ln();
            if expected.is_shared { shared.min(loss(self.left[at] / scale) + ALONE) } else { shared }
        } else {
            loss(away / scale)
        };
        // The effect of a part hides a loss of one of its ways.
        let hidden = expected.effect < -LOW * scale;
        let usual = usual + if hidden { 0.0 } else { self.usual };
        if away < 0.0 { usual.min(self.cap) } else { usual }
    }

    /// Whether shared parts cause all low results between groups: many fabrics are built that way, and a separate level models it.
    pub(super) fn is_by_design(&self, taken: &[Taken]) -> bool {
        let mut explained = vec![false; self.left.len()];
        for taken in taken.iter().filter(|taken| self.cover.parts[taken.part].is_shared()) {
            self.cover.cells[taken.part].iter().for_each(|&at| explained[at as usize] = true);
        }
        let between = || (0..self.left.len()).filter(|&at| self.kind(at) == 1);
        let known = between().filter(|&at| explained[at]).count();
        self.table.two_levels && known > 0 && known as f64 >= ALL * between().count() as f64
    }

    /// Whether so few parts explain everything that no other explanation needs to be tried: no low result remains, nor one so high that
    /// it may be the good level. Low results between groups may be by design.
    pub(super) fn is_simple(&self, found: &Found) -> bool {
        let is_end = |taken: &Taken| self.cover.parts[taken.part].is_end();
        let alike = !self.table.two_levels || found.taken.iter().all(is_end);
        let is_better = |at: usize| {
            let least = (LOW * found.levels[self.kind(at)].scale).max(self.table.least);
            self.left[at] - found.expected[at].effect.max(0.0) > least
        };
        let is_all = !is_many(found.low, self.table) && !(0..self.left.len()).any(is_better);
        alike && found.taken.len() <= SIMPLE && is_all
    }

    pub(super) fn is_low(&self, at: usize) -> bool {
        self.is_below(at, self.expected[at])
    }

    pub(super) fn is_below(&self, at: usize, Expected { effect, spread, .. }: Expected) -> bool {
        self.left[at] - effect < -(LOW * self.scale(at).hypot(spread)).max(self.table.least)
    }

    pub(super) fn price(&self, taken: &Taken) -> f64 {
        let uneven = if taken.spread > 0.0 { 0.5 * (self.cover.cells[taken.part].len() as f64).ln() } else { 0.0 };
        self.prices[taken.part] + uneven
    }

    pub(super) fn cost(&self) -> f64 {
        let misfit: f64 =
            (0..self.left.len()).map(|at| self.cost_of(at, self.expected[at]) + self.scale(at).ln()).sum();
        let fast = self.taken.iter().filter(|taken| taken.effect.iter().any(|effect| *effect > 0.0)).count();
        let parts: f64 = self.taken.iter().map(|taken| self.price(taken) + self.margin()).sum();
        let levels = if self.levels[0].centre == self.levels[1].centre {
            0.0
        } else {
            0.5 * (self.left.len() as f64).ln() + 2.0
        };
        let share = self.share_price(self.low);
        misfit + parts + FAST * fast as f64 + levels + share
    }
}
