//! Collectives over host memory on local agents: measured and verified, with ranks of their own; a rank that stops is
//! named and the rest of the plan goes on.

use std::{collections::BTreeSet, process::Command, time::Duration};

use serde_json::Value;

use crate::railgauge::Scene;

// Ranks of one busy machine do not all get their turn: what stands out among them is true, and not what is tested here.
const HEAD: &str = "name = \"groups\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"a[1-3]\"]\n\
                    [localise]\nwaive = [\"all\"]\n[defaults]\ntransport = \"tcp\"\nwarm_up = \"1ms\"\n";

#[test]
fn every_operation_over_tcp_is_measured_and_verified() {
    let scene = Scene::new();
    let mut text = HEAD.to_owned();
    for op in ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"] {
        text += &format!(
            "[[test]]\nop = \"{op}\"\nmetric = \"bandwidth\"\nranks_per_host = 2\nsizes = [96, 49152]\n\
             measure = \"20ms\"\n"
        );
    }
    text += "[[test]]\nname = \"pairs\"\nop = \"all_reduce\"\nmetric = \"latency\"\ngroups = \"pairs\"\nsizes = 8\n\
             datatype = [\"f64\", \"i32\"]\nreduction = \"max\"\nalgorithm = [\"ring\", \"auto\"]\n\
             measure = \"30 iterations\"\n";
    let plan = scene.write("plan.toml", &text);
    scene.start(&plan).end().expect(0);
    let rows = scene.results().rows();
    assert_eq!(rows.iter().map(|row| &row.test).collect::<BTreeSet<_>>().len(), 6);
    for row in &rows {
        assert!(row.value.is_some_and(f64::is_finite), "{row:?}");
        assert_eq!((row.transport.as_str(), row.link_layer.as_str(), row.wrong), ("tcp", "loopback", 0), "{row:?}");
        assert!(row.verified > 0, "{row:?}");
    }
    let outcomes = scene.results().outcomes();
    let sample = |at: usize| &outcomes[at]["result"]["Ok"];
    assert_eq!(sample(0)["ranks"].as_array().unwrap().len(), 6);
    let planned = scene.results().planned_cases();
    let of_pairs = |outcome: &&Value| planned[&outcome["case"].as_u64().unwrap()]["test"] == "pairs";
    let pairs: Vec<_> = outcomes.iter().filter(of_pairs).collect();
    assert_eq!(pairs.len(), 3 * 2 * 2);
    assert!(pairs.iter().all(|outcome| outcome["result"]["Ok"]["initiator"]["operations"] == 30), "{pairs:?}");
    let algorithms: BTreeSet<_> =
        pairs.iter().map(|outcome| outcome["link"]["settings"]["algorithm"].as_str().unwrap()).collect();
    assert_eq!(algorithms, BTreeSet::from(["ring", "recursive-doubling"]));
}

#[test]
fn every_byte_of_a_matrix_arrives_where_it_belongs() {
    let scene = Scene::new();
    // In bytes; the last rank sends nothing, and the diagonal stays where it is.
    let matrix = [[4_u64, 0, 65_536], [4_000, 8, 131_072], [0, 0, 0]];
    let lines = matrix.map(|row| row.map(|bytes| bytes.to_string()).join(" ")).join("\n");
    scene.write("bytes.txt", &lines);
    let test = |rest: &str| format!("[[test]]\nop = \"all_to_all_v\"\nmeasure = \"20 iterations\"\n{rest}\n");
    let text = HEAD.to_owned()
        + &test("name = \"file\"\nmetric = \"latency\"\ntraffic = { file = \"bytes.txt\" }")
        + &test(
            "name = \"pipeline\"\nmetric = \"bandwidth\"\ntraffic = { pipeline = { stages = 3, bytes = \"8KiB\" }, alone = 4 }",
        );
    scene.start(&scene.write("plan.toml", &text)).end().expect(0);
    let outcomes = scene.results().outcomes();
    let verified = |at: usize| -> Vec<u64> {
        let ranks = outcomes[at]["result"]["Ok"]["ranks"].as_array().unwrap();
        ranks.iter().map(|rank| rank["checked"]["verified"].as_u64().unwrap()).collect()
    };
    // Before and after the window, and after flows were measured alone.
    assert_eq!(verified(0), [4_000, 0, 65_536 + 131_072].map(|bytes| 2 * bytes));
    assert_eq!(verified(1), [0, 8_192, 8_192].map(|bytes| 3 * bytes));
    let flows = outcomes[1]["result"]["Ok"]["flows"].as_array().unwrap();
    let ends: BTreeSet<_> = flows.iter().map(|flow| (flow["from"].as_u64(), flow["to"].as_u64())).collect();
    assert_eq!(ends, BTreeSet::from([(Some(0), Some(1)), (Some(1), Some(2))]));
    assert!(flows.iter().all(|flow| flow["bytes"] == 8_192 && flow["share"] == 1.0), "{flows:?}");
    let rows = scene.results().rows();
    assert!(rows.iter().all(|row| row.wrong == 0 && row.error.is_none() && row.value.is_some()), "{rows:?}");
    let compared = rows.iter().filter(|row| row.metric.starts_with("together_over"));
    assert_eq!(compared.map(|row| &*row.test).collect::<Vec<_>>(), ["pipeline"; 2]);
    let planned = scene.results().planned_cases();
    assert_eq!(planned[&0]["cell"]["size"], 65_536 + 131_072);
}

