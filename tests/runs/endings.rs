//! How a run ends that does not end by itself, and how it is taken up again: local agents over TCP.

use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::railgauge::{Scene, program};

/// Six cases of half a second each.
const PLAN: &str = r#"
name = "endings"
launch = { via = "local" }
hosts = { names = ["a", "b"] }
localise = { confirm = false }

[[test]]
name = "write"
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "1KiB..32KiB x2"
measure = "500ms"
warm_up = "10ms"
"#;

fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Exit code and messages of `railgauge report`.
fn drawn(scene: &Scene) -> (Option<i32>, String) {
    let output = program().arg("report").arg(scene.run_directory()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// `railgauge run` of a plan, started by another program to whose words its own are appended.
fn run_by(words: &[&str], scene: &Scene, plan: &Path) -> Command {
    let run = program();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(run.get_program());
    command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.args(["run", "-o"]).arg(scene.run_directory()).arg(plan);
    command
}

#[test]
fn every_signal_that_ends_a_run_leaves_a_report_and_a_run_to_go_on_with() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let scene = Scene::new();
        let plan = scene.write("plan.toml", PLAN);
        // These tests may themselves run under nohup, which what they start would inherit.
        let mut run = scene.spawn(run_by(&["env", "--default-signal=HUP"], &scene, &plan), "run");
        run.wait_for_outcomes(2);
        run.send(signal);
        let ended = run.end();
        ended.expect(130);
        ended.says("--resume");
        let results = scene.results();
        let before = results.measured();
        assert!((2..6).contains(&before.len()), "{signal}: {before:?}");
        assert!(results.report().contains("interrupted"), "{signal}");
        let verdicts = results.verdicts();
        assert_eq!(verdicts["status"], "inconclusive");
        // The verdicts' own code, and that of the process.
        assert_eq!((&verdicts["exit_code"], &verdicts["run_exit_code"]), (&3.into(), &130.into()));
        if signal == "-INT" {
            scene.resume().end().expect(0);
            assert!(before.keys().all(|case| results.measured()[case] == 1), "measured twice");
            assert_eq!(results.measured().len(), 6);
        }
    }
}

/// Whether a process is there and not only waits to be collected.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// Agents that are stopped hold up the good order that the first signal asks for.
#[test]
fn a_second_interrupt_ends_a_run_at_once_and_its_agents_with_it() {
    let scene = Scene::new();
    let mut run = scene.start(&scene.write("plan.toml", PLAN));
    run.wait_for_outcomes(2);
    let agents = run.children();
    assert_eq!(agents.len(), 2, "{agents:?}");
    agents.iter().for_each(|agent| send("-STOP", *agent));
    let before = scene.results().measured();
    let asked = Instant::now();
    run.send_until_end("-INT").expect(130);
    // An agent that is stopped has two seconds to say goodbye, and two more to end.
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    let ended = Instant::now();
    while agents.iter().any(|agent| lives(*agent)) {
        assert!(ended.elapsed() < Duration::from_secs(60), "an agent outlives the run");
        std::thread::sleep(Duration::from_millis(20));
    }
    scene.resume().end().expect(0);
    let measured = scene.results().measured();
    assert!(before.keys().all(|case| measured[case] == 1) && measured.len() == 6, "{before:?} {measured:?}");
}

