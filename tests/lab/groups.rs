//! Collectives over real verbs on the lab: every algorithm verified among four hosts, and a host that dies meanwhile.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    time::{Duration, Instant},
};

use crate::{
    lab::{self, Borrowed, borrow},
    railgauge::{Row, Scene},
};

fn plan(lab: &Borrowed, scene: &Scene, tests: &str) -> PathBuf {
    let text = format!(
        r#"
        name = "groups"
        [launch]
        via = "ssh"
        timeout = "60s"
        keep_agent = true
        [launch.ssh]
        config = "{}"
        [hosts]
        names = ["lab[1-4]"]
        devices = ["rxe0"]
        [defaults]
        warm_up = "1ms"
        deadline = "60s"
        # The hosts share a few cores: who polls takes time from its peers.
        [defaults.knobs]
        completion = "events"
        timeout = 20
        {tests}
        "#,
        lab.ssh_config().display()
    );
    scene.write("plan.toml", &text)
}

/// Every row was measured, verified, and truly carried by RDMA.
#[track_caller]
fn by_rdma(rows: &[Row]) {
    for row in rows {
        assert!(row.value.is_some_and(f64::is_finite) && row.error.is_none(), "{row:?}");
        assert!(row.verified > 0 && row.wrong == 0, "{row:?}");
        assert_eq!((row.transport.as_str(), row.link_layer.as_str()), ("verbs-rc", "roce-v2"), "{row:?}");
    }
}

#[test]
fn every_algorithm_is_right_over_verbs() {
    lab::sound(|| {
        let Some(lab) = borrow() else { return };
        let scene = Scene::new();
        let reductions = r#"
        [[test]]
        op = "all_reduce"
        metric = "latency"
        sizes = [1000, 131072]
        algorithm = ["ring", "recursive-doubling", "halving-doubling"]
        measure = "3 iterations"
        [[test]]
        name = "two-ranks"
        op = "all_reduce"
        metric = "latency"
        ranks_per_host = 2
        datatype = "bf16"
        sizes = [4096]
        measure = "3 iterations"
        "#;
        let moves = ["broadcast", "all_gather", "reduce_scatter", "all_to_all"]
            .map(|op| format!("[[test]]\nop = {op:?}\nmetric = \"bandwidth\"\nsizes = [65536]\nmeasure = \"100ms\"\n"));
        let workloads = [
            "moe = { experts = 16, top_k = 2, tokens = 32, hidden = 512, skew = 80 }",
            "moe = { experts = 16, top_k = 2, tokens = 32, hidden = 512, combine = true }",
            "kv = { prefill = 2, bytes = \"256KiB\" }",
            "weights = { trainers = 2, bytes = \"256KiB\" }",
            "pipeline = { stages = 2, bytes = \"256KiB\" }, alone = 2",
        ];
        let of_workload = |(number, traffic): (usize, &str)| {
            let test = format!("[[test]]\nname = \"workload-{number}\"\nop = \"all_to_all_v\"\nmetric = \"latency\"");
            format!("{test}\nmeasure = \"3 iterations\"\ntraffic = {{ {traffic} }}\n")
        };
        let workloads: String = workloads.into_iter().enumerate().map(of_workload).collect();
        let tests = format!("{reductions}\n{}{workloads}", moves.concat());
        scene.start(&plan(&lab, &scene, &tests)).end().expect(0);
        let rows = scene.results().rows();
        by_rdma(&rows);
        let outcomes = scene.results().outcomes();
        let used: BTreeSet<_> =
            outcomes.iter().map(|outcome| outcome["link"]["settings"]["algorithm"].as_str().unwrap()).collect();
        assert!(used.is_superset(&["ring", "recursive-doubling", "halving-doubling"].into()), "{used:?}");
        let ranks = |outcome: &serde_json::Value| outcome["result"]["Ok"]["ranks"].as_array().map_or(0, Vec::len);
        assert_eq!(outcomes.iter().map(ranks).collect::<BTreeSet<_>>(), BTreeSet::from([4, 8]));
        let alone = outcomes.iter().filter_map(|outcome| outcome["result"]["Ok"]["flows"].as_array()).flatten();
        let measured = |flow: &serde_json::Value| ["alone", "together"].map(|key| flow[key].as_f64().unwrap() > 0.0);
        assert_eq!(alone.map(measured).collect::<Vec<_>>(), [[true; 2]; 2]);
    });
}

#[test]
fn a_host_that_dies_in_a_collective_is_named_and_the_rest_goes_on() {
    lab::sound(|| {
        let Some(lab) = borrow() else { return };
        let scene = Scene::new();
        let tests = r#"
        [[test]]
        name = "warm"
        op = "all_reduce"
        metric = "latency"
        measure = "3 iterations"
        [[test]]
        name = "long"
        op = "all_reduce"
        metric = "bandwidth"
        sizes = 4096
        measure = "5000 iterations"
        [[test]]
        name = "after"
        op = "all_reduce"
        metric = "latency"
        groups = "pairs"
        measure = "3 iterations"
        "#;
        let mut run = scene.start(&plan(&lab, &scene, tests));
        run.wait_for_outcomes(1);
        std::thread::sleep(Duration::from_secs(3));
        lab.expect(&["kill", "3"]);
        let killed = Instant::now();
        run.wait_for_outcomes(2);
        // A case has 60 s, and its ranks some more to speak.
        assert!(killed.elapsed() < Duration::from_secs(70), "named after {:?}", killed.elapsed());
        run.end().expect(3);
        let rows = scene.results().rows();
        let of = |test: &'static str| rows.iter().filter(move |row| row.test == test && row.phase == "test");
        assert!(of("warm").all(|row| row.error.is_none()));
        assert!(of("long").all(|row| row.error.as_deref().is_some_and(|error| error.contains("lab3"))), "{rows:?}");
        let after: Vec<Row> = of("after").filter(|row| !row.touches("lab3")).cloned().collect();
        assert_eq!(after.iter().map(|row| row.case).collect::<BTreeSet<_>>().len(), 3);
        by_rdma(&after);
    });
}
