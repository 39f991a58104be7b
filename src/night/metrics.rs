//! A run as metrics, in Prometheus' text format, also for the textfile collector of its node exporter. All are gauges in base units: bytes
//! and seconds. Bandwidths of pairs are payload.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::atomic::AtomicU64,
};

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use railgauge_analysis::{
    journal::{Journal, JournalEnd},
    row::Row,
    status::Status,
    verdict::{Cases, Verdict},
};
use railgauge_stats::robust::median;
use railgauge_wire::Metric;

use super::{
    judged::Judged,
    state::State,
    states::{Condition, Known, OfTest, States},
};

type Labels = Vec<(String, String)>;
type Numbers = Family<Labels, Gauge<f64, AtomicU64>>;

/// `run`: the newest run of the plan; `None` if it cannot be read.
pub fn metrics(run: Option<&Judged>, plan: &str, states: &States, state: State) -> Result<String, fmt::Error> {
    let mut all = All { registry: Registry::default(), plan: plan.to_owned() };
    let help = "State of the cluster after all runs: 0 OK, 1 warning, 2 critical, 3 unknown";
    all.one("state", help, &[], state.code().into());
    let finished = run.is_some_and(|run| run.journal.end == JournalEnd::Finished && run.is_whole());
    let help = "Whether the newest run finished and its records are whole; with 0 nothing else here is certain";
    all.one("run_finished", help, &[], f64::from(u8::from(finished)));
    if let Some(run) = run {
        of_run(&mut all, run);
        of_verdicts(&mut all, run);
        of_tests(&mut all, run);
        of_hosts(&mut all, run);
    }
    of_components(&mut all, states);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &all.registry)?;
    Ok(in_order(&text))
}

/// Sorts the samples of each metric by labels: equal records give equal bytes.
fn in_order(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    for samples in lines.chunk_by_mut(|a, b| a.starts_with('#') == b.starts_with('#')) {
        if !samples[0].starts_with('#') {
            samples.sort_unstable();
        }
    }
    lines.join("\n") + "\n"
}

struct All {
    registry: Registry,
    plan: String,
}

impl All {
    /// Its help is a sentence; the library adds the full stop.
    fn family(&mut self, name: &str, help: &str) -> Numbers {
        let family = Numbers::default();
        self.registry.register(format!("railgauge_{name}"), help, family.clone());
        family
    }

