//! Rates of `compare`: 200 links (or as many as the row says) on 10 + 10 runs, judged as the command judges them.

mod doubt;
mod draw;
mod rates;
mod unequal;

use crate::{
    noise::Kind,
    row::{Bar, Options, Row},
};
use doubt::{called_equivalent, headline_of_blocks, headline_of_runs, not_mirrored, unchanged};
use draw::{Shared, Situation, Turn, Under};
use rates::{coverage, equivalent_at_the_edge, false_names, for_each_of_ranks, power};

const CORRELATED: [Kind; 3] = [Kind::Normal, Kind::Correlated(0.3), Kind::Correlated(0.6)];

const BASE: Situation = Situation {
    cells: 200,
    runs: [10, 10],
    turn: Turn::First,
    kind: Kind::Normal,
    shared: Shared::Own,
    under: Under::Level,
    noise: [1.0; 2],
};

pub fn rows(options: &Options) -> Vec<Row> {
    let base = BASE;
    let mut situations = Vec::new();
    for turn in [Turn::First, Turn::Alternating, Turn::Random, Turn::Blocks(5)] {
        for kind in CORRELATED {
            for shared in [Shared::Own, Shared::All, Shared::Half] {
                situations.push(Situation { turn, kind, shared, ..base });
            }
        }
    }
    for kind in [Kind::Heavy, Kind::Dips, Kind::LeftSkewed(0.6), Kind::RightSkewed(0.6), Kind::Bimodal(4.0)] {
        for turn in [Turn::First, Turn::Alternating, Turn::Random] {
            situations.push(Situation { turn, kind, ..base });
        }
    }
    let correlated = Situation { kind: Kind::Correlated(0.6), ..base };
    for runs in [[3, 3], [4, 4], [5, 5], [6, 6], [4, 16], [20, 5]] {
        for turn in [Turn::First, Turn::Alternating, Turn::Random] {
            situations.push(Situation { runs, turn, ..correlated });
        }
    }
    situations.push(Situation { cells: 1, ..correlated });
    situations.push(Situation { cells: 20, ..correlated });
    situations.push(Situation { turn: Turn::Abba, ..correlated });
    situations.push(Situation { turn: Turn::Blocks(2), ..correlated });
    situations.push(Situation { runs: [30, 30], ..correlated });
    for under in [Under::Drift(3.0), Under::Drift(20.0), Under::Walk(0.5)] {
        situations.push(Situation { turn: Turn::Alternating, under, ..base });
        situations.push(Situation { turn: Turn::Abba, under, ..base });
    }
    let mut rows = Vec::new();
    for situation in &situations {
        rows.push(false_names(situation, options));
    }
    for turn in [Turn::First, Turn::Alternating, Turn::Random] {
        for kind in CORRELATED {
            for shared in [Shared::Own, Shared::All, Shared::Half] {
                let one = Situation { turn, kind, shared, ..base };
                rows.push(equivalent_at_the_edge(&one, options));
            }
        }
    }
    for turn in [Turn::First, Turn::Alternating, Turn::Random] {
        for kind in CORRELATED {
            for shared in [Shared::Own, Shared::All, Shared::Half] {
                rows.push(coverage(&Situation { turn, kind, shared, ..base }, options));
            }
        }
    }
    // The rule of the commit before these rows found 3,998 of 4,000 at 3 sigma and 3,598 at 2 sigma in turn, by its own test
    // `cargo test -p railgauge-stats --test statistics compare -- --nocapture many_cells`.
    let in_turn = Situation { turn: Turn::Alternating, ..base };
    rows.push(power(&in_turn, 3.0, Bar::AtLeast(0.9985), options));
    for sigmas in [1.5, 2.0, 3.0] {
        rows.push(for_each_of_ranks(&in_turn, &[sigmas], options));
    }
    rows.push(power(&Situation { turn: Turn::Abba, ..base }, 3.0, Bar::AtLeast(0.99), options));
    // With one side first power is what the order leaves.
    rows.push(power(&base, 6.0, Bar::AtLeast(0.99), options));
    rows.extend(doubts(&base, options));
    rows.extend(unequal::rows(&base, options));
    rows
}

/// What must not be called equivalent, exchanged sides, and headlines.
fn doubts(base: &Situation, options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for turn in [Turn::Alternating, Turn::Random] {
        rows.extend(called_equivalent(&Situation { turn, cells: 100, ..*base }, options));
    }
    rows.extend(unchanged(&Situation { turn: Turn::Alternating, ..*base }, options));
    for runs in [[10, 10], [6, 9]] {
        for turn in [Turn::First, Turn::Alternating, Turn::Random] {
            rows.push(not_mirrored(&Situation { runs, turn, ..*base }, options));
        }
    }
    // Log-normal noise of shape 1 is the one with the longest tail.
    for kind in [Kind::Normal, Kind::Heavy, Kind::RightSkewed(1.0), Kind::LeftSkewed(1.0)] {
        for runs in [[4, 4], [6, 6], [10, 10], [20, 5]] {
            rows.push(headline_of_runs(&Situation { cells: 1, runs, turn: Turn::Alternating, kind, ..*base }, options));
        }
        for blocks in [6, 8, 10] {
            rows.push(headline_of_blocks(kind, blocks, options));
        }
    }
    for kind in [Kind::Normal, Kind::RightSkewed(1.0), Kind::Correlated(0.6)] {
        for turn in [Turn::First, Turn::Random] {
            rows.push(headline_of_runs(&Situation { shared: Shared::Half, turn, kind, ..*base }, options));
        }
    }
    rows
}
