//! What a night hangs on to: states, metrics and lists, of made-up runs.

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::{
    skip::skipped,
    support::{self, Scenario, followed::followed_up},
};
use jiff::{SignedDuration, Timestamp};
use railgauge::night::{Judged, Lists, Message, Nights, Scheduler, Standing, State, metrics};
use railgauge_analysis::journal::{Journal, parse};
use railgauge_model::{journal::event::Event, plan::model::Limit};
use railgauge_report::index::Outcome;

fn read(text: &str) -> Journal {
    parse(text.as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn judged(text: &str) -> Judged {
    Judged::of(read(text), "records.jsonl").unwrap()
}

/// A run on a cluster with a slow host that was measured again and confirmed.
fn confirmed() -> String {
    let slow = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
    followed_up(&slow, &slow).0
}

fn healthy() -> Scenario {
    Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }
}

const DAY: SignedDuration = SignedDuration::from_hours(26);

/// The nights of these runs, and the moment so many hours after the newest ended.
fn nights(runs: &[&str], hours_later: i64) -> (Nights, Timestamp) {
    let place = directory(runs);
    let now = runs.iter().map(|text| judged(text).ended).max().unwrap() + SignedDuration::from_hours(hours_later);
    (Nights::of(place.path().to_str().unwrap(), None, now).unwrap(), now)
}

fn standing(text: &str, hours_later: i64) -> Standing {
    let (nights, now) = nights(&[text], hours_later);
    Standing::of(&nights, DAY, now)
}

/// What is known of a component is one clause, and the answer of the run that found it is not repeated.
#[test]
fn a_state_names_a_faulty_component_once() {
    let bad = standing(&confirmed(), 1);
    assert_eq!(bad.state, State::Critical);
    assert_eq!(bad.text.matches("host gpu005").count(), 1, "{}", bad.text);
    let [known] = &bad.components[..] else { panic!("{:#?}", bad.components) };
    assert!(known.why.iter().all(|why| bad.text.contains(why)), "{}", bad.text);
}

/// Runs of a directory, each in its own.
fn directory(runs: &[&str]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (n, text) in runs.iter().enumerate() {
        let run = place.path().join(format!("run-{n}"));
        std::fs::create_dir(&run).unwrap();
        std::fs::write(run.join("records.jsonl"), text).unwrap();
    }
    place
}

/// The state of a host an hour after the newest of these runs.
fn of_host(runs: &[&str], host: &str) -> Standing {
    let (nights, now) = nights(runs, 1);
    Standing::of_host(&nights, host, DAY, now)
}

#[test]
fn every_end_of_a_run_has_its_state() {
    let healthy = healthy();
    let text = healthy.jsonl();
    assert_eq!(standing(&text, 1).state, State::Ok);
    // Whatever it was, it says nothing of now when it is too old, or of the future.
    assert_eq!(standing(&text, 27).state, State::Unknown);
    assert_eq!(standing(&text, -2).state, State::Unknown);
    assert_eq!(standing(&confirmed(), 1).state, State::Critical);
    // A fault has no age.
    assert_eq!(standing(&confirmed(), 27).state, State::Critical);
    let contaminated = Scenario { contaminated: true, ..Scenario::healthy(4, 1) };
    assert_eq!(standing(&contaminated.jsonl(), 1).state, State::Warning);
    let interrupted = Scenario { interrupted: true, ..healthy.clone() };
    assert_eq!(standing(&interrupted.jsonl(), 1).state, State::Unknown);
    // The end is missing: the controller was killed.
    let broken: String = text.lines().take(text.lines().count() - 1).map(|line| format!("{line}\n")).collect();
    assert_eq!(standing(&broken, 1).state, State::Unknown);
    // A line was changed after it was written.
    let damaged = text.replacen("\"repeat\":1", "\"repeat\":2", 1);
    assert_ne!(damaged, text);
    assert_eq!(standing(&damaged, 1).state, State::Unknown);
}

/// A pass says nothing of values for which the plan sets no limit, and that stands in every form of it.
#[test]
fn what_no_limit_covers_is_told_to_machines_too() {
    let run = |keep: usize| {
        let mut lines = healthy().lines();
        for line in &mut lines {
            if let Event::Started { resolved, .. } = &mut line.event {
                resolved.tests.iter_mut().for_each(|test| {
                    test.expect.truncate(if test.name == "write-bw" { keep } else { 0 });
                    test.expect.iter_mut().for_each(|demand| demand.limit = Limit::AtLeast(0.001));
                });
            }
        }
        support::text(&lines)
    };
    for (keep, names) in [(1, &["write-lat", "tcp-baseline"][..]), (0, &["write-bw", "write-lat", "tcp-baseline"])] {
        let text = run(keep);
        let standing = standing(&text, 1);
        assert_eq!(standing.state, State::Ok);
        let (run, (nights, _)) = (judged(&text), nights(&[&text], 1));
        let message = Message::of(Some(&nights), &standing, None);
        let of_host = of_host(&[&text], "gpu002");
        for told in [&standing.text, &standing.plugin_line(), &message.text, &message.sentence, &of_host.text] {
            assert!(told.contains("not tested") && names.iter().all(|name| told.contains(name)), "{told}");
        }
        let json: serde_json::Value = serde_json::from_str(&run.verdicts.json().unwrap()).unwrap();
        let of_limits = json["untested"].as_array().unwrap().iter().filter(|one| one["kind"] == "limits");
        let tests: Vec<&str> =
            of_limits.flat_map(|one| one["tests"].as_array().unwrap()).map(|one| one.as_str().unwrap()).collect();
        assert_eq!(tests, names);
    }
}

#[test]
fn a_host_is_critical_only_if_a_failed_verdict_blames_it_by_itself() {
    let text = confirmed();
    let bad = of_host(&[&text], "gpu005");
    assert_eq!(bad.state, State::Critical);
    assert_eq!(bad.host.as_deref(), Some("gpu005"));
    assert_eq!(of_host(&[&text], "gpu004").state, State::Ok);
    assert_eq!(of_host(&[&text], "gpu999").state, State::Unknown);
    assert_eq!(of_host(&[&healthy().jsonl()], "gpu002").state, State::Ok);
    // The same host stands out, and was not measured again: nothing is certain.
    let open = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
    assert_ne!(of_host(&[&open.jsonl()], "gpu005").state, State::Critical);
}

#[test]
fn a_bad_host_that_no_longer_answers_is_still_bad_until_a_run_measures_it() {
    let eight = |day| Scenario { sizes: vec![1 << 20], day, ..Scenario::healthy(8, 2) };
    let gone = Scenario { down: Some(4), ..eight(1) }.jsonl();
    let (bad, well) = (confirmed(), eight(2).jsonl());
    let still = of_host(&[&bad, &gone], "gpu005");
    assert_eq!(still.state, State::Critical, "{}", still.text);
    // It was last measured when it last answered.
    assert_eq!(still.components[0].measured, of_host(&[&bad], "gpu005").components[0].measured);
    assert_eq!(of_host(&[&bad, &gone, &well], "gpu005").state, State::Ok);
    // One that was well and does not answer is not known to be bad.
    let silent = of_host(&[&eight(0).jsonl(), &gone], "gpu005");
    assert_eq!(silent.state, State::Warning);
    assert!(silent.text.starts_with("it did not answer: connect: "), "{}", silent.text);
    // One that was lost in the middle was measured, and its loss is what is told.
    let dies = Scenario { dies: Some(4), ..eight(1) }.jsonl();
    for runs in [&[&*dies][..], &[&eight(0).jsonl(), &dies]] {
        let lost = of_host(runs, "gpu005");
        assert_eq!(lost.state, State::Warning);
        assert!(lost.text.starts_with("its agent was lost at 2026-"), "{}", lost.text);
    }
}

#[test]
fn runs_that_say_nothing_of_the_night_are_passed_over_or_told() {
    let place = directory(&[&healthy().jsonl(), &Scenario { day: 1, ..healthy() }.jsonl()]);
    let now: Timestamp = "2026-11-25T00:00:00Z".parse().unwrap();
    let newest = |plan| {
        let nights = Nights::of(place.path().to_str().unwrap(), plan, now)?;
        let run = nights.newest();
        Ok::<_, railgauge::night::NightError>((
            run.began.to_string()[..10].to_owned(),
            run.row.outcome,
            Standing::of(&nights, DAY, now),
        ))
    };
    // Runs of another plan are no runs of the one that is named, and there are some.
    let none = newest(Some("wrong")).unwrap_err().to_string();
    assert!(none.contains("no run of plan `wrong`") && none.contains("acceptance"), "{none}");
    // An old run that lost its records hides nothing. A new one does.
    let lost = place.path().join("run-9");
    std::fs::create_dir(&lost).unwrap();
    std::fs::write(lost.join("plan.toml"), "").unwrap();
    let old = std::fs::File::open(&lost).unwrap();
    old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000)).unwrap();
    assert_eq!(newest(None).unwrap().0, "2026-11-22");
    old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000)).unwrap();
    let (_, outcome, standing) = newest(None).unwrap();
    assert_eq!((outcome, standing.state), (Outcome::Unreadable, State::Unknown));
    std::fs::remove_dir_all(&lost).unwrap();
    // A run of a part of the plan.
    let part = Scenario { day: 2, drawn: vec![0, 1, 2, 4], part: true, ..healthy() }.jsonl();
    let run = place.path().join("run-2");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(run.join("records.jsonl"), part).unwrap();
    // Where it is the only one, it passed and is no pass of the whole; else the others say the rest.
    let states = |of: &Path| {
        let nights = Nights::of(of.to_str().unwrap(), None, now).unwrap();
        let (all, host) =
            (Standing::of(&nights, SignedDuration::MAX, now), Standing::of_host(&nights, "gpu001", DAY, now));
        (nights.newest().row.outcome, all.state, host.state, host.text.contains(&nights.newest().row.run_id))
    };
    assert_eq!(states(&run), (Outcome::Pass, State::Warning, State::Ok, true));
    assert_eq!(states(place.path()), (Outcome::Pass, State::Ok, State::Ok, true));
    // Another plan's.
    let other = Scenario { day: 3, ..healthy() }.jsonl();
    let (first, rest) = other.split_once('\n').unwrap();
    let first = first.replacen("\"plan\":\"acceptance\"", "\"plan\":\"other\"", 1);
    let body = first.rsplit_once(",\"sum\"").unwrap().0.to_owned() + "}";
    let run = place.path().join("run-3");
    std::fs::create_dir(&run).unwrap();
    std::fs::write(run.join("records.jsonl"), support::sealed(&body) + rest).unwrap();
    assert!(matches!(newest(None), Err(railgauge::night::NightError::SeveralPlans { .. })));
    assert_eq!(newest(Some("acceptance")).unwrap().0, "2026-11-23");
    // A host has its gravest state in the runs of all of them.
    let both = tempfile::tempdir().unwrap();
    for (name, text) in [("one", confirmed()), ("other", support::sealed(&body) + rest)] {
        std::fs::create_dir(both.path().join(name)).unwrap();
        std::fs::write(both.path().join(name).join("records.jsonl"), text).unwrap();
    }
    let in_all = |host| Standing::of_host_in_all(both.path().to_str().unwrap(), host, DAY, now).unwrap().state;
    let states = [in_all("gpu005"), in_all("gpu001"), in_all("gpu099")];
    assert_eq!(states, [State::Critical, State::Ok, State::Unknown]);
    let check = ["status", "--format", "nhc", "--max-age", "99999h", "--host", "gpu005"];
    assert_eq!(program(&check, both.path()).status.code(), Some(1), "the health check takes the faulty host out");
}

