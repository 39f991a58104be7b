//! Whole runs on devices that nobody here has: two local agents on the double of each device (`agent/examples/verbs_double`), in
//! the trees of hosts that have it. Facts, ceilings, findings and verdicts of each stand in a snapshot.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/devices.rs"]
mod devices;
#[path = "../support/example.rs"]
mod example;
mod memories;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../../agent/src/facts/tests/tree.rs"]
#[allow(dead_code, reason = "only unpacks here")]
mod tree;
mod watched;

use std::{collections::BTreeMap, path::PathBuf};

use devices::{Device, named};
use railgauge::{Ended, Results, Scene};
use serde_json::{Value, json};

/// The library that stands in for libibverbs and librdmacm.
fn library() -> PathBuf {
    example::folder_with("verbs_double").join("libverbs_double.so")
}

/// A run of two hosts with this device, whose double misbehaves as `hostile` says.
fn run(device: &Device, hostile: &str) -> (Scene, Ended, Results) {
    run_of([device, device], hostile, &tests(device, ""))
}

/// The tests that a device can run, with `more` at the end of the first one.
fn tests(device: &Device, more: &str) -> String {
    let test = |op: &str, metric: &str, size: &str| {
        format!("[[test]]\nop = \"{op}\"\nmetric = \"{metric}\"\nsizes = \"{size}\"\nmeasure = \"64 iterations\"\n")
    };
    let mut tests = vec![
        test("write", "bandwidth", "64KiB") + more,
        test("write", "latency", "8B"),
        test("read", "bandwidth", "64KiB"),
        test("send", "latency", "8B"),
    ];
    if device.atomics {
        tests.push(test("atomic_fadd", "latency", "8B"));
    }
    if device.collectives {
        tests.push(test("all_reduce", "latency", "4KiB") + "transport = \"verbs\"\n");
    }
    tests.concat()
}

/// A run of these tests between two hosts with devices of one profile.
fn run_of(devices: [&Device; 2], hostile: &str, tests: &str) -> (Scene, Ended, Results) {
    run_with(devices, hostile, "", tests)
}

/// As [`run_of`], with agents that find libraries in this folder.
fn run_with([first, second]: [&Device; 2], hostile: &str, libraries: &str, tests: &str) -> (Scene, Ended, Results) {
    let device = first;
    let scene = Scene::new();
    let fabric = scene.path("fabric");
    std::fs::create_dir(&fabric).unwrap();
    first.unpack("1", &scene.path("root1"));
    second.unpack("2", &scene.path("root2"));
    let library = library();
    let plan = format!(
        "name = \"{profile}\"\nhosts = {{ names = [\"1\", \"2\"] }}\n\
         [launch]\nvia = \"command\"\n\
         command = [\"env\", \"VERBS_DOUBLE_HOST={{host}}\", \"RAILGAUGE_ROOT={root}{{host}}\"]\n\
         env = {{ RAILGAUGE_IBVERBS = \"{library}\", RAILGAUGE_RDMACM = \"{library}\", VERBS_DOUBLE_DIR = \"{fabric}\", \
         VERBS_DOUBLE_PROFILE = \"{profile}\", VERBS_DOUBLE_HOSTILE = \"{hostile}\", LD_LIBRARY_PATH = \"{libraries}\" }}\n\
         [localise]\nwaive = [\"all\"]\n\
         [defaults]\nwarm_up = \"1ms\"\ndeadline = \"20s\"\n\
         [defaults.knobs]\ntimeout = 18\n{tests}",
        profile = device.profile,
        root = scene.path("root").display(),
        library = library.display(),
        fabric = fabric.display(),
    );
    let ended = scene.start(&scene.write("plan.toml", &plan)).end();
    let results = scene.results();
    (scene, ended, results)
}

/// The page, as one reads it.
fn page(results: &Results) -> String {
    results.report().replace("&#x2f;", "/")
}

