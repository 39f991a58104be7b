//! The two things `bench/analysis` needs beside the railgauge command: made-up run directories, and the time that
//! localisation takes.
//!
//! ```text
//! analysis make DIR      DIR/before, DIR/after: 10 runs each of 20,000 cells; DIR/nights: 365 nights of 2,000 series
//! analysis page DIR HOSTS RAILS ROUNDS
//!                        DIR: one run of random pairs, or of all pairs where ROUNDS is `all`; the hosts below one of 32 leaves are slow
//! analysis localise      seconds that naming the bad parts among 12,288 pairs takes, worst of five, as JSON
//! ```
//!
//! Runs are made by the real plan reader, scheduler, event types, journal and frame writer, with the sums by which readers
//! of many runs know that frame and journal are as they were written; only the values are drawn.

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Instant,
};

use railgauge_analysis::{frames::FrameFile, journal, localise::localise, results::results, rows::rows, sums::Sums};
use railgauge_frame::Parquet;
use railgauge_model::{
    journal::{
        event::{Case, Event, Line, LinkRecord, Outcome, Sample},
        line::Tail,
        writer::Claim,
    },
    plan::{self, Plan},
    schedule::{Inventory, schedule},
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use railgauge_wire::{
    facts::{HostFacts, Interface, RdmaDevice, RdmaPort},
    measure::{Latency, Measurement},
    step::Checked,
    terms::{Carrier, GpuPath, LinkLayer, TestMetric, Transport},
    unit::{Bytes, GigabitsPerSecond, Nanoseconds, NanosecondsF64, NanosecondsI64},
};

/// From the start of a case to the line that tells of it.
const CASE: jiff::SignedDuration = jiff::SignedDuration::from_millis(1250);

type Outcomes = Result<(), Box<dyn Error>>;

fn main() -> Outcomes {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", place] => make(Path::new(place)),
        ["page", place, hosts, rails, rounds] => page(Path::new(place), hosts.parse()?, rails.parse()?, rounds),
        ["localise"] => time_localisation(),
        _ => Err("usage: analysis make DIR | analysis page DIR HOSTS RAILS ROUNDS | analysis localise".into()),
    }
}

/// A cluster to make runs of.
struct Cluster {
    plan: Plan,
    cases: Vec<Case>,
}

impl Cluster {
    fn new(hosts: u32, rails: u32, tests: &str) -> Result<Self, Box<dyn Error>> {
        let place = tempfile::tempdir()?;
        let path = place.path().join("plan.toml");
        let digits = hosts.to_string().len().max(3);
        let names = format!("gpu[{:0digits$}-{hosts:0digits$}]", 1);
        let head = format!("name = \"made\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"{names}\"]\n");
        fs::write(&path, head + tests)?;
        let plan = plan::load(&path).map_err(|mistakes| mistakes.render(false))?.plan;
        let mut inventory = Inventory::of_plan(&plan);
        plan.hosts.iter().for_each(|host| inventory.set(&host.name, Transport::Verbs, rails));
        let schedule = schedule(&plan, &inventory)?;
        let case = |place| {
            let (round, flow, cell) = schedule.resolve(place)?;
            let test = plan.tests[round.test].name.clone();
            Some(Case {
                id: place.id,
                test: test.into(),
                round: round.number,
                flow: flow.clone(),
                cell: cell.clone().into(),
            })
        };
        let cases = schedule.cases().filter_map(case).collect();
        Ok(Self { plan, cases })
    }

    /// The first events of a journal.
    fn head(&self, run: &Made<'_>) -> impl Iterator<Item = Event> {
        let started = Event::Started {
            run_id: run.id.to_owned(),
            plan: self.plan.name.clone(),
            plan_hash: "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8".to_owned(),
            resolved: Box::new(self.plan.clone()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            controller: "made".to_owned(),
            launcher: "made".to_owned(),
        };
        let up = |host: &plan::model::Host| Event::HostUp {
            host: host.name.clone(),
            facts: Box::new(facts(&host.name, run.rails, run.firmware)),
            clock: Some((NanosecondsI64(0), Nanoseconds(20_000))),
            wall: Some(NanosecondsI64(0)),
        };
        let events = [started].into_iter().chain(self.plan.hosts.iter().map(up));
        events.chain([Event::Planned { cases: self.cases.clone() }])
    }

    /// Writes the whole journal of one run, every case measured once, as a run does; `factor` makes each better or worse.
    fn record(&self, path: &Path, run: &Made<'_>, mut factor: impl FnMut(&Case) -> f64) -> Outcomes {
        let at = || run.at.to_owned();
        let mut journal = Claim::create(path)?.go_on(Tail::of_new_run()?, &path.with_extension("reserve"))?;
        for event in self.head(run) {
            journal.append(&Line { at: at(), event })?;
        }
        let over = run.at.parse::<jiff::Timestamp>()? + CASE;
        for case in &self.cases {
            let result = Ok(sample(case, factor(case)));
            let link = Some(link(case));
            let outcome = Outcome { case: case.id, repeat: 0, started_at: at().into(), link, link_line: None, result };
            journal.append(&Line { at: format!("{over:.3}"), event: Event::Outcome(Box::new(outcome)) })?;
        }
        journal.append(&Line { at: at(), event: Event::Finished })?;
        Ok(())
    }
}

/// What tells a run from others of its cluster.
struct Made<'a> {
    id: &'a str,
    at: &'a str,
    rails: u32,
    firmware: &'a str,
}