#[test]
fn a_plugins_line_is_one_line_with_one_bar() {
    let odd = Scenario { odd_name: Some("gpu|1".into()), slow: Some(0), ..Scenario::healthy(8, 1) };
    for text in [healthy().jsonl(), confirmed(), odd.jsonl()] {
        let line = standing(&text, 1).plugin_line();
        assert_eq!((line.matches('|').count(), line.lines().count()), (1, 1), "{line}");
        let (words, data) = line.split_once(" | ").unwrap();
        assert!(["OK", "WARNING", "CRITICAL"].iter().any(|state| words.starts_with(&format!("RAILGAUGE {state} - "))));
        assert!(data.starts_with("age=3600s;;93600 "), "{data}");
    }
}

#[test]
fn lists_hold_hosts_of_certain_results_only() {
    let lists = |runs: &[&str], hours, scheduler| {
        let (nights, now) = nights(runs, hours);
        Lists::of(&nights, &Standing::of(&nights, SignedDuration::MAX, now), scheduler)
    };
    let slurm = lists(&[&confirmed()], 1, Scheduler::Slurm);
    let names = |lists: &Lists| lists.hosts.iter().flat_map(|one| one.hosts.clone()).collect::<Vec<_>>();
    assert_eq!(names(&slurm), ["gpu005"]);
    assert!(slurm.drain[0].contains("|| scontrol update nodename=gpu005 state=drain reason='railgauge: "), "{slurm:?}");
    // By how much it is slower, in plain characters.
    assert!(slurm.drain[0].contains(": -39.") && slurm.drain[0].is_ascii(), "{slurm:?}");
    // A fault has no age, and is undone only by a run that measured the host as good.
    assert_eq!(lists(&[&confirmed()], 1000, Scheduler::Slurm).drain, slurm.drain);
    assert!(slurm.undo.is_empty() && slurm.remarks.is_empty(), "{slurm:?}");
    let kubernetes = lists(&[&confirmed()], 1, Scheduler::Kubernetes);
    assert!(kubernetes.drain[0].starts_with("kubectl taint nodes gpu005 railgauge/unhealthy="), "{kubernetes:?}");
    let eight = |day| Scenario { sizes: vec![1 << 20], day, ..Scenario::healthy(8, 2) };
    let without = Scenario { drawn: vec![0, 1, 2, 3, 5, 6, 7, 8], ..eight(1) }.jsonl();
    assert_eq!(names(&lists(&[&confirmed(), &without], 1, Scheduler::Slurm)), ["gpu005"]);
    let well = [&*confirmed(), &without, &eight(2).jsonl()];
    let slurm = lists(&well, 1, Scheduler::Slurm);
    assert!(slurm.drain.is_empty() && slurm.repaired == ["gpu005"], "{slurm:?}");
    assert!(slurm.undo[0].contains("grep -q '^railgauge: acceptance: '") && slurm.undo[0].ends_with("state=resume"));
    let kubernetes = lists(&well, 1, Scheduler::Kubernetes);
    assert!(kubernetes.undo[0].ends_with(":NoSchedule-"), "{kubernetes:?}");
    // Inconclusive, of an open suspect: nobody is listed, and why is said.
    let open = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) }.jsonl();
    let contaminated = Scenario { contaminated: true, ..Scenario::healthy(4, 1) }.jsonl();
    for text in [open, contaminated] {
        let lists = lists(&[&text], 1, Scheduler::Slurm);
        assert!(lists.hosts.is_empty() && lists.drain.is_empty() && !lists.remarks.is_empty(), "{lists:?}");
    }
    let well = lists(&[&healthy().jsonl()], 1, Scheduler::Slurm);
    assert!(well.hosts.is_empty() && well.remarks.is_empty());
}

