//! Made-up runs through the real event types: what a run loop would have written.

pub mod followed;
pub mod group;
mod host;
mod measured;
mod plan;

use std::{collections::HashMap, fs, path::Path};

use railgauge_model::{
    journal::{
        event::{Case, Event, Line, LinkRecord, Outcome},
        line,
    },
    plan::{Plan, model::Pattern},
    schedule::{Inventory, schedule},
};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
    terms::{Carrier, GpuPath, LinkLayer, Transport},
    unit::GigabitsPerSecond,
};

pub use measured::{Dice, sample, with_operations};

/// A made-up cluster and what is wrong with it. Hosts are counted from 0.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Number of hosts.
    pub hosts: usize,
    /// RDMA devices per host.
    pub rails: u32,
    /// Every measurement is made this often.
    pub repeats: u32,
    /// Soft-RoCE instead of ConnectX.
    pub software: bool,
    /// Sizes of the bandwidth tests.
    pub sizes: Vec<u64>,
    /// A host whose links carry 60 % of what others do.
    pub slow: Option<usize>,
    /// How many hosts are slow, from that on.
    pub slow_hosts: usize,
    /// The size at which it is slow, if not at all.
    pub slow_at: Option<u64>,
    /// Two hosts and the UDP source ports whose path between them carries half.
    pub bad_path: Option<(usize, usize, Vec<u16>)>,
    /// A rail of a host that flaps: half of its slices are empty.
    pub flapping: Option<(usize, u32)>,
    /// A host that never answered.
    pub down: Option<usize>,
    /// A host that dies in the middle of the last test.
    pub dies: Option<usize>,
    /// Whether one case delivers wrong bytes.
    pub wrong: bool,
    /// Whether one case is contaminated.
    pub contaminated: bool,
    /// Whether the run is interrupted before its last round.
    pub interrupted: bool,
    /// Days after 21 November 2026.
    pub day: u32,
    /// What the noise depends on.
    pub seed: u64,
    /// Firmware of every NIC.
    pub firmware: &'static str,
    /// Two tests measured in turn instead of the usual ones: what the second carries, in parts of the first.
    pub in_turn: Option<f64>,
    /// The turn of a plan that rotates.
    pub rotate: Option<u64>,
    /// Every rail with every rail; what pairs across rails carry, in parts of the others.
    pub crossed: Option<f64>,
    /// Who talks to whom in the tests over verbs, if not everybody with everybody.
    pub pattern: Option<Pattern>,
    /// The hosts of the run by number, where it does not have the first ones: what is left of more on this night.
    pub drawn: Vec<usize>,
    /// Whether these were chosen on the command line.
    pub part: bool,
    /// Night 0.
    pub first: jiff::civil::Date,
    /// First host's name, to try what a page does with it.
    pub odd_name: Option<String>,
}

impl Scenario {
    /// A healthy cluster of this size.
    pub fn healthy(hosts: usize, rails: u32) -> Self {
        Self {
            hosts,
            rails,
            repeats: 3,
            software: false,
            sizes: (0..10).map(|step| 64 << (2 * step)).collect(),
            slow: None,
            slow_hosts: 1,
            slow_at: None,
            bad_path: None,
            flapping: None,
            down: None,
            dies: None,
            wrong: false,
            contaminated: false,
            interrupted: false,
            day: 0,
            seed: 0,
            firmware: "28.41.1000",
            in_turn: None,
            rotate: None,
            crossed: None,
            pattern: None,
            drawn: Vec::new(),
            part: false,
            first: jiff::civil::date(2026, 11, 21),
            odd_name: None,
        }
    }

    /// The same cluster with one of everything that goes wrong.
    pub fn troubled(hosts: usize, rails: u32) -> Self {
        Self {
            slow: Some(hosts / 2),
            flapping: Some((1, rails - 1)),
            down: Some(hosts - 1),
            wrong: true,
            contaminated: true,
            ..Self::healthy(hosts, rails)
        }
    }

    /// Name of a host.
    pub fn name(&self, index: usize) -> String {
        match (&self.odd_name, index) {
            (Some(name), 0) => name.clone(),
            _ => format!("gpu{:03}", self.number(index) + 1),
        }
    }

