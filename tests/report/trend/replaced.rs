//! Changes for the worse whose series ended: by other hardware, other names, and edits.

use std::sync::Arc;

use railgauge_analysis::{
    history::Run,
    trend::{How, Options, State, Trend, Watched, Way, day},
};
use railgauge_model::schedule::Flow;
use railgauge_report::trend::view;

use railgauge_wire::{step::Window, terms::Transport, unit::Nanoseconds};

use super::nights::{cluster, night, run, watch};
use crate::support::Dice;

/// The night on which something takes the place of something else.
const SINCE: u32 = 45;

/// What is done to a run.
type Edit = Box<dyn Fn(&mut Run)>;

/// Sixty nights of four hosts; `level` says what a link of two hosts carries in Gb/s on a night, and `edit` is done to every
/// run from the night `SINCE` on.
fn nights(seed: u64, level: impl Fn(u32, &[&str]) -> f64, edit: impl Fn(&mut Run)) -> Vec<Run> {
    let (mut of, mut dice) = (cluster(4), Dice(seed));
    // Links whose NICs are known. Of what others use nothing is.
    let cases = &of.cases;
    of.readings.retain(|reading| {
        let case = &cases[usize::try_from(reading.case).unwrap()];
        case.flow.members.is_empty() && case.cell.transport == Transport::Verbs
    });
    let hosts = |at: usize| {
        let case = usize::try_from(of.readings[at].case).unwrap();
        of.cases[case].flow.hosts().into_iter().map(|host| &**host).collect::<Vec<&str>>()
    };
    let mut runs: Vec<Run> =
        (0..60).map(|night| run(&of, night, 0, &mut dice, |at| Some(level(night, &hosts(at))))).collect();
    runs[SINCE as usize..].iter_mut().for_each(edit);
    runs
}

/// Every link at half rate from a night on.
fn all_half(from: u32) -> impl Fn(u32, &[&str]) -> f64 {
    move |night, _| if night >= from { 195.0 } else { 390.0 }
}

/// Links of a host at half rate from a night until another.
fn one_half(from: u32, until: u32) -> impl Fn(u32, &[&str]) -> f64 {
    move |night, hosts| if hosts.contains(&"gpu003") && (from..until).contains(&night) { 195.0 } else { 390.0 }
}

/// Other NICs in the hosts that are named, in all of them if none is.
fn other_nics(names: &'static [&'static str]) -> impl Fn(&mut Run) {
    move |run| {
        for (host, facts) in &mut run.hosts {
            if names.is_empty() || names.contains(&host.as_str()) {
                facts.rdma.iter_mut().for_each(|device| device.guid = Some(format!("{host} another {}", device.name)));
            }
        }
    }
}

/// Other names of the hosts that are named, in an edited plan.
fn other_names(names: &'static [&'static str]) -> impl Fn(&mut Run) {
    let renamed = |host: &str| if names.contains(&host) { host.replace("gpu", "node") } else { host.to_owned() };
    move |run| {
        run.plan_hash = "second".into();
        run.hosts = std::mem::take(&mut run.hosts).into_iter().map(|(host, facts)| (renamed(&host), facts)).collect();
        run.plan.hosts.iter_mut().for_each(|host| host.name = renamed(&host.name));
        for case in &mut run.cases {
            let members = case.flow.members.iter_mut();
            members
                .chain([&mut case.flow.from, &mut case.flow.to])
                .for_each(|port| port.host = Arc::from(renamed(&port.host)));
        }
    }
}

/// Another warm-up: nothing holds the new values against the old ones.
fn other_settings(run: &mut Run) {
    run.plan_hash = "second".into();
    run.plan.tests.iter_mut().for_each(|test| test.warm_up *= 3);
}

/// Other names of all tests.
fn other_tests(run: &mut Run) {
    run.plan_hash = "second".into();
    run.plan.tests.iter_mut().for_each(|test| test.name += "-new");
    run.cases.iter_mut().for_each(|case| case.test = format!("{}-new", case.test).into());
}

fn accepted(night_of: i64) -> Options {
    Options { epochs: vec![(day(&night(night_of)).unwrap(), "it is so".to_owned())], ..Options::default() }
}

/// How the series of the only change ended.
fn how(found: &Trend) -> How {
    let (at, alert) = found.changes[0].members[0];
    found.series[at].alerts[alert].taken.as_ref().expect("how its series ended is known").how
}

const EVERY_HOST: &[&str] = &["gpu001", "gpu002", "gpu003", "gpu004"];