    fn labels(&self, further: &[(&str, &str)]) -> Labels {
        let own = [("plan", self.plan.as_str())];
        own.iter().chain(further).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn one(&mut self, name: &str, help: &str, further: &[(&str, &str)], value: f64) {
        let labels = self.labels(further);
        self.family(name, help).get_or_create(&labels).set(value);
    }
}

fn of_run(all: &mut All, run: &Judged) {
    let verdicts = &run.verdicts;
    let about = [("run_id", verdicts.run_id.as_str()), ("version", run.journal.version.as_str())];
    all.one("run_info", "The run that the other metrics are of; always 1", &about, 1.0);
    let seconds = |time: jiff::Timestamp| time.as_millisecond() as f64 / 1e3;
    all.one("run_start_time_seconds", "When the run began, Unix time", &[], seconds(run.began));
    all.one("run_end_time_seconds", "When the last record of the run was written, Unix time", &[], seconds(run.ended));
    let status = all.family("run_status", "1 for the status that the run has, 0 for the others");
    for &each in Status::ALL {
        let labels = all.labels(&[("status", each.word())]);
        status.get_or_create(&labels).set(f64::from(u8::from(each == verdicts.status)));
    }
    let cases = all.family("run_cases", "Cases by what became of them");
    let Cases { measured, short, unverified, contaminated, impossible, no_value, failed, not_run, wrong, planned: _ } =
        verdicts.cases;
    for (state, n) in [
        ("measured", measured),
        ("short", short),
        ("unverified", unverified),
        ("contaminated", contaminated),
        ("impossible", impossible),
        ("no-value", no_value),
        ("failed", failed),
        ("not-run", not_run),
        ("wrong-bytes", wrong),
    ] {
        cases.get_or_create(&all.labels(&[("state", state)])).set(n as f64);
    }
}

fn of_verdicts(all: &mut All, run: &Judged) {
    let counts =
        all.family("verdicts", "Verdicts that count, by test and status; those that the plan waives are left out");
    let mut tests: BTreeMap<&str, Vec<&Verdict>> = BTreeMap::new();
    for verdict in run.verdicts.verdicts.iter().filter(|verdict| !verdict.waived) {
        tests.entry(&verdict.test).or_default().push(verdict);
    }
    for (test, verdicts) in tests {
        for &status in Status::ALL {
            let n = verdicts.iter().filter(|verdict| verdict.status == status).count();
            counts.get_or_create(&all.labels(&[("test", test), ("status", status.word())])).set(n as f64);
        }
    }
    let Some(switches) = &run.verdicts.switches else { return };
    let loaded = all.family(
        "links_loaded_ratio",
        "Share of the links between switches, each direction by itself, that a test loaded",
    );
    for found in switches.loaded.iter().filter(|found| found.of > 0) {
        loaded.get_or_create(&all.labels(&[("test", &found.test)])).set(found.loaded as f64 / found.of as f64);
    }
}

#[derive(Default)]
struct Values {
    values: Vec<f64>,
    ceilings: Vec<f64>,
}

fn of_tests(all: &mut All, run: &Judged) {
    let mut metrics: BTreeMap<&str, (Metric, BTreeMap<Labels, Values>)> = BTreeMap::new();
    for row in &run.rows {
        let (Some(value), None) = (row.value, &row.error) else { continue };
        let (_, cells) = metrics.entry(row.metric.word()).or_insert_with(|| (row.metric, BTreeMap::new()));
        let cell = cells.entry(cell(all, row)).or_default();
        cell.values.push(value);
        cell.ceilings.extend(row.ceiling.map(|ceiling| value / ceiling).filter(|share| share.is_finite()));
    }
    let ceilings =
        all.family("test_ceiling_ratio", "Lowest share of the computed ceiling that a flow of a test reached");
    let help = "Flows with a value that may be trusted, by test, message size and queue pairs";
    let counts = all.family("test_values", help);
    for (word, (metric, cells)) in metrics {
        let (unit, factor) = base(metric);
        let name = if unit.is_empty() { format!("test_{word}") } else { format!("test_{word}_{unit}") };
        let help = format!("{} of the flows of a test, of those with a value that may be trusted", metric.title());
        let family = all.family(&name, &help);
        for (labels, cell) in cells {
            let with = |name: &str, value: &str| {
                let mut labels = labels.clone();
                labels.push((name.to_owned(), value.to_owned()));
                labels
            };
            counts.get_or_create(&with("metric", word)).set(cell.values.len() as f64);
            let least = |values: &[f64]| values.iter().copied().min_by(f64::total_cmp);
            let most = cell.values.iter().copied().max_by(f64::total_cmp);
            for (statistic, value) in
                [("min", least(&cell.values)), ("median", median(&cell.values).ok()), ("max", most)]
            {
                family.get_or_create(&with("statistic", statistic)).set(value.unwrap_or(f64::NAN) * factor);
            }
            if let Some(lowest) = least(&cell.ceilings) {
                ceilings.get_or_create(&with("metric", word)).set(lowest);
            }
        }
    }
}

fn cell(all: &All, row: &Row) -> Labels {
    let (size, qps) = (row.size_bytes.0.to_string(), row.qps.to_string());
    let further = [("test", &*row.test), ("op", &row.op), ("size_bytes", &size), ("qps", &qps), ("env", &row.env)];
    all.labels(&further)
}

/// The base unit at the end of a metric's name, and the factor to it.
fn base(metric: Metric) -> (&'static str, f64) {
    match metric.unit() {
        "Gb/s" => ("bytes_per_second", 1e9 / 8.0),
        "GB/s" => ("bytes_per_second", 1e9),
        "Mmsg/s" => ("per_second", 1e6),
        "µs" => ("seconds", 1e-6),
        "ns" => ("seconds", 1e-9),
        "%" => ("ratio", 1e-2),
        "s/GiB" => ("seconds", 1.0),
        _ => ("", 1.0),
    }
}

fn of_hosts(all: &mut All, run: &Judged) {
    let Journal { hosts, lost, .. } = &run.journal;
    let up = hosts.keys().filter(|host| !lost.contains_key(*host)).count();
    let all_hosts = all.family("hosts", "Hosts of the run that answered and stayed, and those that were lost");
    for (state, n) in [("up", up), ("lost", lost.len())] {
        all_hosts.get_or_create(&all.labels(&[("state", state)])).set(n as f64);
    }
}

const fn number(state: Condition) -> f64 {
    match state {
        Condition::Good => 0.0,
        Condition::Undecided => 1.0,
        Condition::Faulty => 2.0,
        Condition::Unknown => 3.0,
    }
}

/// Every host, and its devices by test: as many series as there are of these, whatever sizes and pairs were measured.
fn of_components(all: &mut All, states: &States) {
    let seconds = |known: &OfTest| known.measured.at.as_second() as f64;
    let hosts = all.family("host_state", "State of a host after all runs: 0 good, 1 undecided, 2 faulty, 3 unknown");
    for known in &states.hosts {
        let (host, place) = (known.hosts.concat(), known.place.clone().unwrap_or_default());
        hosts.get_or_create(&all.labels(&[("host", &host), ("place", &place)])).set(number(known.state));
    }
    let state =
        all.family("device_state", "State of a device of a host in a test: 0 good, 1 undecided, 2 faulty, 3 unknown");
    let time = all.family("device_measured_time_seconds", "When a device was last measured in a test, Unix time");
    let mut values: BTreeMap<String, Numbers> = BTreeMap::new();
    for (known, of) in devices(states) {
        let host = known.hosts.concat();
        let device = of.device.clone().unwrap_or_else(|| match &*known.kind {
            "host" => String::new(),
            _ => known.name.split(" of ").next().unwrap_or_default().to_owned(),
        });
        let labels =
            all.labels(&[("host", &host), ("device", &device), ("test", &of.test), ("measures", &of.measures)]);
        state.get_or_create(&labels).set(number(of.state));
        time.get_or_create(&labels).set(seconds(of));
        let (Some(metric), Some(value)) = (of.metric, of.value) else { continue };
        let (unit, factor) = base(metric);
        let name = format!("device_{}{}{unit}", metric.word(), if unit.is_empty() { "" } else { "_" });
        let help = format!("Last {} of a device of a host in a test: the median of its values", metric.title());
        let family = values.entry(name.clone()).or_insert_with(|| all.family(&name, &help));
        family.get_or_create(&labels).set(value * factor);
    }
}

/// Devices with their tests; hosts in the tests that do not name a device.
fn devices(states: &States) -> impl Iterator<Item = (&Known, &OfTest)> {
    let of = |known: &'_ Known| matches!(&*known.kind, "nic" | "GPU" | "NUMA node");
    let known = states.all.iter().filter(move |one| of(one)).flat_map(|one| one.tests.iter().map(move |of| (one, of)));
    let known: Vec<(&Known, &OfTest)> = known.collect();
    let has: BTreeSet<(&[String], &str)> = known.iter().map(|(one, of)| (&*one.hosts, &*of.test)).collect();
    let hosts =
        states.all.iter().filter(|one| one.kind == "host").flat_map(|host| host.tests.iter().map(move |of| (host, of)));
    let alone = hosts.filter(move |(host, of)| of.metric.is_some() && !has.contains(&(&*host.hosts, &*of.test)));
    known.into_iter().chain(alone)
}