    /// The number of a host of the run among all.
    pub fn number(&self, index: usize) -> usize {
        self.drawn.get(index).copied().unwrap_or(index)
    }

    /// The journal of a run on it.
    pub fn lines(&self) -> Vec<Line> {
        let mut writer = Writer::new(self);
        let plan = plan::plan(self);
        writer.push(Event::Started {
            run_id: format!("{}-{}T020000Z", plan.name, writer.date.replace('-', "")),
            plan: plan.name.clone(),
            plan_hash: "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8".into(),
            resolved: Box::new(plan.clone()),
            version: "0.1.0".into(),
            controller: "Debian GNU/Linux 12 (bookworm), kernel 6.12.9, AMD EPYC 9554, 128 threads".into(),
            launcher: "ssh (OpenSSH_9.2p1)".into(),
        });
        for index in 0..self.hosts {
            let event = match self.down {
                Some(down) if down == index => Event::HostLost { host: self.name(index), failure: unreachable() },
                _ => host::up(self, index),
            };
            writer.push(event);
        }
        let cases = self.cases(&plan);
        writer.push(Event::Planned { cases: cases.clone() });
        if self.hosts > 2 {
            let text = "governor is `powersave`, the other hosts say `performance`".into();
            writer.push(Event::Note { host: self.name(2), text });
        }
        self.outcomes(&plan, &cases, &mut writer);
        writer.push(if self.interrupted { Event::Interrupted } else { Event::Finished });
        writer.lines
    }

    /// Writes a run directory as far as a run loop does.
    pub fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("records.jsonl"), self.jsonl()).unwrap();
    }

    /// What a run loop adds when it is asked for further cases.
    pub fn further(&self, cases: &[Case]) -> Vec<Line> {
        let mut writer = Writer { milliseconds: 3_600_000, ..Writer::new(self) };
        writer.push(Event::Confirming { cases: cases.to_vec(), links: false });
        Self { repeats: 1, ..self.clone() }.outcomes(&plan::plan(self), cases, &mut writer);
        writer.lines
    }

    /// The journal as text.
    pub fn jsonl(&self) -> String {
        text(&self.lines())
    }

    fn cases(&self, plan: &Plan) -> Vec<Case> {
        let mut inventory = Inventory::of_plan(plan);
        for host in &plan.hosts {
            inventory.set(&host.name, Transport::Verbs, self.rails);
            inventory.set(&host.name, Transport::Tcp, 1);
        }
        let schedule = schedule(plan, &inventory).unwrap();
        schedule
            .cases()
            .map(|place| {
                let round = &schedule.rounds[place.round];
                Case {
                    id: place.id,
                    test: plan.tests[round.test].name.as_str().into(),
                    round: round.number,
                    flow: round.flows[place.flow].clone(),
                    cell: schedule.cells[round.test][place.cell].clone().into(),
                }
            })
            .collect()
    }

    fn outcomes(&self, plan: &Plan, cases: &[Case], writer: &mut Writer) {
        let index: HashMap<String, usize> = (0..self.hosts).map(|index| (self.name(index), index)).collect();
        let stop = if self.interrupted { cases.len() * 9 / 10 } else { cases.len() };
        // Two for each of eight blocks.
        let repeats = if self.in_turn.is_some() { 16 } else { self.repeats };
        let death = self.dies.map(|_| cases.len() * 85 / 100);
        let mut died = false;
        for (place, case) in cases.iter().enumerate().take(stop) {
            let ends = [index[&*case.flow.from.host], index[&*case.flow.to.host]];
            let gone = self.down.into_iter().chain(self.dies.filter(|_| death.is_some_and(|at| place >= at)));
            let lost = gone.clone().find(|host| ends.contains(host));
            for repeat in 0..repeats {
                let (link, result) = match lost {
                    // What was never up is not tried at all.
                    Some(host) if self.down == Some(host) => continue,
                    Some(host) => {
                        let cause = "the agent's connection ended (ssh: broken pipe)";
                        let failure = Failure::new(Stage::Measure, Kind::Lost, cause).at(&self.name(host));
                        if !died {
                            died = true;
                            writer.push(Event::HostLost { host: self.name(host), failure: failure.clone() });
                        }
                        (None, Err(failure))
                    }
                    None => (Some(self.link(case, ends)), Ok(measured::sample(self, plan, case, ends, repeat))),
                };
                let started_at = writer.time(4).into();
                let (case, result) = (case.id, result);
                writer.push(Event::Outcome(Box::new(Outcome {
                    case,
                    repeat,
                    started_at,
                    link,
                    link_line: None,
                    result,
                })));
            }
        }
    }

    fn link(&self, case: &Case, _ends: [usize; 2]) -> LinkRecord {
        let tcp = case.cell.transport == Transport::Tcp;
        let device = |rail: u32| match (tcp, self.software) {
            (true, _) => "eth0".to_owned(),
            (false, true) => format!("rxe{rail}"),
            (false, false) => format!("mlx5_{rail}"),
        };
        LinkRecord {
            transport: if tcp { Carrier::Tcp } else { Carrier::VerbsRc },
            link_layer: if tcp { LinkLayer::Ethernet } else { LinkLayer::RoceV2 },
            gpu_path: GpuPath::None,
            software: self.software && !tcp,
            from_device: device(case.flow.from.rail),
            to_device: device(case.flow.to.rail),
            rate_gbps: (!self.software).then_some(GigabitsPerSecond(if tcp { 25.0 } else { 200.0 })),
            mtu: if tcp { 1500 } else { 4096 },
            write_order: None,
            settings: [("depth", "128"), ("gid_index", "3"), ("traffic_class", "106"), ("completion", "poll")]
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }
}

