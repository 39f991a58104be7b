//! What `[preflight]` wants is a verdict of a run, whatever its tests use: local agents over TCP.

use std::fs;

use crate::railgauge::{Scene, program};
use serde_json::Value;

/// A short test over TCP on two local agents that cannot fail by itself.
fn plan(preflight: &str) -> String {
    format!(
        "name = \"wanted\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"a\", \"b\"] }}\n\
         [preflight]\n{preflight}\n[[test]]\nname = \"write\"\nop = \"write\"\nmetric = \"bandwidth\"\n\
         transport = \"tcp\"\nsizes = [\"4KiB\"]\nmeasure = \"20000 iterations\"\nwarm_up = \"1ms\"\n"
    )
}

struct Judged {
    verdicts: Vec<Value>,
    junit: String,
    page: String,
}

/// Runs such a plan, expects the exit code, and gives back the verdicts of `[preflight]`.
fn judged(preflight: &str, code: i32) -> Judged {
    let scene = Scene::new();
    let written = scene.write("plan.toml", &plan(preflight));
    scene.start(&written).end().expect(code);
    let read = |name: &str| fs::read_to_string(scene.run_directory().join(name)).unwrap();
    let document: Value = serde_json::from_str(&read("verdicts.json")).unwrap();
    assert_eq!(document["exit_code"], code);
    let all = document["verdicts"].as_array().unwrap();
    let verdicts = all.iter().filter(|verdict| verdict["kind"] == "preflight").cloned().collect();
    // The command that only looks agrees with the run.
    let alone = program().arg("preflight").arg(&written).output().unwrap();
    assert_eq!(alone.status.code(), Some(code), "{}", String::from_utf8_lossy(&alone.stdout));
    Judged { verdicts, junit: read("junit.xml"), page: read("report.html") }
}

fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim().to_owned()
}

#[test]
fn what_is_not_as_the_plan_wants_fails_the_run() {
    let wanted = "gpus = 61\nkernel = \"5.15.0-none\"\nrdma_ports = 63\nmtu = 8999\nmodules = { nvidia_fs = \"*\" }\n";
    let Judged { verdicts, junit, page } = judged(wanted, 1);
    let demands: Vec<&str> = verdicts.iter().map(|verdict| verdict["demand"].as_str().unwrap()).collect();
    assert_eq!(demands.len(), 5, "{demands:?}");
    for (verdict, key) in verdicts.iter().zip(["mtu", "rdma_ports", "gpus", "modules.nvidia_fs", "kernel"]) {
        assert!(verdict["demand"].as_str().unwrap().starts_with(key), "{verdict}");
        assert_eq!(verdict["status"], "fail", "{verdict}");
        let hosts: Vec<&str> =
            verdict["holdings"].as_array().unwrap().iter().map(|one| one["host"].as_str().unwrap()).collect();
        assert!(hosts.contains(&"a") && hosts.contains(&"b"), "{verdict}");
    }
    assert_eq!(junit.matches("<failure").count(), 5, "{junit}");
    for demand in demands {
        assert!(page.contains(demand), "{demand} is not on the page");
    }
}

#[test]
fn what_cannot_be_read_is_inconclusive() {
    // Most machines that tests run on have no frequency scaling; where one has, the answer is known.
    let (code, status) = match governor().as_deref() {
        None => (3, "inconclusive"),
        Some("performance") => (0, "pass"),
        Some(_) => (1, "fail"),
    };
    let Judged { verdicts, .. } = judged("governor = \"performance\"\n", code);
    assert_eq!(verdicts[0]["status"], status, "{verdicts:?}");
}