/// A stopped agent is connected and says nothing: only a deadline and its silence tell.
#[test]
fn an_agent_that_hangs_is_named_and_the_other_pair_is_measured() {
    let scene = Scene::new();
    let plan = PLAN.replace("\"b\"]", "\"b\", \"c\"]").replace("32KiB", "4KiB") + "deadline = \"3s\"\n";
    let mut run = scene.start(&scene.write("plan.toml", &plan));
    run.wait_for_outcomes(1);
    let agents = run.children();
    assert_eq!(agents.len(), 3, "{agents:?}");
    send("-STOP", agents[1]);
    let ended = run.end();
    ended.expect(3);
    assert!(!lives(agents[1]), "the agent outlives the run");
    let results = scene.results();
    let journal = results.journal();
    let lost: Vec<_> = journal.iter().filter_map(|line| line["event"]["HostLost"]["host"].as_str()).collect();
    let &[lost] = lost.as_slice() else { panic!("hosts given up: {lost:?}") };
    let outcomes =
        journal.iter().map(|line| &line["event"]["Outcome"]).filter(|outcome| outcome["result"]["Err"].is_object());
    let failed: Vec<u64> = outcomes.filter_map(|outcome| outcome["case"].as_u64()).collect();
    assert!(!failed.is_empty());
    let rows: Vec<_> = results.rows().into_iter().filter(|row| row.metric == "bandwidth").collect();
    assert_eq!(rows.len(), 9);
    assert!(rows.iter().any(|row| row.value.is_none()), "{rows:?}");
    for row in &rows {
        assert!(row.value.is_some() || row.touches(lost), "{lost} has no part in it: {row:?}");
        assert!(row.error.as_deref().is_none_or(|error| error.contains(lost)), "{lost} is not named: {row:?}");
        // While the run goes on the first failed case of its kind is named by its test, ends and size.
        if failed.first() == Some(&row.case) {
            ended.says(&format!("{}:0 → {}:0, {} B: ", row.src, row.dst, row.size));
        }
    }
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", PLAN);
    let command = run_by(&["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""], &scene, &plan);
    let mut run = scene.spawn(command, "nohup");
    run.wait_for_outcomes(1);
    run.send("-HUP");
    run.end().expect(0);
}

#[test]
fn a_run_goes_on_when_nobody_reads_what_it_says() {
    let scene = Scene::new();
    // What is neither verified nor expected is worth a note, and -v says more.
    let plan = scene.write("plan.toml", &PLAN.replace("transport = \"tcp\"", "transport = \"tcp\"\nverify = false"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = program()
        .args(["run", "-v", "-o"])
        .arg(scene.run_directory())
        .arg(&plan)
        .stdout(Stdio::null())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3), "nothing is verified and nothing is expected");
    assert_eq!(scene.results().measured().len(), 6);
}

#[test]
fn a_run_has_one_controller() {
    let scene = Scene::new();
    let mut run = scene.start(&scene.write("plan.toml", PLAN));
    run.wait_for_outcomes(1);
    let second = scene.resume().end();
    second.expect(4);
    second.says("another railgauge is writing to it");
    run.end().expect(0);
    assert_eq!(scene.results().measured().len(), 6);
}

#[test]
fn a_record_without_its_end_is_measured_again() {
    let scene = Scene::new();
    scene.start(&scene.write("plan.toml", &PLAN.replace("500ms", "200ms"))).end().expect(0);
    let path = scene.run_directory().join("records.jsonl");
    // First a line that lacks its newline alone, which counts; then one that lacks more, which is taken away.
    for (missing, counted) in [(0, 6), (10, 5)] {
        let journal = std::fs::read_to_string(&path).unwrap();
        let last = journal.rfind("\"Outcome\"").unwrap();
        let end = last + journal[last..].find('\n').unwrap() - missing;
        std::fs::write(&path, &journal[..end]).unwrap();
        let (code, said) = drawn(&scene);
        assert_eq!(code, Some(3), "{said}");
        assert_eq!(scene.results().verdicts()["cases"]["measured"], counted);
        scene.resume().end().expect(0);
        let measured = scene.results().measured();
        assert!(measured.len() == 6 && measured.values().all(|times| *times == 1), "{measured:?}");
    }
}

/// A directory in any state gets one right answer.
#[test]
fn a_directory_that_holds_no_run_is_begun_and_one_that_is_not_ours_is_left_alone() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", &PLAN.replace("500ms", "200ms"));
    let directory = scene.run_directory();
    std::fs::create_dir(&directory).unwrap();
    // As a controller leaves it that was killed before its first record was whole.
    // Nothing was written yet, or a part of the first record.
    for torn in ["", "{\"v\":6,\"n\":1,\"run\":\"9f3a"] {
        begun_again(&scene, &plan, torn);
        std::fs::remove_dir_all(&directory).unwrap();
        std::fs::create_dir(&directory).unwrap();
    }
    // A records.jsonl that somebody else wrote is refused and stays as it is.
    let path = directory.join("records.jsonl");
    std::fs::write(&path, "{\"hello\": 1}").unwrap();
    scene.resume().end().expect(4);
    scene.start(&plan).end().expect(2);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"hello\": 1}");
}

