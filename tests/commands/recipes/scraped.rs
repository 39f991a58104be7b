//! The way of the metrics in a cluster: the textfile collector of a real node exporter, and a real Prometheus that scrapes it and answers each panel.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use railgauge_analysis::journal::parse;
use serde_json::Value;

use super::{Scenario, block, collective, expressions, followed_up, metrics_of, skipped, without_states};

/// A process that ends with the test.
struct Ends(Child);

impl Ends {
    fn start(program: &str, words: &[String]) -> Self {
        Self(Command::new(program).args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of the loopback that nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The body of `http://127.0.0.1:PORT/PATH`; empty as long as nobody answers.
fn fetch(port: u16, path: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        let asked = write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
        let _ = asked.and_then(|()| stream.read_to_string(&mut answer));
    }
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

/// What comes of a look, as soon as there is something.
fn soon<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: nothing");
        thread::sleep(Duration::from_millis(200));
    }
}

/// The series that Prometheus answers an expression with.
fn series(server: u16, expression: &str) -> Vec<Value> {
    let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let body = fetch(server, &format!("/api/v1/query?query={encoded}"));
    let Ok(answer) = serde_json::from_str::<Value>(&body) else { return Vec::new() };
    assert_eq!(answer["status"], "success", "{expression}: {answer}");
    answer["data"]["result"].as_array().unwrap().clone()
}

/// Three plans, as three files of one collector: a bad host, a collective, and cases that do not count.
fn write_metrics(folder: &Path) {
    let read = |text: String| parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let slow = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
    let mut unsteady = read(Scenario { contaminated: true, ..Scenario::healthy(4, 1) }.jsonl());
    // What stands between quotes in a label, and in a regular expression of a selector.
    unsteady.plan.name = "un\"steady\\ (2)".to_owned();
    for (name, text) in [
        ("pairs.prom", metrics_of(&followed_up(&slow, &slow).0)),
        ("collective.prom", without_states(collective())),
        ("unsteady.prom", without_states(unsteady)),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn a_real_prometheus_has_a_series_for_every_expression_of_the_dashboard() {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("prometheus") || !there("prometheus-node-exporter") {
        skipped("prometheus and prometheus-node-exporter are not installed");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    fs::create_dir(at("textfiles")).unwrap();
    write_metrics(&place.path().join("textfiles"));
    let (exporter, server) = (free_port(), free_port());
    let _exporter = Ends::start(
        "prometheus-node-exporter",
        &[
            "--collector.disable-defaults".to_owned(),
            "--collector.textfile".to_owned(),
            format!("--collector.textfile.directory={}", at("textfiles")),
            format!("--web.listen-address=127.0.0.1:{exporter}"),
        ],
    );
    let scraped = soon("the exporter", || Some(fetch(exporter, "/metrics")).filter(|body| !body.is_empty()));
    assert!(scraped.contains("node_textfile_scrape_error 0"), "{scraped}");
    let config = "scrape_configs:\n- job_name: nodes\n  scrape_interval: 1s\n  static_configs:\n  - targets: ";
    fs::write(at("prometheus.yml"), format!("{config}['127.0.0.1:{exporter}']\n")).unwrap();
    let _server = Ends::start(
        "prometheus",
        &[
            format!("--config.file={}", at("prometheus.yml")),
            format!("--storage.tsdb.path={}", at("data")),
            format!("--web.listen-address=127.0.0.1:{server}"),
        ],
    );
    let plans = soon("a scrape", || Some(series(server, "railgauge_run_info")).filter(|all| !all.is_empty()));
    let mut plans: Vec<&str> = plans.iter().map(|one| one["metric"]["plan"].as_str().unwrap()).collect();
    plans.sort_unstable();
    assert_eq!(plans, ["acceptance", "p", "un\"steady\\ (2)"]);

    let expressions = expressions();
    for (expression, legend) in &expressions {
        let found = series(server, &expression.replace("$plan", ".*"));
        assert!(!found.is_empty(), "{expression}");
        for one in &found {
            let value: f64 = one["value"][1].as_str().unwrap().parse().unwrap();
            assert!(value.is_finite(), "{expression}: {one}");
            // Prometheus has no label that is empty.
            for label in legend.split("{{").skip(1).map(|rest| rest.split_once("}}").unwrap().0) {
                assert!(label == "env" || one["metric"][label].is_string(), "{expression} has no {label}: {one}");
            }
        }
        // One plan that is chosen is one plan that is shown.
        let of_one = series(server, &expression.replace("$plan", "acceptance"));
        assert!(of_one.iter().all(|one| one["metric"]["plan"] == "acceptance"), "{expression}: {of_one:?}");
    }
    let faulty = series(server, "railgauge_host_state == 2");
    assert_eq!(faulty.iter().map(|one| &one["metric"]["host"]).collect::<Vec<_>>(), ["gpu005"]);
    // Runs that are made up are days old: the alert fires for every plan.
    let fires = series(server, block("time() - railgauge_run_end_time_seconds").trim());
    assert!(!fires.is_empty());
}