/// `scontrol` takes `ALL` and `a[1-9]` for many nodes, `kubectl` takes `--all` for an option, and a line that is read line by line is two where a
/// name has a line break in it.
#[test]
fn a_host_whose_name_a_command_would_take_for_something_else_is_told_and_not_listed() {
    let names = ["ALL", "--all"];
    for name in names {
        let slow =
            Scenario { odd_name: Some(name.into()), slow: Some(0), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
        let (nights, now) = nights(&[&followed_up(&slow, &slow).0], 1);
        let standing = Standing::of(&nights, DAY, now);
        assert_eq!(standing.faulty_hosts().map(|one| one.hosts.concat()).collect::<Vec<_>>(), [name]);
        for scheduler in [Scheduler::Slurm, Scheduler::Kubernetes] {
            let lists = Lists::of(&nights, &standing, scheduler);
            assert!(lists.drain.is_empty() && lists.undo.is_empty(), "{name:?}: {lists:?}");
            assert_eq!(lists.hosts.len(), 1, "the JSON has it: {name:?}");
            let told =
                lists.remarks.iter().find(|remark| remark.contains("by hand")).unwrap_or_else(|| panic!("{name:?}"));
            assert!(told.lines().count() == 1 && told.chars().all(|c| !c.is_control()), "{told:?}");
        }
    }
}

#[test]
fn values_are_told_in_base_units() {
    let metrics = |text: &str| {
        let nights = nights(&[text], 1).0;
        metrics(Some(&judged(text)), &nights.plan, &nights.states, State::Ok)
    };
    let text = metrics(&healthy().jsonl()).unwrap();
    let value = |start: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start} in\n{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    // 200 Gb/s are 25 GB/s; the made-up links reach 98 % of them.
    let bandwidth = value("railgauge_test_bandwidth_bytes_per_second");
    assert!((1e9..25e9).contains(&bandwidth), "{bandwidth}");
    let latency = value("railgauge_test_latency_p50_seconds");
    assert!((1e-7..1e-3).contains(&latency), "{latency}");
    assert_eq!(value("railgauge_run_finished"), 1.0);
    let of_host = |text: &str, host: &str| {
        let start = format!("railgauge_host_state{{plan=\"acceptance\",host=\"{host}\",");
        text.lines().find_map(|line| line.starts_with(&start).then(|| line.rsplit(' ').next().unwrap().to_owned()))
    };
    assert_eq!(of_host(&text, "gpu002").as_deref(), Some("0.0"));
    let device = "{plan=\"acceptance\",host=\"gpu002\",device=\"mlx5_0\",test=\"write-bw\",\
                  measures=\"bandwidth, verbs, host memory\"}";
    assert!((1e9..25e9).contains(&value(&format!("railgauge_device_bandwidth_bytes_per_second{device}"))));
    assert_eq!(value(&format!("railgauge_device_state{device}")), 0.0);
    assert_eq!(text, metrics(&healthy().jsonl()).unwrap(), "the same records give the same bytes");
    assert_eq!(of_host(&metrics(&confirmed()).unwrap(), "gpu005").as_deref(), Some("2.0"));
}

/// Prometheus' own reader, where it is installed, takes the text and has nothing to say of it.
#[test]
fn promtool_accepts_the_metrics() {
    if Command::new("promtool").arg("--version").output().is_err() {
        skipped("promtool is not installed");
        return;
    }
    let odd = Scenario { odd_name: Some("g\"p\\u\n1".into()), slow: Some(0), ..Scenario::healthy(8, 1) };
    for text in [healthy().jsonl(), confirmed(), odd.jsonl()] {
        let mut promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        promtool
            .stdin
            .take()
            .unwrap()
            .write_all(metrics(Some(&judged(&text)), "p", &nights(&[&text], 1).0.states, State::Ok).unwrap().as_bytes())
            .unwrap();
        let output = promtool.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.trim().is_empty(), "{said}");
    }
}

