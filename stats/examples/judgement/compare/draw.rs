//! Made-up comparisons.

use railgauge_stats::compare::{Judged, RunSet, Variant, margin, verdicts};

use crate::noise::{Kind, Noise};

/// Standard deviation of the noise: 1 % of the value.
pub const SIGMA: f64 = 0.01;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Turn {
    /// All runs before, then all after.
    First,
    Alternating,
    Abba,
    /// As many of one side, then as many of the other, and again.
    Blocks(usize),
    Random,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shared {
    Own,
    All,
    Half,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Under {
    Level,
    /// A straight line that rises by this many standard deviations from the first run to the last.
    Drift(f64),
    /// A random walk of each link's own, with steps of this many standard deviations.
    Walk(f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation {
    pub cells: usize,
    pub runs: [usize; 2],
    pub turn: Turn,
    pub kind: Kind,
    pub shared: Shared,
    pub under: Under,
    /// Standard deviation of the noise of either side, in units of [`SIGMA`].
    pub noise: [f64; 2],
}

impl Situation {
    pub fn name(&self) -> String {
        let turn = match self.turn {
            Turn::First => "one side first".to_owned(),
            Turn::Alternating => "in turn".to_owned(),
            Turn::Abba => "A B B A".to_owned(),
            Turn::Blocks(n) => format!("{n} by {n}"),
            Turn::Random => "random order".to_owned(),
        };
        let shared = match self.shared {
            Shared::Own => "each its own",
            Shared::All => "shared",
            Shared::Half => "half shared",
        };
        let [a, b] = self.runs;
        let under = if self.under == Under::Level { String::new() } else { format!(" on {:?}", self.under) };
        let [before, after] = self.noise;
        let noise = if self.noise == [1.0; 2] { String::new() } else { format!(", noise {before} : {after}") };
        format!("{turn}, {:?}{under}{noise}, {shared}, {a} + {b} runs, {} links", self.kind, self.cells)
    }

    pub fn order(&self, noise: &mut Noise) -> Vec<Variant> {
        use Variant::{A, B};
        let [a, b] = self.runs;
        let all = [vec![A; a], vec![B; b]].concat();
        let pattern: Vec<Variant> = match self.turn {
            Turn::First => return all,
            Turn::Alternating => vec![A, B],
            Turn::Abba => vec![A, B, B, A],
            Turn::Blocks(n) => [vec![A; n], vec![B; n]].concat(),
            Turn::Random => {
                let mut all = all;
                (1..all.len()).rev().for_each(|i| all.swap(i, noise.below(i + 1)));
                return all;
            }
        };
        spread(&pattern, a, b)
    }

    /// One comparison: the sides of the runs, and what each link measured.
    pub fn draw(&self, seed: u64) -> (Vec<Variant>, Vec<Vec<Option<f64>>>) {
        let mut chance = Noise::new(Kind::Normal, seed);
        let order = self.order(&mut chance);
        let n = order.len();
        let mut everybody = Noise::new(self.kind, seed.wrapping_add(1 << 40));
        let common: Vec<f64> = (0..n).map(|_| everybody.next()).collect();
        let own_share = match self.shared {
            Shared::Own => 1.0_f64,
            Shared::All => 0.0,
            Shared::Half => 0.5,
        };
        let cells = (0..self.cells as u64).map(|cell| {
            let mut own = Noise::new(self.kind, seed.wrapping_mul(1_000_003).wrapping_add(cell));
            let mut walk = 0.0;
            let one = |(at, common): (usize, &f64)| {
                // Even what is everybody's luck is not the same to the last digit.
                let noise = own_share.sqrt() * own.next() + (1.0 - own_share).sqrt() * common + 1e-6 * own.normal();
                let under = match self.under {
                    Under::Level => 0.0,
                    Under::Drift(rise) => rise * at as f64 / n as f64,
                    Under::Walk(step) => {
                        walk += step * own.normal();
                        walk
                    }
                };
                Some(SIGMA * (self.noise[usize::from(order[at] == Variant::B)] * noise + under))
            };
            common.iter().enumerate().map(one).collect()
        });
        let cells = cells.collect();
        (order, cells)
    }
}

/// The pattern over and over until each side has its runs; sides of unlike numbers are mixed evenly instead.
fn spread(pattern: &[Variant], a: usize, b: usize) -> Vec<Variant> {
    let n = a + b;
    if a != b {
        let side = |i: usize| if (i + 1) * b / n > i * b / n { Variant::B } else { Variant::A };
        return (0..n).map(side).collect();
    }
    let mut left = [a, b];
    let mut order = Vec::with_capacity(n);
    for &side in pattern.iter().cycle().take(4 * n) {
        let of = &mut left[usize::from(side == Variant::B)];
        if *of > 0 {
            *of -= 1;
            order.push(side);
        }
    }
    order
}

/// Adds `shift` to what the cell measured after.
pub fn move_after(order: &[Variant], cell: &mut [Option<f64>], shift: f64) {
    for (value, side) in cell.iter_mut().zip(order) {
        if *side == Variant::B
            && let Some(value) = value
        {
            *value += shift;
        }
    }
}

/// All cells, judged together as the command does: with the margin that is asked for, or its own.
pub fn judge(order: &[Variant], cells: &[Vec<Option<f64>>], asked: Option<f64>) -> Vec<Judged> {
    let slices: Vec<&[Option<f64>]> = cells.iter().map(Vec::as_slice).collect();
    let mut runs = RunSet::new(order.to_vec());
    // The floor takes longest; of what is asked for here it matters only below the noise of a value.
    let asks_much = asked.is_some_and(|asked| asked >= SIGMA);
    let floor = if asks_much { None } else { runs.floor(&slices) }.unwrap_or(0.0);
    let margin = margin(asked, floor);
    let compared: Vec<_> = slices.iter().filter_map(|cell| Some((runs.compare(cell, margin).ok()?, true))).collect();
    verdicts(&compared).unwrap_or_default()
}
