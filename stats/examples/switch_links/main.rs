//! How often the bad link of a fabric is named, and how often a good one, on fabrics that are drawn here: `bench/switch-links`
//! runs this.
//!
//! ```text
//! switch_links [--seed N] [--quick] [-o FILE]
//! ```
//!
//! The generator: `tree` has the fabrics and their routes, `world` the faults and the results. A result is the logarithm of the
//! minimum over the links of its route, plus normal noise; a stray is a fifth low for no reason. Tests do not slow each other down.

mod bisection;
mod netbouncer;
mod ours;
mod row;
mod score;
mod tree;
mod world;

use std::{fs, process::ExitCode};

use row::{Bar, Row};
use score::{Scene, score};
use tree::Tree;
use world::{DEAD, Fault};

const NOISE: f64 = 0.01;

fn main() -> ExitCode {
    let (seed, quick, file) = match arguments() {
        Ok(given) => given,
        Err(wrong) => {
            eprintln!("switch-links: {wrong}\nusage: switch_links [--seed N] [--quick] [-o FILE]");
            return ExitCode::from(2);
        }
    };
    let mut rows = Vec::new();
    let mut show = |new: Vec<Row>| {
        print!("{}", row::table(&new));
        rows.extend(new);
    };
    known(seed, quick, &mut show);
    if !quick {
        hashed(seed, &mut show);
    }
    if let Some(file) = file
        && let Err(error) = fs::write(&file, row::json(&rows))
    {
        eprintln!("switch-links: {file} cannot be written: {error}");
        return ExitCode::from(2);
    }
    let (line, met) = row::summary(&rows);
    println!("{line}");
    ExitCode::from(u8::from(!met))
}

/// An effect of so many percent.
fn less(percent: f64) -> f64 {
    (1.0 - percent / 100.0).ln()
}

/// The faults whose bars hold for known routes: name, fault, least recall.
fn faults() -> Vec<(&'static str, Fault, f64)> {
    vec![
        ("one cable −10 %", Fault::Cables(1, less(10.0)), 0.95),
        ("two cables −10 %", Fault::Cables(2, less(10.0)), 0.9),
        ("one cable −5 %", Fault::Cables(1, less(5.0)), 0.95),
        ("one cable −30 %", Fault::Cables(1, less(30.0)), 0.95),
        ("one cable dead", Fault::Cables(1, DEAD), 0.95),
        ("one direction −10 %", Fault::OneWay(less(10.0)), 0.95),
        ("one switch −10 %", Fault::Switch(less(10.0)), 0.95),
        ("one NIC −10 %", Fault::Nic(less(10.0)), 0.95),
    ]
}

fn known(seed: u64, quick: bool, show: &mut impl FnMut(Vec<Row>)) {
    let trees = [
        ("2 levels, 1,024 cables", Tree::two_levels(32, 16, 16, false)),
        ("3 levels, 1,296 cables", Tree::three_levels(12, false)),
    ];
    for (number, (name, tree)) in trees.iter().enumerate() {
        let scene = Scene::healthy(tree, NOISE);
        let seed = |row: u64| seed * 1000 + number as u64 * 100 + row;
        let runs = if quick { 1000 / (1 + 4 * number) } else { 1000 };
        let beside = !quick;
        show(healthy(name, &score(&Scene { beside, ..scene }, runs, seed(0)), runs, beside));
        let runs = if quick { 20 } else { 200 };
        for (row, (fault_name, fault, recall)) in faults().into_iter().enumerate() {
            // The quick form has the bars that the page promises.
            if quick && row >= 2 {
                continue;
            }
            let scores = score(&Scene { fault, beside: true, ..scene }, runs, seed(row as u64 + 1));
            show(compared(&format!("{name}: {fault_name}"), &scores, recall));
        }
        if quick {
            continue;
        }
        let strays = Scene { strays: 0.005, ..scene };
        let scores = score(&Scene { beside: true, ..strays }, 1000, seed(50));
        show(healthy(&format!("{name}, one stray in 200"), &scores, 1000, true));
        let fault = Fault::Cables(1, less(10.0));
        let scores = score(&Scene { fault, beside: true, ..strays }, runs, seed(51));
        show(compared(&format!("{name}, one stray in 200: one cable −10 %"), &scores, 0.95));
        let heavy = Scene { heavy: true, beside: true, ..scene };
        show(healthy(&format!("{name}, heavy tails"), &score(&heavy, 1000, seed(54)), 1000, true));
        let scores = score(&Scene { fault, ..heavy }, runs, seed(55));
        show(compared(&format!("{name}, heavy tails: one cable −10 %"), &scores, 0.0));
        let scores = score(&Scene { fault, beside: true, screen: 3, ..scene }, runs, seed(52));
        show(compared(&format!("{name}, 3 rounds of screen: one cable −10 %"), &scores, 0.95));
        let scores = score(&Scene { fault: Fault::Cables(1, less(3.0)), beside: true, ..scene }, runs, seed(53));
        show(compared(&format!("{name}: one cable −3 %"), &scores, 0.0));
    }
}