/// Writes all run directories.
fn make(place: &Path) -> Outcomes {
    // 33 hosts of 8 rails: 4,224 links, three bandwidths and two latencies each.
    let wide = Cluster::new(33, 8, &tests("64KiB..16MiB x16", "8"))?;
    for (side, first) in [("before", 0), ("after", 10)] {
        for run in first..first + 10 {
            let slow = (side == "after").then_some("gpu007");
            write(&wide, &place.join(side).join(format!("run-{run:02}")), run, (8, "28.43"), slow)?;
        }
    }
    // 16 hosts of 3 rails: 360 links, two bandwidths and four latencies each.
    let nightly = Cluster::new(16, 3, &tests("64KiB..1MiB x16", "8..64 x8"))?;
    for night in 0..365 {
        let slow = (night >= 300).then_some("gpu011");
        let firmware = if night >= 120 { "28.44" } else { "28.43" };
        let directory = place.join("nights").join(format!("night-{night:03}"));
        write(&nightly, &directory, night, (3, firmware), slow)?;
    }
    println!("made");
    Ok(())
}

/// Where the journal of a run belongs; one that is there is taken away.
fn fresh(directory: &Path) -> Result<PathBuf, Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let path = directory.join("records.jsonl");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(path),
    }
}

/// Writes one large run for `bench/pages`.
fn page(place: &Path, hosts: u32, rails: u32, rounds: &str) -> Outcomes {
    let pattern = match rounds {
        "all" => "pattern = \"tournament\"\n".to_owned(),
        rounds => format!("pattern = \"random\"\nrounds = {}\n", rounds.parse::<u32>()?),
    };
    let test = "[[test]]\nname = \"write-bw\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"verbs\"\nsizes = \"1MiB\"\n";
    let cluster = Cluster::new(hosts, rails, &format!("{test}{pattern}"))?;
    let mut dice = Dice::new(5);
    let leaf = (hosts / 32).max(1);
    let low = |host: &str| host.trim_start_matches("gpu").parse::<u32>().is_ok_and(|number| number.div_ceil(leaf) == 3);
    let factor = |case: &Case| {
        let share = if case.flow.hosts().into_iter().any(|host| low(host)) { 0.7 } else { 1.0 };
        share * (0.01 * dice.normal()).exp()
    };
    let made = Made { id: "made", at: "2026-01-01T02:00:00.000Z", rails, firmware: "28.43" };
    let records = fresh(place)?;
    cluster.record(&records, &made, factor)?;
    let length = fs::metadata(&records)?.len();
    println!("{}", serde_json::json!({ "cases": cluster.cases.len(), "journal_bytes": length }));
    Ok(())
}

/// A bandwidth test and a latency test of every pair, of these sizes.
fn tests(bandwidth: &str, latency: &str) -> String {
    let test = |name: &str, metric: &str, sizes: &str| {
        format!(
            "[[test]]\nname = {name:?}\nop = \"write\"\nmetric = {metric:?}\ntransport = \"verbs\"\nsizes = {sizes:?}\n\
             pattern = \"tournament\"\n"
        )
    };
    test("write-bw", "bandwidth", bandwidth) + &test("write-lat", "latency", latency)
}

const TESTS_SCREEN: &str = r#"
[[test]]
name = "write-bw"
op = "write"
metric = "bandwidth"
transport = "verbs"
sizes = "1MiB"
pattern = "random"
rounds = 6
"#;

/// Writes what readers of many runs read of one: the journal, the frame, and the sums of both.
fn write(
    cluster: &Cluster,
    directory: &Path,
    day: u32,
    (rails, firmware): (u32, &str),
    slow: Option<&str>,
) -> Outcomes {
    let date = jiff::civil::date(2025, 11, 1) + jiff::Span::new().days(day);
    let (id, at) = (format!("made-{date}"), format!("{date}T02:00:00.000Z"));
    let mut dice = Dice::new(u64::from(day) + 77);
    let factor = |case: &Case| {
        let low = slow.is_some_and(|host| case.flow.hosts().into_iter().any(|of| **of == *host));
        let share = if low { 0.9 } else { 1.0 };
        share * (0.01 * dice.normal()).exp()
    };
    let path = fresh(directory)?;
    cluster.record(&path, &Made { id: &id, at: &at, rails, firmware }, factor)?;
    let journal = journal::read(&path)?;
    let all = rows(&journal, &results(&journal)?);
    let parquet = directory.join("records.parquet");
    Parquet.write(&mut std::iter::once(all), &fs::File::create(&parquet)?, &parquet)?;
    let sums = Sums { journal: Sums::of_file(&path)?, frame: Sums::of_file(&parquet)?, whole: true };
    Ok(fs::write(directory.join("verdicts.json"), serde_json::json!({ "sums": sums }).to_string())?)
}

