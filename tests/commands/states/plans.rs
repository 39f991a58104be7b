//! States where plans, waivers, names and dates change.

use super::*;

/// No run will measure it as good.
#[test]
fn a_faulty_host_that_is_gone_can_be_waived() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    write(&runs.join("night-09"), &base(9));
    let others: Vec<usize> = (0..ALL).filter(|host| *host != BAD).take(DRAWN).collect();
    let of = Scenario { drawn: others, ..base(10) };
    for (waive, state) in [(None, State::Critical), (Some(Waiver::Host(name(BAD))), State::Ok)] {
        let waive = Vec::from_iter(waive);
        write_text(&runs.join("night-10"), &edited(&of.jsonl(), |plan| plan.localise.waive.clone_from(&waive)));
        let nights = Nights::of(runs.to_str().unwrap(), None, after(&of)).unwrap();
        let standing = Standing::of(&nights, SignedDuration::from_hours(26), after(&of));
        let drained = Lists::of(&nights, &standing, Scheduler::Slurm).drain.len();
        let of_host = Standing::of_host(&nights, &name(BAD), SignedDuration::from_hours(26), after(&of));
        assert_eq!(of_host.text.contains("waives it"), !waive.is_empty(), "{}", of_host.text);
        assert_eq!((standing.state, drained), (state, usize::from(state == State::Critical)), "{}", standing.text);
    }
}

/// A trend names what a waived host did, and does not fail for it.
#[test]
fn what_the_newest_plan_waives_is_accepted_by_trend() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    for day in 0..13 {
        write(&runs.join(format!("night-{day:02}")), &base(day));
    }
    let worse = |runs: &Path| {
        let found = watched(runs.to_str().unwrap(), after(&base(13)));
        let of_bad = found.changes.iter().filter(|change| change.name.contains(&name(BAD)));
        let states = of_bad.map(|change| change.state).collect::<Vec<_>>();
        (found.status == Status::Fail, states)
    };
    assert_eq!(worse(&runs), (true, vec![Change::Open]));
    let others: Vec<usize> = (0..ALL).filter(|host| *host != BAD).take(DRAWN).collect();
    let text = Scenario { drawn: others, ..base(13) }.jsonl();
    let waived = edited(&text, |plan| plan.localise.waive = vec![Waiver::Host(name(BAD))]);
    write_text(&runs.join("night-13"), &waived);
    assert_eq!(worse(&runs), (false, vec![Change::Accepted]));
}

/// A limit that a host broke on a night of the whole plan is no failure of now once a run of a part measured that host as good.
#[test]
fn a_limit_that_a_repaired_host_broke_is_settled() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let state = |of: &Scenario| {
        write(&runs.join(format!("night-{:02}", of.day)), of);
        let nights = Nights::of(runs.to_str().unwrap(), None, after(of)).unwrap();
        let standing = Standing::of(&nights, SignedDuration::from_hours(30 * 24), after(of));
        (standing.state, standing.text)
    };
    assert_eq!(state(&base(14)).0, State::Critical);
    let others = Scenario { drawn: vec![0, 1, 2, 3, 5, 6, 7, 8], part: true, ..base(15) };
    assert_eq!(state(&others).0, State::Critical);
    let (found, text) = state(&Scenario { part: true, ..base(16) });
    assert_eq!(found, State::Ok, "{text}");
}