/// Where routes are hashed, the cables of a switch to those above it share their tests: the name is "one of these".
fn hashed(seed: u64, show: &mut impl FnMut(Vec<Row>)) {
    let trees = [
        ("2 levels, 1,024 cables, hashed", Tree::two_levels(32, 16, 16, true), 16),
        ("3 levels, 384 cables, hashed", Tree::three_levels(8, true), 16),
    ];
    for (number, (name, tree, most)) in trees.iter().enumerate() {
        let scene = Scene::healthy(tree, NOISE);
        let seed = |row: u64| seed * 1000 + 500 + number as u64 * 100 + row;
        show(healthy(name, &score(&scene, 1000, seed(0)), 1000, false));
        let fault = Fault::Cables(1, less(10.0));
        let ours = score(&Scene { fault, ..scene }, 100, seed(1))[0];
        let row = |what: &str, hits, of, bar| Row { what: format!("{name}: one cable −10 %: {what}"), hits, of, bar };
        show(vec![
            row("it is among those named", ours.covered, ours.truth, Bar::AtLeast(0.95)),
            row("names that hold it", ours.among, ours.named, Bar::AtLeast(0.99)),
            row("cables that a name leaves open", ours.open, ours.named, Bar::AtMost(f64::from(*most))),
        ]);
    }
}

fn healthy(name: &str, scores: &score::Scores, runs: usize, beside: bool) -> Vec<Row> {
    let row = |what: &str, hits, bar| Row { what: format!("{name}: healthy: {what}"), hits, of: runs, bar };
    let mut rows = vec![
        row("ours: fabrics with a name", scores[0].fabrics, Bar::AtMost(0.0)),
        row("ours: fabrics with a suspect after the screen", scores[0].suspected, Bar::Beside),
    ];
    if beside {
        rows.push(row("NetBouncer-style fit: fabrics with a name", scores[1].fabrics, Bar::Beside));
        rows.push(row("bisection: fabrics with a name", scores[2].fabrics, Bar::Beside));
    }
    rows
}

fn compared(name: &str, scores: &score::Scores, recall: f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (method, of) in ["ours", "NetBouncer-style fit", "bisection"].into_iter().zip(scores) {
        let bar = |bar: f64| if method == "ours" && recall > 0.0 { Bar::AtLeast(bar) } else { Bar::Beside };
        let row = |what: &str, hits, of, bar| Row { what: format!("{name}: {method}: {what}"), hits, of, bar };
        rows.push(row("recall", of.right.min(of.truth), of.truth, bar(recall)));
        rows.push(row("precision", of.right, of.named, bar(0.99)));
        if method == "ours" {
            rows.push(row("tests beyond the screen, of all", of.probes, of.tests, Bar::Beside));
        }
    }
    rows
}

fn arguments() -> Result<(u64, bool, Option<String>), String> {
    let (mut seed, mut quick, mut file) = (1, false, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} takes a value"));
        match word.as_str() {
            "--seed" => seed = value()?.parse().map_err(|_| "--seed takes a whole number".to_owned())?,
            "--quick" => quick = true,
            "-o" => file = Some(value()?),
            _ => return Err(format!("{word} is not an option")),
        }
    }
    Ok((seed, quick, file))
}
