//! The agent's own tests of RDMA (`agent/tests/verbs_lab.rs`), between two hosts of the lab.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::lab::{self, Borrowed, borrow, text};

/// The agent as users get it: a debug build is ten times as large, and copying takes the lab's hosts that much longer.
fn agent() -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_railgauge")).ancestors().nth(2).unwrap().join("agent/railgauge-agent");
    assert!(built.exists(), "{} is missing: cargo build --profile agent -p railgauge-agent", built.display());
    built
}

fn copied(lab: &Borrowed, host: u32) -> String {
    let (config, place) = (lab.ssh_config(), "/root/railgauge-agent");
    let mut copy = Command::new("scp");
    copy.args(["-q", "-F"]).arg(&config).arg(agent()).arg(format!("lab{host}:{place}"));
    let output = copy.output().unwrap();
    assert!(output.status.success(), "LAB FAILURE: no agent on lab{host}: {}", text(&output.stderr));
    format!("ssh -F {} lab{host} {place}", config.display())
}

#[test]
fn every_operation_and_service_works_between_two_hosts() {
    lab::sound(|| {
        let Some(lab) = borrow() else { return };
        let agents = [copied(&lab, 1), copied(&lab, 2)].join(";");
        // Of the whole workspace, as everything was built for this test: else cargo would build it anew.
        let mut tests = Command::new(env!("CARGO"));
        tests.args(["test", "--workspace", "--test", "agent", "verbs_lab::", "--", "--test-threads=1"]);
        let output = tests.env("RAILGAUGE_VERBS_TEST", agents).output().unwrap();
        let said = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{said}");
        assert!(said.contains(" passed; 0 failed") && !said.contains(" 0 passed"), "nothing was tested:\n{said}");
    });
}
