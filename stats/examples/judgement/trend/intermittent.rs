//! Half the rate on half of the nights, and noise that hides half the rate.

use railgauge_stats::changepoint::{AlertEnd, Watch};

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
    Tossed,
}

impl Spread {
    fn of(trial: usize) -> Self {
        [Self::InTurn, Self::Half, Self::Tossed][trial / 3 % 3]
    }

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
fn drawn(trial: usize, kind: Kind, runs: usize, spread: Spread, bad: usize, after: usize, seed: u64) -> Watch {
    let mut dice = Noise::new(Kind::Normal, seed * 7_368_787 + trial as u64);
    let good = 5 + dice.below(86);
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
    watch.alerts.iter().any(|alert| alert.effect < 0.0 && alert.end == AlertEnd::Open)
}

pub fn rows(options: &Options) -> Vec<Row> {
    let trials = options.runs(200);
    let mut rows = Vec::new();
    for (name, kind, _) in KINDS {
        for runs in [1, 4, 6, 0] {
            let draw = |trial| drawn(trial, kind, runs, Spread::of(trial), 10 + trial % 31, 0, options.seed);
            let all: Vec<(usize, Watch)> = (0..trials).map(|trial| (10 + trial % 31, draw(trial))).collect();
            let reported = |found: &Watch| fails(found) || found.suspicious.is_some() || found.repeat.is_some();
            let what =
                |what: &str| format!("trend: half the rate on half of the nights, {what}, {}, {name}", runs_word(runs));
            let hits = all.iter().filter(|(_, found)| reported(found)).count();
            rows.push(Row::share(what("for 10 to 40 nights, reported"), hits, trials, Bar::AtLeast(0.95)));
            let long = || all.iter().filter(|(nights, _)| *nights >= 20);
            let hits = long().filter(|(_, found)| fails(found)).count();
            rows.push(Row::share(what("for 20 to 40 nights, fails"), hits, long().count(), Bar::AtLeast(0.95)));
        }
        let doubted = |trial: usize| {
            let found = drawn(trial, kind, 1 + trial % 6, Spread::of(trial), 10 + trial % 31, 15, options.seed);
            fails(&found) || found.suspicious.is_some() || found.blind
        };
        let hits = (0..trials).filter(|&trial| doubted(trial)).count();
        let what = format!("trend: what was intermittent is not a pass after 15 good nights, {name}");
        rows.push(Row::share(what, hits, trials, Bar::AtMost(0.05)));
        rows.extend(quiet(options, name, kind));
    }
    rows
}

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
