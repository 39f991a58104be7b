//! Flows and what ports counted meanwhile, on one axis: made-up hosts with the counters that drivers have.

use std::{collections::BTreeMap, fs, path::Path};

use railgauge_analysis::{
    axis::{OfTest, Watch, of_test},
    journal,
    results::results,
    soak::families::Family,
};
use railgauge_model::{
    journal::event::{Event, Line},
    plan::model::{AtOnce, Pattern, Victim},
};
use railgauge_report::view::Block;
use railgauge_wire::{
    drivers::Congestion,
    unit::{Bytes, Nanoseconds, NanosecondsI64},
    watch::{CounterRow, PortSeen, STATISTICS, Watched},
};

use crate::kept::write;
use crate::support::{self, Scenario};

/// When the first window begins, in milliseconds since 1970: 2026-11-21 02:00:10 UTC.
const BEGIN: u64 = 1_795_226_410_000;
/// From the begin of one pass to that of the next, in milliseconds; a window is two seconds.
const EVERY: u64 = 3_000;

fn at(milliseconds: u64) -> Nanoseconds {
    Nanoseconds::from_millis(BEGIN + milliseconds)
}

/// A flow beside an incast among six hosts, three times.
fn scenario() -> Scenario {
    let victim = Victim { flow: Some(("gpu001".into(), "gpu002".into())), to: Some("gpu003".into()), draws: 1 };
    let pattern = Some(Pattern::AtOnce(AtOnce::Victim(victim)));
    Scenario { sizes: vec![1 << 20], repeats: 3, pattern, ..Scenario::healthy(6, 1) }
}

/// What the clock of a host lacks to the time since 1970.
fn clock(host: &str) -> NanosecondsI64 {
    let number: i64 = host.trim_start_matches("gpu").parse().unwrap();
    NanosecondsI64(1_700_000_000_000_000_000 + 86_400_000_000_000 * number)
}

/// What rises on a port: host, begin in milliseconds after [`BEGIN`], counter, rise.
type Rise = (&'static str, u64, &'static str, u64);

/// What is made up.
struct Made {
    rises: Vec<Rise>,
    /// Counters that every port has.
    has: Vec<&'static str>,
    /// Time between two readings.
    pace: u64,
    /// Hosts that nobody watches.
    unwatched: Vec<&'static str>,
    /// Whether records tell the clock.
    tells_clock: bool,
}

impl Made {
    fn new(rises: &[Rise]) -> Self {
        let has = vec!["ethtool/rx_prio3_pause", "ethtool/tx_prio3_pause", "hw_counters/np_cnp_sent"];
        Self { rises: rises.to_vec(), has, pace: 100, unwatched: Vec::new(), tells_clock: true }
    }

    fn lines(&self) -> Vec<Line> {
        let scenario = scenario();
        let mut lines = scenario.lines();
        let mut cases = BTreeMap::new();
        for line in &mut lines {
            match &mut line.event {
                Event::Started { resolved, .. } => {
                    resolved.watch = true;
                    resolved.tests.truncate(1);
                    resolved.tests[0].expect.clear();
                }
                Event::Planned { cases: planned } => {
                    planned.retain(|case| &*case.test == "write-bw");
                    cases = planned.iter().map(|case| (case.id, case.clone())).collect();
                }
                _ => {}
            }
        }
        lines.retain_mut(|line| {
            let Event::Outcome(outcome) = &mut line.event else { return true };
            let Some(case) = cases.get(&outcome.case) else { return false };
            let Ok(sample) = &mut outcome.result else { return true };
            let pass = u64::from(outcome.repeat * 2 + case.round);
            let begin = at(pass * EVERY);
            let shown = |host: &str| begin.saturating_add_signed(NanosecondsI64(-clock(host).0));
            sample.initiator.started = shown(&case.flow.from.host);
            let moment =
                |host: &str| railgauge_model::journal::event::Moment { at: shown(host), error: Nanoseconds(20_000) };
            let together = railgauge_model::journal::event::Together {
                start: begin,
                from: moment(&case.flow.from.host),
                to: moment(&case.flow.to.host),
            };
            sample.together = Some(together.into());
            // Beside the incast the flow stands still in one slice.
            if case.round == 1 && &*case.flow.from.host == "gpu001" {
                sample.initiator.slices[5] = Bytes::ZERO;
            }
            true
        });
        let end = lines.pop().unwrap();
        let hosts = (0..6).map(|host| scenario.name(host));
        let watched = hosts.filter(|host| !self.unwatched.contains(&host.as_str())).map(|host| Line {
            at: "2026-11-21T02:00:40.000Z".into(),
            event: Event::Watched {
                error: Nanoseconds(60_000),
                clock: self.tells_clock.then(|| clock(&host)),
                soak: false,
                seen: Box::new(self.seen(&host)),
                host,
            },
        });
        lines.extend(watched);
        lines.push(end);
        lines
    }

