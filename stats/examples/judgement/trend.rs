//! Rates of `trend`: one to six runs a night, steps at any night, what stands and what comes back.

mod intermittent;

use std::{thread, time::Instant};

use railgauge_stats::changepoint::{Alert, AlertEnd, Night, Rules, Watch, watch};

use crate::{
    noise::{Kind, Noise},
    row::{Bar, Options, Row},
};

/// Noise of a night's value: 1 %, mostly.
const SIGMA: f64 = 0.01;
/// Kinds of noise, and false alerts a series-year that are allowed with it.
const KINDS: [(&str, Kind, f64); 6] = [
    ("normal", Kind::Normal, 0.1),
    ("heavy tails", Kind::Heavy, 0.1),
    ("dips", Kind::Dips, 0.1),
    ("r = 0.3", Kind::Correlated(0.3), 0.2),
    ("left skew", Kind::LeftSkewed(0.5), 0.2),
    ("right skew", Kind::RightSkewed(0.5), 0.2),
];

/// A series to be drawn: its level and epoch by night.
struct Script<'a> {
    nights: usize,
    /// Runs of each night; 0 for one to six, another number each night.
    runs: usize,
    sigma: f64,
    /// Share of the variance that arises within nights.
    within: f64,
    level: &'a dyn Fn(usize) -> f64,
    epoch: &'a dyn Fn(usize) -> u64,
}

impl Script<'_> {
    fn draw(&self, kind: Kind, seed: u64) -> Vec<Night> {
        let (mut night, mut run) = (Noise::new(kind, seed), Noise::new(kind, seed ^ 0x9e37_79b9));
        let mut value = |at: usize| {
            let runs = if self.runs == 0 { 1 + run.below(6) } else { self.runs };
            let shared = (1.0 - self.within).sqrt() * night.next();
            let runs = (0..runs).map(|_| {
                let noise = shared + self.within.sqrt() * run.next();
                6.0 + (self.level)(at) + self.sigma * noise
            });
            Night { day: at as i64, runs: runs.collect(), lost: 0, epoch: (self.epoch)(at) }
        };
        (0..self.nights).map(&mut value).collect()
    }

    fn watch(&self, kind: Kind, seed: u64) -> Watch {
        watched(&self.draw(kind, seed))
    }
}

/// A series of ours is in order; one that is refused would count as one without alerts.
fn watched(nights: &[Night]) -> Watch {
    watch(nights, &Rules::default()).unwrap_or_else(|why| panic!("a drawn series was refused: {why}"))
}

const SAME: &dyn Fn(usize) -> u64 = &|_| 0;

/// A drop found by this night, counted from its first.
fn found(alerts: &[Alert], start: usize, within: i64) -> bool {
    let start = start as i64;
    alerts.iter().any(|a| a.effect < 0.0 && (start..start + within).contains(&a.raised) && (a.since - start).abs() <= 2)
}

/// A place for a number in the middle of a description.
fn runs_word(runs: usize) -> String {
    if runs == 0 { "1-6 runs".into() } else { format!("{runs} run{}", if runs == 1 { "" } else { "s" }) }
}

pub fn rows(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(steps(options, &[1, 4, 0]));
    rows.extend(epochs(options));
    rows.extend(mature(options));
    rows.push(standing(options));
    rows.push(returns(options));
    rows.extend(false_alerts(options, &KINDS, &[1, 2, 4, 6, 0]));
    rows.extend(drifts(options));
    rows.push(single_nights(options));
    rows.extend(last_night(options));
    rows.extend(intermittent::rows(options));
    rows
}

/// What `bench/nights` prints: the rates that nightly runs rely on, with one run a night, and what a year costs.
pub fn nights(options: &Options) -> Vec<Row> {
    let mut rows = steps(options, &[1]);
    rows.extend(false_alerts(options, &KINDS, &[1]));
    rows.extend(drifts(options));
    rows.push(single_nights(options));
    rows.push(standing(options));
    rows.push(year(options));
    rows
}

