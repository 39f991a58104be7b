//! Soaks of local agents over TCP: what a port that tells no rate means for them.

use std::time::{Duration, Instant};

use crate::railgauge::{Ended, Results, Scene};

fn soak(keys: &str) -> (Scene, Ended, Results) {
    let scene = Scene::new();
    let text = format!(
        "name = \"soak\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\nlocalise = {{ confirm = false, waive = [\"all\"] }}\n\
         [[test]]\nname = \"write\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\n\
         measure = \"100ms\"\nwarm_up = \"10ms\"\n[soak]\nwindow = \"1s\"\n{keys}\n"
    );
    let ended = scene.start(&scene.write("plan.toml", &text)).end();
    let results = scene.results();
    (scene, ended, results)
}

/// The loopback interface tells neither rate nor lanes: only a plan that demands something of them is not fulfilled.
#[test]
fn ports_without_a_rate_are_judged_only_where_the_plan_says_so() {
    let (_scene, ended, results) = soak("for = \"4s\"");
    ended.expect(0);
    assert_eq!(results.verdicts()["status"], "pass");
    let (_scene, ended, results) = soak("for = \"4s\"\nlongest_degraded = \"0s\"");
    ended.expect(3);
    let verdicts = results.verdicts();
    let open: Vec<_> =
        verdicts["verdicts"].as_array().unwrap().iter().filter(|verdict| verdict["status"] != "pass").collect();
    assert!(open.len() == 1 && open[0]["key"] == "longest_degraded", "{open:#?}");
}

/// Nobody can send a share of a rate that nobody knows. It is no stall of a flow, and is said at once.
#[test]
fn a_share_of_a_rate_that_no_port_tells_ends_the_soak_at_once() {
    // Longer than a run is waited for.
    let (_scene, ended, results) = soak("for = \"2h\"\nshare = \"80%\"");
    ended.expect(4);
    let verdicts = results.verdicts();
    for verdict in verdicts["verdicts"].as_array().unwrap() {
        assert_ne!(verdict["status"], "fail", "{verdict:#}");
    }
    assert!(verdicts["soak"]["stalls"].as_array().is_none_or(Vec::is_empty), "{:#}", verdicts["soak"]);
    assert!(ended.said.contains("set `rate`, such as"), "{}", ended.said);
    // Taken up again it would end in the same way: nothing says that it goes on, and the first thing to do is to change the plan.
    assert!(!ended.said.contains("--resume"), "{}", ended.said);
    assert!(!verdicts.to_string().contains("--resume"), "{verdicts:#}");
    let page = std::fs::read_to_string(results.path("report.html")).unwrap();
    assert!(!page.contains("--resume"));
    assert!(verdicts.to_string().contains("rate-for-share"), "{verdicts:#}");
}

/// No flow of the soak passes `c`: nobody would notice that its agent is gone, but for who asks.
#[test]
fn a_host_that_no_flow_of_the_soak_uses_is_missed_when_its_agent_is_gone() {
    let scene = Scene::new();
    let pids = scene.path("pids");
    let text = format!(
        "name = \"soak\"\nhosts = {{ names = [\"a\", \"b\", \"c\"] }}\nlocalise = {{ confirm = false, waive = [\"all\"] }}\n\
         [launch]\nvia = \"command\"\ncommand = [\"sh\", \"-c\", \"echo $$ > {0}.$0; exec \\\"$@\\\"\", \"{{name}}\"]\n\
         [[test]]\nname = \"all\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\nmeasure = \"100ms\"\n\
         [[test]]\nname = \"two\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\nmeasure = \"100ms\"\n\
         hosts = [\"a\", \"b\"]\n[soak]\ntest = \"two\"\nwindow = \"1s\"\nfor = \"6s\"\n",
        pids.display()
    );
    let run = scene.start(&scene.write("plan.toml", &text));
    wait_for_soak(&scene);
    let pid = std::fs::read_to_string(scene.path("pids.c")).unwrap();
    assert!(std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    run.end().expect(3);
    let verdicts = scene.results().verdicts();
    let open = verdicts["verdicts"].as_array().unwrap().iter().filter(|verdict| verdict["status"] != "pass");
    let open: Vec<_> = open.map(|verdict| &verdict["kind"]).collect();
    assert_eq!(open, ["hosts"], "{:#}", verdicts["verdicts"]);
    assert!(scene.results().journal().iter().any(|line| line["event"]["HostLost"]["host"] == "c"));
}

/// The agent is stopped while it is asked for the first time what it saw. Its clock is known from before: what it missed is told as long as it was.
#[test]
fn a_hang_over_the_first_look_is_told_as_long_as_it_was() {
    let scene = Scene::new();
    let text = format!(
        "name = \"soak\"\nhosts = {{ names = [\"a\", \"b\"] }}\nlocalise = {{ confirm = false, waive = [\"all\"] }}\n\
         [launch]\nvia = \"command\"\ncommand = [\"sh\", \"-c\", \"echo $$ > {0}.$0; exec \\\"$@\\\"\", \"{{name}}\"]\n\
         [[test]]\nname = \"bw\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\nmeasure = \"100ms\"\n\
         [soak]\nwindow = \"1s\"\nfor = \"20s\"\nlongest_outage = \"2s\"\n",
        scene.path("pids").display()
    );
    let run = scene.start(&scene.write("plan.toml", &text));
    wait_for_soak(&scene);
    let signal = |name: &str| {
        let pid = std::fs::read_to_string(scene.path("pids.b")).unwrap();
        assert!(std::process::Command::new("kill").args([name, pid.trim()]).status().unwrap().success());
    };
    // Halfway from the start, when its clock is read, to the first look, which comes five seconds later.
    std::thread::sleep(Duration::from_millis(2_500));
    let stopped = Instant::now();
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(9));
    signal("-CONT");
    let hung = stopped.elapsed().as_secs_f64();
    run.end();
    let verdicts = scene.results().verdicts();
    let verdict =
        |key: &str| verdicts["verdicts"].as_array().unwrap().iter().find(|verdict| verdict["key"] == key).unwrap();
    let holes = verdict("watched")["reasons"].as_array().unwrap();
    let hole = holes.iter().find(|reason| reason["id"] == "soak-hole").unwrap_or_else(|| panic!("{holes:#?}"));
    let missed = hole["length"].as_f64().unwrap() / 1e9;
    // A third of the hang more or less where the clock is taken from the answer that came late.
    assert!((missed - hung).abs() < hung / 4.0, "{missed} s of {hung} s: {hole:#}");
    assert_eq!(verdict("longest_outage")["status"], "fail", "{:#}", verdict("longest_outage"));
}

fn wait_for_soak(scene: &Scene) {
    let begun = Instant::now();
    while !scene.results().journal().iter().any(|line| line["event"].get("Soaked").is_some()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the soak does not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
}
