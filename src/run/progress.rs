//! Output for people during a run: bars with the time left on a terminal, plain lines elsewhere. It does not affect results.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    io::{IsTerminal, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use railgauge_model::{
    journal::event::{Case, Event, Outcome, Soaked},
    plan::count::{count, lasting},
    schedule::Time,
};
use railgauge_wire::{Failure, Kind, Stage};

pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    verbose: bool,
    names: HashMap<u64, String>,
    failed: HashSet<u64>,
    /// Kinds of failures that were printed.
    said_of: HashSet<(Stage, Kind)>,
    noted: HashSet<String>,
    course: Arc<Mutex<Course>>,
    rounds: HashMap<String, u32>,
    again: bool,
    said: Instant,
    soaked: Duration,
}

#[derive(Debug, Clone)]
pub struct Course {
    expected: u64,
    had: u64,
    /// Cases.
    failed: usize,
    /// A round of a test, or the soak.
    round: String,
    left: (Instant, Time),
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, had, failed, round, left } = self;
        if round.is_empty() {
            return f.write_str("contacting hosts and planning cases");
        }
        // In percent: a case has several measurements, and the summary counts cases.
        let percent = 100 * had / (*expected).max(1);
        write!(f, "{percent} % measured, {} left ({round})", left.1.less(left.0.elapsed()))?;
        if *failed > 0 { write!(f, "; {} failed", count(*failed, "case")) } else { Ok(()) }
    }
}

/// Time between two plain lines without a terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(5);
/// Time between two lines of a soak without trouble.
const SOAK_EVERY: Duration = Duration::from_secs(60);

impl Progress {
    /// `quiet` shows only trouble, `verbose` also every host and what agents write.
    pub fn new(quiet: bool, verbose: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {msg}");
            let bar = ProgressBar::no_length();
            match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        let now = Instant::now();
        Self {
            bar,
            quiet,
            verbose,
            names: HashMap::new(),
            failed: HashSet::new(),
            said_of: HashSet::new(),
            noted: HashSet::new(),
            course: Arc::new(Mutex::new(Course {
                expected: 0,
                had: 0,
                failed: 0,
                round: String::new(),
                left: (now, Time::default()),
            })),
            rounds: HashMap::new(),
            again: false,
            said: now,
            soaked: Duration::ZERO,
        }
    }

    pub fn course(&self) -> Arc<Mutex<Course>> {
        Arc::clone(&self.course)
    }

    pub fn expect(&mut self, outcomes: u64) {
        self.await_more(outcomes);
    }

    pub fn expect_time(&mut self, left: Time) {
        self.course.lock().left = (Instant::now(), left);
    }

    /// The rounds of the tests are over; this many additional cases of an earlier process remain.
    pub fn expect_suspects(&mut self, outcomes: u64) {
        self.again = true;
        self.await_more(outcomes);
    }

    fn await_more(&mut self, more: u64) {
        let mut course = self.course.lock();
        course.expected += more;
        let outcomes = course.expected;
        drop(course);
        if let Some(bar) = &self.bar {
            bar.set_length(outcomes);
        }
    }

    pub fn event(&mut self, event: &Event) {
        match event {
            Event::HostUp { host, facts, .. } => {
                let (kernel, devices) = (&facts.kernel, count(facts.rdma.len(), "RDMA device"));
                self.log(host, &format!("up, {} {kernel}, {devices}", facts.architecture));
            }
            Event::HostLost { host, failure } => self.warn(&format!("lost {}", bare(failure).at(host))),
            Event::Round { test, round, repeat } => {
                let round = match self.again {
                    true => format!("{test}, suspects again"),
                    false => {
                        let of = self.rounds.get(test).map_or_else(String::new, |all| format!(" of {all}"));
                        format!("{test}, round {}{of}, repeat {}", round + 1, repeat + 1)
                    }
                };
                self.course.lock().round = round;
                self.message();
            }
            Event::Outcome(outcome) => self.outcome(outcome),
            Event::Note { host, text } => {
                let named = if host.is_empty() { String::new() } else { format!("{host}: ") };
                // Of many hosts with the same note the first: the report has all.
                if self.noted.insert(text.clone()) || self.verbose {
                    self.warn(&format!("{named}{text}"));
                }
            }
            Event::Configuring { test, value, undo } => {
                let what = if *undo { "undoing the configuration for" } else { "configuring the cluster for" };
                let at = value.as_ref().map_or_else(String::new, |value| format!(" at {value}"));
                self.tell(&format!("{what} {test}{at}"));
            }
            Event::Configured { test, failure: Some(failure), .. } => self.warn(&format!("{test}: {failure}")),
            Event::Confirming { cases, .. } => {
                self.tell(&format!("measuring suspects again: {}", count(cases.len(), "further case")));
                self.again = true;
                self.learn(cases);
                self.await_more(cases.len() as u64);
            }
            Event::Planned { cases } => {
                self.learn(cases);
                for case in cases {
                    let rounds = self.rounds.entry(case.test.to_string()).or_default();
                    *rounds = (*rounds).max(case.round + 1);
                }
            }
            Event::Soaked(part) => self.soaked(part),
            Event::Interrupted => self.warn("interrupted: measurements are kept"),
            Event::Finished => {
                if let Some(bar) = &self.bar {
                    bar.finish_and_clear();
                }
            }
            Event::Configured { failure: None, .. }
            | Event::Started { .. }
            | Event::Imported(_)
            | Event::Stages(_)
            | Event::Routes { .. }
            | Event::Link(_)
            | Event::Watched { .. }
            | Event::Prevented { .. }
            | Event::Resumed { .. } => {}
        }
    }