/// S7: a level that sinks by 0.1 % a night from its first night on is reported before it has lost 8 %, and it is one alert.
fn drifts(options: &Options) -> Vec<Row> {
    let trials = options.runs(400);
    let rows = |(name, kind, _): &(&str, Kind, f64)| {
        let worse = |trial: usize| {
            let level = |at: usize| -0.001 * at as f64;
            let script = Script { nights: 180, runs: 1, sigma: SIGMA, within: 0.0, level: &level, epoch: SAME };
            let mut found = script.watch(*kind, options.seed * 37 + trial as u64).alerts;
            found.retain(|alert| alert.effect < 0.0);
            found
        };
        let found: Vec<Vec<Alert>> = (0..trials).map(worse).collect();
        let early = found.iter().filter(|all| all.first().is_some_and(|alert| alert.raised < 80)).count();
        let one = found.iter().filter(|all| all.len() == 1).count();
        let what = "trend: -0.1 % a night from night 1 on";
        [
            Row::share(format!("{what}, reported before -8 %, {name}"), early, trials, Bar::AtLeast(0.99)),
            Row::share(format!("{what}, one alert in 180 nights, {name}"), one, trials, Bar::AtLeast(0.95)),
        ]
    };
    KINDS.iter().flat_map(rows).collect()
}

/// One night at half the rate, whenever it comes, is no change.
fn single_nights(options: &Options) -> Row {
    let trials = options.runs(1000);
    let changed = |trial: usize| {
        let mut dice = Noise::new(Kind::Normal, options.seed * 41 + trial as u64);
        let bad = dice.below(60);
        let level = |at: usize| if at == bad { 0.5f64.ln() } else { 0.0 };
        let script = Script { nights: bad + 12, runs: 1, sigma: SIGMA, within: 0.0, level: &level, epoch: SAME };
        let found = script.watch(KINDS[trial % 3].1, options.seed * 43 + trial as u64).alerts;
        found.iter().any(|alert| (alert.since - bad as i64).abs() <= 1)
    };
    let hits = (0..trials).filter(|&trial| changed(trial)).count();
    Row::share("trend: one night at half the rate is called a change", hits, trials, Bar::AtMost(0.01))
}

/// Seconds for 365 nights of 2,160 series, a tenth of which change.
fn year(options: &Options) -> Row {
    let series = |at: usize| {
        let level = |night: usize| if at.is_multiple_of(10) && night >= 200 { -0.05 } else { 0.0 };
        let script = Script { nights: 365, runs: 1, sigma: SIGMA, within: 0.0, level: &level, epoch: SAME };
        script.draw(KINDS[at % KINDS.len()].1, options.seed * 47 + at as u64)
    };
    let all: Vec<Vec<Night>> = (0..2160).map(series).collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    thread::scope(|scope| {
        for part in all.chunks(all.len().div_ceil(threads)) {
            scope.spawn(|| part.iter().for_each(|nights| _ = watched(nights)));
        }
    });
    Row::rate("trend: seconds for 365 nights of 2,160 series", start.elapsed().as_secs_f64(), 1.0, Bar::AtMost(5.0))
}

fn steps(options: &Options, numbers: &[usize]) -> Vec<Row> {
    let trials = options.runs(400);
    let mut rows = Vec::new();
    for (half, within, bar) in [(true, 7, 0.95), (false, 10, 0.90)] {
        for (name, kind, _) in KINDS {
            for &runs in numbers {
                for early in [true, false] {
                    let hit = |trial: usize| {
                        let mut dice = Noise::new(Kind::Normal, options.seed * 7919 + trial as u64);
                        // The hardest nights are the first; the others are the third to the ninetieth.
                        let start = if early { 2 + dice.below(4) } else { 2 + dice.below(89) };
                        let sigma = if half { SIGMA * (0.3 + 2.7 * dice.uniform()) } else { SIGMA };
                        let drop = if half { 0.5f64.ln() } else { 0.95f64.ln() };
                        let level = |at: usize| if at >= start { drop } else { 0.0 };
                        let share = [0.0, 0.5, 1.0][trial % 3];
                        let script =
                            Script { nights: start + 12, runs, sigma, within: share, level: &level, epoch: SAME };
                        found(&script.watch(kind, options.seed * 104_729 + trial as u64).alerts, start, within)
                    };
                    let what = format!(
                        "trend: -{} % from night {} on, found within {within}, {}, {name}",
                        if half { 50 } else { 5 },
                        if early { "3 to 6" } else { "3 to 91" },
                        runs_word(runs)
                    );
                    rows.push(Row::share(what, (0..trials).filter(|&t| hit(t)).count(), trials, Bar::AtLeast(bar)));
                }
            }
        }
    }
    rows
}

