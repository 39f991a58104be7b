//! `railgauge init` as its users have it: local agents, a double of libibverbs, hosts that do not answer, every refusal.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    process::{Command, Output, Stdio},
};

use crate::{
    example, railgauge as railgauge_program,
    railgauge::{Scene, program},
    tree,
};
use serde_json::Value;

/// `railgauge init` in the folder of a scene, with nobody at a terminal and no Slurm.
fn init(scene: &Scene, arguments: &[&str]) -> Output {
    let mut command = program();
    command.current_dir(scene.path(".")).env_remove("SLURM_JOB_NODELIST").env_remove("SLURM_NODELIST");
    command.arg("init").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The plan passes the check without a note. A run of it passes; where this machine is too busy, flows at once do not run together, and
/// nothing else may stand against a case.
fn checked_and_run(scene: &Scene) -> railgauge_program::Results {
    let plan = scene.path("plan.toml");
    let check = program().arg("check").arg(&plan).output().unwrap();
    assert!(
        check.status.success() && check.stderr.is_empty(),
        "{}\n{}",
        said(&check),
        fs::read_to_string(&plan).unwrap()
    );
    let ended = scene.start(&plan).end();
    let results = scene.results();
    let apart = not_together(&results);
    ended.expect(if apart.is_empty() { 0 } else { 3 });
    assert!(results.rows().iter().all(|row| row.error.is_none() || apart.contains(&row.case)), "{}", ended.said);
    results
}

/// Cases whose flows did not run together.
fn not_together(results: &railgauge_program::Results) -> BTreeSet<u64> {
    let document = results.verdicts();
    let case = |trouble: &Value| {
        let against = trouble["against"].as_array().unwrap();
        assert!(against.iter().all(|one| one["kind"] == "contaminated" && one["doubt"] == "round"), "{trouble:#}");
        trouble["case"].as_u64().unwrap()
    };
    document["troubles"].as_array().unwrap().iter().map(case).collect()
}

#[test]
fn local_agents_are_accepted_with_two_commands() {
    let scene = Scene::new();
    let output = init(&scene, &["--via", "local", "node[1-4]"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("acceptance of 4 hosts (node[1-4])")
            && String::from_utf8_lossy(&output.stdout).ends_with("next: railgauge run plan.toml\n"),
        "{text}"
    );
    let results = checked_and_run(&scene);
    let tests: BTreeSet<String> = results.rows().into_iter().map(|row| row.test).collect();
    assert_eq!(tests, ["all-at-once", "write-bandwidth", "write-latency"].map(str::to_owned).into());
    // What the hosts have is required: the kernel is a verdict of the run.
    let verdicts = results.verdicts();
    assert!(verdicts["verdicts"].as_array().unwrap().iter().any(|one| one["kind"] == "preflight"), "{verdicts:#}");
    // A plan that somebody may have changed is not replaced.
    let again = init(&scene, &["--via", "local", "node[1-4]"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(said(&again).contains("plan.toml already exists; choose another file with -o"), "{}", said(&again));
}

#[test]
fn nights_and_tuning_run_too() {
    for purpose in ["nightly", "tuning"] {
        let scene = Scene::new();
        let output = init(&scene, &["--via", "local", "a,b", "--for", purpose, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&answer["purpose"], &answer["hosts"]), (&purpose.into(), &serde_json::json!(["a", "b"])));
        checked_and_run(&scene);
    }
}

/// Two hosts with a RoCE device that is a double: facts, plan and run are those of RDMA.
#[test]
fn hosts_with_rdma_get_a_plan_over_verbs() {
    let scene = Scene::new();
    fs::create_dir(scene.path("fabric")).unwrap();
    for host in ["1", "2"] {
        let values = [
            ("%device", "mlx5_0"),
            ("%driver", "mlx5_core"),
            ("%rate", "400 Gb/sec (4X NDR)"),
            ("%speed", "400000"),
            ("%host", host),
        ];
        tree::unpack("double/roce.host", &scene.path(&format!("root{host}")), &values);
    }
    let library = example::folder_with("verbs_double").join("libverbs_double.so");
    let command = format!(
        "env VERBS_DOUBLE_HOST={{host}} 'RAILGAUGE_ROOT={root}{{host}}' 'RAILGAUGE_IBVERBS={library}' 'RAILGAUGE_RDMACM={library}' \
         'VERBS_DOUBLE_DIR={fabric}' VERBS_DOUBLE_PROFILE=mlx5-roce",
        root = scene.path("root").display(),
        library = library.display(),
        fabric = scene.path("fabric").display(),
    );
    let output = init(&scene, &["--command", &command, "[1-2]"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = fs::read_to_string(scene.path("plan.toml")).unwrap();
    for words in ["devices = [\"mlx5_0\"]", "link_rate = \"400 Gb/s\"", "mtu = 9000", "RAILGAUGE_ROOT"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let results = checked_and_run(&scene);
    let rows = results.rows();
    assert!(rows.iter().all(|row| row.transport == "verbs-rc"), "{rows:?}");
    assert!(rows.iter().any(|row| row.test == "both-directions"));
}

#[test]
fn hosts_that_cannot_be_reached_are_left_out_and_named() {
    let scene = Scene::new();
    let command = "sh -c 'test {host} != gone && exec \"$0\" \"$@\"'";
    let output = init(&scene, &["--command", command, "a,gone,b"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let text = fs::read_to_string(scene.path("plan.toml")).unwrap();
    assert!(text.contains("names = [\"a\", \"b\"]") && text.contains("#   gone: "), "{text}");
    assert!(said(&output).contains("left out: gone\n"), "{}", said(&output));
    // Of two hosts that leaves one, which has no GPU: there is nothing to plan.
    let output = init(&scene, &["--command", command, "a,gone", "-o", "other.toml"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("1 of 2 hosts answered; "), "{}", said(&output));
    assert!(!scene.path("other.toml").exists());
}

/// Hosts from everywhere they may be written, without contacting them.
#[test]
fn hosts_come_from_files_configurations_and_allocations() {
    let scene = Scene::new();
    scene.write("hosts", "# rack 1\ngpu[1-3]\ngpu4   # the spare\n");
    scene.write("ssh", "Host gpu1 gpu2\nHost gpu*\n  ProxyJump bastion\nHost bastion\n");
    let planned = |arguments: &[&str], nodes: Option<&str>| {
        let mut command = program();
        command.current_dir(scene.path(".")).env_remove("SLURM_JOB_NODELIST").env_remove("SLURM_NODELIST");
        command.args(["init", "--offline", "-o", "-"]).args(arguments).stdin(Stdio::null());
        let output = command.envs(nodes.map(|nodes| ("SLURM_JOB_NODELIST", nodes))).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let named = |text: &str, names: &str| assert!(text.contains(&format!("names = [{names}]")), "{names}\n{text}");
    named(&planned(&["--hosts-file", "hosts", "--exclude", "gpu3"], None), "\"gpu[1-2,4]\"");
    let text = planned(&["gpu[1-2]", "--ssh-config", "ssh"], None);
    assert!(text.contains(&format!("config = \"{}\"", scene.path("").join("ssh").display())), "{text}");
    named(&planned(&["--slurm", "--via", "ssh"], Some("node[07-09],big1")), "\"node[07-09]\", \"big1\"");
    let text = planned(&["x[1-2]", "y", "x1"], None);
    named(&text, "\"x[1-2]\", \"y\"");
    assert!(text.contains("--offline") && !text.contains("[preflight]"), "{text}");
}

#[test]
fn every_refusal_says_what_to_do_and_contacts_nobody() {
    let scene = Scene::new();
    scene.write("empty", "# nobody\n");
    scene.write("bad", "gpu1\ngpu[3-1]\n");
    for (arguments, words) in [
        (&[][..], "no hosts are given; name them (railgauge init 'gpu[001-016]'), or use --hosts-file or --slurm"),
        (&["gpu[1-"], "a `[` that is not closed"),
        (&["a,b", "--exclude", "a,b"], "no host is left to plan for"),
        (&["a,b", "--exclude", "["], "--exclude: `[`: "),
        (&["--hosts-file", "missing"], "the host file missing cannot be read: "),
        (&["--hosts-file", "empty"], "empty lists no hosts; write one hostlist on each line"),
        (&["--hosts-file", "bad"], "bad, line 2: `gpu[3-1]`: "),
        (&["a,b", "--offline", "--ssh-config", "missing"], "cannot read missing: "),
        (&["--slurm"], "SLURM_JOB_NODELIST is not set, so this is not inside an allocation"),
        (&["a,b", "--via", "rsh"], "--via rsh: not a launcher; choose one of local, ssh, "),
        (&["a,b", "--via", "command"], "--via command and --command belong together"),
        (&["a,b", "--via", "local", "--command", "x"], "--via command and --command belong together"),
        (&["a,b", "--via", "local", "--ssh-config", "bad"], "--ssh-config does not apply with --via local"),
        (&["a,b", "--command", "'x"], "(the plan to be written)"),
        (&["a,b", "-o", "nowhere/plan.toml"], "cannot write to nowhere: "),
        (&["a,b", "-o", "-", "--json"], "-o - and --json both want stdout"),
        (&["a,b", "--slurm"], "cannot be used with"),
        (&["a,b", "--for", "fun"], "[possible values: acceptance, nightly, tuning]"),
    ] {
        let output = init(&scene, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments:?}: {}", said(&output));
        assert!(output.stdout.is_empty() && !scene.path("plan.toml").exists(), "{arguments:?}");
    }
}

/// Whoever gives no host at a terminal is asked.
#[test]
fn hosts_are_asked_for_at_a_terminal() {
    let scene = Scene::new();
    let answered = |line: &str| {
        let railgauge = program();
        let line_of = format!("{} init --offline", railgauge.get_program().to_str().unwrap());
        let mut script = Command::new("script");
        script.args(["-qec", &line_of, "/dev/null"]).current_dir(scene.path("."));
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = answered("\n");
    assert!(
        said(&output).contains("Hosts, separated by commas") && said(&output).contains("no hosts are given"),
        "{}",
        said(&output)
    );
    let output = answered("gpu[1-2], gpu7\n");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = fs::read_to_string(scene.path("plan.toml")).unwrap();
    assert!(text.contains("names = [\"gpu[1-2,7]\"]"), "{text}");
}