/// An edited plan may give the name of a test to something else, and another name to the same measurement.
#[test]
fn a_fault_ends_with_what_measures_the_same() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    write(&runs.join("night-09"), &base(9));
    let state = |rename: &[(&str, &str)]| {
        let repaired = base(16);
        write(&runs.join("night-16"), &repaired);
        let path = runs.join("night-16/verdicts.json");
        let mut verdicts: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let all = verdicts["components"].as_array_mut().unwrap();
        let is_edited = |of: &serde_json::Value| ["write-bw", "write-lat"].iter().any(|test| of["test"] == *test);
        all.retain(|of| !is_edited(of) || rename.iter().any(|(from, _)| of["test"] == *from));
        for (from, to) in rename {
            all.iter_mut().find(|of| of["test"] == *from).unwrap()["test"] = (*to).into();
        }
        fs::write(&path, verdicts.to_string()).unwrap();
        let nights = Nights::of(runs.to_str().unwrap(), None, after(&repaired)).unwrap();
        let host = nights.states.host(&name(BAD)).unwrap();
        assert_eq!(host.repaired, host.state == Condition::Good);
        host.state
    };
    assert_eq!(state(&[("write-lat", "write-bw")]), Condition::Faulty);
    assert_eq!(state(&[("write-lat", "latency")]), Condition::Faulty);
    // It was slow in both.
    assert_eq!(state(&[("write-bw", "bandwidth")]), Condition::Faulty);
    assert_eq!(state(&[("write-bw", "bandwidth"), ("write-lat", "latency")]), Condition::Good);
    assert_eq!(state(&[("write-bw", "write-bw"), ("write-lat", "write-lat")]), Condition::Good);
}

/// Two hosts are no peers of each other, and a fault that peers showed may be above every limit.
#[test]
fn a_fault_that_peers_showed_ends_only_with_a_comparison() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let state = |of: &Scenario| {
        let nights = Nights::of(runs.to_str().unwrap(), None, after(of)).unwrap();
        nights.states.host(&name(BAD)).unwrap().state
    };
    write(&runs.join("night-09"), &base(9));
    let two = Scenario { hosts: 2, drawn: vec![BAD, 5], slow: Some(0), ..base(10) };
    let text = edited(&two.jsonl(), |plan| {
        plan.tests[0].expect.truncate(1);
        plan.tests[0].expect[0].limit = Limit::AtLeast(1.0);
    });
    write_text(&runs.join("night-10"), &text);
    assert_eq!(state(&two), Condition::Faulty);
    write(&runs.join("night-16"), &base(16));
    assert_eq!(state(&base(16)), Condition::Good);
}

/// An older run that was resumed today shows today's fault.
#[test]
fn what_a_resumed_run_found_is_not_older_than_a_later_run() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let slow = Scenario { slow: Some(BAD), ..base(9) };
    let resumed = nights::edited(&followed_up(&slow, &slow).0, |line| {
        if matches!(line.event, Event::Finished) {
            line.at = after(&base(12)).to_string();
        }
    });
    write_text(&runs.join("night-09"), &resumed);
    let state = |day: u32, good: u32| {
        write_text(&runs.join(format!("night-{good:02}")), &base(good).jsonl());
        let nights = Nights::of(runs.to_str().unwrap(), None, after(&base(day))).unwrap();
        nights.states.host(&name(BAD)).unwrap().state
    };
    assert_eq!(state(12, 10), Condition::Faulty);
    assert_eq!(state(13, 13), Condition::Good);
}

/// The date of a run that cannot be read is not known, nor is its plan: neither hides what other runs say.
#[test]
fn a_run_that_cannot_be_read_is_placed_by_its_name() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    for day in [8, 9] {
        write(&runs.join(format!("night-{day:02}")), &base(day));
    }
    let others: Vec<usize> = (0..ALL).filter(|host| *host != BAD).take(DRAWN).collect();
    let newest = Scenario { drawn: others, ..base(11) };
    write(&runs.join("night-11"), &newest);
    let damaged = |day: u32| {
        let run = runs.join(format!("night-{day}"));
        fs::create_dir(&run).unwrap();
        fs::write(run.join("records.jsonl"), "damaged\n").unwrap();
        let nights = Nights::of(runs.to_str().unwrap(), None, after(&newest)).unwrap();
        let standing = Standing::of(&nights, SignedDuration::from_hours(26), after(&newest));
        let drain = Lists::of(&nights, &standing, Scheduler::Slurm).drain.concat();
        assert!(drain.contains("reason='railgauge: acceptance: "), "{drain}");
        // What they measured is lost, and that is not silent.
        let lost: Vec<&String> = standing.remarks.iter().filter(|remark| remark.contains("night-10")).collect();
        assert_eq!(lost.len(), 1, "{:?}", standing.remarks);
        nights.newest().directory.file_name().unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(damaged(10), "night-11");
    assert_eq!(damaged(12), "night-12");
}

