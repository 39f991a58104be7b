//! Twenty nights on a real Slurm of twelve nodes, eight of which are free each night: after each of them everything that reports the state
//! of a node reports the same.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use railgauge_model::journal::event::Event;

use crate::{
    nights::{self, ALL, BAD, NIGHTS, SLOW, Watch, free, write_text},
    railgauge::{Scene, program},
    skip::skipped,
    slurm::Slurm,
    support::Dice,
};

/// Of a cable, and of the one of the slow node: what two processors carry for eight nodes at once, also when others use them.
const USUAL: &str = "100mbit";
const HALF: &str = "50mbit";

const PLAN: &str = r#"
name = "nightly"
rotate = true
launch = { via = "slurm" }
hosts = { slurm = { nodes = 8 } }
localise = { at_most = "30s", least_effect = "20%" }

[[test]]
name = "write-bandwidth"
op = "write"
metric = "bandwidth"
transport = "tcp"
pattern = "random"
rounds = 4
sizes = "16KiB"
measure = "400ms"
warm_up = "200ms"
repeats = 2
"#;

fn name(node: usize) -> String {
    format!("n{}", node + 1)
}

/// Leaves these nodes to Slurm: others use the rest.
fn only(slurm: &Slurm, free: &[usize]) {
    for node in 0..ALL {
        let state: &[&str] = if free.contains(&node) { &["state=resume"] } else { &["state=drain", "reason=in use"] };
        slurm.says(&[&["scontrol", "update", &format!("nodename={}", name(node))], state].concat());
    }
    slurm.until("the others are drained", Duration::from_secs(60), || slurm.idle() == free.len());
}

/// Writes a run as if it had been so much earlier.
fn earlier(directory: &Path, by: SignedDuration) {
    let text = fs::read_to_string(directory.join("records.jsonl")).unwrap();
    let moved = |text: &str| text.parse::<Timestamp>().unwrap() - by;
    let text = nights::edited(&text, |line| {
        line.at = format!("{:.3}", moved(&line.at));
        if let Event::Outcome(outcome) = &mut line.event {
            outcome.started_at = moved(&outcome.started_at.to_string()).to_string().into();
        }
    });
    write_text(directory, &text);
}

#[test]
#[ignore = "slow: twenty runs on a real Slurm"]
fn nodes_that_slurm_draws_keep_their_state() {
    let Some(slurm) = Slurm::start(&[&format!("--nodes={ALL}"), "--cables", "--silence=60"]) else { return };
    if !(0..ALL).all(|node| slurm.limit(&name(node), USUAL)) {
        skipped("nights on a real Slurm: this kernel has no sch_tbf");
        return;
    }
    let scene = Scene::new();
    let (plan, runs) = (scene.write("nightly.toml", PLAN), scene.path("runs"));
    let (mut dice, mut watch) = (Dice(5), Watch::new(&runs, "nightly", name));
    for day in 0..NIGHTS {
        let began = Instant::now();
        if let Some((_, rate)) = [(SLOW.start, HALF), (SLOW.end, USUAL)].into_iter().find(|(night, _)| *night == day) {
            assert!(slurm.limit(&name(BAD), rate));
        }
        let drawn = free(&mut dice);
        only(&slurm, &drawn);
        let directory = runs.join(format!("night-{day:02}"));
        let mut command = program();
        command.arg("submit").arg(&plan).arg("-o").arg(&directory);
        let ended = scene.spawn(slurm.on(command), "submit").end();
        let is_bad = SLOW.contains(&day) && drawn.contains(&BAD);
        ended.expect(i32::from(is_bad));
        slurm.is_clean(Duration::from_secs(60));
        // The last night is this one.
        let by = SignedDuration::from_hours(24) * (NIGHTS - 1 - day).cast_signed();
        earlier(&directory, by);
        println!("night {day}: {:.1} s, {drawn:?}", began.elapsed().as_secs_f64());
        watch.night(day, &drawn.iter().copied().collect(), Timestamp::now() - by);
    }
    watch.end(false);
    slurm.end();
}
