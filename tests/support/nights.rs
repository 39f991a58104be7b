//! Nights on whatever hosts are free, one of which is slow for some nights: after each of them everything that reports the state of a host
//! reports the same, whether the host was measured that night or not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use jiff::{SignedDuration, Timestamp};
use railgauge::night::{Condition, Judged, Lists, Nights, Scheduler, Standing, State, index, metrics, reported};
use railgauge_analysis::{
    history::{self, METRICS},
    status::Status,
    trend::{History, Options, State as Change, Trend, Watched, trend},
};
use railgauge_frame::Parquet;
use railgauge_model::journal::{event::Line, line};
use railgauge_report as report;

use crate::support::{self, Dice};

/// Hosts, and those that a night measures.
pub const ALL: usize = 12;
pub const DRAWN: usize = 8;
/// The host that is slow, and on which nights.
pub const BAD: usize = 4;
pub const SLOW: Range<u32> = 9..15;
pub const NIGHTS: u32 = 20;

/// The hosts that are free this night, in the order of their numbers.
pub fn free(dice: &mut Dice) -> Vec<usize> {
    let mut all: Vec<usize> = (0..ALL).collect();
    for at in 0..DRAWN {
        let other = at + (dice.uniform() * (ALL - at) as f64) as usize;
        all.swap(at, other);
    }
    all.truncate(DRAWN);
    all.sort_unstable();
    all
}

/// Writes a run with its report.
pub fn write_text(directory: &Path, text: &str) {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("records.jsonl"), text).unwrap();
    report::write(directory, &Parquet).unwrap();
}

/// A journal whose lines say something else.
pub fn edited(text: &str, edit: impl Fn(&mut Line)) -> String {
    let run = support::run_of(text);
    let of = |(at, line): (usize, &str)| {
        let mut line = line::decode(line.as_bytes(), (at > 0).then_some(run.as_str())).unwrap().line;
        edit(&mut line);
        line
    };
    support::text(&text.lines().enumerate().map(of).collect::<Vec<_>>())
}

/// The runs so far, and what is true of each host that they measured.
pub struct Watch {
    runs: PathBuf,
    plan: &'static str,
    name: fn(usize) -> String,
    truth: BTreeMap<usize, Condition>,
    was_faulty: bool,
    /// Nights on which the bad host was faulty and not measured.
    unmeasured: u32,
    is_healed: bool,
}

impl Watch {
    pub fn new(runs: &Path, plan: &'static str, name: fn(usize) -> String) -> Self {
        let (truth, runs) = (BTreeMap::new(), runs.to_owned());
        Self { runs, plan, name, truth, was_faulty: false, unmeasured: 0, is_healed: false }
    }

    /// Looks at everything after the run of a night that measured these hosts. On the first night that measures it after its repair the
    /// bad host is good.
    pub fn night(&mut self, day: u32, measured: &BTreeSet<usize>, now: Timestamp) {
        for &host in measured {
            let is_bad = host == BAD && SLOW.contains(&day);
            self.truth.insert(host, if is_bad { Condition::Faulty } else { Condition::Good });
        }
        let is_faulty = self.truth.get(&BAD) == Some(&Condition::Faulty);
        self.was_faulty |= is_faulty;
        self.unmeasured += u32::from(is_faulty && !measured.contains(&BAD));
        self.is_healed |= self.was_faulty && !is_faulty;
        self.all_agree(day, measured, now);
    }

    /// What the nights must have shown.
    pub fn end(&self, are_all_measured: bool) {
        assert!(self.was_faulty && self.is_healed, "the bad host was measured while slow and after");
        assert!(are_all_measured || self.unmeasured > 0, "it was faulty on a night on which it was not measured");
    }

    fn number(&self, name: &str) -> usize {
        (0..ALL).find(|host| (self.name)(*host) == name).unwrap_or_else(|| panic!("{name}"))
    }