/// Runs the program on a directory with runs.
fn program(words: &[&str], runs: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_railgauge")).args(words).arg(runs).output().unwrap()
}

fn hours_since_the_made_up_runs() -> i64 {
    let begin: Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
    Timestamp::now().duration_since(begin).as_hours()
}

#[test]
fn the_newest_run_of_a_directory_counts() {
    let runs = tempfile::tempdir().unwrap();
    let bad = runs.path().join("a-later-name-and-an-earlier-date");
    std::fs::create_dir_all(&bad).unwrap();
    std::fs::write(bad.join("records.jsonl"), confirmed()).unwrap();
    Scenario { day: 1, ..healthy() }.write(&runs.path().join("a"));
    // The clock of this machine may be behind the made-up dates; then all of them are of the future.
    if hours_since_the_made_up_runs() < 48 {
        skipped("the clock of this machine is behind the made-up runs");
        return;
    }
    let age = "1000000h";
    let code = |words: &[&str], runs: &Path| program(words, runs).status.code().unwrap();
    // The newest does not measure the host that the one before found to be faulty.
    assert_eq!(code(&["status", "--max-age", age], runs.path()), 1);
    assert_eq!(code(&["status", "--format", "nagios", "--max-age", age], runs.path()), 2);
    Scenario { sizes: vec![1 << 20], day: 2, ..Scenario::healthy(8, 2) }.write(&runs.path().join("b"));
    assert_eq!(code(&["status", "--max-age", age], runs.path()), 0);
    // The default: 26 hours. A fault has no age.
    assert_eq!(code(&["status", "--format", "nagios"], runs.path()), 3);
    assert_eq!(code(&["status", "--format", "nagios"], &bad), 2);
}