/// Lines as they stand in a journal.
pub fn text(lines: &[Line]) -> String {
    let Some(Line { event: Event::Started { run_id, .. }, .. }) = lines.first() else { panic!("no run begins") };
    numbered(run_id, 1, lines)
}

/// What the first line of a journal calls the run.
pub fn run_of(text: &str) -> String {
    line::run_of(text.lines().next().unwrap().as_bytes()).unwrap()
}

/// A journal with these lines behind its own.
pub fn behind(text: &str, lines: &[Line]) -> String {
    let run = run_of(text);
    text.to_owned() + &numbered(&run, text.lines().count() as u64 + 1, lines)
}

/// A journal of a run that came to its end, with these lines before that end: what a run loop writes when it is asked for more.
pub fn continued(text: &str, lines: &[Line]) -> String {
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    let end = line::decode(&text.as_bytes()[last..], Some(&run_of(text))).unwrap().line;
    assert_eq!(end.event, Event::Finished);
    let lines: Vec<Line> = lines.iter().cloned().chain([end]).collect();
    behind(&text[..last], &lines)
}

fn numbered(run: &str, first: u64, lines: &[Line]) -> String {
    let of = |(n, line): (u64, &Line)| String::from_utf8(line::encode(run, n, &line.at, &line.event).unwrap()).unwrap();
    (first..).zip(lines).map(of).collect()
}

/// A first line of a journal, or one of an old version, from what stands before its sum.
pub fn sealed(body: &str) -> String {
    sealed_within("", body)
}

/// A later line of this run from what stands before its sum.
pub fn sealed_within(run: &str, body: &str) -> String {
    let body = body.strip_suffix('}').unwrap();
    format!("{body},\"sum\":\"{:08x}\"}}\n", crc32fast::hash(format!("{run}{body}").as_bytes()))
}

fn unreachable() -> Failure {
    Failure::new(Stage::Connect, Kind::Lost, "ssh: connect to host: No route to host (4 tries)")
        .remedy(remedy::CHECK_HOST_UP)
}

/// Collects lines on a clock that only this file moves.
struct Writer {
    lines: Vec<Line>,
    date: String,
    milliseconds: u64,
}

impl Writer {
    fn new(of: &Scenario) -> Self {
        let date = of.first + jiff::Span::new().days(of.day);
        Self { lines: Vec::new(), date: date.to_string(), milliseconds: 0 }
    }

    fn time(&mut self, step: u64) -> String {
        self.milliseconds += step;
        let (s, ms) = (self.milliseconds / 1000, self.milliseconds % 1000);
        format!("{}T{:02}:{:02}:{:02}.{ms:03}Z", self.date, 2 + s / 3600, s / 60 % 60, s % 60)
    }

    fn push(&mut self, event: Event) {
        let at = self.time(1);
        self.lines.push(Line { at, event });
    }
}