fn governor() -> Option<String> {
    let path = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[test]
fn what_is_as_wanted_passes_and_is_told() {
    let Judged { verdicts, junit, .. } = judged(&format!("kernel = \"{}\"\n", kernel()), 0);
    assert_eq!(verdicts.len(), 1);
    assert_eq!(verdicts[0]["status"], "pass");
    assert!(junit.contains(&format!("kernel is {}", kernel())), "{junit}");
}

#[test]
fn what_the_plan_waives_is_told_and_does_not_count() {
    let Judged { verdicts, junit, .. } = judged("gpus = 61\nwaive = [\"gpu-count\"]\n", 0);
    assert_eq!((&verdicts[0]["status"], &verdicts[0]["waived"]), (&"fail".into(), &true.into()));
    assert_eq!(junit.matches("<failure").count() + junit.matches("<error").count(), 0, "{junit}");
    assert!(junit.contains("<skipped"), "{junit}");
}

#[test]
fn a_part_of_a_plan_is_no_run_of_the_whole() {
    let scene = Scene::new();
    let text = plan("").replace("\"b\"]", "\"b\", \"c\"]");
    let written = scene.write(
        "plan.toml",
        &(text
            + "[[test]]\nname = \"to-c\"\nop = \"write\"\nmetric = \"bandwidth\"\n\
        transport = \"tcp\"\npattern = \"many-to-one\"\nto = \"c\"\nsizes = [\"4KiB\"]\nmeasure = \"20000 iterations\"\n"),
    );
    let directory = scene.run_directory();
    let run =
        |more: &[&str]| program().args(["run", "-q", "-o"]).arg(&directory).arg(&written).args(more).output().unwrap();
    let subset = run(&["--hosts", "a,b"]);
    assert_eq!(subset.status.code(), Some(0), "{}", String::from_utf8_lossy(&subset.stderr));
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    let verdicts: Value = serde_json::from_str(&read("verdicts.json")).unwrap();
    assert_eq!(verdicts["subset"]["hosts"], serde_json::json!(["a", "b"]));
    assert_eq!(verdicts["subset"]["of_hosts"], 3);
    assert_eq!(verdicts["subset"]["left_out"][0]["test"], "to-c");
    assert_eq!(verdicts["cases"]["planned"], 1);
    for (file, text) in [("report.html", read("report.html")), ("junit.xml", read("junit.xml"))] {
        assert!(text.contains("2 of 3 hosts (a,b)"), "{file} does not say that only a part was run");
    }
    // Its files belong together. Who signs is told that it is a part, and that is no pass of the whole.
    let verify = program().args(["signoff", "--verify"]).arg(&directory).output().unwrap();
    assert_eq!(verify.status.code(), Some(0), "{}", String::from_utf8_lossy(&verify.stdout));
    let signed = scene.path("signed.html");
    let signoff = program().args(["signoff", "--json", "-o"]).arg(&signed).arg(&directory).output().unwrap();
    let told: Value = serde_json::from_slice(&signoff.stdout).unwrap();
    assert_eq!((signoff.status.code(), &told["status"]), (Some(3), &"inconclusive".into()), "{told:#}");
    assert!(told["sentence"].as_str().unwrap().contains("2 of 3 hosts (a,b)"), "{told:#}");
    assert!(told["coverage"]["rows"][0][1].as_str().unwrap().contains("of 3 "), "{told:#}");
    // Nor signs anybody numbers of sockets for those of a fabric, or values of which nothing is demanded.
    let cautions = told["cautions"].to_string();
    assert!(cautions.contains("not RDMA") && cautions.contains("no limit"), "{told:#}");
    // Another plan is none of theirs.
    let own = fs::read(directory.join("plan.toml")).unwrap();
    fs::write(directory.join("plan.toml"), [&own[..], b"# more\n"].concat()).unwrap();
    assert_eq!(program().args(["signoff", "--verify"]).arg(&directory).output().unwrap().status.code(), Some(1));
    fs::write(directory.join("plan.toml"), own).unwrap();
    // Taken up again with the plan's file, it stays the part that it was.
    let again = program().args(["run", "-q", "--resume"]).arg(&directory).arg(&written).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", String::from_utf8_lossy(&again.stderr));
    let resumed: Value = serde_json::from_str(&read("verdicts.json")).unwrap();
    assert_eq!(resumed["subset"], verdicts["subset"]);
    // It is a night of what it measured, and says that it is a part; no baseline is learned from it.
    let trend =
        program().args(["trend", "--json", "-o"]).arg(scene.path("trend.html")).arg(&directory).output().unwrap();
    let told: Value = serde_json::from_slice(&trend.stdout).unwrap();
    assert_eq!((&told["runs"], &told["unreadable"]), (&serde_json::json!([1, 1]), &serde_json::json!([])), "{told}");
    assert!(told["reported"][0]["sentence"].as_str().unwrap().contains("2 of 3 hosts (a,b)"), "{told}");
    let baseline = program().args(["runs", "baseline"]).arg(&directory).output().unwrap();
    assert_eq!(baseline.status.code(), Some(2), "{}", String::from_utf8_lossy(&baseline.stderr));
    // A name that is not in the plan is a mistake of the command line, and nothing is made.
    let wrong = run(&["--hosts", "d"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// Each flow sends no faster than its test says.
#[test]
fn a_flow_keeps_the_rate_of_its_test() {
    let scene = Scene::new();
    let text = plan("").replace("sizes =", "rate = \"0.4 Gb/s\"\nsizes =").replace("20ms", "500ms");
    scene.start(&scene.write("plan.toml", &text)).end().expect(0);
    let values: Vec<_> =
        scene.results().rows().iter().filter(|row| row.metric == "bandwidth").map(|row| row.value).collect();
    assert!(
        !values.is_empty() && values.iter().all(|value| value.is_some_and(|rate| rate > 0.0 && rate < 0.45)),
        "{values:?}"
    );
}
