//! Nights on whatever hosts are free: after each of them everything that reports the state of a host says the same, whether the host was
//! measured that night or not.

mod plans;

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use jiff::{SignedDuration, Timestamp};
use railgauge::night::{
    Condition, Judged, Keep, Lists, Nights, Scheduler, Standing, State, choose, index, metrics, reported,
};
use railgauge_analysis::{
    history::{self, METRICS},
    status::Status,
    trend::{History, Options, State as Change, Trend, Watched, trend},
};
use railgauge_frame::Parquet;
use railgauge_model::{
    journal::{event::Event, line},
    plan::{
        Plan,
        model::{Alert, Pattern, Waiver},
    },
};
use railgauge_report as report;

use crate::support::{self, Dice, Scenario, followed::followed_up};

/// Hosts, and those that a night measures.
const ALL: usize = 12;
const DRAWN: usize = 8;
/// The host that is slow, and on which nights.
const BAD: usize = 4;
const SLOW: std::ops::Range<u32> = 9..15;
const NIGHTS: u32 = 20;

/// A night as the test makes it.
type Night = fn(&mut Dice, u32) -> Scenario;

fn name(host: usize) -> String {
    format!("gpu{:03}", host + 1)
}

fn base(day: u32) -> Scenario {
    let first = jiff::civil::date(2026, 10, 1);
    Scenario {
        sizes: vec![1 << 20],
        repeats: 1,
        day,
        // Of such small runs 2 in 100 leave something else undecided, and none of these does.
        seed: 7000 + u64::from(day),
        first,
        ..Scenario::healthy(DRAWN, 1)
    }
}

/// The hosts that are free this night, in the order of their names.
fn free(dice: &mut Dice) -> Vec<usize> {
    let mut all: Vec<usize> = (0..ALL).collect();
    for at in 0..DRAWN {
        let other = at + (dice.uniform() * (ALL - at) as f64) as usize;
        all.swap(at, other);
    }
    all.truncate(DRAWN);
    all.sort_unstable();
    all
}

/// Writes the run of a night as it is after its end, with its report.
fn write(directory: &Path, of: &Scenario) {
    let bad = (0..of.hosts).find(|&index| of.number(index) == BAD).filter(|_| SLOW.contains(&of.day));
    let of = Scenario { slow: bad, ..of.clone() };
    let text = if bad.is_some() { followed_up(&of, &of).0 } else { of.jsonl() };
    write_text(directory, &text);
}

fn write_text(directory: &Path, text: &str) {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("records.jsonl"), text).unwrap();
    report::write(directory, &Parquet).unwrap();
}

/// The clock after a night.
fn after(of: &Scenario) -> Timestamp {
    let end = (of.first + jiff::Span::new().days(of.day)).at(14, 0, 0, 0);
    end.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp()
}

fn watched(runs: &str, now: Timestamp) -> Trend {
    let mut collected = History::until(now);
    for directory in history::run_directories(runs).unwrap() {
        collected.add(history::read(&directory, &METRICS, &Parquet).unwrap());
    }
    collected.report(reported(runs, now));
    trend(collected, &Options::default()).unwrap()
}

/// What is true of each host that was measured.
type Truth = BTreeMap<usize, Condition>;

/// Everything that reports states says what is true.
fn all_agree(runs: &str, night: &Scenario, truth: &Truth, was_faulty: bool) {
    let (now, day) = (after(night), night.day);
    let is_faulty = truth.get(&BAD) == Some(&Condition::Faulty);
    let bad = if is_faulty { vec![name(BAD)] } else { Vec::new() };
    let nights = Nights::of(runs, None, now).unwrap();
    let max_age = SignedDuration::from_hours(26);
    // status, nhc
    let cluster = Standing::of(&nights, max_age, now);
    let named: Vec<&str> =
        cluster.components.iter().filter(|one| one.state != Condition::Unknown).map(|one| one.name.as_str()).collect();
    let wanted: Vec<String> = bad.iter().map(|host| format!("host {host}")).collect();
    assert_eq!(named, wanted, "night {day}: {}", cluster.text);
    assert_eq!(cluster.state == State::Critical, is_faulty, "night {day}: {}", cluster.text);
    for host in 0..ALL {
        let of = Standing::of_host(&nights, &name(host), max_age, now);
        let wanted = match truth.get(&host) {
            Some(Condition::Good) => State::Ok,
            Some(Condition::Faulty) => State::Critical,
            _ => State::Unknown,
        };
        assert_eq!(of.state, wanted, "night {day}, {}: {}", name(host), of.text);
    }
    // drain
    let lists = Lists::of(&nights, &cluster, Scheduler::Slurm);
    let drained: Vec<String> = lists.hosts.iter().flat_map(|one| one.hosts.clone()).collect();
    assert_eq!((&drained, lists.drain.len()), (&bad, bad.len()), "night {day}");
    let repaired = if was_faulty && !is_faulty { vec![name(BAD)] } else { Vec::new() };
    assert_eq!((&lists.repaired, lists.undo.len()), (&repaired, repaired.len()), "night {day}");
    // prometheus
    let text = metrics(&Judged::read(&nights.newest().directory).unwrap(), &nights.states).unwrap();
    for (host, condition) in truth {
        let start = format!("railgauge_host_state{{plan=\"acceptance\",host=\"{}\",", name(*host));
        let line =
            text.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no {start} in\n{text}"));
        let number = if *condition == Condition::Faulty { " 2.0" } else { " 0.0" };
        assert!(line.ends_with(number), "night {day}: {line}");
    }
    // The page of runs.
    let page = index(runs, None, None, now).unwrap();
    let grid = &page.grids[0];
    assert_eq!(grid.nights.len(), day as usize + 1);
    for row in &grid.hosts {
        let host = (0..ALL).find(|host| name(*host) == row.host).unwrap();
        assert_eq!(row.state, truth[&host].word(), "night {day}: {row:?}");
        let is_measured = (0..night.hosts).any(|index| night.number(index) == host);
        assert_eq!(row.cells[0].is_some(), is_measured, "night {day}: {row:?}");
    }
    assert_eq!(grid.hosts.len(), truth.len());
    // trend
    let found = watched(runs, now);
    for one in &found.reported[0].components {
        let host =
            (0..ALL).find(|host| one.name == format!("host {}", name(*host))).unwrap_or_else(|| panic!("{one:?}"));
        assert_eq!(one.state, truth[&host].word(), "night {day}: {one:?}");
    }
    let told: Vec<String> = found.changes.iter().map(|one| format!("{}: {}", one.name, one.sentence)).collect();
    assert_eq!(found.status == Status::Fail, is_faulty, "night {day}: {} {told:#?}", found.sentence);
    let open = found.changes.iter().filter(|change| change.state == Change::Open);
    let others: Vec<&str> = open.map(|change| change.name.as_str()).filter(|what| !what.contains(&name(BAD))).collect();
    assert!(others.is_empty(), "night {day}: {others:?}");
    let noisy: Vec<&str> =
        found.series.iter().filter(|one| one.state == Watched::TooNoisy).map(|one| one.link.as_str()).collect();
    assert!(is_faulty || noisy.is_empty(), "night {day}: {noisy:?}");
    let edits: Vec<&str> =
        found.epochs.iter().map(|epoch| epoch.what.as_str()).filter(|what| what.contains("edited")).collect();
    assert!(edits.is_empty() && found.gone.is_empty(), "night {day}: {edits:?} {:?}", found.gone);
}