#[test]
fn what_stands_on_the_whole_cluster_is_not_over_by_new_hardware_or_names() {
    let edits: [(Edit, How); 2] =
        [(Box::new(other_nics(&[])), How::Hardware), (Box::new(other_names(EVERY_HOST)), How::Host)];
    for (edit, by) in edits {
        let runs = nights(1, all_half(40), edit);
        let found = watch(runs.clone(), &Options::default());
        assert_eq!((found.exit_code, found.changes.len()), (3, 1), "{}", found.sentence);
        let change = &found.changes[0];
        assert_eq!((change.state, change.since.clone(), how(&found)), (State::Left, night(40), by));
        // Series that ended beside those that took their place are not counted twice.
        assert_eq!((change.name.as_str(), change.series.0), ("every link", change.series.1));
        assert!(change.sentence.contains("gpu[001-004]") && change.sentence.contains(&night(44)[..7]));
        let shown = view(&found).unwrap();
        assert_eq!((shown.open.len(), shown.left.len(), shown.over.len()), (0, 1, 0));
        // One declared before the change accepts nothing.
        assert_eq!(watch(runs.clone(), &accepted(30)).exit_code, 3);
        let found = watch(runs, &accepted(50));
        assert_eq!((found.exit_code, found.changes[0].state), (0, State::Accepted), "{}", found.sentence);
    }
}

#[test]
fn a_bad_host_whose_hardware_was_replaced_is_over_when_it_is_as_good_as_before_or_as_others() {
    let edit = || other_nics(&["gpu003"]);
    let found = watch(nights(2, one_half(35, SINCE), edit()), &Options::default());
    assert_eq!((found.exit_code, found.changes[0].state, how(&found)), (0, State::Ended, How::Hardware));
    assert!(found.changes[0].sentence.contains("over: hardware of gpu003"), "{}", found.changes[0].sentence);
    // It was better than the others before, and is like them now.
    let better = |night: u32, hosts: &[&str]| match night {
        _ if !hosts.contains(&"gpu003") || night >= SINCE => 390.0,
        35.. => 195.0,
        _ => 402.0,
    };
    let found = watch(nights(3, better, edit()), &Options::default());
    assert_eq!((found.exit_code, found.changes[0].state), (0, State::Ended), "{}", found.sentence);
    // Halfway back is no recovery, whoever it is held against.
    for level in [195.0, 300.0, 370.0] {
        let halfway = |night: u32, hosts: &[&str]| match night {
            _ if !hosts.contains(&"gpu003") => 390.0,
            SINCE.. => level,
            35.. => 195.0,
            _ => 390.0,
        };
        let found = watch(nights(4, halfway, edit()), &Options::default());
        assert_ne!(found.exit_code, 0, "{level} Gb/s: {}", found.sentence);
        // What stands out among its like is still so, and nothing shows that it is over elsewhere.
        let worse = found.changes.iter().filter(|change| change.way == Way::Worse);
        let states: Vec<State> = worse.map(|change| change.state).collect();
        let are_open = states.iter().all(|state| matches!(state, State::Open | State::Left));
        assert!(!states.is_empty() && are_open, "{level} Gb/s: {states:?}");
    }
}

#[test]
fn a_bad_host_that_was_taken_out_or_renamed_is_over_when_all_that_remains_is_well() {
    let found = watch(nights(5, one_half(35, SINCE), other_names(&["gpu003"])), &Options::default());
    assert_eq!(
        (found.exit_code, found.changes[0].state, how(&found)),
        (0, State::Ended, How::Host),
        "{}",
        found.sentence
    );
    let found = watch(nights(6, one_half(35, 60), other_names(&["gpu003"])), &Options::default());
    assert_ne!(found.exit_code, 0, "{}", found.sentence);
    assert!(found.changes.iter().any(|change| change.state == State::Left), "{}", found.sentence);
}

