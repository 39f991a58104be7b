//! Made-up soaks: what agents and the run loop would have written.

use std::{collections::BTreeMap, path::Path, time::Duration};

use railgauge_analysis::{
    journal::{self, Journal, Seen},
    results::results,
    rows::rows,
    soak::{Soaking, soaking},
    status::Status,
    verdict::{Kind, Verdict, Verdicts, verdicts},
};
use railgauge_model::{
    journal::event::{Event, Line, Soaked, SoakedFlow, Stall},
    plan::model::{Degraded, Soak, Topology},
    topology::told::{Cable, Device, Nic, Plug, Switch, Told},
};
use railgauge_wire::{
    failure::{Failure, Kind as Why, Stage},
    step::Checked,
    unit::{Bytes, GigabitsPerSecond, Nanoseconds},
    watch::{CounterRow, PortSeen, PortState, Watched},
};

use crate::support::{self, Scenario};

/// When the soak begins: 2026-11-21 02:10:00 UTC, in milliseconds.
pub const BEGIN: u64 = 1_795_227_000_000;
/// Time between two answers of an agent, in milliseconds.
pub const ANSWER: u64 = 60_000;

pub fn at(milliseconds: u64) -> Nanoseconds {
    Nanoseconds::from_millis(BEGIN + milliseconds)
}

/// A time in which a port is down: host, rail, begin and end in milliseconds.
pub type Flap = (usize, u32, u64, u64);

/// What happens in a made-up soak. Times are in milliseconds from its begin.
#[derive(Clone)]
pub struct Made {
    pub scenario: Scenario,
    /// Begin and end of each process's traffic and watch.
    pub spans: Vec<(u64, u64)>,
    pub flaps: Vec<Flap>,
    /// Flow (by its place among those of the soak), begin, end, whether a window failed.
    pub stalls: Vec<(usize, u64, u64, bool)>,
    /// Host, rail, when, counter, rises.
    pub rises: Vec<(usize, u32, u64, &'static str, u64)>,
    /// Times in which a port has half its lanes: host, rail, begin and end in milliseconds.
    pub narrow: Vec<Flap>,
    /// Longest time between two looks.
    pub gap: u64,
    pub soak: Soak,
}

impl Made {
    pub fn healthy() -> Self {
        let scenario = Scenario { sizes: vec![65536, 1 << 24], repeats: 1, ..Scenario::healthy(4, 2) };
        let soak = Soak {
            lasts: Duration::from_secs(600),
            test: "write-bw".into(),
            rate_limit: None,
            window: Duration::from_secs(10),
            longest_outage: Duration::ZERO,
            longest_degraded: Some(Degraded { longest: Duration::ZERO, written: true }),
            limits: BTreeMap::new(),
            levels: None,
        };
        let spans = vec![(0, 600_000)];
        let (flaps, stalls, rises, narrow) = Default::default();
        Self { scenario, spans, flaps, stalls, rises, narrow, gap: 110, soak }
    }

    pub fn longest(self, milliseconds: u64) -> Self {
        Self { soak: Soak { longest_outage: Duration::from_millis(milliseconds), ..self.soak.clone() }, ..self }
    }