/// Twenty nights, with a look after each. The first night on which the bad host is measured after its repair it is good.
fn twenty_nights(seed: u64, night: Night) {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let (mut dice, mut truth, mut was_faulty) = (Dice(seed), Truth::new(), false);
    let (mut unmeasured, mut healed) = (0, None);
    for day in 0..NIGHTS {
        let of = night(&mut dice, day);
        write(&runs.join(format!("night-{day:02}")), &of);
        for host in (0..of.hosts).map(|index| of.number(index)) {
            let is_bad = host == BAD && SLOW.contains(&day);
            truth.insert(host, if is_bad { Condition::Faulty } else { Condition::Good });
        }
        let is_measured = (0..of.hosts).any(|index| of.number(index) == BAD);
        unmeasured += u32::from(truth[&BAD] == Condition::Faulty && !is_measured);
        was_faulty |= truth.get(&BAD) == Some(&Condition::Faulty);
        if was_faulty && day >= SLOW.end && truth[&BAD] == Condition::Good {
            healed = healed.or(Some(day));
        }
        all_agree(runs.to_str().unwrap(), &of, &truth, was_faulty);
    }
    assert!(was_faulty && healed.is_some(), "the bad host was measured while slow and after");
    if night(&mut dice, 0).hosts < ALL {
        assert!(unmeasured > 0, "it was faulty on a night on which it was not measured");
    }
}

#[test]
fn hosts_that_a_scheduler_draws_keep_their_state() {
    twenty_nights(5, |dice, day| Scenario { drawn: free(dice), ..base(day) });
}

#[test]
fn hosts_that_the_command_line_names_keep_their_state() {
    twenty_nights(5, |dice, day| Scenario { drawn: free(dice), part: true, ..base(day) });
}

#[test]
fn hosts_of_a_plan_that_rotates_keep_their_state() {
    twenty_nights(5, |_, day| Scenario {
        hosts: ALL,
        rotate: Some(u64::from(day)),
        pattern: Some(Pattern::Random(4)),
        ..base(day)
    });
}

/// `[alert]`: a fault is reported after two of three nights that measured it.
#[test]
fn an_alert_waits_for_as_many_nights_as_the_plan_says() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let state = |day: u32, slow: bool| {
        let of = Scenario { slow: slow.then_some(BAD), ..base(day) };
        let text = if slow { followed_up(&of, &of).0 } else { of.jsonl() };
        let alert = Alert { nights: 2, of: 3, ..Alert::default() };
        write_text(&runs.join(format!("night-{day:02}")), &edited(&text, |plan| plan.alert = alert));
        let now = after(&of);
        let nights = Nights::of(runs.to_str().unwrap(), None, now).unwrap();
        let standing = Standing::of(&nights, SignedDuration::from_hours(26), now);
        (nights.states.host(&name(BAD)).unwrap().state, standing.state)
    };
    let good = (Condition::Good, State::Ok);
    let doubtful = (Condition::Undecided, State::Warning);
    let faulty = (Condition::Faulty, State::Critical);
    let nights =
        [(false, good), (true, doubtful), (false, good), (true, faulty), (true, faulty), (false, good), (true, faulty)];
    for (day, (slow, wanted)) in nights.into_iter().enumerate() {
        assert_eq!(state(day as u32, slow), wanted, "night {day}");
    }
}

/// A journal whose plan says something else.
fn edited(text: &str, edit: impl Fn(&mut Plan)) -> String {
    let run = support::run_of(text);
    let of = |(at, line): (usize, &str)| {
        let mut line = line::decode(line.as_bytes(), (at > 0).then_some(run.as_str())).unwrap().line;
        if let Event::Started { resolved, .. } = &mut line.event {
            edit(resolved);
        }
        line
    };
    support::text(&text.lines().enumerate().map(of).collect::<Vec<_>>())
}
