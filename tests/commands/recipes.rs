//! What docs/watch.md gives to others to run or to load: every recipe is taken from the page and run as far as this machine can.

mod gate;
mod monitors;
mod scraped;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use crate::{
    skip::{left_out, skipped},
    support::{self, Scenario, followed::followed_up},
};
use railgauge::night::{Judged, Nights, State, States, metrics};
use railgauge_analysis::journal::{Journal, JournalEnd, Try};
use railgauge_frame::Parquet;
use railgauge_model::{
    journal::event::Case,
    plan,
    schedule::{Inventory, schedule},
};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The contents of the blocks of code on the page.
fn blocks() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/watch.md")).unwrap();
    let parts = page.split("\n```").skip(1).step_by(2);
    parts.map(|block| block.split_once('\n').unwrap().1.to_owned()).collect()
}

/// The block with these words.
fn block(words: &str) -> String {
    let found: Vec<String> = blocks().into_iter().filter(|block| block.contains(words)).collect();
    assert_eq!(found.len(), 1, "blocks with `{words}`");
    found.into_iter().next().unwrap()
}

/// The agent for tests, where it is built and nobody named another one.
fn built_agent() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_BIN_EXE_railgauge")).with_file_name("railgauge-agent");
    (std::env::var_os("RAILGAUGE_AGENT").is_none() && built.exists()).then_some(built)
}

/// A machine as the recipes expect it: a plan, a place for runs, one for metrics, and railgauge in the PATH.
struct Machine {
    place: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["runs", "prom", "bin"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        let plan = "name = \"nightly\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a\", \"b\"] }\n\
            localise = { confirm = false }\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n\
            sizes = [\"64KiB\"]\nmeasure = \"2000 iterations\"\n";
        fs::write(place.path().join("nightly.toml"), plan).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_railgauge"), place.path().join("bin/railgauge")).unwrap();
        Self { place }
    }

    /// A run of text that is made up, in a folder for runs.
    fn add(&self, folder: &str, text: &str) {
        let run = self.at(folder).join("run");
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("records.jsonl"), text).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The text of a recipe with the places of this machine.
    fn here(&self, text: &str) -> String {
        let to = |name: &str| self.at(name).to_str().unwrap().to_owned();
        text.replace("/srv/railgauge/nightly", &to("runs"))
            .replace("/usr/local/bin/railgauge", &to("bin/railgauge"))
            .replace("PATH=/usr/local/bin", &format!("PATH={}", to("bin")))
            .replace("/etc/railgauge/nightly.toml", &to("nightly.toml"))
            .replace("/var/lib/prometheus/node-exporter", &to("prom"))
    }

    fn sh(&self, line: &str) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.at("bin").display());
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("PATH", path);
        if let Some(agent) = built_agent() {
            command.env("RAILGAUGE_AGENT", agent);
        }
        command.output().unwrap()
    }

    /// That a night left a run with its report, and metrics of it.
    fn has_a_night(&self, output: &Output) {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let runs: Vec<_> = fs::read_dir(self.at("runs")).unwrap().flatten().collect();
        assert_eq!(runs.len(), 1, "{said}");
        let day = runs[0].file_name().into_string().unwrap();
        assert!(day.len() == 8 && day.chars().all(|c| c.is_ascii_digit()), "{day}");
        assert!(runs[0].path().join("report.html").exists(), "{said}");
    }

    fn has_metrics(&self) {
        let text = fs::read_to_string(self.at("prom/railgauge.prom")).unwrap();
        assert!(text.contains("railgauge_run_finished{plan=\"nightly\"} 1"), "{text}");
    }
}

#[test]
fn the_line_for_cron_measures_and_writes_metrics_and_others_read_them() {
    let machine = Machine::new();
    let lines = block("17 2 * * *  railgauge run");
    let line = lines.lines().last().unwrap();
    let command = line.trim().splitn(6, ' ').nth(5).unwrap().trim().to_owned();
    // crontab(5): an unescaped per cent sign ends the command.
    assert!(!command.replace("\\%", "").contains('%'), "{command}");
    let output = machine.sh(&machine.here(&command.replace("\\%", "%")));
    machine.has_a_night(&output);
    machine.has_metrics();
    // What Nagios runs, and what it reads.
    let plugin = machine.sh(&machine.here(block("railgauge status --format nagios /").trim()));
    let said = String::from_utf8_lossy(&plugin.stdout).into_owned();
    assert!(matches!(plugin.status.code(), Some(0 | 1)), "{said}");
    assert!(said.starts_with("RAILGAUGE ") && said.lines().count() == 1 && said.contains("| age="), "{said}");
    // What the node health check runs: nobody is blamed, so the node stays; nor is it drained where railgauge is not there.
    let check = block("check_cmd_status");
    let check = check.trim().split_once("sh -c '").unwrap().1.strip_suffix('\'').unwrap().to_owned();
    assert_eq!(machine.sh(&machine.here(&check)).status.code(), Some(0));
    fs::remove_file(machine.at("bin/railgauge")).unwrap();
    assert_eq!(machine.sh(&machine.here(&check)).status.code(), Some(0));
}