#[test]
fn a_training_step_tells_what_of_its_communication_is_not_hidden() {
    let scene = Scene::new();
    let text = HEAD.to_owned()
        + "[[test]]\nop = \"all_reduce\"\nmetric = \"step\"\nsizes = \"1MiB\"\nbucket = \"256KiB\"\n\
           first_bucket = \"16KiB\"\ncompute = \"30ms\"\nmeasure = \"4 iterations\"\n";
    let plan = scene.write("plan.toml", &text);
    scene.start(&plan).end().expect(0);
    let results = scene.results();
    let rows = results.rows();
    let value = |metric: &str| {
        let row = rows.iter().find(|row| row.metric == metric).unwrap_or_else(|| panic!("no {metric}: {rows:?}"));
        assert_eq!((row.wrong, &row.error), (0, &None), "{row:?}");
        row.value.unwrap()
    };
    let (step, exposed) = (value("step_time"), value("step_exposed"));
    assert!(step >= 30_000.0 && (step - exposed - 30_000.0).abs() < 1.0, "{step} {exposed}");
    // The last bucket is never hidden, and a step moves all of them.
    assert!(exposed > 0.0 && value("step_alone") > 0.0);
    assert!((value("algbw") - f64::from(1 << 20) / step / 1e3).abs() < 0.001);
    assert!(scene.results().report().contains("stands for the backward pass"));
}

/// The warm-up is too short to tell how many operations fill the window.
#[test]
fn a_window_is_measured_until_its_time_is_over() {
    let scene = Scene::new();
    let test = |metric: &str| {
        format!("[[test]]\nop = \"all_reduce\"\nmetric = \"{metric}\"\nsizes = [8, 262144]\nmeasure = \"400ms\"\n")
    };
    let head = HEAD.replace("warm_up = \"1ms\"", "warm_up = \"0s\"");
    let plan = scene.write("plan.toml", &(head + &test("bandwidth") + &test("latency")));
    scene.start(&plan).end().expect(0);
    let outcomes = scene.results().outcomes();
    assert_eq!(outcomes.len(), 4);
    for outcome in outcomes {
        let sample = &outcome["result"]["Ok"]["initiator"];
        // Barriers between latencies take of the window and are not timed. On a busy machine single operations may take seconds,
        // so that it is only said how short a window must not be.
        let timed = sample["elapsed"].as_u64().unwrap();
        assert!(timed >= 100_000_000, "{sample}");
    }
}

#[test]
fn wrong_bytes_of_a_rank_fail_the_case() {
    let scene = Scene::new();
    let text = HEAD.replace("via = \"local\"", "via = \"local\"\nenv = { RAILGAUGE_FAULT = \"flip-bit\" }")
        + "[[test]]\nop = \"all_gather\"\nmetric = \"bandwidth\"\nsizes = 12\nmeasure = \"5ms\"\n";
    let plan = scene.write("plan.toml", &text);
    scene.start(&plan).end().expect(1);
    assert!(scene.results().rows().iter().all(|row| row.wrong > 0));
    // Which rank saw how many is kept.
    let outcomes = scene.results().outcomes();
    let sample = &outcomes[0]["result"]["Ok"];
    let own: Vec<u64> =
        sample["ranks"].as_array().unwrap().iter().map(|rank| rank["checked"]["wrong"].as_u64().unwrap()).collect();
    assert_eq!(Some(own.iter().sum()), sample["checked"]["wrong"].as_u64());
    assert_eq!(own.len(), 3);
}

#[test]
fn a_rank_that_dies_is_named_and_the_rest_goes_on() {
    named("KILL");
}

/// A stopped agent is the hang that no error message of the fabric tells of.
#[test]
fn a_rank_that_hangs_is_named_and_the_rest_goes_on() {
    named("STOP");
}

/// Sends a signal to one of three agents while they reduce together. What is said of the case must name its host.
fn named(signal: &str) {
    let scene = Scene::new();
    let test =
        |name: &str, rest: &str| format!("[[test]]\nname = \"{name}\"\nop = \"all_reduce\"\nsizes = 8\n{rest}\n");
    let text = [
        HEAD.to_owned(),
        test("warm", "metric = \"latency\"\nmeasure = \"10 iterations\""),
        test("long", "metric = \"bandwidth\"\nmeasure = \"3s\"\ndeadline = \"2s\""),
        test("after", "metric = \"latency\"\ngroups = \"pairs\"\nmeasure = \"10 iterations\""),
    ];
    let plan = scene.write("plan.toml", &text.concat());
    let mut run = scene.start(&plan);
    run.wait_for_round("long");
    // In its window, or on a busy machine before that.
    std::thread::sleep(Duration::from_millis(500));
    let agents = run.children();
    assert_eq!(agents.len(), 3, "{agents:?}");
    let agent = agents[1].to_string();
    let send = |signal: &str| Command::new("kill").args([&format!("-{signal}"), &agent]).status().unwrap().success();
    assert!(send(signal));
    run.end().expect(3);
    assert!(!send("CONT"), "the agent outlives the run");
    let results = scene.results();
    let lost = results.journal().iter().find_map(|line| line["event"]["HostLost"]["host"].as_str().map(str::to_owned));
    let lost = lost.expect("no host was given up");
    let rows = results.rows();
    let errors = |test: &str| -> Vec<String> {
        rows.iter().filter(|row| row.test == test).filter_map(|row| row.error.clone()).collect()
    };
    assert!(errors("warm").is_empty());
    assert!(!errors("long").is_empty() && errors("long").iter().all(|error| error.contains(&lost)), "{lost}: {rows:?}");
    let after: Vec<_> = rows.iter().filter(|row| row.test == "after" && row.value.is_some()).collect();
    assert!(!after.is_empty() && after.iter().all(|row| !row.touches(&lost)), "{lost}: {after:?}");
}
