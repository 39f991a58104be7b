//! `via = "slurm"` and `railgauge submit` on a real Slurm: what works, what goes wrong, and that nothing of it is left.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    railgauge::{Scene, program},
    slurm::Slurm,
    support::{Scenario, followed::followed_up},
};
use serde_json::Value;

/// A plan of so many cases of half a second each, on what `hosts` says. All of its hosts are this machine: how their
/// pairs compare is no fact about it.
fn plan(hosts: &str, slurm: &str, cases: usize) -> String {
    format!(
        "name = \"on-slurm\"\nlaunch = {{ via = \"slurm\", timeout = \"12s\", retries = 0, slurm = {slurm} }}\nhosts = {hosts}\n\
         localise = {{ confirm = false, waive = [\"all\"] }}\n[[test]]\nname = \"write\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \
         \"tcp\"\npattern = \"ring\"\nsizes = \"1KiB\"\nrepeats = {cases}\nmeasure = \"500ms\"\nwarm_up = \"10ms\"\n"
    )
}

/// `railgauge` with these words behind other words, such as those of salloc.
fn behind(slurm: &Slurm, words: &[&str], own: &[&str]) -> Command {
    let run = program();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(run.get_program()).args(own);
    command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    slurm.on(command)
}

/// `salloc … railgauge run PLAN`, with the plan in the scene.
fn allocated(slurm: &Slurm, scene: &Scene, options: &[&str], plan: &str) -> Command {
    let path = scene.write("plan.toml", plan);
    let run = scene.run_directory();
    let words: Vec<&str> = ["salloc", "--quiet"].into_iter().chain(options.iter().copied()).collect();
    behind(slurm, &words, &["run", path.to_str().unwrap(), "-o", run.to_str().unwrap()])
}

/// All of it on one Slurm, one after another: they kill its daemons.
#[test]
fn on_a_real_slurm() {
    let Some(slurm) = Slurm::start(&[]) else { return };
    type Case = (&'static str, fn(&Slurm));
    let cases: &[Case] = &[
        ("inside an allocation", inside_an_allocation),
        ("switches above the nodes", switches_above_the_nodes),
        ("GPUs asked for in all", gpus_asked_for_in_all),
        ("slurmctld is asked little", slurmctld_is_asked_little),
        ("command lines of the documentation", a_command_line_of_srun),
        ("outside an allocation", outside_an_allocation),
        ("a node outside the allocation", a_node_outside),
        ("by submission", by_submission),
        ("a wrong partition, and one that is down", wrong_partitions),
        ("a job that is cancelled", a_cancelled_job),
        ("a job that is cancelled, told by a signal alone", a_cancelled_job_told_by_a_signal),
        ("a submitted job that is cancelled", a_cancelled_submission),
        ("a slurmstepd that is killed", a_killed_slurmstepd),
        ("hosts that are drained, and the undo", drained_and_undone),
        ("a slurmd that is killed", a_killed_slurmd),
    ];
    let all = Instant::now();
    let only = std::env::var("RAILGAUGE_SLURM_CASE").unwrap_or_default();
    for (name, case) in cases.iter().filter(|(name, _)| name.contains(&only)) {
        let started = Instant::now();
        println!("--- {name}");
        case(&slurm);
        slurm.is_clean(Duration::from_secs(60));
        slurm.resumed();
        println!("    {:.1} s", started.elapsed().as_secs_f64());
    }
    println!("all in {:.1} s", all.elapsed().as_secs_f64());
    slurm.end();
}

/// Slurm counts limits in minutes, and looks at them twice a minute: meanwhile the other test has a Slurm of its own.
#[test]
#[ignore = "slow: limits of Slurm are minutes"]
fn a_time_limit_on_a_real_slurm() {
    let Some(slurm) = Slurm::start(&["--nodes=2"]) else { return };
    a_time_limit(&slurm);
    slurm.is_clean(Duration::from_secs(60));
    slurm.end();
}

fn inside_an_allocation(slurm: &Slurm) {
    let scene = Scene::new();
    let options = ["--nodes=3", "--exclusive", "--gres=gpu:2"];
    let ended = scene.spawn(allocated(slurm, &scene, &options, &plan("{}", "{}", 2)), "run").end();
    ended.expect(0);
    let started = &scene.results().journal()[0]["event"]["Started"]["resolved"];
    let names: Vec<&str> =
        started["hosts"].as_array().unwrap().iter().map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["n1", "n2", "n3"]);
    assert_eq!(started["groups"], serde_json::json!({"leaf1": ["n1", "n2"], "leaf2": ["n3"]}));
    let facts: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(scene.results().path("facts.json")).unwrap()).unwrap();
    // All GPUs of the node in the one task, and all processors of the job.
    for name in names {
        assert_eq!(facts[name]["cuda_visible"], "0,1", "{name}");
        let threads = std::thread::available_parallelism().unwrap().get();
        assert_eq!(facts[name]["processors_allowed"], threads, "{name}");
    }
    assert_eq!(scene.results().measured().len(), scene.results().planned().len());
}