fn begun_again(scene: &Scene, plan: &Path, torn: &str) {
    let directory = scene.run_directory();
    std::fs::write(directory.join("records.jsonl"), torn).unwrap();
    std::fs::write(directory.join("plan.toml"), "name = \"other\"").unwrap();
    std::fs::write(directory.join(".reserve"), "U").unwrap();
    let resumed = scene.resume().end();
    resumed.expect(2);
    resumed.says("-o");
    let (code, said) = drawn(scene);
    assert!(code == Some(4) && said.contains("-o"), "{said}");
    scene.start(plan).end().expect(0);
    assert_eq!(scene.results().measured().len(), 6);
}

#[test]
fn a_file_that_may_not_grow_ends_the_run_and_not_the_process() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", &PLAN.replace("500ms", "200ms"));
    let limited = |blocks: u32| {
        let words = format!("ulimit -f {blocks}; exec \"$@\"");
        run_by(&["bash", "-c", &words, "bash"], &scene, &plan).output().unwrap()
    };
    // In blocks of 1 KiB; there is not even room for the reserve.
    let output = limited(4);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && said.contains("File too large"), "{output:?}");
    // Room for all. A busy machine may disturb a window of 20 ms, which is inconclusive and no fault of the disk.
    let output = limited(16 << 10);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    assert_eq!(scene.results().measured().len(), 6, "{output:?}");
}

/// A library panics then; a user gets an error.
#[test]
fn too_few_open_files_end_a_run_with_words() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", PLAN);
    let words = "ulimit -n 8; exec \"$@\"";
    let output = run_by(&["bash", "-c", words, "bash"], &scene, &plan).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("ulimit -n") && said.contains("Too many open files (os error 24)"), "{said}");
    assert!(!said.contains("panicked") && !said.contains("Os {") && !said.contains(".rs:"), "{said}");
}