#[test]
fn a_level_that_fell_when_a_series_took_the_place_of_another_is_told_until_it_is_accepted() {
    let edits: [(Edit, How); 3] = [
        (Box::new(other_settings), How::Edit),
        (Box::new(other_tests), How::Edit),
        (Box::new(other_nics(&[])), How::Hardware),
    ];
    for (number, (edit, by)) in (10..).zip(edits) {
        for (level, all) in [(195.0, true), (371.0, true), (195.0, false)] {
            let fallen = |night: u32, hosts: &[&str]| {
                if night >= SINCE && (all || hosts.contains(&"gpu003")) { level } else { 390.0 }
            };
            let runs = nights(number, fallen, &edit);
            let found = watch(runs.clone(), &Options::default());
            assert_ne!(found.exit_code, 0, "{level} Gb/s: {}", found.sentence);
            let left = found.changes.iter().find(|change| change.state == State::Left);
            if !all && left.is_none() {
                // A host that is far below its peers is reported as that.
                assert_eq!(found.exit_code, 1, "{}", found.sentence);
                continue;
            }
            let left = left.unwrap();
            let (at, alert) = left.members[0];
            let taken = found.series[at].alerts[alert].taken.as_ref().unwrap();
            assert_eq!((taken.how, taken.date.clone()), (by, night(SINCE.into())));
            let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.02;
            assert!(near(taken.before, 390.0) && near(taken.now.unwrap(), level), "{taken:?}");
            if all {
                assert_eq!((found.exit_code, left.series.0), (3, left.series.1), "{}", found.sentence);
                assert_eq!(watch(runs, &accepted(SINCE.into())).exit_code, 0);
            }
        }
        // And where nothing fell, the night of the edit begins no change; noise alone raises 0.1 alerts a series-year at most, in
        // 15 series-years of these.
        let mut by_chance = 0;
        for seed in 0..5 {
            let found = watch(nights(100 + 10 * number + seed, |_, _| 390.0, &edit), &Options::default());
            by_chance += found.changes.len();
            assert!(by_chance <= 2 && (found.exit_code == 0 || !found.changes.is_empty()), "{}", found.sentence);
            assert!(found.changes.iter().all(|change| change.since != night(SINCE.into())), "{}", found.sentence);
            assert!(found.series.iter().any(|series| series.state == Watched::Retired));
        }
    }
}

#[test]
fn a_level_that_fell_with_one_edit_stays_told_after_the_next() {
    let mut runs = nights(30, all_half(SINCE), other_settings);
    for run in &mut runs[50..] {
        run.plan_hash = "third".into();
        run.plan.tests.iter_mut().for_each(|test| test.warm_up *= 2);
    }
    let found = watch(runs, &Options::default());
    let left: Vec<_> = found.changes.iter().filter(|change| change.state == State::Left).collect();
    assert_eq!((found.exit_code, left.len()), (3, 1), "{}", found.sentence);
    assert_eq!(left[0].since, night(SINCE.into()));
}

#[test]
fn an_edit_is_told_by_the_keys_and_units_of_the_plan() {
    let longer = |run: &mut Run| {
        run.plan_hash = "second".into();
        run.plan.tests.iter_mut().for_each(|test| test.window = Window::Duration(Nanoseconds::from_millis(21)));
    };
    let found = watch(nights(40, all_half(SINCE), longer), &Options::default());
    assert!(
        found.epochs[0].what.contains(" → 21 ms") && found.epochs[0].what.contains(" measure "),
        "{:?}",
        found.epochs
    );
    assert!(found.changes[0].sentence.contains(" → 21 ms"), "{}", found.changes[0].sentence);
}

/// Sixty nights of one collective of all hosts; from the night `SINCE` on it has other hosts, and another level.
fn collective(seed: u64, hosts: &'static [&'static str], level: f64) -> Vec<Run> {
    let (mut of, mut dice) = (cluster(4), Dice(seed));
    of.readings.truncate(1);
    let case = usize::try_from(of.readings[0].case).unwrap();
    let group = |run: &mut Run, hosts: &[&str]| {
        let hosts: Vec<Arc<str>> = hosts.iter().map(|host| Arc::from(*host)).collect();
        run.cases[case].flow = Flow::group(&hosts, 1).unwrap();
    };
    group(&mut of, EVERY_HOST);
    let values = |night: u32| if night >= SINCE { level } else { 390.0 };
    let mut runs: Vec<Run> = (0..60).map(|night| run(&of, night, 0, &mut dice, |_| Some(values(night)))).collect();
    for run in &mut runs[SINCE as usize..] {
        run.plan_hash = "second".into();
        run.plan.hosts.retain(|host| hosts.contains(&host.name.as_str()));
        group(run, hosts);
    }
    runs
}

#[test]
fn a_collective_that_fell_when_it_lost_or_got_a_host_is_no_pass_until_it_is_accepted() {
    let most: &[&str] = &["gpu001", "gpu002", "gpu004"];
    let runs = collective(5, most, 195.0);
    let found = watch(runs.clone(), &Options::default());
    assert_eq!((found.exit_code, found.changes.len()), (3, 1), "{}", found.sentence);
    assert_eq!((found.changes[0].state, found.changes[0].since.clone()), (State::Left, night(i64::from(SINCE))));
    assert_eq!(watch(runs, &accepted(i64::from(SINCE))).exit_code, 0);
    // The same level with a host less is the same level.
    let found = watch(collective(6, most, 390.0), &Options::default());
    assert_eq!((found.exit_code, found.changes.len()), (0, 0), "{}", found.sentence);
    // A group of other hosts is another group.
    let others = collective(7, &["gpu003", "gpu004"], 195.0);
    assert!(watch(others, &Options::default()).changes.is_empty());
}
