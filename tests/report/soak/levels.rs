//! Ports by the levels of a maker: on both sides of each threshold, and never before 125 minutes of port-up.

use railgauge_analysis::{journal::Journal, status::Status};
use railgauge_model::plan::model::{Levels, Soak};
use railgauge_wire::unit::GigabitsPerSecond;

use super::made::{Made, judged, status};

const POST_FEC: &str = "ethtool/rx_pcs_symbol_err_phy";
const SYMBOLS: &str = "counters/symbol_error";
/// 125 minutes, in milliseconds: at 400 Gb/s 3e15 bits.
const UP: u64 = 125 * 60 * 1000;
const HOUR: u64 = 3_600_000;

/// All ports count both kinds of errors, over InfiniBand with `lane` Gb/s on each lane.
fn journal(mut made: Made, lane: f64) -> Journal {
    let ports = (0..made.scenario.hosts).flat_map(|host| (0..made.scenario.rails).map(move |rail| (host, rail)));
    made.rises.extend(ports.map(|(host, rail)| (host, rail, 0, POST_FEC, 0)));
    made.soak = Soak { levels: Some(Levels::Nvidia), ..made.soak.clone() };
    let mut journal = made.journal();
    for state in journal.watched.iter_mut().flat_map(|seen| &mut seen.seen.ports).flat_map(|port| &mut port.states) {
        state.rate_gbps = state.lanes.map(|lanes| GigabitsPerSecond(lane * f64::from(lanes)));
    }
    for port in journal.hosts.values_mut().flat_map(|host| &mut host.facts.rdma).flat_map(|device| &mut device.ports) {
        port.link_layer = Some("InfiniBand".into());
    }
    journal
}

fn of(made: Made, lane: f64, key: &str) -> Status {
    let (found, all) = judged(&journal(made, lane));
    assert_eq!(found.levels.len(), 4);
    status(&all, &format!("levels.{key}")).0
}

fn counted(length: u64, counter: &'static str, errors: u64) -> Made {
    Made { spans: vec![(0, length)], rises: vec![(1, 0, 60_000, counter, errors)], ..Made::healthy() }
}

#[test]
fn error_rates_have_three_levels() {
    for (counter, key, warning) in [(SYMBOLS, "symbol_errors", 15), (POST_FEC, "post_fec_ber", 15_000)] {
        for (errors, expected) in [
            (0, Status::Pass),
            (warning - 1, Status::Pass),
            (warning, Status::Inconclusive),
            (2 * warning - 1, Status::Inconclusive),
            (2 * warning, Status::Fail),
        ] {
            assert_eq!(of(counted(UP, counter, errors), 100.0, key), expected, "{errors} of {key}");
        }
    }
}

#[test]
fn error_rates_are_never_judged_before_125_minutes_of_port_up() {
    for errors in [0, 1_000_000] {
        for (counter, key) in [(SYMBOLS, "symbol_errors"), (POST_FEC, "post_fec_ber")] {
            assert_eq!(of(counted(UP - 1_000, counter, errors), 100.0, key), Status::Inconclusive, "{key}");
            // Long enough as a whole, and the port went down meanwhile.
            let flaps = vec![(1, 0, UP / 2, UP / 2 + 500)];
            let broken = Made { flaps, ..counted(UP + 60_000, counter, errors) };
            assert_eq!(of(broken, 100.0, key), Status::Inconclusive, "{key}");
        }
    }
    // What came before the break counts only for the time before it.
    let flaps = vec![(1, 0, 600_000, 600_500)];
    let after = Made { flaps, ..counted(UP + 700_000, SYMBOLS, 1_000_000) };
    assert_eq!(of(after, 100.0, "symbol_errors"), Status::Pass);
}

#[test]
fn other_speeds_and_uncounted_ports_are_not_judged() {
    assert_eq!(of(counted(UP, SYMBOLS, 1_000_000), 50.0, "symbol_errors"), Status::Inconclusive);
    let mut journal = journal(counted(UP, SYMBOLS, 0), 100.0);
    for row in journal.watched.iter_mut().flat_map(|seen| &mut seen.seen.ports).flat_map(|port| &mut port.rows) {
        row.counted.remove(POST_FEC);
    }
    let (found, all) = judged(&journal);
    assert_eq!(status(&all, "levels.post_fec_ber").0, Status::Inconclusive);
    assert_eq!(status(&all, "levels.symbol_errors").0, Status::Pass);
    assert_eq!((found.levels[0].judged.len(), found.levels[0].unjudged.len()), (0, 8));
}

#[test]
fn two_link_downs_in_a_day_are_to_be_investigated() {
    let flapping = |flaps: Vec<(usize, u32, u64, u64)>, spans| Made { flaps, spans, ..Made::healthy() }.longest(60_000);
    let two = |later: u64| vec![(0, 0, 100_000, 101_000), (0, 0, later + 100_000, later + 101_000)];
    for (later, expected) in [(23 * HOUR, Status::Inconclusive), (25 * HOUR, Status::Pass)] {
        assert_eq!(of(flapping(two(later), vec![(0, later + HOUR)]), 50.0, "link_downs"), expected, "{later}");
    }
    // Also in less than a day; one, or one of each of two ports, is not known to be the only one of its day.
    let apart = vec![(0, 0, 100_000, 101_000), (1, 0, 300_000, 301_000)];
    for (flaps, early) in [(two(300_000), 7), (two(300_000)[..1].to_vec(), 8), (apart, 8), (Vec::new(), 8)] {
        for spans in [vec![(0, 600_000)], vec![(0, 600_000), (25 * HOUR, 25 * HOUR + 600_000)]] {
            let (found, all) = judged(&journal(flapping(flaps.clone(), spans), 50.0));
            assert_eq!(status(&all, "levels.link_downs").0, Status::Inconclusive, "{flaps:?}");
            assert_eq!(found.levels[2].unjudged.len(), early, "{flaps:?}");
        }
    }
}

#[test]
fn an_outage_of_half_a_minute_is_critical() {
    for (length, expected) in [(29_000, Status::Pass), (30_000, Status::Fail)] {
        let made = Made { flaps: vec![(0, 0, 100_000, 100_000 + length)], ..Made::healthy() };
        assert_eq!(of(made.longest(60_000), 50.0, "outage"), expected, "{length}");
    }
    let short = Made { spans: vec![(0, 20_000)], ..Made::healthy() };
    assert_eq!(of(short, 50.0, "outage"), Status::Inconclusive);
}

#[test]
fn without_levels_in_the_plan_there_is_no_verdict() {
    let (found, all) = counted(UP, SYMBOLS, 1_000_000).found();
    assert!(found.levels.is_empty());
    assert!(!all.verdicts.iter().any(|one| one.key.as_deref().is_some_and(|key| key.starts_with("levels."))));
}