/// Failed nights are kept for long: without the run after the repair their faults would be back.
#[test]
fn the_run_that_measured_a_repaired_host_is_not_deleted() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let others: Vec<usize> = (0..ALL).filter(|host| *host != BAD).take(DRAWN).collect();
    write(&runs.join("night-14"), &base(14));
    write(&runs.join("night-15"), &base(15));
    for day in 16..19 {
        write(&runs.join(format!("night-{day}")), &Scenario { drawn: others.clone(), ..base(day) });
    }
    let keep = Keep { last: Some(2), failed: true, ..Keep::default() };
    let chosen = choose(&runs, &keep, after(&base(18))).unwrap();
    let goes: Vec<&str> = chosen
        .runs
        .iter()
        .filter(|run| run.kept.is_none())
        .filter_map(|run| run.directory.rsplit('/').next())
        .collect();
    assert_eq!(goes, ["night-16"]);
}

/// A clock that was a year ahead for one night hides no later night.
#[test]
fn a_run_from_the_future_is_placed_by_its_name() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    write(&runs.join("night-07"), &base(7));
    let ahead = Scenario { first: base(8).first + jiff::Span::new().years(1), ..base(8) };
    write(&runs.join("night-08"), &ahead);
    write(&runs.join("night-09"), &base(9));
    let now = after(&base(9));
    let nights = Nights::of(runs.to_str().unwrap(), None, now).unwrap();
    let standing = Standing::of(&nights, SignedDuration::from_hours(26), now);
    assert!(nights.newest().directory.ends_with("night-09"), "{:?}", nights.newest().directory);
    let state = nights.states.host(&name(BAD)).unwrap().state;
    assert_eq!((state, standing.state), (Condition::Faulty, State::Critical), "{}", standing.text);
}

/// A good state has an age, a fault has none; what does not run any more hides no fault.
#[test]
fn a_good_state_becomes_unknown_and_a_fault_does_not() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    write(&runs.join("night-10"), &base(10));
    let nights = |days: i64| {
        Nights::of(runs.to_str().unwrap(), None, after(&base(10)) + SignedDuration::from_hours(24 * days)).unwrap()
    };
    let state = |days: i64, host: usize| nights(days).states.host(&name(host)).unwrap().state;
    assert_eq!([state(1, 0), state(29, 0), state(31, 0)], [Condition::Good, Condition::Good, Condition::Unknown]);
    assert_eq!([state(1, BAD), state(31, BAD), state(400, BAD)], [Condition::Faulty; 3]);
    // The next night was interrupted: it says nothing of the host.
    let of = Scenario { interrupted: true, ..base(16) };
    write(&runs.join("night-16"), &of);
    let later = after(&of);
    let nights = Nights::of(runs.to_str().unwrap(), None, later).unwrap();
    let host = Standing::of_host(&nights, &name(BAD), SignedDuration::from_hours(26), later);
    assert_eq!(
        (host.state, Standing::of(&nights, SignedDuration::from_hours(26), later).state),
        (State::Critical, State::Critical)
    );
}