    /// Everything that reports states says what is true.
    fn all_agree(&self, day: u32, measured: &BTreeSet<usize>, now: Timestamp) {
        let runs = self.runs.to_str().unwrap();
        let is_faulty = self.truth.get(&BAD) == Some(&Condition::Faulty);
        let bad = if is_faulty { vec![(self.name)(BAD)] } else { Vec::new() };
        let nights = Nights::of(runs, None, now).unwrap();
        let max_age = SignedDuration::from_hours(26);
        // status, nhc
        let cluster = Standing::of(&nights, max_age, now);
        let known = cluster.components.iter().filter(|one| one.state != Condition::Unknown);
        let named: Vec<&str> = known.map(|one| one.name.as_str()).collect();
        let wanted: Vec<String> = bad.iter().map(|host| format!("host {host}")).collect();
        assert_eq!(named, wanted, "night {day}: {}", cluster.text);
        assert_eq!(cluster.state == State::Critical, is_faulty, "night {day}: {}", cluster.text);
        for host in (0..ALL).map(|host| (host, (self.name)(host))) {
            let of = Standing::of_host(&nights, &host.1, max_age, now);
            let wanted = match self.truth.get(&host.0) {
                Some(Condition::Good) => State::Ok,
                Some(Condition::Faulty) => State::Critical,
                _ => State::Unknown,
            };
            assert_eq!(of.state, wanted, "night {day}, {}: {}", host.1, of.text);
        }
        // drain
        let lists = Lists::of(&nights, &cluster, Scheduler::Slurm);
        let drained: Vec<String> = lists.hosts.iter().flat_map(|one| one.hosts.clone()).collect();
        assert_eq!((&drained, lists.drain.len()), (&bad, bad.len()), "night {day}");
        let repaired = if self.was_faulty && !is_faulty { vec![(self.name)(BAD)] } else { Vec::new() };
        assert_eq!((&lists.repaired, lists.undo.len()), (&repaired, repaired.len()), "night {day}");
        // prometheus
        let newest = Judged::read(&nights.newest().directory).unwrap();
        let text = metrics(Some(&newest), &nights.plan, &nights.states, cluster.state).unwrap();
        let whole = format!("railgauge_state{{plan=\"{}\"}} {}.0", self.plan, cluster.state.code());
        assert!(text.lines().any(|line| line == whole), "night {day}: no {whole} in\n{text}");
        for (host, condition) in &self.truth {
            let start = format!("railgauge_host_state{{plan=\"{}\",host=\"{}\",", self.plan, (self.name)(*host));
            let line = text.lines().find(|line| line.starts_with(&start));
            let line = line.unwrap_or_else(|| panic!("no {start} in\n{text}"));
            let number = if *condition == Condition::Faulty { " 2.0" } else { " 0.0" };
            assert!(line.ends_with(number), "night {day}: {line}");
        }
        // The page of runs.
        let page = index(runs, None, None, now).unwrap();
        let grid = &page.grids[0];
        assert_eq!(grid.nights.len(), day as usize + 1);
        for row in &grid.hosts {
            let host = self.number(&row.host);
            assert_eq!(row.state, self.truth[&host].word(), "night {day}: {row:?}");
            assert_eq!(row.cells[0].is_some(), measured.contains(&host), "night {day}: {row:?}");
        }
        assert_eq!(grid.hosts.len(), self.truth.len());
        self.trend_agrees(day, now, is_faulty);
    }

    fn trend_agrees(&self, day: u32, now: Timestamp, is_faulty: bool) {
        let found = watched(self.runs.to_str().unwrap(), now);
        for one in &found.reported[0].components {
            let host = self.number(one.name.trim_start_matches("host "));
            assert_eq!(one.state, self.truth[&host].word(), "night {day}: {one:?}");
        }
        let told: Vec<String> = found.changes.iter().map(|one| format!("{}: {}", one.name, one.sentence)).collect();
        assert_eq!(found.status == Status::Fail, is_faulty, "night {day}: {} {told:#?}", found.sentence);
        let open = found.changes.iter().filter(|change| change.state == Change::Open);
        let bad = (self.name)(BAD);
        let others: Vec<&str> = open.map(|change| change.name.as_str()).filter(|what| !what.contains(&bad)).collect();
        assert!(others.is_empty(), "night {day}: {others:?} of {told:#?}");
        let noisy = found.series.iter().filter(|one| one.state == Watched::TooNoisy);
        let noisy: Vec<&str> = noisy.map(|one| one.link.as_str()).collect();
        assert!(is_faulty || noisy.is_empty(), "night {day}: {noisy:?}");
        let edits = found.epochs.iter().map(|epoch| epoch.what.as_str());
        let edits: Vec<&str> = edits.filter(|what| what.contains("edited")).collect();
        assert!(edits.is_empty() && found.gone.is_empty(), "night {day}: {edits:?} {:?}", found.gone);
    }
}

pub fn watched(runs: &str, now: Timestamp) -> Trend {
    let mut collected = History::until(now);
    for directory in history::run_directories(runs).unwrap() {
        collected.add(history::read(&directory, &METRICS, &Parquet).unwrap());
    }
    collected.report(reported(runs, now));
    trend(collected, &Options::default()).unwrap()
}
