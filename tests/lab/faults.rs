//! What goes wrong on a cluster, done to the lab while railgauge runs: the right host is named, the rest is measured,
//! nothing measured is lost, the exit code is right.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    lab::{self, Borrowed, borrow, read, text},
    railgauge::{Results, Row, Scene},
};

const HOSTS: [&str; 4] = ["lab1", "lab2", "lab3", "lab4"];
/// Sizes of a run that is long enough for something to happen to it.
const MANY: &str = "1KiB..64KiB x4";
/// Cases of it: six pairs, four sizes.
const CASES: usize = 24;
/// Sizes of a run during which a link flaps, and its cases.
const FLAPS: &str = "1KiB..128KiB x2";
const FLAPS_CASES: usize = 48;
/// Sizes of a run to which something has happened before, and its cases.
const FEW: &str = "4KiB..64KiB x16";
const FEW_CASES: usize = 12;

fn four_hosts() -> Option<Borrowed> {
    borrow()
}

/// A full tournament of four hosts over one rail.
fn plan(scene: &Scene, ssh_config: &Path, sizes: &str) -> PathBuf {
    let text = format!(
        r#"
        name = "faults"
        [launch]
        via = "ssh"
        # An agent is sent to three or four interpreted hosts at once.
        timeout = "60s"
        retries = 1
        # It is sent once for all tests of this file.
        keep_agent = true
        [launch.ssh]
        config = "{}"
        [hosts]
        names = ["lab[1-4]"]
        # Hosts that share a few cores scatter; which of them is slow is not asked here, and none is measured again.
        [localise]
        confirm = false
        waive = ["all"]
        [defaults]
        pattern = "tournament"
        rails = [0]
        measure = "150ms"
        warm_up = "20ms"
        deadline = "10s"
        # Hosts of the lab share a few cores; a silent peer is given up after some seconds.
        [defaults.knobs]
        completion = "events"
        depth = 16
        timeout = 16
        [[test]]
        name = "write"
        op = "write"
        metric = "bandwidth"
        sizes = "{sizes}"
        "#,
        ssh_config.display()
    );
    scene.write("plan.toml", &text)
}

/// The same plan where no fabric fails: on a busy machine an interpreted host is away for seconds, and what its peers send again
/// meanwhile would contaminate cases.
fn patient(scene: &Scene, ssh_config: &Path, sizes: &str) -> PathBuf {
    let text = read(&plan(scene, ssh_config, sizes));
    scene.write("plan.toml", &text.replace("        timeout = 16\n", "        timeout = 20\n"))
}

/// Every pair without `host` was measured at every size; every pair with it has rows too, and those without a value
/// say which host it was. Returns the rows of `host`.
#[track_caller]
fn the_rest_is_measured(results: &Results, planned: usize, host: &str, words: &[&str]) -> Vec<Row> {
    let rows = bandwidth(results);
    assert_eq!(cases(&rows).len(), planned, "the frame has a row for every case");
    let (with, without): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.touches(host));
    assert_eq!(cases(&without).len(), planned / 2);
    let verdicts = results.verdicts();
    let troubles = verdicts["troubles"].as_array().unwrap().iter().filter(|trouble| trouble["state"] == "contaminated");
    let contaminated: BTreeSet<u64> = troubles.map(|trouble| trouble["case"].as_u64().unwrap()).collect();
    for row in &without {
        let Row { src, dst, size, .. } = row;
        assert!(row.value.is_some_and(|value| value > 0.0), "{src} to {dst}, {size} B: {:?}", row.error);
        assert!(row.wrong == 0 && row.verified > 0, "{row:?}");
        // On a busy machine interpreted hosts send requests again, and the case is contaminated. The host that was struck is no part of it.
        let is_clean = |error: &str| contaminated.contains(&row.case) && !error.contains(host);
        assert!(row.error.as_deref().is_none_or(is_clean), "{row:?}");
    }
    for row in with.iter().filter(|row| row.value.is_none()) {
        let error = row.error.as_deref().unwrap_or_default();
        assert!(error.contains(host), "{host} is not named: {error}");
        assert!(words.iter().any(|word| error.contains(word)), "none of {words:?}: {error}");
        let others = HOSTS.iter().filter(|other| **other != host && !row.touches(other));
        for other in others {
            assert!(!error.contains(other), "{other} had nothing to do with it: {error}");
        }
    }
    with
}

fn bandwidth(results: &Results) -> Vec<Row> {
    let of_tests = |row: &Row| row.phase == "test" && row.metric == "bandwidth";
    results.rows().into_iter().filter(of_tests).collect()
}

fn cases(rows: &[Row]) -> BTreeSet<u64> {
    rows.iter().map(|row| row.case).collect()
}

