//! `railgauge submit` beside programs that stand for Slurm's where a real one cannot be brought into such a state: an sbatch that
//! hangs, a slurmctld that has forgotten the job. `tests/slurm/jobs.rs` has the rest, on a real Slurm.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use crate::railgauge::{Running, Scene, program};

const PLAN: &str = "name = \"submitted\"\nlaunch = { via = \"slurm\" }\nhosts = { slurm = { nodes = 2 } }\n[[test]]\nop = \"write\"\n\
                    metric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1KiB\"\n";
/// slurmctld has forgotten every job (the words of Slurm 22.05).
const FORGOTTEN: (&str, &str) = ("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");

/// `railgauge submit` where these programs come first.
fn submit(scene: &Scene, programs: &[(&str, &str)]) -> Running {
    let folder = scene.path("bin");
    fs::create_dir(&folder).unwrap();
    for (name, text) in programs {
        fs::write(folder.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let plan = scene.write("plan.toml", PLAN);
    let mut command = program();
    command.args(["submit", "--quiet", "--json"]).arg(plan).arg("-o").arg(scene.run_directory());
    command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    scene.spawn(command, "submit")
}

#[test]
fn an_interrupt_is_heard_while_sbatch_hangs() {
    let scene = Scene::new();
    let (begun, told) = (scene.path("begun"), scene.path("told"));
    // It starts a process of its own, as a wrapper around sbatch does.
    let hangs = format!("trap 'touch {}' TERM INT; touch {}; sleep 6000; :", told.display(), begun.display());
    let running = submit(&scene, &[("sbatch", &hangs)]);
    let end = Instant::now() + Duration::from_secs(60);
    while !begun.exists() {
        assert!(Instant::now() < end, "sbatch was not started");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.send("-INT");
    let ended = running.end();
    ended.expect(130);
    ended.says("squeue --me --name=railgauge-submitted");
}

/// Reasons as squeue(1) has them.
#[test]
fn a_job_that_can_never_start_is_cancelled_and_its_reason_is_said() {
    for reason in ["PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "QOSMaxWallDurationPerJobLimit"] {
        let scene = Scene::new();
        let cancelled = scene.path("cancelled");
        let waits = format!("echo 'JobId=7 JobName=x JobState=PENDING Reason={reason} ExitCode=0:0'");
        let scancel = format!("echo \"$@\" > '{}'", cancelled.display());
        let ended =
            submit(&scene, &[("sbatch", "cat > /dev/null; echo 7"), ("scontrol", &waits), ("scancel", &scancel)]);
        let ended = ended.end();
        ended.expect(4);
        ended.says(reason);
        assert_eq!(fs::read_to_string(cancelled).unwrap().trim(), "7");
    }
}

/// Slurm gives no lasting reason.
#[test]
fn a_job_of_more_nodes_than_exist_is_cancelled() {
    let scene = Scene::new();
    let says = "case $3 in\n\
                job) echo 'JobId=7 JobName=x JobState=PENDING Reason=PartitionConfig ExitCode=0:0 Partition=main NumNodes=20-20' ;;\n\
                *) echo 'PartitionName=main State=UP TotalCPUs=12 TotalNodes=6' ;;\nesac";
    let programs = [("sbatch", "cat > /dev/null; echo 7"), ("scontrol", says), ("scancel", ":")];
    let ended = submit(&scene, &programs).end();
    ended.expect(4);
    ended.says("20 nodes");
}

#[test]
fn a_deadline_interrupts_a_run_only_once_it_has_begun() {
    for (begun, exit) in [(false, 4), (true, 130)] {
        let scene = Scene::new();
        let run = scene.run_directory();
        let begin =
            if begun { format!("mkdir -p '{0}'; touch '{0}/records.jsonl'; ", run.display()) } else { String::new() };
        let over = "echo 'JobId=7 JobName=x JobState=DEADLINE Reason=DeadLine ExitCode=0:1'";
        submit(&scene, &[("sbatch", &format!("{begin}cat > /dev/null; echo 7")), ("scontrol", over)])
            .end()
            .expect(exit);
    }
}

#[test]
fn a_forgotten_job_ends_as_its_run_did() {
    let scene = Scene::new();
    let run = scene.run_directory();
    let leaves = |code: u32| {
        format!(
            "mkdir -p '{run}'; echo '{{\"run_exit_code\": {code}}}' > '{run}/verdicts.json'; cat > /dev/null; echo 7",
            run = run.display()
        )
    };
    let ended = submit(&scene, &[("sbatch", &leaves(1)), FORGOTTEN]).end();
    ended.expect(1);
    ended.says("{\"run_exit_code\": 1}");
}

#[test]
fn a_forgotten_job_whose_run_left_nothing_is_no_success() {
    for left in [None, Some("{\"run_exit_code\": 0}"), Some("{\"run_exit_code\": null}")] {
        let scene = Scene::new();
        // Verdicts of an earlier run in the same directory say nothing of this one.
        let is_old = left.is_some_and(|text| text.ends_with("0}"));
        let verdicts = scene.run_directory().join("verdicts.json");
        fs::create_dir(scene.run_directory()).unwrap();
        if let (Some(text), true) = (left, is_old) {
            fs::write(&verdicts, text).unwrap();
        }
        let write = match (left, is_old) {
            (Some(text), false) => format!("echo '{text}' > '{}'; ", verdicts.display()),
            _ => String::new(),
        };
        let sbatch = format!("{write}cat > /dev/null; echo 7");
        let ended = submit(&scene, &[("sbatch", &sbatch), FORGOTTEN]).end();
        ended.expect(4);
        ended.says("Slurm has forgotten job 7");
        assert_eq!(ended.said.contains("run_exit_code"), left.is_some() && !is_old, "{}", ended.said);
    }
}
