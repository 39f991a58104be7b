//! Nights on which several links are low at once.

use railgauge_analysis::{
    history::Run,
    trend::{Options, Rule, State, Trend},
};

use super::nights::{cluster, night, run, watch};
use crate::support::Dice;

/// One run a night of some hosts; on the nights that are named, links of which `bad` says so are at half rate.
fn nights(seed: u64, nights: u32, low: impl Fn(u32) -> bool, bad: impl Fn(&[String; 2]) -> bool) -> Trend {
    let (of, mut dice) = (cluster(4), Dice(seed));
    let ends: Vec<[String; 2]> = of
        .readings
        .iter()
        .map(|reading| &of.cases[usize::try_from(reading.case).unwrap()].flow)
        .map(|flow| [flow.from.host.to_string(), flow.to.host.to_string()])
        .collect();
    let level = |night, at: usize| if low(night) && bad(&ends[at]) { 195.0 } else { 390.0 };
    let runs = (0..nights).map(|night| run(&of, night, 0, &mut dice, |at| Some(level(night, at))));
    watch(runs.collect::<Vec<Run>>(), &Options::default())
}

#[test]
fn links_of_a_host_that_are_low_on_the_same_few_nights_are_no_pass() {
    let of_host = |ends: &[String; 2]| ends.iter().any(|host| host == "gpu002");
    let found = nights(1, 41, |n| [12, 25, 38].contains(&n), of_host);
    assert_eq!(found.exit_code, 3, "{}", found.sentence);
    let told: Vec<_> = found.series.iter().filter_map(|series| Some((series, series.suspicion.as_ref()?))).collect();
    assert!(!told.is_empty() && told.len() == found.suspicious);
    for (series, why) in told {
        assert!(
            series.link.contains("gpu002") && why.reason.contains("host gpu002"),
            "{}: {}",
            series.link,
            why.reason
        );
        assert_eq!((why.nights, why.since.clone()), ((3, 29), night(12)), "{}", why.reason);
    }
}

#[test]
fn all_links_low_on_the_same_few_nights_are_no_pass() {
    let found = nights(2, 41, |n| [9, 20, 31].contains(&n), |_| true);
    assert_ne!(found.exit_code, 0, "{}", found.sentence);
    let told = found.series.iter().find_map(|series| series.suspicion.as_ref()).unwrap();
    assert!(told.reason.contains("every link"), "{}", told.reason);
    for every in 6..=10 {
        let found = nights(3, 61, |n| n % every == 2, |_| true);
        assert_ne!(found.exit_code, 0, "every {every}th night: {}", found.sentence);
    }
}

#[test]
fn what_is_sure_is_one_change_with_its_first_night() {
    let found = nights(4, 61, |n| n >= 26 && n % 6 == 2, |ends| ends.iter().any(|host| host == "gpu003"));
    assert_eq!(found.exit_code, 1, "{}", found.sentence);
    let change = &found.changes[0];
    assert_eq!((change.state, change.since.as_str(), found.changes.len()), (State::Open, &*night(26), 1));
    for (at, alert) in &change.members {
        let (link, alert) = (&found.series[*at].link, &found.series[*at].alerts[*alert]);
        assert!(link.contains("gpu003") && alert.reason.contains("host gpu003"), "{link}: {}", alert.reason);
        assert!(alert.rule == Rule::Intermittent && (alert.percent + 50.0).abs() < 3.0, "{}", alert.reason);
    }
}

#[test]
fn low_nights_of_single_links_on_nights_of_their_own_are_chance() {
    for seed in 0..6 {
        let (of, mut dice) = (cluster(4), Dice(500 + seed));
        // Each link dips on one night of fifty, on its own.
        let dips: Vec<Vec<bool>> =
            (0..60).map(|_| of.readings.iter().map(|_| dice.uniform() < 0.02).collect()).collect();
        let level = |night: u32, at: usize| if night < 59 && dips[night as usize][at] { 195.0 } else { 390.0 };
        let runs = (0..60).map(|night| run(&of, night, 0, &mut dice, |at| Some(level(night, at))));
        let found = watch(runs.collect::<Vec<Run>>(), &Options::default());
        let joint = found.series.iter().filter_map(|series| series.suspicion.as_ref());
        assert_eq!(joint.filter(|why| why.reason.contains("together")).count(), 0, "{}", found.sentence);
    }
}

#[test]
fn links_between_two_groups_that_are_low_on_the_same_nights_name_the_group() {
    let (mut of, mut dice) = (cluster(4), Dice(6));
    for (name, members) in [("leaf1", ["gpu001", "gpu002"]), ("leaf2", ["gpu003", "gpu004"])] {
        of.plan.groups.insert(name.to_owned(), members.map(str::to_owned).to_vec());
    }
    let leaf = |host: &str| host < "gpu003";
    let flow = |at: usize| &of.cases[usize::try_from(of.readings[at].case).unwrap()].flow;
    let crosses = |at: usize| leaf(&flow(at).from.host) != leaf(&flow(at).to.host);
    let level = |night: u32, at| if [11, 24, 37].contains(&night) && crosses(at) { 195.0 } else { 390.0 };
    let runs = (0..41).map(|night| run(&of, night, 0, &mut dice, |at| Some(level(night, at))));
    let found = watch(runs.collect::<Vec<Run>>(), &Options::default());
    assert_eq!(found.exit_code, 3, "{}", found.sentence);
    for (at, series) in found.series.iter().enumerate().filter(|(_, series)| series.suspicion.is_some()) {
        let why = &series.suspicion.as_ref().unwrap().reason;
        assert!(crosses(at) && why.contains("links out of group leaf1"), "{}: {why}", series.link);
    }
}