/// Nothing of an agent runs on any host any more.
#[track_caller]
fn no_agent_is_left(lab: &Borrowed) {
    let deadline = Instant::now() + Duration::from_secs(60);
    for host in 1..=4 {
        loop {
            let list = text(&lab.ssh(host, "pgrep -f -a /[r]ailgauge/use-").stdout);
            if list.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "lab{host} still runs: {list}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_host_that_is_down_at_the_start() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        lab.expect(&["kill", "3"]);
        let scene = Scene::new();
        let ended = scene.start(&plan(&scene, &lab.ssh_config(), FEW)).end();
        ended.expect(3);
        ended.says("lab3");
        let rows = the_rest_is_measured(&scene.results(), FEW_CASES, "lab3", &["connect"]);
        assert!(rows.iter().all(|row| row.value.is_none()));
        assert!(scene.results().report().contains("lab3"));
    });
}

#[test]
fn sshd_that_refuses() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        lab.expect(&["sshd", "1", "refuse"]);
        let scene = Scene::new();
        let ended = scene.start(&plan(&scene, &lab.ssh_config(), FEW)).end();
        ended.expect(3);
        let rows = the_rest_is_measured(&scene.results(), FEW_CASES, "lab1", &["refused"]);
        assert!(rows.iter().all(|row| row.value.is_none()));
    });
}

#[test]
fn a_host_whose_key_is_not_the_known_one() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        // lab2 is known by the key of lab3, as after an attack or a new installation.
        let known: Vec<String> = read(&lab.directory().join("known_hosts")).lines().map(str::to_owned).collect();
        let key_of_3 = known[2].split_once(' ').unwrap().1;
        let forged =
            format!("{}\n{} {key_of_3}\n{}\n{}\n", known[0], known[1].split_once(' ').unwrap().0, known[2], known[3]);
        let known_hosts = scene.write("known_hosts", &forged);
        let original = lab.directory().join("known_hosts").display().to_string();
        let config = read(&lab.ssh_config()).replace(&original, &known_hosts.display().to_string());
        let config = scene.write("ssh_config", &config);
        let ended = scene.start(&plan(&scene, &config, FEW)).end();
        ended.expect(3);
        let rows = the_rest_is_measured(&scene.results(), FEW_CASES, "lab2", &["host key"]);
        assert!(rows.iter().all(|row| row.value.is_none()));
    });
}

/// Something happens to `host` after six cases: it is named, the rest is measured, nothing measured before is lost.
#[track_caller]
fn struck(lab: &Borrowed, host: &str, words: &[&str], happens: impl FnOnce()) {
    let scene = Scene::new();
    let mut run = scene.start(&plan(&scene, &lab.ssh_config(), MANY));
    run.wait_for_outcomes(6);
    // Without its controller the run starts no further round: it cannot end before this happens, however busy this machine is.
    run.send("-STOP");
    let before = scene.results().measured();
    happens();
    run.send("-CONT");
    run.end().expect(3);
    let rows = the_rest_is_measured(&scene.results(), CASES, host, words);
    assert!(rows.iter().any(|row| row.value.is_none()));
    nothing_is_lost(&scene.results(), &before.into_keys().collect());
}

#[test]
fn a_host_killed_in_the_middle() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        struck(&lab, "lab2", &["lab2"], || lab.expect(&["kill", "2"]));
    });
}

#[test]
fn a_link_cut_in_the_middle() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        struck(&lab, "lab4", &["lab4"], || lab.expect(&["link", "4.0", "down"]));
        no_agent_is_left(&lab);
    });
}

#[test]
fn a_link_that_flaps() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        let mut run = scene.start(&plan(&scene, &lab.ssh_config(), FLAPS));
        run.wait_for_outcomes(6);
        // The device tells of a port that goes down while a case uses it, counters are read around cases, and a case that begins
        // while the cable is out finds the port down. Which of them it is depends on when the break falls.
        let words = ["IBV_EVENT_PORT_ERR", "link_downed", "the port is down"];
        let tells = |text: &str| words.iter().any(|word| text.contains(word));
        let told = || scene.results().outcomes().iter().any(|outcome| tells(&outcome.to_string()));
        for flap in 0..12 {
            lab.expect(&["cable", "4.0", "out"]);
            // The kernel tells of changes of a link once a second: what comes and goes in between it may not tell at all.
            std::thread::sleep(Duration::from_millis(1_200));
            lab.expect(&["cable", "4.0", "in"]);
            std::thread::sleep(Duration::from_millis(500));
            if flap >= 3 && told() {
                break;
            }
        }
        run.end().expect(3);
        let results = scene.results();
        let rows = the_rest_is_measured(&results, FLAPS_CASES, "lab4", &["lab4"]);
        let flapped = |row: &&Row| row.error.as_deref().is_some_and(tells);
        assert!(rows.iter().filter(flapped).all(|row| row.error.as_deref().unwrap().contains("lab4: ")));
        assert!(rows.iter().any(|row| flapped(&row)), "no case of lab4 tells of it: {rows:#?}");
        assert!(tells(&results.report()));
    });
}