    /// The journal of its run, with everything of the soak behind the tests.
    pub fn journal(&self) -> Journal {
        let mut journal = journal::parse(self.scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
        journal.plan.soak = Some(self.soak.clone());
        journal.watched = self.watched();
        journal.soaked = self.soaked(&flows(&journal));
        journal
    }

    pub fn watched(&self) -> Vec<Seen> {
        let pieces = self.spans.iter().flat_map(|(begin, end)| {
            let starts = (*begin..*end).step_by(ANSWER as usize);
            starts.map(move |from| (from, (from + ANSWER).min(*end), from == *begin))
        });
        let of = |(from, until, first)| (0..self.scenario.hosts).map(move |host| self.seen(host, from, until, first));
        pieces.flat_map(of).collect()
    }

    pub fn seen(&self, host: usize, from: u64, until: u64, first: bool) -> Seen {
        let ports = (0..self.scenario.rails).map(|rail| self.port((host, rail), from, until, first)).collect();
        let seen = Watched { from: at(from), until: at(until), cpu: Nanoseconds::from_millis(3), ports };
        Seen { host: self.scenario.name(host), error: Nanoseconds(60_000), seen }
    }

    pub fn port(&self, (host, rail): (usize, u32), from: u64, until: u64, first: bool) -> PortSeen {
        let flaps = || self.flaps.iter().filter(|(of, on, ..)| (*of, *on) == (host, rail));
        let narrow = || self.narrow.iter().filter(|(of, on, ..)| (*of, *on) == (host, rail));
        let share = |now: u64| if narrow().any(|(.., begin, end)| (*begin..*end).contains(&now)) { 2 } else { 4 };
        let state = |after: u64, now: u64, up: bool| PortState {
            after: at(after),
            at: at(now),
            up,
            rate_gbps: up.then(|| GigabitsPerSecond(50.0 * f64::from(share(now)))),
            lanes: up.then(|| share(now)),
            words: if up { "state 4: ACTIVE, carrier 1" } else { "state 1: DOWN, carrier 0" }.into(),
        };
        let is_down = flaps().any(|(.., begin, end)| (*begin..*end).contains(&from));
        let mut states: Vec<PortState> = first.then(|| state(from, from, !is_down)).into_iter().collect();
        // A change is between the look before it and the one behind it.
        let changes = flaps().flat_map(|(.., begin, end)| [(*begin, false), (*end, true)]);
        let mut changes: Vec<(u64, bool)> =
            changes.filter(|(when, _)| (from + u64::from(first)..until).contains(when)).collect();
        let retrained = narrow().flat_map(|(.., begin, end)| [(*begin, true), (*end, true)]);
        changes.extend(retrained.filter(|(when, _)| (from + u64::from(first)..until).contains(when)));
        changes.sort_unstable();
        states.extend(changes.iter().map(|(when, up)| state(when - self.gap / 2, when + self.gap / 2, *up)));
        let row = |begin: u64| {
            let inside = |when: u64| (begin..begin + 1_000).contains(&when);
            let rises = self.rises.iter().filter(|(of, on, when, ..)| (*of, *on) == (host, rail) && inside(*when));
            let mut counted: BTreeMap<String, u64> =
                rises.map(|(.., name, rise)| ((*name).to_owned(), *rise)).collect();
            let downs = flaps().filter(|(.., begin, _)| inside(*begin)).count() as u64;
            if downs > 0 {
                *counted.entry("netdev/carrier_down_count".into()).or_default() += downs;
            }
            counted.insert("counters/symbol_error".into(), counted.get("counters/symbol_error").copied().unwrap_or(0));
            let gauges = BTreeMap::from([("module/temperature_c".to_owned(), 50.0 + host as f64)]);
            CounterRow { from: at(begin), until: at(begin + 1_000), counted, peaks: BTreeMap::new(), gauges }
        };
        PortSeen {
            device: format!("mlx5_{rail}"),
            port: 1,
            looks: (until - from) / 100,
            longest_gap: Nanoseconds::from_millis(self.gap),
            gaps: Vec::new(),
            states,
            rows: (from..until).step_by(1_000).map(row).collect(),
            failure: None,
        }
    }

    pub fn soaked(&self, flows: &[u64]) -> Vec<Soaked> {
        let pieces = self.spans.iter().flat_map(|(begin, end)| {
            (*begin..*end).step_by(ANSWER as usize).map(move |from| (from, (from + ANSWER).min(*end)))
        });
        let part = |(from, until): (u64, u64)| {
            let flow = |(place, case): (usize, &u64)| {
                let mine = self.stalls.iter().filter(|(of, ..)| *of == place);
                let inside = mine.filter_map(|(_, begin, end, failed)| {
                    let (begin, end) = ((*begin).max(from), (*end).min(until));
                    let error = Nanoseconds::from_millis(10);
                    (begin < end).then_some(Stall {
                        from: at(begin),
                        until: at(end),
                        error,
                        failed: *failed,
                        ..Stall::default()
                    })
                });
                let stalls: Vec<Stall> = inside.collect();
                let failed = stalls.iter().filter(|stall| stall.failed).count() as u64;
                let rate = Some(GigabitsPerSecond(190.0 - place as f64));
                SoakedFlow {
                    case: *case,
                    windows: 6,
                    measured: Nanoseconds::from_millis(until - from),
                    bytes: Bytes(1 << 40),
                    slowest: rate,
                    median: rate,
                    fastest: rate,
                    checked: Checked { verified: Bytes(1 << 25), ..Checked::default() },
                    failed,
                    failure: (failed > 0).then(|| Failure::new(Stage::Measure, Why::Fabric, "retries exceeded")),
                    stalls,
                    ..SoakedFlow::default()
                }
            };
            let flows = flows.iter().enumerate().map(flow).collect();
            Soaked { from: at(from), until: at(until), flows, gpus: Vec::new() }
        };
        pieces.map(part).collect()
    }

    pub fn found(&self) -> (Soaking, Verdicts) {
        judged(&self.journal())
    }
}

/// Cases that carry the traffic.
pub fn flows(journal: &Journal) -> Vec<u64> {
    let largest = Bytes(1 << 24);
    let carries = journal.cases.iter().filter(|case| &*case.test == "write-bw" && case.cell.size == largest);
    carries.map(|case| case.id).collect()
}

/// The place of a flow between these hosts and rails among those of the soak.
pub fn flow(journal: &Journal, from: usize, to: usize, rail: u32) -> usize {
    let name = |host: usize| format!("gpu{:03}", host + 1);
    let ends = |case: u64| {
        let flow = &journal.cases[case as usize].flow;
        let hosts = [flow.from.host.to_string(), flow.to.host.to_string()];
        hosts.contains(&name(from)) && hosts.contains(&name(to)) && flow.from.rail == rail
    };
    flows(journal).iter().position(|case| ends(*case)).unwrap()
}

pub fn judged(journal: &Journal) -> (Soaking, Verdicts) {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    (soaking(journal).unwrap(), verdicts(journal, &results, &rows, Vec::new()))
}

/// The status of the soak's verdict with this key, and its reason.
pub fn status<'v>(verdicts: &'v Verdicts, key: &str) -> (Status, String) {
    let of = |verdict: &&'v Verdict| verdict.kind == Kind::Soak && verdict.key.as_deref() == Some(key);
    let found: Vec<_> = verdicts.verdicts.iter().filter(of).collect();
    let [verdict] = found.as_slice() else { panic!("{key}: {found:?}") };
    (verdict.status, verdict.reason.to_string())
}

/// Two hosts with a cable between them for each rail, or a tree.
pub fn topology(cables: Vec<[Plug; 2]>) -> Topology {
    let mut told = Told { source: "made up".into(), ..Told::default() };
    for plug in cables.iter().flatten() {
        if let Device::Switch(name) = &plug.device {
            told.switches.insert(name.clone(), Switch { name: name.clone(), ..Switch::default() });
        }
    }
    told.cables =
        cables.into_iter().map(|[a, b]| Cable { a, b, rate_gbps: Some(400.0), width: None, speed: None }).collect();
    Topology { told: vec![told] }
}

pub fn nic(host: usize, rail: u32) -> Plug {
    let nic = Nic { host: Some(format!("gpu{:03}", host + 1)), device: Some(format!("mlx5_{rail}")), ..Nic::default() };
    Plug { device: Device::Nic(nic), port: None }
}

pub fn switch(name: &str, port: usize) -> Plug {
    Plug { device: Device::Switch(name.into()), port: Some(port.to_string()) }
}

/// The journal of a run with this soak, as a run loop writes it.
pub fn lines(made: &Made) -> String {
    support::text(&events(made))
}

/// The events of a run with this soak, as a run loop writes them.
pub fn events(made: &Made) -> Vec<Line> {
    let mut lines = made.scenario.lines();
    let Event::Started { resolved, .. } = &mut lines[0].event else { panic!("{:?}", lines[0]) };
    resolved.soak = Some(made.soak.clone());
    let journal = made.journal();
    let event = |event: Event| Line { at: "2026-11-21T02:30:00.000Z".into(), event };
    let end = lines.pop().unwrap();
    lines.extend(journal.watched.iter().map(|seen| {
        event(Event::Watched { host: seen.host.clone(), error: seen.error, seen: Box::new(seen.seen.clone()) })
    }));
    lines.extend(journal.soaked.iter().map(|part| event(Event::Soaked(Box::new(part.clone())))));
    lines.push(end);
    lines
}

/// The time of a line in milliseconds from the begin of the soak.
pub fn line_at(milliseconds: u64, event: Event) -> Line {
    let at = jiff::Timestamp::from_millisecond((BEGIN + milliseconds) as i64).unwrap();
    Line { at: at.to_string(), event }
}

/// The journal of these events.
pub fn read(events: &[Line]) -> Journal {
    journal::parse(support::text(events).as_bytes(), Path::new("records.jsonl")).unwrap()
}
