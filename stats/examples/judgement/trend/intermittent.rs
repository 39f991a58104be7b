//! Half the rate on half of the nights, and noise that hides half the rate.

use railgauge_stats::changepoint::{End, Kind as Rule, Watch};

use super::{KINDS, SAME, SIGMA, Script, runs_word};
use crate::{
    noise::{Kind, Noise},
    row::{Bar, Options, Row},
};

/// How low nights are spread over the bad stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spread {
    /// Every second night.
    InTurn,
    /// Half of the nights, in any order.
    Half,
    /// Each night with a chance of one half.
    Tossed,
}

impl Spread {
    /// Each kind as often as the others.
    fn of(trial: usize) -> Self {
        [Self::InTurn, Self::Half, Self::Tossed][trial / 3 % 3]
    }

    /// Which of so many nights are low.
    fn draw(self, nights: usize, dice: &mut Noise) -> Vec<bool> {
        match self {
            Self::InTurn => (0..nights).map(|at| at % 2 == 0).collect(),
            Self::Half => {
                let mut low: Vec<bool> = (0..nights).map(|at| at % 2 == 0).collect();
                (1..nights).rev().for_each(|at| low.swap(at, dice.below(at + 1)));
                low
            }
            Self::Tossed => (0..nights).map(|_| dice.uniform() < 0.5).collect(),
        }
    }
}

/// A series that is good, then half the rate on some of its nights, then good: the last night always is.
fn drawn(trial: usize, kind: Kind, runs: usize, spread: Spread, bad: (usize, usize), after: usize, seed: u64) -> Watch {
    let mut dice = Noise::new(Kind::Normal, seed * 7_368_787 + trial as u64);
    let good = 5 + dice.below(86);
    let bad = bad.0 + dice.below(bad.1 - bad.0 + 1);
    let mut low = spread.draw(bad, &mut dice);
    low.push(false);
    let level = |at: usize| if at >= good && low.get(at - good).is_some_and(|low| *low) { 0.5f64.ln() } else { 0.0 };
    let script = Script {
        nights: good + low.len() + after,
        runs,
        sigma: SIGMA * (0.3 + 4.7 * dice.uniform()),
        within: [0.0, 0.5, 1.0][trial % 3],
        level: &level,
        epoch: SAME,
    };
    script.watch(kind, seed * 179_424_673 + trial as u64)
}

fn fails(watch: &Watch) -> bool {
    watch.alerts.iter().any(|alert| alert.effect < 0.0 && alert.end == End::Open)
}

/// Its rows.
pub fn rows(options: &Options) -> Vec<Row> {
    let trials = options.runs(200);
    let mut rows = Vec::new();
    let share = |hit: &dyn Fn(usize) -> bool| (0..trials).filter(|&trial| hit(trial)).count();
    for (name, kind, _) in KINDS {
        for runs in [1, 2, 4, 6, 0] {
            let draw = |trial, bad| drawn(trial, kind, runs, Spread::of(trial), bad, 0, options.seed);
            let what =
                |what: &str| format!("trend: half the rate on half of the nights, {what}, {}, {name}", runs_word(runs));
            let hits = share(&|trial| {
                let found = draw(trial, (10, 40));
                fails(&found) || found.suspicious.is_some() || found.repeat.is_some_and(|repeat| repeat.urgent)
            });
            rows.push(Row::share(what("for 10 to 40 nights, reported"), hits, trials, Bar::AtLeast(0.95)));
            let hits = share(&|trial| fails(&draw(trial, (20, 40))));
            rows.push(Row::share(what("for 20 to 40 nights, fails"), hits, trials, Bar::AtLeast(0.95)));
        }
        let hits = share(&|trial| {
            let found = drawn(trial, kind, 1 + trial % 6, Spread::of(trial), (10, 40), 20, options.seed);
            found.alerts.iter().any(|alert| alert.kind == Rule::Intermittent && alert.end == End::Open)
        });
        let what = format!("trend: what was intermittent is still so after 20 good nights, {name}");
        rows.push(Row::share(what, hits, trials, Bar::AtMost(0.1)));
        rows.extend(quiet(options, name, kind));
    }
    rows
}

/// What healthy series say, and noisy ones.
fn quiet(options: &Options, name: &str, kind: Kind) -> Vec<Row> {
    let trials = options.runs(300);
    let draw = |trial: usize, least: f64, most: f64| {
        let mut dice = Noise::new(Kind::Normal, options.seed * 83 + trial as u64);
        let script = Script {
            nights: 7 + dice.below(90),
            runs: 1 + trial % 6,
            sigma: least + (most - least) * dice.uniform(),
            within: [0.0, 0.5][trial % 2],
            level: &|_| 0.0,
            epoch: SAME,
        };
        script.watch(kind, options.seed * 89 + trial as u64)
    };
    let count = |hit: &dyn Fn(&Watch) -> bool, least: f64, most: f64| {
        (0..trials).filter(|&trial| hit(&draw(trial, least, most))).count()
    };
    let share = |what: &str, hits: usize, bar: Bar| Row::share(format!("trend: {what}, {name}"), hits, trials, bar);
    vec![
        share(
            "a healthy series is suspected of being intermittent",
            count(&|found| found.suspicious.is_some(), SIGMA, 10.0 * SIGMA),
            Bar::AtMost(0.01),
        ),
        share(
            "noise of 1 to 10 % is called too noisy",
            count(&|found| found.blind, SIGMA, 10.0 * SIGMA),
            Bar::AtMost(0.01),
        ),
        share(
            "noise of 30 to 100 % is not called too noisy",
            count(&|found| !found.blind, 30.0 * SIGMA, 100.0 * SIGMA),
            Bar::AtMost(0.05),
        ),
    ]
}