#[test]
fn a_host_that_may_lock_too_little_memory() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let sshd = "/usr/sbin/sshd -f /run/lab/sshd_config -E /run/lab/sshd.log";
        let again = |limit: &str| {
            let did = lab.ssh(2, &format!("kill $(cat /run/sshd.pid); sleep 0.5; ulimit {limit}; {sshd}"));
            assert!(did.status.success(), "{}", text(&did.stderr));
        };
        again("-l 64");
        let scene = Scene::new();
        // The limit does not hold for root (CAP_IPC_LOCK).
        let config = read(&lab.ssh_config()).replace("User root", "User op");
        let config = scene.write("ssh_config", &config);
        let ended = scene.start(&plan(&scene, &config, FEW)).end();
        again("-H -l unlimited; ulimit -l unlimited");
        ended.expect(3);
        ended.says("memlock");
        let rows = the_rest_is_measured(&scene.results(), FEW_CASES, "lab2", &["registering memory"]);
        assert!(rows.iter().any(|row| row.value.is_none()));
    });
}

#[test]
fn an_agent_killed_by_hand() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        struck(&lab, "lab3", &["agent"], || {
            let killed = lab.ssh(3, "pkill -9 -f /[r]ailgauge/use-");
            assert!(killed.status.success(), "no agent was found on lab3: {}", text(&killed.stderr));
        });
    });
}

#[test]
fn a_killed_controller_leaves_no_agent_and_is_resumed() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        let mut run = scene.start(&patient(&scene, &lab.ssh_config(), MANY));
        run.wait_for_outcomes(10);
        run.kill();
        no_agent_is_left(&lab);
        let before: BTreeSet<u64> = scene.results().measured().into_keys().collect();
        assert!(before.len() >= 10 && before.len() < CASES, "{}", before.len());

        let ended = scene.resume().end();
        ended.expect(0);
        let results = scene.results();
        let measured = results.measured();
        assert_eq!(measured.keys().copied().collect::<BTreeSet<_>>(), results.planned());
        for case in &before {
            assert_eq!(measured[case], 1, "case {case} was measured before and is not measured again");
        }
        let rows = bandwidth(&results);
        assert_eq!(cases(&rows).len(), CASES);
        assert!(rows.iter().all(|row| row.value.is_some() && row.error.is_none()));
        no_agent_is_left(&lab);
    });
}

#[test]
fn a_full_disk_stops_the_run_and_room_lets_it_go_on() {
    lab::sound(|| {
        let Some(lab) = four_hosts() else { return };
        let scene = Scene::new();
        patient(&scene, &lab.ssh_config(), MANY);
        // The disk is a small file system in a mount namespace of this one shell, so that it cannot outlive the test.
        let script = scene.write(
            "script",
            r#"
        set -u
        cd "$1"
        mkdir disk
        mount -t tmpfs -o size=16m tmpfs disk || exit 90
        "$2" run -o disk/run plan.toml >run.out 2>run.err &
        # Somebody fills the disk while the run is under way.
        for wait in $(seq 1200); do
            [ "$(grep -c '"Outcome"' disk/run/records.jsonl 2>/dev/null)" -ge 6 ] 2>/dev/null && break
            sleep 0.05
        done
        cat /dev/zero >disk/filler 2>/dev/null
        wait $!
        echo $? >run.code
        cp disk/run/records.jsonl before.jsonl
        rm disk/filler
        "$2" run --resume disk/run >resume.out 2>resume.err
        echo $? >resume.code
        cp -r disk/run run
        "#,
        );
        let status = Command::new("unshare")
            .args(["--mount", "sh"])
            .arg(&script)
            .arg(scene.path(""))
            .arg(env!("CARGO_BIN_EXE_railgauge"))
            .status()
            .unwrap();
        assert!(status.success(), "{status}");
        let said = |name: &str| fs::read_to_string(scene.path(name)).unwrap();
        let all = format!("{}{}{}{}", said("run.out"), said("run.err"), said("resume.out"), said("resume.err"));
        assert_eq!(said("run.code").trim(), "4", "{all}");
        assert!(said("run.err").contains("space") || said("run.err").contains("No space left"), "{all}");
        assert_eq!(said("resume.code").trim(), "0", "{all}");
        // Every line of the full disk is whole, and still the beginning of the journal.
        let (then, now) = (said("before.jsonl"), read(&scene.results().path("records.jsonl")));
        assert!(then.ends_with('\n') && now.starts_with(&then), "the journal's beginning has changed");
        let before = then.matches("\"Outcome\"").count();
        assert!((6..CASES).contains(&before), "the disk was full after {before} outcomes");
        let results = scene.results();
        assert_eq!(results.measured().into_keys().collect::<BTreeSet<_>>(), results.planned());
        no_agent_is_left(&lab);
    });
}

/// What was measured before the fault has its value in the frame.
#[track_caller]
fn nothing_is_lost(results: &Results, before: &BTreeSet<u64>) {
    assert!(!before.is_empty());
    let rows = bandwidth(results);
    for case in before {
        let row = rows.iter().find(|row| row.case == *case).unwrap();
        assert!(row.value.is_some(), "case {case} was measured and is lost: {:?}", row.error);
    }
}