/// What many hosts share is good again once links that passed it are, and not because a part of the plan passed beside it. Who waives its
/// group waives it.
#[test]
fn what_many_links_share_is_good_only_if_it_was_measured() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let both = |day| Scenario { drawn: (0..4).chain(6..10).collect(), ..base(day) };
    write(&runs.join("night-00"), &both(0));
    let path = runs.join("night-00/verdicts.json");
    let mut verdicts: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let of_test =
        verdicts["components"].as_array_mut().unwrap().iter_mut().find(|of| of["test"] == "write-bw").unwrap();
    let from = |host: usize| format!("{} rail 0", name(host));
    // Which of both begins is the schedule's choice.
    let pairs = |all: &[(usize, usize)]| -> Vec<(String, String)> {
        all.iter().flat_map(|(a, b)| [(from(*a), name(*b)), (from(*b), name(*a))]).collect()
    };
    let cases = [
        ("one", pairs(&[(0, 7)])),
        ("most", pairs(&[(0, 7), (1, 8), (2, 9), (3, 6)])),
        // Of a group that was measured together, one member and all of them.
        ("several", vec![(from(0), format!("{},{}", name(1), name(20)))]),
        ("none", Vec::new()),
    ];
    for (kind, links) in &cases {
        let hosts: Vec<String> = (0..4).map(name).collect();
        let shared = serde_json::json!({
            "kind": "boundary", "name": kind, "state": "faulty", "why": ["slow"], "links": links, "groups": ["leaf1"], "hosts": hosts,
        });
        of_test["components"].as_array_mut().unwrap().push(shared);
    }
    fs::write(&path, verdicts.to_string()).unwrap();
    let faulty = |of: &Scenario| {
        let nights = Nights::of(runs.to_str().unwrap(), None, after(of)).unwrap();
        nights.states.with(Condition::Faulty).map(|one| one.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(faulty(&both(0)), ["most", "none", "one", "several"]);
    let within = Scenario { hosts: 6, drawn: (0..6).collect(), part: true, ..base(1) };
    write(&runs.join("night-01"), &within);
    assert_eq!(faulty(&within), ["most", "none", "one", "several"]);
    // A part of the plan, which measures a link of each.
    let part = Scenario { drawn: vec![0, 1, 2, 3, 4, 5, 7, 11], part: true, ..base(2) };
    write(&runs.join("night-02"), &part);
    assert_eq!(faulty(&part), ["most", "none", "several"]);
    write(&runs.join("night-03"), &both(3));
    assert_eq!(faulty(&both(3)), ["none", "several"]);
    let text = edited(&both(4).jsonl(), |plan| plan.localise.waive = vec![Waiver::Group("leaf1".to_owned())]);
    write_text(&runs.join("night-04"), &text);
    assert!(faulty(&both(4)).is_empty());
}

/// The commands say the same: with the clock of this machine, at which these runs are old.
#[test]
fn the_commands_name_a_host_that_the_newest_run_did_not_measure() {
    let place = tempfile::tempdir().unwrap();
    let runs = place.path().join("runs");
    let others: Vec<usize> = (0..ALL).filter(|host| *host != BAD).take(DRAWN).collect();
    write(&runs.join("night-09"), &base(9));
    write(&runs.join("night-10"), &Scenario { drawn: others, ..base(10) });
    let told = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_railgauge"))
            .args(args)
            .arg("runs")
            .current_dir(place.path())
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let bad = name(BAD);
    assert_eq!(told(&["status"]).0, 1);
    assert_eq!(told(&["status", "--format", "nagios"]).0, 2);
    assert_eq!(
        [
            told(&["status", "--format", "nhc", "--host", &bad]).0,
            told(&["status", "--format", "nhc", "--host", "gpu001"]).0
        ],
        [1, 0]
    );
    let (code, text) = told(&["status", "--format", "message", "--json"]);
    let message: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(code == 1 && message["bad_part"].as_str().unwrap().contains(&bad), "{message:#}");
    let (_, drain) = told(&["drain"]);
    assert!(drain.lines().count() == 1 && drain.contains(&format!("nodename={bad} ")), "{drain}");
    assert_eq!(told(&["drain", "--undo"]).1, "");
    write(&runs.join("night-15"), &base(15));
    assert_eq!(told(&["drain"]).1, "");
    assert!(told(&["drain", "--undo"]).1.contains(&format!("nodename={bad} state=resume")));
    assert_eq!(told(&["status", "--format", "nhc", "--host", &bad]).0, 0);

    // A newest run that cannot be read is no state of before.
    fs::create_dir(runs.join("night-16")).unwrap();
    fs::write(runs.join("night-16/records.jsonl"), "").unwrap();
    let (code, metrics) = told(&["status", "--format", "prometheus"]);
    assert!(code == 0 && metrics.contains("railgauge_state{plan=\"acceptance\"} 3.0"), "{code} {metrics}");
    let (code, line) = told(&["status", "--format", "nagios", "--no-such-option"]);
    assert!(code == 3 && line.starts_with("RAILGAUGE UNKNOWN - "), "{line}");
}