#[test]
fn plugins_answer_in_their_own_way_whatever_happens() {
    let empty = tempfile::tempdir().unwrap();
    let nagios = program(&["status", "--format", "nagios"], empty.path());
    assert_eq!(nagios.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&nagios.stdout).starts_with("RAILGAUGE UNKNOWN - "));
    // A wrong word of the command line must not look critical, and nothing that is unknown may drain a node.
    assert_eq!(program(&["status", "--format", "nagios", "--no-such-word"], empty.path()).status.code(), Some(3));
    let nhc = program(&["status", "--format", "nhc", "--host", "gpu001"], empty.path());
    assert_eq!(nhc.status.code(), Some(0));
    // No plan is known, so none is named.
    assert!(String::from_utf8_lossy(&nhc.stdout).starts_with("RAILGAUGE UNKNOWN - gpu001: "), "{nhc:?}");
    assert_eq!(program(&["status", "--format", "nhc", "--no-such-word"], empty.path()).status.code(), Some(0));
    // An option that has no effect is refused, and so is a word of another command.
    let code = |words: &[&str]| program(words, empty.path()).status.code();
    for (words, expected) in [
        (&["status", "--format", "nhc", "--link", "https://a"][..], 0),
        (&["status", "--format=nagios", "-o", "a"], 3),
        (&["status", "--link", "https://a"], 2),
        (&["status", "--format", "message", "--host", "gpu001"], 2),
        (&["status", "--format", "prometheus", "--json"], 2),
        (&["report", "--format", "nhc"], 2),
    ] {
        assert_eq!(code(words), Some(expected), "{words:?}");
    }
    // That there is no run is an answer: unknown.
    let shown = program(&["status", "--json"], empty.path());
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["state"], "unknown");
    assert_eq!(program(&["status"], empty.path()).status.code(), Some(3));
    assert_eq!(program(&["status", "--format", "prometheus"], empty.path()).status.code(), Some(2));
    assert_eq!(program(&["status", "--max-age", "-2h"], empty.path()).status.code(), Some(2));
}

#[test]
fn a_health_check_fails_for_the_blamed_host_only() {
    if hours_since_the_made_up_runs() < 48 {
        skipped("the clock of this machine is behind the made-up runs");
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    std::fs::write(runs.path().join("records.jsonl"), confirmed()).unwrap();
    let code = |host: &str, age: &str| {
        program(&["status", "--format", "nhc", "--max-age", age, "--host", host], runs.path()).status.code().unwrap()
    };
    assert_eq!((code("gpu005", "1000000h"), code("gpu004", "1000000h"), code("other", "1000000h")), (1, 0, 0));
    assert_eq!(code("gpu005", "1h"), 1, "a fault has no age");
}

#[test]
fn a_metrics_file_is_replaced_as_a_whole() {
    let runs = tempfile::tempdir().unwrap();
    healthy().write(&runs.path().join("a"));
    let file = runs.path().join("railgauge.prom");
    let output = program(&["status", "--format", "prometheus", "-o", file.to_str().unwrap()], &runs.path().join("a"));
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("# EOF\n") && text.contains("railgauge_run_info{"));
    let records = runs.path().join("a/records.jsonl");
    let refused =
        program(&["status", "--format", "prometheus", "-o", records.to_str().unwrap()], &runs.path().join("a"));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