fn time_localisation() -> Outcomes {
    // 512 hosts of 8 rails in 6 rounds: 256 · 8 · 6 = 12,288 pairs.
    let cluster = Cluster::new(512, 8, TESTS_SCREEN)?;
    let mut dice = Dice::new(1);
    let factor = |case: &Case| {
        let low = case.flow.hosts().into_iter().any(|host| ["gpu100", "gpu333"].contains(&&**host));
        let share = if low { 0.7 } else { 1.0 };
        share * (0.02 * dice.normal()).exp()
    };
    let run = Made { id: "made", at: "2026-01-01T02:00:00.000Z", rails: 8, firmware: "28.43" };
    let place = tempfile::tempdir()?;
    let path = fresh(place.path())?;
    cluster.record(&path, &run, factor)?;
    let journal = journal::read(&path)?;
    let results = results(&journal)?;
    let rows = rows(&journal, &results);
    let mut times: Vec<f64> = Vec::new();
    let mut found = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        found = localise(&journal, &results, &rows);
        times.push(start.elapsed().as_secs_f64());
    }
    let test = found.first().ok_or("no test was looked at")?;
    let names: Vec<&str> = test.suspects.iter().map(|suspect| suspect.name.as_str()).collect();
    let told = serde_json::json!({ "pairs": test.pairs, "suspects": names, "seconds": times });
    println!("{told}");
    Ok(())
}

fn facts(host: &str, rails: u32, firmware: &str) -> HostFacts {
    let device = |rail: u32| RdmaDevice {
        name: format!("mlx5_{rail}"),
        driver: Some("mlx5_core".to_owned()),
        firmware: Some(firmware.to_owned()),
        board: Some("MT_0000000838".to_owned()),
        guid: Some(format!("{host}:{rail}")),
        ports: vec![RdmaPort { number: 1, state: Some("ACTIVE".to_owned()), ..RdmaPort::default() }],
        ..RdmaDevice::default()
    };
    HostFacts {
        hostname: host.to_owned(),
        os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        kernel: "6.12.9".to_owned(),
        architecture: "x86_64".to_owned(),
        rdma: (0..rails).map(device).collect(),
        interfaces: (0..rails).map(|rail| Interface { name: format!("eth{rail}"), ..Interface::default() }).collect(),
        ..HostFacts::default()
    }
}

fn link(case: &Case) -> LinkRecord {
    LinkRecord {
        transport: Carrier::VerbsRc,
        link_layer: LinkLayer::RoceV2,
        gpu_path: GpuPath::None,
        software: false,
        from_device: format!("mlx5_{}", case.flow.from.rail),
        to_device: format!("mlx5_{}", case.flow.to.rail),
        rate_gbps: Some(GigabitsPerSecond(400.0)),
        mtu: 4096,
        write_order: None,
        settings: BTreeMap::new(),
    }
}

/// A window of 350 Gb/s, or of operations that all take 1.8 µs one way, times a factor for the better.
fn sample(case: &Case, factor: f64) -> Sample {
    let initiator = match case.cell.metric {
        TestMetric::Latency => latency((1_800.0 / factor) as u64, case.cell.size),
        _ => bandwidth(Bytes((350e9 / 8.0 * factor) as u64), case.cell.size),
    };
    Sample {
        initiator,
        // A message before the window and one after it.
        checked: Checked { verified: case.cell.size * 2, wrong: Bytes::ZERO, first_wrong: None },
        ..Sample::default()
    }
}

fn bandwidth(bytes: Bytes, size: Bytes) -> Measurement {
    let operations = bytes / size;
    Measurement {
        started: Nanoseconds(1),
        elapsed: Nanoseconds::from_secs(1),
        operations,
        bytes: size * operations,
        ..Measurement::default()
    }
}

fn latency(time: u64, size: Bytes) -> Measurement {
    let operations = 700_000;
    let latency = Latency {
        samples: operations,
        min: Nanoseconds(time),
        p50: Nanoseconds(time),
        p90: Nanoseconds(time),
        p99: Nanoseconds(time),
        p999: Nanoseconds(time),
        max: Nanoseconds(time),
        mean: NanosecondsF64(time as f64),
        stdev: NanosecondsF64(0.0),
        timer: Nanoseconds(20),
        histogram: vec![(Nanoseconds(time), operations)],
    };
    // Half round trips, one after the other.
    let elapsed = 2 * operations * time;
    Measurement {
        started: Nanoseconds(1),
        elapsed: Nanoseconds(elapsed),
        operations,
        bytes: size * operations,
        latency: Some(Box::new(latency)),
        ..Measurement::default()
    }
}

/// Random numbers, the same on every machine.
struct Dice(ChaCha8Rng);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Roughly normal with centre 0 and standard deviation 1: the sum of twelve uniforms.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.0.random::<f64>()).sum::<f64>() - 6.0
    }
}