    fn seen(&self, host: &str) -> Watched {
        let until = 6 * EVERY;
        let row = |begin: u64, statistics: bool| {
            let mine = |name: &str| name.starts_with("ethtool/") == statistics;
            let inside = |when: u64| (begin..begin + self.pace).contains(&when);
            let rises = self.rises.iter().filter(|(of, when, name, _)| *of == host && inside(*when) && mine(name));
            let mut counted: BTreeMap<String, u64> =
                rises.map(|(.., name, rise)| ((*name).to_owned(), *rise)).collect();
            if begin == 0 {
                self.has.iter().filter(|name| mine(name)).for_each(|name| {
                    counted.entry((*name).to_owned()).or_default();
                });
            }
            let gauges = statistics.then(|| (STATISTICS.to_owned(), 900.0)).into_iter().collect();
            CounterRow { from: at(begin), until: at(begin + self.pace), counted, gauges, ..CounterRow::default() }
        };
        let rows = [false, true]
            .map(|statistics| (0..until).step_by(self.pace as usize).map(move |begin| (begin, statistics)));
        let port = PortSeen {
            device: "mlx5_0".into(),
            port: 1,
            looks: until / 100,
            rows: rows.into_iter().flatten().map(|(begin, statistics)| row(begin, statistics)).collect(),
            ..PortSeen::default()
        };
        Watched { from: at(0), until: at(until), cpu: Nanoseconds::from_millis(90), ports: vec![port] }
    }

    fn text(&self) -> String {
        support::text(&self.lines())
    }

    fn found(&self) -> OfTest {
        let journal = journal::parse(self.text().as_bytes(), Path::new("records.jsonl")).unwrap();
        assert!(journal.contradictions.is_empty(), "{:?}", journal.contradictions);
        let results = results(&journal).unwrap();
        of_test(&Watch::of(&journal).unwrap(), &results.iter().collect::<Vec<_>>()).unwrap()
    }

    fn drawn(&self) -> (Block, String) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("records.jsonl"), self.text()).unwrap();
        let written = write(dir.path()).unwrap();
        (written.view.tests[0].block("axis").unwrap().clone(), fs::read_to_string(written.page).unwrap())
    }
}

/// A full port tells its senders to stop, and the flow that shares nothing with it stands still.
pub fn paused() -> String {
    made().text()
}

fn made() -> Made {
    Made::new(&[
        ("gpu003", EVERY + 500, "ethtool/tx_prio3_pause", 4_000),
        ("gpu003", EVERY + 600, "ethtool/tx_prio3_pause", 1_500),
        ("gpu001", EVERY + 500, "ethtool/rx_prio3_pause", 900),
        ("gpu003", EVERY + 700, "hw_counters/np_cnp_sent", 70),
        ("gpu003", 3 * EVERY + 700, "hw_counters/np_cnp_sent", 20),
        ("gpu003", EVERY + 800, "ethtool/rx_discards_phy", 3),
    ])
}

#[test]
fn pauses_are_those_of_the_round_and_of_its_ports() {
    let found = made().found();
    assert_eq!((found.placed, found.unplaced, found.unwatched, found.partly), (6, 0, 0, 0));
    assert_eq!(found.passes.len(), 2, "two of six counted something");
    let worst = &found.passes[0];
    assert_eq!((worst.round, worst.repeat, worst.quiet, worst.span.from), (1, 0, 4, at(EVERY)));
    let victim = &worst.flows[0];
    assert!(victim.victim && victim.name.starts_with("gpu001"), "{victim:?}");
    let (port, lines) = worst.ports.iter().find(|(port, _)| port.host == "gpu001").unwrap();
    let [pauses] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((port.device.as_str(), pauses.family, pauses.most), ("mlx5_0", Family::PausesReceived, 9_000.0));
    // The gravest first.
    let (port, lines) = &worst.ports[0];
    assert_eq!((port.host.as_str(), lines[0].family, lines[0].sum()), ("gpu003", Family::DiscardsIn, 3.0));
    assert_eq!(worst.error, Nanoseconds(60_000));
}

#[test]
fn silence_of_ports_without_a_counter_says_nothing() {
    let found = made().found();
    assert_eq!([Congestion::Pause, Congestion::Cnp, Congestion::Ecn].map(|kind| found.with[&kind]), [6, 6, 0]);
    let quiet = Made::new(&[]);
    let found = quiet.found();
    assert_eq!((found.counting, found.ports, found.with[&Congestion::Pause]), (0, 6, 6));
    let (block, _) = quiet.drawn();
    assert!(block.table.is_none());
}

#[test]
fn what_was_not_watched_is_not_called_quiet() {
    let found = Made { unwatched: vec!["gpu002"], ..made() }.found();
    assert_eq!((found.placed, found.partly), (6, 6));
    // Of a host that nobody watches the clock is not known either.
    let found = Made { unwatched: vec!["gpu001"], ..made() }.found();
    assert_eq!((found.placed, found.unplaced), (3, 6));
}

#[test]
fn flows_without_a_clock_have_no_place() {
    let found = Made { tells_clock: false, ..made() }.found();
    assert_eq!((found.placed, found.unplaced), (0, 15));
}

#[test]
fn readings_that_reach_beyond_the_window_are_told_as_their_part() {
    let found = Made { pace: 9_000, ..made() }.found();
    let pass = found.passes.iter().find(|pass| (pass.round, pass.repeat) == (1, 0)).unwrap();
    let line = pass.ports.iter().flat_map(|(_, lines)| lines).find(|line| line.family == Family::CnpSent).unwrap();
    assert!((line.sum() - 70.0 * 2.0 / 9.0).abs() < 1e-6, "{line:?}");
}

#[test]
fn the_page_lists_what_ports_counted() {
    let (block, page) = made().drawn();
    let rows = &block.table.as_ref().unwrap().rows;
    assert_eq!(rows.len(), 2);
    assert!(rows[0].last().unwrap().contains("gpu003 mlx5_0"), "{rows:?}");
    assert!(page.contains(block.heading));
}
