//! An explanation: what it costs, and the spread and the share of low results that go with it.

use super::{
    ALL, CUT, FAST, FEW, FEW_PATHS, Fit, LOW, MARGIN, NORMAL_WIDTH, SHARE, SIMPLE, STEPS, State, cuts_of, ends,
    is_many, price::loss,
};
use crate::{
    localise::{
        Setting,
        cover::{Cover, Table},
    },
    robust::{Level, MAD_TO_SIGMA, SMALLEST, median_in_place},
};

/// Scales that are tried, in parts of that by the median.
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
            left: table.left(levels),
            expected: vec![0.0; table.cells.len()],
            taken: Vec::new(),
            cap: 0.0,
            share: 0.0,
            cut,
            last: cover.parts.len(),
        };
        fit.set_share(0);
        fit
    }

    /// What a low result costs, where so many of all are low and no part explains them: the logarithm of their share, and of how
    /// far apart they lie.
    pub(super) fn set_share(&mut self, low: usize) {
        let n = self.left.len() as f64;
        self.share = low as f64 / n;
        let mut lows: Vec<f64> =
            (0..self.left.len()).filter(|&at| self.is_low(at)).map(|at| self.left[at] - self.expected[at]).collect();
        let mut apart = 0.0_f64;
        if low > 0 && lows.len() > FEW_PATHS / 2 {
            lows.sort_unstable_by(f64::total_cmp);
            let width = lows[lows.len() * 9 / 10] - lows[lows.len() / 10];
            let scale = self.levels[0].scale.min(self.levels[1].scale);
            apart = (width / (NORMAL_WIDTH * scale)).ln().max(0.0);
        }
        self.cap = loss(1.0) + apart - ((low.max(1)) as f64 / n).ln();
    }

    /// What a part must save beyond its price: more where it may be low by chance, as a share of all ways is.
    pub(super) fn margin(&self) -> f64 {
        let low = self.share * self.left.len() as f64;
        if low <= FEW_PATHS as f64 / 2.0 { MARGIN } else { MARGIN * (1.0 + (self.share / SHARE).min(3.0)) }
    }

    /// Searches, with the share of unexplained low results and the spread that follow from the search itself.
    pub(super) fn settle(&mut self, setting: &Setting<'_>) {
        let mut best: Option<(f64, State)> = None;
        for _ in 0..STEPS {
            self.taken.clear();
            self.expected.fill(0.0);
            self.search();
            let (scale, was) = (self.spread(setting), self.share * self.left.len() as f64);
            let apart = |(new, old): (&f64, &Level)| *new > 1.1 * old.scale || 1.1 * *new < old.scale;
            let is_same = !scale.iter().zip(&self.levels).any(apart);
            (0..2).for_each(|kind| self.levels[kind].scale = scale[kind]);
            let low = self.unexplained();
            self.set_share(low);
            let cost = self.cost();
            let state = State {
                taken: self.taken.clone(),
                expected: self.expected.clone(),
                scale: self.levels.map(|level| level.scale),
                low,
            };
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, state));
            }
            if is_same && (low as f64 - was).abs() <= 2.0 {
                break;
            }
        }
        if let Some((_, state)) = best {
            (self.taken, self.expected) = (state.taken, state.expected);
            (0..2).for_each(|kind| self.levels[kind].scale = state.scale[kind]);
            self.set_share(state.low);
        }
    }

    /// The scale of what is left of each kind at which the results that are not low cost least.
    fn spread(&self, setting: &Setting<'_>) -> [f64; 2] {
        let pooled = self.levels[0].centre == self.levels[1].centre;
        [0, 1].map(|kind| {
            let of = (0..self.left.len()).filter(|&at| pooled || self.table.cells[at].stratum == kind);
            let left: Vec<f64> =
                of.filter(|&at| !self.is_low(at)).map(|at| self.left[at] - self.expected[at]).collect();
            let was = self.levels[kind].scale;
            if left.len() < 2 * FEW {
                return was;
            }
            let mut away: Vec<f64> = left.iter().map(|left| left.abs()).collect();
            let middle = (MAD_TO_SIGMA * median_in_place(&mut away)).max(setting.noise).max(SMALLEST).max(was / 20.0);
            let cost = |scale: f64| left.iter().map(|left| loss(left / scale) + scale.ln()).sum::<f64>();
            let scales = SCALES.map(|factor| (factor * middle).max(setting.noise).max(SMALLEST));
            scales.into_iter().min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(middle)
        })
    }

    pub(super) fn scale(&self, at: usize) -> f64 {
        self.levels[self.table.cells[at].stratum].scale
    }

    pub(super) fn cost_of(&self, at: usize, expected: f64) -> f64 {
        let scale = self.scale(at);
        let z = (self.left[at] - expected) / scale;
        // What a part takes hides what one way in so many loses by itself.
        let usual = loss(z) + if expected < -LOW * scale { 0.0 } else { -(1.0 - self.share).max(1e-9).ln() };
        if z < 0.0 { usual.min(self.cap) } else { usual }
    }

    /// Whether parts that hosts share make all low that lies between groups: so are many fabrics built, and a level of its own says so.
    pub(super) fn is_by_design(&self) -> bool {
        let mut explained = vec![false; self.left.len()];
        for taken in self.taken.iter().filter(|taken| self.cover.parts[taken.part].is_shared()) {
            self.cover.cells[taken.part].iter().for_each(|&at| explained[at as usize] = true);
        }
        let between = || (0..self.left.len()).filter(|&at| self.table.cells[at].stratum == 1);
        let known = between().filter(|&at| explained[at]).count();
        self.table.two_levels && known > 0 && known as f64 >= ALL * between().count() as f64
    }

    /// Whether so few parts explain all that no other explanation needs to be tried. What lies between groups may be so by design.
    pub(super) fn is_simple(&self) -> bool {
        let is_end = |part: usize| self.cover.parts[part].is_end();
        let alike = !self.table.two_levels || self.taken.iter().all(|taken| is_end(taken.part));
        alike && self.taken.len() <= SIMPLE && !is_many(self.unexplained(), self.table) && !self.has_better()
    }

    /// Whether some results are so much better than expected that they may be what good pairs reach.
    fn has_better(&self) -> bool {
        (0..self.left.len())
            .any(|at| self.left[at] - self.expected[at].max(0.0) > (LOW * self.scale(at)).max(self.table.least))
    }

    /// How many results are low and not explained.
    pub(super) fn unexplained(&self) -> usize {
        (0..self.left.len()).filter(|&at| self.is_low(at)).count()
    }

    /// Whether a result is far below what is expected.
    pub(super) fn is_low(&self, at: usize) -> bool {
        self.left[at] - self.expected[at] < -(LOW * self.scale(at)).max(self.table.least)
    }

    /// What the explanation costs.
    pub(super) fn cost(&self) -> f64 {
        let misfit: f64 =
            (0..self.left.len()).map(|at| self.cost_of(at, self.expected[at]) + self.scale(at).ln()).sum();
        let fast = self.taken.iter().filter(|taken| taken.effect.iter().any(|effect| *effect > 0.0)).count();
        let parts: f64 = self.taken.iter().map(|taken| self.prices[taken.part] + self.margin()).sum();
        let levels = if self.levels[0].centre == self.levels[1].centre {
            0.0
        } else {
            0.5 * (self.left.len() as f64).ln() + 2.0
        };
        // A share of all ways is an explanation like others.
        let n = self.left.len() as f64;
        let share = if self.share * n > FEW_PATHS as f64 / 2.0 { MARGIN + 0.5 * n.ln() } else { 0.0 };
        misfit + parts + FAST * fast as f64 + levels + share
    }
}