#[test]
fn others_cannot_write_into_what_a_run_makes_whatever_the_umask() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", &PLAN.replace("500ms", "200ms"));
    let above = scene.path("above");
    let mut command = Command::new("sh");
    command.args(["-c", "umask 000; exec \"$0\" run -o \"$1\" \"$2\""]).arg(program().get_program());
    command.envs(program().get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.arg(above.join("run")).arg(&plan).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let mut seen = 0;
    let mut look = vec![above];
    while let Some(path) = look.pop() {
        let found = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!(found.permissions().mode() & 0o002, 0, "{}", path.display());
        if found.is_dir() {
            look.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn nothing_is_made_for_a_run_that_cannot_start() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", PLAN);
    let run = |arguments: &[&str]| {
        let mut command = program();
        command.args(arguments).arg(&plan).env("RAILGAUGE_AGENT", scene.path("no-agent"));
        command.output().unwrap()
    };
    let directory = scene.run_directory().display().to_string();
    let output = run(&["run", "-o", &directory]);
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read the agent's file"), "{output:?}");
    assert!(!scene.run_directory().exists(), "an empty run directory stands in the way of the next try");
    let taken = scene.path("").display().to_string();
    let output = program().args(["run", "-o", &taken]).arg(&plan).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("give another with -o"), "{output:?}");
}

#[test]
fn a_run_is_resumed_with_its_own_plan_only() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", &PLAN.replace("500ms", "200ms"));
    scene.start(&plan).end().expect(0);
    let directory = scene.run_directory();
    let resume = |plan: &str| {
        let mut command = program();
        command.args(["run", "--resume"]).arg(&directory).arg(scene.path(plan));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(resume("plan.toml").0, Some(0));
    scene.write("other.toml", PLAN);
    let (code, said) = resume("other.toml");
    assert!(code == Some(2) && said.contains("is not the plan of the run in"), "{code:?} {said}");
    let (code, said) = resume("none.toml");
    assert!(code == Some(2) && said.contains("none.toml: "), "{code:?} {said}");
}

/// Silence about a host of the plan would say that it is well.
#[test]
fn a_dead_host_that_no_test_uses_is_no_pass() {
    let scene = Scene::new();
    let there = scene.write(
        "there",
        "#!/bin/sh\nhost=$1; shift\n[ \"$host\" = c ] && { echo no such host >&2; exit 1; }\nexec \"$@\"\n",
    );
    let command = format!("via = \"command\", command = \"sh {} {{host}}\"", there.display());
    let plan = PLAN.replace("via = \"local\"", &command).replace("\"b\"]", "\"b\", \"c\"]");
    let plan = plan.replace("500ms", "200ms") + "pattern = \"pairs\"\npairs = [[\"a\", \"b\"]]\n";
    let run = scene.start(&scene.write("plan.toml", &plan)).end();
    run.expect(3);
    let verdicts = scene.results().verdicts();
    let own = verdicts["verdicts"].as_array().unwrap().iter().find(|one| one["kind"] == "hosts").unwrap().clone();
    assert_eq!(own["status"], "inconclusive");
    assert!(own["reason"].as_str().unwrap().contains('c'), "{own:#}");
    run.says("no such host");
}

/// Values of `send_env` reach agents and stand nowhere; without one nothing is started.
#[test]
fn variables_are_sent_to_agents_and_not_written() {
    let bare = PLAN.replace(
        "via = \"local\"",
        "via = \"command\", command = \"env -i NAME={host} PATH=/usr/bin:/bin HOME=/tmp\", SENT",
    );
    let bare = bare.replace("500ms", "200ms");
    let end = |sent: &str, value: Option<&str>| {
        let scene = Scene::new();
        let plan = scene.write("plan.toml", &bare.replace("SENT", sent));
        let mut command = run_by(&["env"], &scene, &plan);
        command.env_remove("RAILGAUGE_FAULT").envs(value.map(|value| ("RAILGAUGE_FAULT", value)));
        command.env("TOKEN", "correct horse");
        (scene.spawn(command, "run").end(), scene)
    };
    let sent = "send_env = [\"RAILGAUGE_FAULT\", \"TOKEN\"]";
    // The fault flips a bit, so that it shows whether the variable arrived.
    let (ended, scene) = end(sent, Some("flip-bit"));
    ended.expect(1);
    assert_eq!(scene.results().verdicts()["cases"]["wrong"], 6);
    for file in std::fs::read_dir(scene.run_directory()).unwrap() {
        let path = file.unwrap().path();
        let holds = std::fs::read(&path).unwrap().windows(13).any(|bytes| bytes == b"correct horse");
        assert!(!holds, "{} holds the value", path.display());
    }
    let (ended, scene) = end("env = {}", Some("flip-bit"));
    assert_eq!(scene.results().verdicts()["cases"]["wrong"], 0, "{}", ended.said);
    let (ended, _) = end(sent, None);
    ended.expect(4);
    ended.says("RAILGAUGE_FAULT");
}

/// Exit code and messages of railgauge, which has a minute.
fn soon(words: &[&str], scene: &Scene) -> (Option<i32>, String) {
    let run = program();
    let mut command = Command::new("timeout");
    command.arg("60").arg(run.get_program()).args(words).current_dir(scene.path(""));
    command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Whoever may write to a run directory can lay links, pipes and devices in it.
#[test]
fn a_link_or_pipe_in_the_place_of_a_file_of_a_run_is_replaced_or_refused() {
    use std::{fs, os::unix::fs::symlink};
    let scene = Scene::new();
    scene.write("plan.toml", &PLAN.replace("500ms", "200ms"));
    let victim = scene.write("victim", "mine");
    let run = scene.run_directory();
    let place = |name: &str| run.join(name);
    let is_own = |name: &str| fs::symlink_metadata(place(name)).unwrap().is_file();
    let untouched = || assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    fs::create_dir(&run).unwrap();
    fs::write(place("records.jsonl"), "").unwrap();
    ["plan.toml", ".reserve", "log.txt"].iter().for_each(|name| symlink(&victim, place(name)).unwrap());
    let (code, said) = soon(&["run", "plan.toml", "-o", "run"], &scene);
    assert!(matches!(code, Some(0 | 3)), "{code:?} {said}");
    untouched();
    assert!(is_own("plan.toml") && is_own("log.txt") && !place(".reserve").exists());

    // What is drawn is put in the place of whatever lies there.
    let drawn = ["records.parquet", "verdicts.json", "junit.xml", "report.html"];
    for lay in [|path: &Path| pipe(path), |path: &Path| symlink("/dev/null", path).unwrap()] {
        for name in drawn {
            fs::remove_file(place(name)).unwrap();
            lay(&place(name));
        }
        let (code, said) = soon(&["report", "run"], &scene);
        assert!(matches!(code, Some(0 | 3)) && drawn.iter().all(|name| is_own(name)), "{code:?} {said}");
    }

    // A run that is gone on with: its log is added to, so it has to be a file; what a killed process left goes.
    let journal = fs::read_to_string(place("records.jsonl")).unwrap();
    let cut = journal.trim_end().rfind('\n').unwrap() + 1;
    fs::write(place("records.jsonl"), &journal[..cut]).unwrap();
    let log = fs::read(place("log.txt")).unwrap();
    for lay in [|path: &Path, _: &Path| pipe(path), |path: &Path, victim: &Path| symlink(victim, path).unwrap()] {
        fs::remove_file(place("log.txt")).unwrap();
        lay(&place("log.txt"), &victim);
        lay(&place(".reserve"), &victim);
        let (code, said) = soon(&["run", "--resume", "run"], &scene);
        assert!(code == Some(4) && said.contains("log.txt"), "{code:?} {said}");
        untouched();
    }
    fs::remove_file(place("log.txt")).unwrap();
    fs::write(place("log.txt"), log).unwrap();
    fs::write(place(".railgauge-abcdef.new"), "half").unwrap();
    pipe(&place(".reserve"));
    let (code, said) = soon(&["run", "--resume", "run"], &scene);
    assert!(matches!(code, Some(0 | 3)), "{code:?} {said}");
    assert_eq!([".railgauge-abcdef.new", ".reserve"].map(|name| place(name).exists()), [false, false]);

    // The journal of somebody else is not taken for that of this directory, and none is waited for.
    fs::rename(place("records.jsonl"), scene.path("real")).unwrap();
    let real = fs::read(scene.path("real")).unwrap();
    fs::create_dir(scene.path("good")).unwrap();
    fs::write(scene.path("good/records.jsonl"), &real).unwrap();
    let commands: [&[&str]; 6] = [
        &["run", "--resume", "run"],
        &["run", "plan.toml", "-o", "run"],
        &["report", "run"],
        &["compare", "good", "run"],
        &["trend", "run"],
        &["runs", "baseline", "run"],
    ];
    for lay in [|path: &Path, _: &Path| pipe(path), |path: &Path, real: &Path| symlink(real, path).unwrap()] {
        let _ = fs::remove_file(place("records.jsonl"));
        lay(&place("records.jsonl"), &scene.path("real"));
        for words in commands {
            let (code, said) = soon(words, &scene);
            assert!(matches!(code, Some(2..=4)) && said.contains("records.jsonl"), "{words:?}: {code:?} {said}");
        }
        assert_eq!(fs::read(scene.path("real")).unwrap(), real);
    }
}

/// Nightly rotation that moves the directory of a run that still goes on: what is there afterwards is another run's.
#[test]
fn a_run_whose_directory_was_moved_or_replaced_takes_no_other_verdict_for_its_own() {
    for replaced in [false, true] {
        let scene = Scene::new();
        let plan = scene.write("plan.toml", &PLAN.replace("500ms", "300ms"));
        let short = scene.write("short.toml", &PLAN.replace("500ms", "100ms").replace("1KiB..32KiB x2", "1KiB"));
        let mut run = scene.spawn(run_by(&["env"], &scene, &plan), "run");
        run.wait_for_outcomes(1);
        let kept = scene.run_directory().with_file_name("moved");
        std::fs::rename(scene.run_directory(), &kept).unwrap();
        if replaced {
            assert_eq!(run_by(&["env"], &scene, &short).status().unwrap().code(), Some(0));
        }
        run.end().expect(4);
        assert_eq!(scene.run_directory().exists(), replaced);
        let told = program().arg("report").arg(&kept).output().unwrap();
        assert_eq!(told.status.code(), Some(0), "all it measured is where it was moved to");
    }
}