#[test]
fn the_units_for_systemd_are_valid_and_their_commands_run() {
    let machine = Machine::new();
    let (service, timer) = (block("Type=oneshot"), block("OnCalendar="));
    let value = |unit: &str, key: &str| {
        unit.lines()
            .find_map(|line| line.strip_prefix(&format!("{key}=")))
            .unwrap_or_else(|| panic!("no {key}"))
            .to_owned()
    };
    // systemd.service(5): doubled dollars and per cent signs stand for one.
    let plain = |line: String| machine.here(&line.replace("$$", "$").replace("%%", "%"));
    let start = plain(value(&service, "ExecStart"));
    machine.has_a_night(&machine.sh(&start));
    machine.sh(&plain(value(&service, "ExecStopPost")));
    machine.has_metrics();
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        left_out("systemd-analyze is not installed");
        return;
    }
    let railgauge = machine.at("bin/railgauge");
    let service = service.replace("=railgauge", &format!("={}", railgauge.display()));
    fs::write(machine.at("railgauge-nightly.service"), service).unwrap();
    fs::write(machine.at("railgauge-nightly.timer"), &timer).unwrap();
    let units = ["railgauge-nightly.service", "railgauge-nightly.timer"].map(|name| machine.at(name));
    let output = Command::new("systemd-analyze").arg("verify").args(&units).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Complaints about units of the machine itself are none about ours.
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("railgauge")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
    let calendar = Command::new("systemd-analyze").args(["calendar", &value(&timer, "OnCalendar")]).output().unwrap();
    assert!(calendar.status.success(), "{}", String::from_utf8_lossy(&calendar.stderr));
}

/// The message names the bad part, what to do and where the page is; what is not certain names nothing.
#[test]
fn the_message_says_what_is_bad_and_what_to_do() {
    let machine = Machine::new();
    let runs = machine.at("runs");
    let slow = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
    fs::create_dir(runs.join("a night")).unwrap();
    fs::write(runs.join("a night/records.jsonl"), followed_up(&slow, &slow).0).unwrap();
    let message = |words: &str| {
        let output = machine.sh(&format!("railgauge status --format message {words} {}", runs.display()));
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, nothing_drawn) = message("--max-age 1000000h --json");
    let nothing_drawn: Value = serde_json::from_str(&nothing_drawn).unwrap();
    // The made-up dates begin there.
    if jiff::Timestamp::now() < "2026-11-21T02:00:00Z".parse().unwrap() {
        left_out("this machine's clock is behind the runs that are made up");
        return;
    }
    assert_eq!(code, Some(1), "{nothing_drawn}");
    assert_eq!((&nothing_drawn["version"], &nothing_drawn["link"]), (&3.into(), &"".into()));
    railgauge_report::write(&runs.join("a night"), &Parquet).unwrap();
    let (code, line) = message("--max-age 1000000h --link https://intranet/nightly/");
    assert_eq!((code, line.lines().count()), (Some(1), 1), "{line}");
    for word in ["CRITICAL", "host gpu005 faulty since ", "https://intranet/nightly/a%20night/report.html"] {
        assert!(line.contains(word), "{word}: {line}");
    }
    // A suspect is none that is bad.
    fs::write(runs.join("a night/records.jsonl"), slow.jsonl()).unwrap();
    let (_, suspect) = message("--max-age 1000000h --json");
    let suspect: Value = serde_json::from_str(&suspect).unwrap();
    let line = suspect["text"].as_str().unwrap();
    assert_eq!(suspect["bad_part"], Value::Null, "{line}");
    assert!(line.contains("host gpu005 undecided since ") && !line.contains("faulty"), "{line}");
    // Too old: nobody is named.
    let (code, old) = message("--max-age 1s --json");
    let old: Value = serde_json::from_str(&old).unwrap();
    assert_eq!((code, &old["state"], &old["bad_part"]), (Some(3), &"unknown".into(), &Value::Null), "{old:#}");
    fs::remove_dir_all(runs.join("a night")).unwrap();
    let (code, none) = message("");
    assert!(code == Some(3) && none.contains("UNKNOWN"), "{none}");
}

/// The metrics of a directory with this run.
fn metrics_of(records: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("records.jsonl"), records).unwrap();
    let nights = Nights::of(place.path().to_str().unwrap(), None, jiff::Timestamp::now()).unwrap();
    metrics(Some(&Judged::read(place.path()).unwrap()), &nights.plan, &nights.states, State::Ok).unwrap()
}

/// Those of a run that is in no directory.
fn without_states(journal: Journal) -> String {
    let plan = journal.plan.name.clone();
    metrics(Some(&Judged::of(journal, "records.jsonl").unwrap()), &plan, &States::default(), State::Ok).unwrap()
}

/// Metrics that are written, with the labels that each may have.
fn exported() -> BTreeMap<String, BTreeSet<String>> {
    let slow = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for text in [metrics_of(&followed_up(&slow, &slow).0), without_states(collective())] {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once('{').unwrap();
            let labels = found.entry(name.to_owned()).or_default();
            labels.extend(rest.split("\",").filter_map(|one| one.split_once("=\"")).map(|(label, _)| label.to_owned()));
        }
    }
    found
}