/// A plan without [topology] has the one that slurmctld knows: pairs of hosts are chosen by it.
fn switches_above_the_nodes(slurm: &Slurm) {
    for (pattern, is_one_leaf) in [("same-leaf", true), ("cross-leaf", false)] {
        let scene = Scene::new();
        let text = plan("{}", "{}", 1).replace("\"ring\"", &format!("\"{pattern}\""));
        scene.spawn(allocated(slurm, &scene, &["--nodes=4"], &text), "run").end().expect(0);
        let journal = scene.results().journal();
        let told = &journal[0]["event"]["Started"]["resolved"]["topology"]["told"];
        assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
        assert_eq!(told[0]["cables"].as_array().unwrap().len(), 6, "{told}");
        let switches: Vec<&String> = told[0]["switches"].as_object().unwrap().keys().collect();
        assert_eq!(switches, ["leaf1", "leaf2", "spine"]);
        let rows = scene.results().rows();
        assert!(!rows.is_empty());
        // Two nodes are below each leaf.
        let leaf = |host: &str| if ["n1", "n2"].contains(&host) { 1 } else { 2 };
        assert!(rows.iter().all(|row| (leaf(&row.src) == leaf(&row.dst)) == is_one_leaf), "{pattern}");
    }
}

/// A job that asked for a number of GPUs may have fewer on one of its nodes: each agent has those of its node.
fn gpus_asked_for_in_all(slurm: &Slurm) {
    let scene = Scene::new();
    let ended = scene.spawn(allocated(slurm, &scene, &["--nodes=2", "--gpus=3"], &plan("{}", "{}", 1)), "run").end();
    ended.expect(0);
    let facts: Value =
        serde_json::from_str(&std::fs::read_to_string(scene.results().path("facts.json")).unwrap()).unwrap();
    let mut visible: Vec<&str> =
        facts.as_object().unwrap().values().map(|facts| facts["cuda_visible"].as_str().unwrap()).collect();
    visible.sort_unstable();
    assert_eq!(visible, ["0", "0,1"]);
}

