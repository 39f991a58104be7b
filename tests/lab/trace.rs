//! The verbs calls of the agent beside perftest's (`bench/trace-parity`): a few of its cases, in the lab of the tests. Every
//! difference must be in the list of those that are meant, and every entry of that list must still occur.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    example,
    lab::{self, borrow, text},
};

/// Those that differ most from one another: polling memory, sleeping on events, requests that bring bytes, datagrams.
const CASES: &str = "write rc poll bandwidth,write rc poll latency,send rc events latency,read rc poll bandwidth,\
                     send ud poll bandwidth";

/// Exit code of the comparison where perftest hung and everything else is as it must be.
const PERFTEST_HUNG: i32 = 3;

/// The agent as users get it: a debug build is ten times as large, and copying takes the lab's hosts that much longer.
fn agent() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_railgauge")).ancestors().nth(2).unwrap().join("agent/railgauge-agent");
    assert!(built.exists(), "{} is missing: cargo build --profile agent -p railgauge-agent", built.display());
    built
}

#[test]
#[ignore = "slow: perftest and the agent in turn"]
fn the_agent_asks_for_what_perftest_asks_for() {
    lab::sound(|| {
        let Some(lab) = borrow() else { return };
        let library = example::folder_with("verbs_trace").join("libverbs_trace.so");
        let mut parity = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/trace-parity"));
        parity.args(["--cases", CASES, "--block", lab::BLOCK, "--ssh-config"]).arg(lab.ssh_config());
        parity.env("RAILGAUGE_AGENT", agent()).env("RAILGAUGE_VERBS_TRACE", library);
        let scratch = tempfile::tempdir().unwrap();
        let differences = scratch.path().join("differences.json");
        let output = parity.arg("-o").arg(&differences).output().unwrap();
        let said = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
        // perftest sleeps for an event that never comes at times, on a busy machine five times in a row: that case is not known then.
        assert!(matches!(output.status.code(), Some(0 | PERFTEST_HUNG)), "{said}");
        let told: serde_json::Value = serde_json::from_slice(&std::fs::read(differences).unwrap()).unwrap();
        let compared: Vec<&str> = told["cases"].as_array().unwrap().iter().map(|case| case.as_str().unwrap()).collect();
        for case in CASES.split(',').map(str::trim).filter(|case| !case.contains("events")) {
            assert!(compared.contains(&case), "{case} was not compared:\n{said}");
        }
        assert!(said.contains(" unmeant=0 stale=0 "), "{said}");
    });
}

#[test]
fn what_is_made_of_traces_is_right() {
    let mut tests = Command::new("python3");
    tests.args(["-B", "-m", "unittest", "railgauge_bench.test_trace"]);
    let output = tests.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("bench")).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("Ran "), "{said}");
}