/// A run of a collective.
fn collective() -> Journal {
    let text = "name = \"p\"\n[launch]\nvia = \"ssh\"\n[hosts]\nnames = [\"a[1-4]\"]\n[[test]]\nop = \"all_reduce\"\n\
        metric = \"bandwidth\"\ntransport = \"nccl\"\nranks_per_host = 2\nsizes = \"64MiB\"\n";
    let plan = plan::parse("p.toml", text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    let link = Arc::new(support::group::link());
    let started_at = "2026-11-21T02:00:00.000Z".to_owned();
    let tried = |case: &Case| Try {
        case: case.id,
        repeat: 0,
        started_at: started_at.clone().into(),
        link: Some(link.clone()),
        result: Ok(support::group::sample(case, 300_000)),
    };
    Journal {
        run_id: "run".into(),
        tries: cases.iter().map(tried).collect(),
        hosts: support::group::hosts(&plan),
        time: (started_at.clone(), "2026-11-21T02:10:00.000Z".into()),
        cases,
        end: JournalEnd::Finished,
        ..Journal::of(plan)
    }
}

fn dashboard() -> Value {
    serde_json::from_str(&fs::read_to_string(root().join("docs/grafana/railgauge.json")).unwrap()).unwrap()
}

/// Expressions of the dashboard with the names of the values that they show.
fn expressions() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    targets.map(|target| (text(&target["expr"]), text(&target["legendFormat"]))).collect()
}

/// Words of a text, as metrics and labels are spelled, with what follows each.
fn words(text: &str) -> Vec<(&str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(is_word) {
        let from = &rest[begin..];
        let end = from.find(|c| !is_word(c)).unwrap_or(from.len());
        found.push((&from[..end], &from[end..]));
        rest = &from[end..];
    }
    found
}

#[test]
fn the_dashboard_shows_only_what_is_exported() {
    let exported = exported();
    let expressions = expressions();
    assert!(expressions.len() >= 10);
    for (expr, legend) in &expressions {
        let named: Vec<_> = words(expr).into_iter().filter(|(word, _)| word.starts_with("railgauge_")).collect();
        assert!(!named.is_empty(), "{expr}");
        let mut all = BTreeSet::new();
        for (metric, behind) in named {
            let labels = exported.get(metric).unwrap_or_else(|| panic!("{metric} is not exported: {expr}"));
            let selector =
                behind.strip_prefix('{').and_then(|inside| inside.split_once('}')).map_or("", |(inside, _)| inside);
            for (label, behind) in
                words(selector).into_iter().filter(|(_, behind)| behind.starts_with('=') || behind.starts_with("!="))
            {
                assert!(labels.contains(label), "{metric} has no label {label} ({behind}): {expr}");
            }
            all.extend(labels.clone());
        }
        if let Some((_, grouped)) = expr.split_once("by (") {
            for (label, _) in words(grouped.split_once(')').unwrap().0) {
                assert!(all.contains(label), "{label}: {expr}");
            }
        }
        for shown in legend.split("{{").skip(1) {
            let label = shown.split_once("}}").unwrap().0;
            assert!(all.contains(label), "{label}: {legend}");
        }
    }
    let dashboard = dashboard();
    let variable = &dashboard["templating"]["list"][1];
    assert_eq!(variable["query"], "label_values(railgauge_run_info, plan)");
    assert!(exported["railgauge_run_info"].contains("plan"));
    // Panels stand beside each other and not one over the other.
    let place = |panel: &Value, key: &str| panel["gridPos"][key].as_u64().unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    for (n, a) in panels.iter().enumerate() {
        assert!(place(a, "x") + place(a, "w") <= 24, "{a}");
        for b in &panels[n + 1..] {
            let meet = |at: &str, size: &str| {
                place(a, at) < place(b, at) + place(b, size) && place(b, at) < place(a, at) + place(a, size)
            };
            assert!(!(meet("x", "w") && meet("y", "h")), "{} and {}", a["title"], b["title"]);
            assert_ne!(a["id"], b["id"]);
        }
    }
}

/// Prometheus' own reader understands every expression, with a plan in place of Grafana's variable.
#[test]
fn promtool_understands_the_dashboard_and_the_alert() {
    if Command::new("promtool").arg("--version").output().is_err() {
        skipped("promtool is not installed");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let rules = place.path().join("rules.yml");
    let alert = block("time() - railgauge_run_end_time_seconds").trim().to_owned();
    let all = expressions().into_iter().map(|(expr, _)| expr.replace("$plan", ".*")).chain([alert]);
    let all: Vec<Value> = all
        .enumerate()
        .map(|(n, expr)| serde_json::json!({ "record": format!("railgauge:expression:{n}"), "expr": expr }))
        .collect();
    // JSON is YAML.
    let text = serde_json::json!({ "groups": [{ "name": "railgauge", "rules": all }] }).to_string();
    fs::write(&rules, text).unwrap();
    let output = Command::new("promtool").args(["check", "rules"]).arg(&rules).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(&format!("{} rules found", expressions().len() + 1)), "{said}");
}