fn epochs(options: &Options) -> Vec<Row> {
    let trials = options.runs(400);
    let row = |(name, kind, _): (&str, Kind, f64)| {
        let hit = |trial: usize| {
            let mut dice = Noise::new(Kind::Normal, options.seed * 31 + trial as u64);
            let (epoch, after) = (10 + dice.below(100), 1 + dice.below(40));
            let start = epoch + after;
            // What was changed on purpose moved the level too.
            let moved = 0.2 * (dice.uniform() - 0.5);
            let level =
                |at: usize| (if at >= epoch { moved } else { 0.0 }) + if at >= start { 0.5f64.ln() } else { 0.0 };
            let declared = |at: usize| u64::from(at >= epoch);
            let script = Script {
                nights: start + 8,
                runs: 1 + trial % 6,
                sigma: SIGMA,
                within: 0.5,
                level: &level,
                epoch: &declared,
            };
            found(&script.watch(kind, options.seed * 17 + trial as u64).alerts, start, 7)
        };
        let what = format!("trend: -50 % 1 to 40 nights after a declared epoch, found within 7, 1-6 runs, {name}");
        Row::share(what, (0..trials).filter(|&t| hit(t)).count(), trials, Bar::AtLeast(0.95))
    };
    KINDS.into_iter().map(row).collect()
}

fn mature(options: &Options) -> Vec<Row> {
    let trials = options.runs(400);
    let mut rows = Vec::new();
    for (name, kind, _) in &KINDS[..4] {
        for (sigma, bar) in [(3.0, 0.95), (5.0, 0.95)] {
            let hit = |trial: usize| {
                let level = |at: usize| if at >= 65 { -sigma * SIGMA } else { 0.0 };
                let script = Script { nights: 75, runs: 1, sigma: SIGMA, within: 0.0, level: &level, epoch: SAME };
                found_anywhere(&script.watch(*kind, options.seed * 13 + trial as u64).alerts, 65, 8)
            };
            let what = format!("trend: {sigma} sigma after 65 nights found by night 8, {name}");
            rows.push(Row::share(what, (0..trials).filter(|&t| hit(t)).count(), trials, Bar::AtLeast(bar)));
        }
    }
    rows
}

fn found_anywhere(alerts: &[Alert], start: i64, within: i64) -> bool {
    alerts.iter().any(|a| a.effect < 0.0 && (start..start + within).contains(&a.raised))
}

/// A regression that is never undone, with partial recoveries and further drops: its first alert stays open.
fn standing(options: &Options) -> Row {
    let trials = options.runs(1000);
    let over = |trial: usize| {
        let seed = options.seed * 1_000_003 + trial as u64;
        let mut dice = Noise::new(Kind::Normal, seed);
        let good = 10 + dice.below(100);
        let mut bounds = vec![(good, 0.0)];
        let mut drop = 0.05 + 0.6 * dice.uniform();
        for _ in 0..1 + dice.below(4) {
            bounds.push((3 + dice.below(60), -drop));
            // At least 4 % remain.
            drop = 0.04 + 0.7 * dice.uniform();
        }
        let level = |at: usize| {
            let mut left = at;
            for &(nights, level) in &bounds {
                if left < nights {
                    return level;
                }
                left -= nights;
            }
            bounds[bounds.len() - 1].1
        };
        let nights = bounds.iter().map(|(nights, _)| nights).sum::<usize>() + 20;
        let (_, kind, _) = KINDS[trial % KINDS.len()];
        let script = Script { nights, runs: 1 + trial % 6, sigma: SIGMA, within: 0.5, level: &level, epoch: SAME };
        let found = script.watch(kind, seed);
        // The regression is known by its night; one that was not found at all is another row's matter.
        let first = found.alerts.iter().find(|a| a.effect < 0.0 && (a.since - good as i64).abs() <= 3);
        first.is_some_and(|alert| alert.end != AlertEnd::Open)
            || first.is_some() && !found.alerts.iter().any(|a| a.effect < 0.0 && a.end == AlertEnd::Open)
    };
    let hits = (0..trials).filter(|&t| over(t)).count();
    Row::share("trend: a standing regression is called over", hits, trials, Bar::AtMost(0.0))
}

