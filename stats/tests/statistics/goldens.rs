//! Published and independently computed numbers, to the digits given (relative 1e-12 unless said otherwise).

use railgauge_stats::{
    multiple::benjamini_hochberg,
    rank::{mann_whitney, signed_rank},
    shift::{paired_shift, shift},
    student::paired,
};
use serde_json::Value;

fn goldens() -> Value {
    serde_json::from_str(include_str!("goldens/golden_stats.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[track_caller]
fn close(got: f64, want: &Value, what: &str) {
    near(got, want.as_f64().unwrap(), 1e-12, what);
}

#[track_caller]
fn near(got: f64, want: f64, tolerance: f64, what: &str) {
    assert!((got - want).abs() <= tolerance * want.abs().max(1e-300), "{what}: {got:e} and not {want:e}");
}

const TWO_SAMPLES: [&str; 5] =
    ["hollander_wolfe_permeability", "moremath_s1_s2", "moremath_s1_s3", "bw_before_after_5pct", "bw_noop"];

#[test]
fn mann_whitney_exact() {
    for name in TWO_SAMPLES {
        let g = &goldens()[name];
        let (x, y) = (numbers(&g["x"]), numbers(&g["y"]));
        let test = mann_whitney(&x, &y).unwrap();
        close(test.two_sided, &g["p_two-sided"], name);
        close(test.less, &g["p_less"], name);
        close(test.greater, &g["p_greater"], name);
    }
}

#[test]
fn hodges_lehmann_with_exact_interval() {
    for name in TWO_SAMPLES {
        let g = &goldens()[name];
        let (x, y) = (numbers(&g["x"]), numbers(&g["y"]));
        let found = shift(&y, &x, 0.95).unwrap();
        let interval = found.interval.unwrap();
        close(found.estimate, &g["hl_shift_x_minus_y"], name);
        close(interval.low, &g["ci95_lo"], name);
        close(interval.high, &g["ci95_hi"], name);
        close(interval.level, &g["achieved_conf"], name);
    }
}

#[test]
fn signed_rank_and_pseudomedian() {
    let g = &goldens()["hollander_wolfe_depression_paired"];
    let differences: Vec<f64> = numbers(&g["x"]).iter().zip(numbers(&g["y"])).map(|(x, y)| x - y).collect();
    let test = signed_rank(&differences).unwrap();
    close(test.greater, &g["p_greater"], "p greater");
    close(test.two_sided, &g["p_two"], "p two-sided");
    close(paired_shift(&differences, 0.95).unwrap().estimate, &g["hl_pseudomedian"], "pseudomedian");
}

#[test]
fn false_discovery_rates() {
    let g = &goldens()["bh1995_table1"];
    let p = numbers(&g["p"]);
    let adjusted = benjamini_hochberg(&p).unwrap();
    for (got, want) in adjusted.iter().zip(g["bh_adj"].as_array().unwrap()) {
        close(*got, want, "BH");
    }
    let rejected = adjusted.iter().filter(|&&p| p <= 0.05).count();
    assert_eq!(rejected as u64, g["reject_bh_0.05"].as_u64().unwrap());
}

#[test]
fn paired_interval() {
    let of = paired(&[1.0, 2.0, 3.0]).unwrap().interval(0.95).unwrap();
    // 2 ± t(0.975; 2) / √3; with two degrees of freedom t has a closed form.
    let half = 0.95 * (2.0 / (1.0 - 0.95_f64.powi(2))).sqrt() / 3f64.sqrt();
    near(of.low, 2.0 - half, 1e-12, "low");
    near(of.high, 2.0 + half, 1e-12, "high");
}