/// Steps that end as they were told to are no reason to ask why.
fn slurmctld_is_asked_little(slurm: &Slurm) {
    let scene = Scene::new();
    let asked = scene.path("asked");
    let found = slurm.says(&["sh", "-c", "command -v scontrol"]);
    let folder = scene.path("bin");
    std::fs::create_dir(&folder).unwrap();
    let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec '{found}' \"$@\"\n", asked.display());
    std::fs::write(folder.join("scontrol"), script).unwrap();
    std::fs::set_permissions(folder.join("scontrol"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = allocated(slurm, &scene, &["--nodes=4"], &plan("{}", "{}", 1));
    command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    scene.spawn(command, "run").end().expect(0);
    let asked = std::fs::read_to_string(asked).unwrap();
    let questions: Vec<&str> = asked.lines().filter(|line| !line.contains("topology")).collect();
    assert!(asked.contains("topology") && questions.is_empty(), "{questions:?}");
}

fn a_command_line_of_srun(slurm: &Slurm) {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/launchers.md")).unwrap();
    let line = docs.lines().find_map(|line| line.strip_prefix("command = \"srun ")).expect("docs have a line of srun");
    let text = plan("{ names = \"n[1-2]\" }", "{}", 1)
        .replace("via = \"slurm\"", &format!("via = \"command\", command = \"srun {line}"))
        .replace(", slurm = {}", "");
    let scene = Scene::new();
    scene.spawn(allocated(slurm, &scene, &["--nodes=2"], &text), "run").end().expect(0);
}

fn outside_an_allocation(slurm: &Slurm) {
    let scene = Scene::new();
    let path = scene.write("plan.toml", &plan("{ names = \"n[1-2]\" }", "{}", 1));
    let ended = scene.spawn(slurm.on(scene_run(&scene, &path)), "run").end();
    ended.expect(4);
    ended.says("this is not a Slurm allocation");
    ended.says("railgauge submit");
    // Hosts that nobody has given yet: nothing is left that could never be resumed.
    let scene = Scene::new();
    let path = scene.write("plan.toml", &plan("{ slurm = { nodes = 3 } }", "{}", 1));
    let ended = scene.spawn(slurm.on(scene_run(&scene, &path)), "run").end();
    ended.expect(4);
    ended.says("railgauge submit");
    ended.says("salloc --nodes=3");
    assert!(!scene.run_directory().exists());
}

fn scene_run(scene: &Scene, plan: &Path) -> Command {
    let mut command = program();
    command.args(["run", "-o"]).arg(scene.run_directory()).arg(plan);
    command
}

fn a_node_outside(slurm: &Slurm) {
    let scene = Scene::new();
    let text = plan("{ names = \"n[1-3]\" }", "{}", 1);
    let ended = scene.spawn(allocated(slurm, &scene, &["--nodelist=n[1-2]"], &text), "run").end();
    ended.expect(3);
    ended.says("the node n3 is not in the allocation of job");
}

fn submit(slurm: &Slurm, scene: &Scene, options: &[&str], plan: &str) -> Command {
    let path = scene.write("plan.toml", plan);
    let mut command = program();
    command.arg("submit").arg(path).arg("-o").arg(scene.run_directory()).args(options);
    slurm.on(command)
}

fn by_submission(slurm: &Slurm) {
    let (scene, keys) = (Scene::new(), "{ partition = \"main\", time = \"5min\", gres = \"gpu:2\" }");
    let text = plan("{ slurm = { nodes = 2 } }", keys, 1);
    let ended = scene.spawn(submit(slurm, &scene, &[], &text), "submit").end();
    ended.expect(0);
    ended.says("run directory");
    assert_eq!(scene.results().measured().len(), scene.results().planned().len());
    // A verdict that fails is the exit code of the submission.
    let failing = text + "[[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"100000 Gbit/s\"\n";
    let scene = Scene::new();
    scene.spawn(submit(slurm, &scene, &[], &failing), "submit").end().expect(1);
    // What is printed is what would be submitted, and nothing is.
    let printed = scene.spawn(submit(slurm, &scene, &["--print"], &failing), "print").end();
    printed.expect(0);
    printed.says("#SBATCH --nodes=2");
}

fn wrong_partitions(slurm: &Slurm) {
    let scene = Scene::new();
    let text = plan("{ slurm = { nodes = 2 } }", "{ partition = \"nosuch\" }", 1);
    let ended = scene.spawn(submit(slurm, &scene, &[], &text), "submit").end();
    ended.expect(2);
    ended.says("nvalid partition");
    // So does one that can never start: it ends by itself, and says why.
    for (nodes, keys, reason) in
        [(8, "{}", "partition main has 4"), (2, "{ deadline = \"now+1minute\", time = \"5min\" }", "deadline")]
    {
        let (scene, text) = (Scene::new(), plan(&format!("{{ slurm = {{ nodes = {nodes} }} }}"), keys, 1));
        let ended = scene.spawn(submit(slurm, &scene, &["--quiet"], &text), "submit").end();
        ended.expect(4);
        ended.says(reason);
    }
    // A job that waits for ever is taken out of the queue by Ctrl-C.
    let text = plan("{ slurm = { nodes = 2 } }", "{ partition = \"closed\" }", 1);
    let mut waiting = scene.spawn(submit(slurm, &scene, &[], &text), "submit");
    waiting.wait_for_words("PartitionDown");
    waiting.send("-INT");
    waiting.end().expect(130);
}

/// The number of the one job.
fn job(slurm: &Slurm) -> String {
    slurm.says(&["squeue", "-h", "-o", "%i"])
}

/// With `--kill-command` salloc passes the end of its job on as a signal. Where that is heard first, it is no interrupt by a person.
fn a_cancelled_job_told_by_a_signal(slurm: &Slurm) {
    let scene = Scene::new();
    let options = ["--nodes=2", "--kill-command=TERM"];
    let mut run = scene.spawn(allocated(slurm, &scene, &options, &plan("{}", "{}", 100)), "run");
    run.wait_for_outcomes(1);
    // No step's end is heard of any more.
    for pid in slurm.processes("srun --unbuffered") {
        assert!(Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap().success());
    }
    slurm.says(&["scancel", &job(slurm)]);
    let ended = run.end();
    ended.expect(130);
    // Its state says only that it is COMPLETING while srun hangs.
    ended.says("continue in a new allocation");
}

fn a_cancelled_job(slurm: &Slurm) {
    let scene = Scene::new();
    let mut run = scene.spawn(allocated(slurm, &scene, &["--nodes=2"], &plan("{}", "{}", 100)), "run");
    run.wait_for_outcomes(1);
    let job = job(slurm);
    slurm.says(&["scancel", &job]);
    let ended = run.end();
    ended.says("was cancelled");
    ended.says("--resume");
    let text = std::fs::read_to_string(scene.results().path("records.jsonl")).unwrap();
    assert!(text.contains("\"Interrupted\""), "{}", ended.said);
    // salloc ends with the exit code of its command, unless it ended it itself.
    assert!(matches!(ended.status.code(), Some(130)), "{:?}\n{}", ended.status, ended.said);
    // It is gone on with in a new allocation on the same nodes.
    let directory = scene.run_directory();
    let words = ["salloc", "--quiet", "--nodelist=n[1-2]"];
    let again = behind(slurm, &words, &["run", "--resume", directory.to_str().unwrap()]);
    slurm.is_clean(Duration::from_secs(60));
    let mut resumed = scene.spawn(again, "again");
    let before = scene.results().outcomes().len();
    resumed.wait_for_outcomes(before + 1);
    slurm.says(&["scancel", "--state=RUNNING", "--user=root"]);
    resumed.end();
}

fn a_cancelled_submission(slurm: &Slurm) {
    let scene = Scene::new();
    let text = plan("{ slurm = { nodes = 2 } }", "{ time = \"5min\" }", 100);
    let mut submitted = scene.spawn(submit(slurm, &scene, &[], &text), "submit");
    submitted.wait_for_outcomes(1);
    slurm.says(&["scancel", &job(slurm)]);
    let ended = submitted.end();
    ended.expect(130);
    ended.says("was cancelled");
    ended.says("railgauge submit --resume");
}

fn a_time_limit(slurm: &Slurm) {
    let scene = Scene::new();
    let mut run = scene.spawn(allocated(slurm, &scene, &["--nodes=2", "--time=1"], &plan("{}", "{}", 1000)), "run");
    run.wait_for_outcomes(1);
    let ended = run.end();
    ended.expect(130);
    ended.says("reached its time limit");
}

fn a_killed_slurmstepd(slurm: &Slurm) {
    let scene = Scene::new();
    let mut run = scene.spawn(allocated(slurm, &scene, &["--nodelist=n[1-3]"], &plan("{}", "{}", 60)), "run");
    run.wait_for_outcomes(1);
    let killed = slurm.says(&["squeue", "-h", "-s", "-w", "n2", "-o", "%i"]);
    let step = killed.lines().find(|step| !step.ends_with("extern")).expect("there is a step on n2").to_owned();
    let at = Instant::now();
    for pid in slurm.processes(&format!("slurmstepd: \\[{step}\\]")) {
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    }
    // Only this host, and with this reason: the words of the step that is cancelled below name slurmstepd too.
    let is_lost = |lost: &Value| lost["host"] == "n2" && lost.to_string().contains("slurm-step-by-hand");
    let lost = || scene.results().journal().iter().any(|line| is_lost(&line["event"]["HostLost"]));
    slurm.until("n2 is given up", Duration::from_secs(120), lost);
    println!("    noticed after {:.1} s", at.elapsed().as_secs_f64());
    slurm.says(&["scancel", &job(slurm)]);
    run.end();
}

/// What `railgauge drain` prints, given to a shell, drains the blamed node and nothing else; its undo leaves alone what somebody
/// else drained.
fn drained_and_undone(slurm: &Slurm) {
    let scene = Scene::new();
    let runs = scene.path("runs");
    let night = |day: u32, slow: Option<usize>| {
        let usual = Scenario { odd_name: Some("n1".into()), sizes: vec![1 << 20], ..Scenario::healthy(8, 2) };
        let of = Scenario { slow, day, ..usual };
        let text = if slow.is_some() { followed_up(&of, &of).0 } else { of.jsonl() };
        let directory = runs.join(format!("night-{day}"));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("records.jsonl"), text).unwrap();
    };
    night(0, Some(0));
    let list = |words: &[&str]| {
        let output = program().arg("drain").args(words).arg(&runs).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let obey = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        slurm.on(shell).status().unwrap()
    };
    let reason = || slurm.says(&["sinfo", "-h", "-n", "n1", "-o", "%E"]);
    let drained = || {
        let nodes = slurm.says(&["sinfo", "-h", "-N", "-p", "main", "-o", "%N %T"]);
        let not_idle: Vec<String> = nodes.lines().filter(|line| !line.ends_with(" idle")).map(str::to_owned).collect();
        not_idle
    };
    let limit = Duration::from_secs(60);
    let drain = list(&[]);
    assert_eq!((drain.lines().count(), list(&["--undo"]).as_str()), (1, ""), "{drain}");
    assert!(obey(&drain).success(), "{drain}");
    slurm.until("n1 alone is drained", limit, || drained() == ["n1 drained"]);
    assert!(reason().starts_with("railgauge: "), "{}", reason());
    // A later night measured it as good.
    night(1, None);
    let undo = list(&["--undo"]);
    assert!(obey(&undo).success() && list(&[]).is_empty(), "{undo}");
    slurm.until("all nodes are idle", limit, || drained().is_empty());
    slurm.says(&["scontrol", "update", "nodename=n1", "state=drain", "reason=a fan"]);
    slurm.until("it is drained by somebody else", limit, || drained() == ["n1 drained"]);
    assert!(obey(&drain).success() && !obey(&undo).success(), "{drain}{undo}");
    assert_eq!((drained(), reason().as_str()), (vec!["n1 drained".to_owned()], "a fan"));
    slurm.says(&["scontrol", "update", "nodename=n1", "state=resume"]);
    slurm.until("all nodes are idle again", limit, || drained().is_empty());
}

fn a_killed_slurmd(slurm: &Slurm) {
    let scene = Scene::new();
    let path = scene.write("plan.toml", &plan("{}", "{}", 1));
    let daemons: Vec<String> = slurm.processes("slurmd -D -N n2").iter().map(u32::to_string).collect();
    assert!(!daemons.is_empty());
    // Once the nodes are given: a job that asks for a node that is down waits for it.
    let killing = format!("kill -KILL {} && exec \"$@\"", daemons.join(" "));
    let words = ["salloc", "--quiet", "--nodelist=n[1-2]", "--no-kill", "sh", "-c", &killing, "sh"];
    let run = scene.run_directory();
    let own = ["run", path.to_str().unwrap(), "-o", run.to_str().unwrap()];
    let ended = scene.spawn(behind(slurm, &words, &own), "run").end();
    ended.expect(3);
    ended.says("n2");
    slurm.revive("n2");
}