/// A regression that is undone is over within fifteen nights.
fn returns(options: &Options) -> Row {
    let trials = options.runs(500);
    let over = |trial: usize| {
        let seed = options.seed * 15_485_863 + trial as u64;
        let mut dice = Noise::new(Kind::Normal, seed);
        let (good, bad) = (20 + dice.below(80), 10 + dice.below(50));
        let drop = 0.05 + 0.6 * dice.uniform();
        let level = |at: usize| if (good..good + bad).contains(&at) { -drop } else { 0.0 };
        let (_, kind, _) = KINDS[trial % KINDS.len()];
        let nights = good + bad + 15;
        let script = Script { nights, runs: 1 + trial % 6, sigma: SIGMA, within: 0.5, level: &level, epoch: SAME };
        !script.watch(kind, seed).alerts.iter().any(|a| a.effect < 0.0 && a.end == AlertEnd::Open)
    };
    let hits = (0..trials).filter(|&t| over(t)).count();
    Row::share("trend: a regression that was undone is over after 15 nights", hits, trials, Bar::AtLeast(0.9))
}

/// Alerts of series in which nothing changes, from their first night on.
fn false_alerts(options: &Options, kinds: &[(&str, Kind, f64)], numbers: &[usize]) -> Vec<Row> {
    // Rare events need many series, also for a quick look.
    let series = options.runs(400).max(150);
    let mut rows = Vec::new();
    for &(name, kind, bar) in kinds {
        // A thousand series-years distinguish 0.16 from 0.2 by three standard errors, a hundred do not.
        for (nights, factor) in [(240, if name == "dips" { 4 } else { 1 }), (40, 27)] {
            for &runs in numbers {
                let raised = |trial: usize| {
                    let share = [0.0, 0.5, 1.0][trial % 3];
                    let script = Script { nights, runs, sigma: SIGMA, within: share, level: &|_| 0.0, epoch: SAME };
                    script.watch(kind, options.seed * 49_979_687 + trial as u64).alerts.len()
                };
                let count: usize = (0..series * factor).map(raised).sum();
                let years = (series * factor * nights) as f64 / 365.25;
                let what = format!(
                    "trend: false alerts a series-year, series of {nights} nights, {}, {name}",
                    runs_word(runs)
                );
                rows.push(Row::rate(what, count as f64, years, Bar::AtMost(bar)));
            }
        }
    }
    rows
}

/// Half the rate in the last night alone asks for a repeat; ordinary nights hardly ever do.
fn last_night(options: &Options) -> Vec<Row> {
    let trials = options.runs(600);
    let mut rows = Vec::new();
    for (name, kind, _) in &KINDS {
        let asked = |trial: usize, drop: f64| {
            let mut dice = Noise::new(Kind::Normal, options.seed * 61 + trial as u64);
            let nights = 4 + dice.below(60);
            let level = |at: usize| if at + 1 == nights { drop } else { 0.0 };
            let script = Script { nights, runs: 1 + trial % 6, sigma: SIGMA, within: 0.5, level: &level, epoch: SAME };
            script.watch(*kind, options.seed * 67 + trial as u64).repeat.is_some()
        };
        let hits = (0..trials).filter(|&t| asked(t, 0.5f64.ln())).count();
        let what = format!("trend: half the rate in the last night alone asks for a repeat, {name}");
        rows.push(Row::share(what, hits, trials, Bar::AtLeast(0.95)));
        let newest = |trial: usize| {
            let mut dice = Noise::new(Kind::Normal, options.seed * 71 + trial as u64);
            let nights = 4 + dice.below(60);
            let level = &|_| 0.0;
            let script = Script { nights, runs: 2 + trial % 5, sigma: SIGMA, within: 0.5, level, epoch: SAME };
            let mut nights = script.draw(*kind, options.seed * 73 + trial as u64);
            nights.iter_mut().rev().take(1).flat_map(|night| night.runs.last_mut()).for_each(|run| *run += 0.5f64.ln());
            watched(&nights).repeat.is_some()
        };
        let hits = (0..trials).filter(|&t| newest(t)).count();
        let what =
            format!("trend: half the rate in the newest of 2 to 6 runs of the last night asks for a repeat, {name}");
        rows.push(Row::share(what, hits, trials, Bar::AtLeast(0.95)));
        let hits = (0..trials).filter(|&t| asked(t, 0.0)).count();
        // One night in fifty is far off by itself where values dip.
        let what = format!("trend: an ordinary last night asks for a repeat, {name}");
        rows.push(Row::share(what, hits, trials, Bar::AtMost(if *name == "dips" { 0.03 } else { 0.01 })));
    }
    rows
}