/// What preflight finds on these hosts' devices. What it says of the machine that the test runs on is another matter.
fn findings(scene: &Scene) -> Vec<Value> {
    let mut command = railgauge::program();
    command.args(["preflight", "--json"]).arg(scene.path("plan.toml"));
    let document: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let findings = document["findings"].as_array().unwrap().iter();
    let of_devices = findings.filter(|finding| finding["devices"].as_array().is_some_and(|named| !named.is_empty()));
    of_devices
        .map(|finding| json!([finding["check"], finding["severity"], finding["hosts"], finding["what"]]))
        .collect()
}

/// What a run says of a device, without what changes from run to run.
fn said(scene: &Scene, results: &Results, ended: &Ended) -> Value {
    let facts: Value = serde_json::from_str(&std::fs::read_to_string(results.path("facts.json")).unwrap()).unwrap();
    let device = &facts["1"]["rdma"][0];
    let verdicts = results.verdicts();
    let findings = findings(scene);
    // A case has one row for each metric: its first says how it went.
    let mut cases = BTreeMap::new();
    for row in results.rows() {
        let went = match row.error {
            Some(error) => json!({ "error": error }),
            None => json!({ "carrier": row.transport, "link_layer": row.link_layer, "ceiling": row.ceiling }),
        };
        cases.entry(row.test).or_insert(went);
    }
    let outcomes = results.outcomes();
    let polled = outcomes.iter().find_map(|outcome| outcome["link"]["write_order"].as_str());
    // What only some of the devices have.
    let settings = outcomes.iter().filter_map(|outcome| outcome["link"]["settings"].as_object()).flatten();
    let settings: BTreeMap<_, _> = settings.filter(|(name, _)| ["grh", "ece"].contains(&name.as_str())).collect();
    let judged: Vec<_> = verdicts["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| json!([verdict["kind"], verdict["status"]]))
        .collect();
    let untested = verdicts["untested"].as_array().into_iter().flatten();
    let unchecked: Vec<&Value> = untested.filter(|one| one["kind"] == "counters").map(|one| &one["names"]).collect();
    json!({
        "exit": ended.status.code(),
        "device": { "name": device["name"], "driver": device["driver"], "software": device["software"], "ports": device["ports"] },
        "findings": findings,
        "cases": cases,
        "settings": settings,
        "unchecked": unchecked,
        "write_order": polled,
        "verdicts": judged,
        "drivers_never_run": verdicts["drivers_never_run"],
    })
}

/// A device that is well: everything measured and verified, no finding above a notice, no failed verdict.
#[track_caller]
fn healthy(device: &Device) -> Results {
    healthy_with(device, "")
}

/// With `more` at the end of the first test.
#[track_caller]
fn healthy_with(device: &Device, more: &str) -> Results {
    let (scene, ended, results) = run_of([device, device], "", &tests(device, more));
    let told = said(&scene, &results, &ended);
    for row in results.rows() {
        assert!(
            row.value.is_some_and(f64::is_finite) && row.error.is_none(),
            "{}: {row:?}\n{}",
            device.profile,
            ended.said
        );
        assert!(row.verified > 0 && row.wrong == 0, "{}: {row:?}", device.profile);
    }
    ended.expect(0);
    for finding in told["findings"].as_array().unwrap() {
        assert!(finding[1] == "notice", "{}: {finding}", device.profile);
    }
    // No one takes this for a run on hardware.
    for said in [&ended.said, &results.report()] {
        assert!(said.contains("RAILGAUGE_ROOT") && said.contains("RAILGAUGE_IBVERBS"), "{said}");
    }
    insta::assert_json_snapshot!(device.profile, told);
    results
}

#[test]
fn connectx_as_roce() {
    healthy(&named("mlx5-roce"));
}

/// The kernel reports 40 Gb/s for its Ethernet speed.
#[test]
fn connectx_8() {
    healthy(&named("cx8"));
}

/// Packets of a message take several paths: the order of bytes is not promised. What its maker has for that is negotiated.
#[test]
fn spectrum_x() {
    healthy_with(&named("spectrum-x"), "knobs = { ece = true }\n");
}

/// The port reports the rate of one of two uplinks, which one queue pair cannot exceed and two may.
#[test]
fn a_virtual_function_on_a_bond() {
    healthy_with(&named("vf-lag"), "qps = 2\n");
}

#[test]
fn connectx_as_a_bond() {
    healthy(&named("mlx5-bond"));
}

#[test]
fn connectx_as_infiniband() {
    healthy(&named("mlx5-ib"));
}

#[test]
fn a_virtual_function_that_wants_global_route_headers() {
    healthy(&named("vf-grh"));
}

#[test]
fn a_partition_at_index_one() {
    healthy(&named("ib-pkey"));
}

#[test]
fn broadcom() {
    healthy(&named("bnxt"));
}

#[test]
fn pensando() {
    healthy(&named("ionic"));
}

#[test]
fn intel_as_roce() {
    healthy(&named("irdma-roce"));
}

#[test]
fn intel_as_iwarp() {
    healthy(&named("irdma-iwarp"));
}

/// A bond with a port down: preflight says so.
#[test]
fn a_bond_with_a_member_down() {
    let device = named("mlx5-bond");
    // One queue pair uses one member and would miss none.
    let demand = "qps = 2\nexpect = [{ metric = \"bandwidth\", percent_of_ceiling = 0.1 }]\n";
    let degraded = Device { tree: "bond-degraded", ..device };
    let (scene, ended, results) = run_of([&degraded, &device], "", &tests(&device, demand));
    ended.says("port1 of rail0 (802.3ad) is down: 1 of 2 members carry traffic");
    // Whether a busy machine keeps even this little is another matter.
    let mut told = said(&scene, &results, &ended);
    told["exit"] = Value::Null;
    told["verdicts"].as_array_mut().unwrap().retain(|verdict| verdict[0] != "expectation");
    insta::assert_json_snapshot!("mlx5-bond-degraded", told);
}

/// Half a window over a port that is up is no figure: its row, the terminal and the page say what happened, and where.
#[test]
fn a_port_that_goes_down_during_a_window() {
    let device = named("mlx5-roce");
    let test = "[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\nmeasure = \"6s\"\n";
    let (_scene, ended, results) = run_of([&device, &device], "port-down-after=2500", test);
    ended.expect(3);
    let words = "mlx5_0:1: the port went down while the link was in use (IBV_EVENT_PORT_ERR)";
    for row in results.rows() {
        assert_eq!(row.value, None, "{row:?}");
        assert!(row.error.as_ref().is_some_and(|error| error.contains(words)), "{row:?}\n{}", ended.said);
    }
    ended.says(words);
    assert!(page(&results).contains(words), "{}", ended.said);
    // The window had begun: nothing was wrong before it.
    let outcomes = results.outcomes();
    assert!(outcomes.iter().any(|outcome| outcome["result"]["Err"]["stage"] == "measure"), "{outcomes:?}");
}

/// Nothing is taken for a fault of the path, and nobody takes it for checked.
#[test]
fn counters_that_do_not_count_are_named() {
    let (scene, ended, results) = run(&named("mlx5-roce"), "counters-stuck");
    ended.expect(0);
    assert_eq!(said(&scene, &results, &ended)["unchecked"], json!([["1 mlx5_0", "2 mlx5_0"]]));
}

/// Nothing is measured and nothing passes; the words say EFA and what works there.
#[test]
fn efa_is_refused_by_its_name() {
    let device = named("efa");
    let (scene, ended, results) = run(&device, "");
    assert_ne!(ended.status.code(), Some(0), "{}", ended.said);
    assert!(results.rows().iter().all(|row| row.value.is_none()), "{}", ended.said);
    insta::assert_json_snapshot!(device.profile, said(&scene, &results, &ended));
}

/// A device that says it is done before the bytes are there, and one that places the last byte first.
#[test]
fn no_wrong_number_passes_on_a_device_that_lies_about_order() {
    let (_scene, ended, results) = run(&named("mlx5-roce"), "last-byte-first");
    assert_ne!(ended.status.code(), Some(0), "{}", ended.said);
    for row in results.rows() {
        let polled = row.test.contains("write") && row.metric.starts_with("latency");
        assert_eq!(row.value.is_none(), polled, "{row:?}\n{}", ended.said);
    }
}