    pub fn log(&mut self, host: &str, text: &str) {
        if self.verbose {
            self.tell(&format!("{host}: {text}"));
        }
    }

    /// One line for a part of the soak, at most every minute; immediately on trouble.
    fn soaked(&mut self, part: &Soaked) {
        self.soaked += Duration::from(part.until.saturating_sub(part.from));
        let lasted = lasting(self.soaked);
        self.course.lock().round = format!("soak, {lasted}");
        let failed: u64 = part.flows.iter().map(|flow| flow.failed).sum();
        let stalls: usize = part.flows.iter().map(|flow| flow.stalls.len()).sum();
        let wrong = part.flows.iter().filter(|flow| !flow.checked.wrong.is_zero()).count();
        let is_well = failed == 0 && stalls == 0 && wrong == 0;
        if is_well && self.said.elapsed() < SOAK_EVERY {
            return;
        }
        self.said = Instant::now();
        let slowest = part.flows.iter().filter_map(|flow| flow.slowest).map(|rate| rate.0).min_by(f64::total_cmp);
        let slowest = slowest.map_or(String::new(), |rate| format!(", slowest window {rate:.3} Gb/s"));
        let flows = count(part.flows.len(), "flow");
        let troubles = [
            (failed, "window failed", "windows failed"),
            (stalls as u64, "stall", "stalls"),
            (wrong as u64, "flow with wrong bytes", "flows with wrong bytes"),
        ];
        let told = troubles.iter().filter(|(number, ..)| *number > 0);
        let told: Vec<String> =
            told.map(|(number, one, more)| format!("{number} {}", if *number == 1 { one } else { more })).collect();
        let told = if told.is_empty() { String::new() } else { format!("; {}", told.join(", ")) };
        let line = format!("soak: {lasted}, {flows}{slowest}{told}");
        if is_well { self.tell(&line) } else { self.warn(&line) }
    }

    fn outcome(&mut self, outcome: &Outcome) {
        let course = {
            let mut course = self.course.lock();
            course.had += 1;
            if outcome.result.is_err() {
                self.failed.insert(outcome.case);
                course.failed = self.failed.len();
            }
            course.clone()
        };
        // The summary has every cause with its number of cases.
        if let Err(failure) = &outcome.result
            && (self.said_of.insert((failure.stage, failure.kind)) || self.verbose)
        {
            self.message();
            self.warn(&format!("{}: {}", self.name(outcome.case), bare(failure)));
        }
        match &self.bar {
            Some(bar) => {
                bar.set_position(course.had);
                self.message();
            }
            None if self.said.elapsed() >= PLAIN_EVERY && course.had < course.expected => {
                self.said = Instant::now();
                self.tell(&course.to_string());
            }
            None => {}
        }
    }

    fn message(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.course.lock().to_string());
        }
    }

    fn learn(&mut self, cases: &[Case]) {
        let name = |case: &Case| (case.id, format!("{}, {}, {} B", case.test, case.flow.name(), case.cell.size));
        self.names.extend(cases.iter().map(name));
    }

    /// Test, ends or ranks, and size of a case; its number where it was planned by an earlier process.
    fn name(&self, case: u64) -> String {
        self.names.get(&case).cloned().unwrap_or_else(|| format!("case {case}"))
    }

    fn tell(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    fn warn(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => _ = writeln!(std::io::stderr(), "{text}"),
        }
    }
}

/// Without its remedy, which the summary has.
fn bare(failure: &Failure) -> Failure {
    Failure { remedy: None, ..failure.clone() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use railgauge_model::{
        plan::parse,
        schedule::{Inventory, schedule},
    };

    use super::*;

    /// Rounds that settle suspects are not the test's: there is no "round 35 of 3".
    #[test]
    fn further_rounds_are_not_counted_among_those_of_the_test() {
        let text = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"h[1-4]\"] }\n[[test]]\nname = \"bw\"\n\
                    op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1KiB\"\n";
        let plan = parse("p.toml", text, std::path::Path::new("")).unwrap().0;
        let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
        let mut progress = Progress::new(true, false);
        progress.event(&Event::Planned { cases: cases.clone() });
        let mut told = |event: Event| {
            progress.event(&event);
            progress.course.lock().round.clone()
        };
        let round = |round| Event::Round { test: "bw".to_owned(), round, repeat: 0 };
        assert_eq!(told(round(2)), "bw, round 3 of 3, repeat 1");
        told(Event::Confirming { cases: vec![cases[0].clone()], links: false });
        assert_eq!(told(round(0)), "bw, suspects again");
        assert_eq!(told(round(34)), "bw, suspects again");
        let mut resumed = Progress::new(true, false);
        resumed.expect_suspects(1);
        resumed.event(&round(34));
        let course = resumed.course.lock();
        assert_eq!((course.round.as_str(), course.expected), ("bw, suspects again", 1));
    }
}
