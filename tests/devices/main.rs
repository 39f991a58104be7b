//! Whole runs on devices that nobody here has: two local agents on the double of each device (`agent/examples/verbs_double`), in
//! the trees of hosts that have it. Facts, ceilings, findings and verdicts of each stand in a snapshot.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/example.rs"]
mod example;
#[path = "../support/railgauge.rs"]
mod railgauge;
#[path = "../../agent/src/facts/tests/tree.rs"]
#[allow(dead_code, reason = "only unpacks here")]
mod tree;

use std::{collections::BTreeMap, path::PathBuf};

use railgauge::{Ended, Results, Scene};
use serde_json::{Value, json};

/// A device: its profile, the tree of a host that has it, and the words in the tree with what takes their place.
struct Device {
    profile: &'static str,
    tree: &'static str,
    values: &'static [(&'static str, &'static str)],
    /// Whether it has atomics.
    atomics: bool,
    /// Whether it has sends with immediate data, which collectives take.
    collectives: bool,
}

const fn roce(profile: &'static str, values: &'static [(&'static str, &'static str)]) -> Device {
    Device { profile, tree: "roce", values, atomics: true, collectives: true }
}

const fn infiniband(profile: &'static str, values: &'static [(&'static str, &'static str)]) -> Device {
    Device { profile, tree: "infiniband", values, atomics: true, collectives: true }
}

const fn without_atomics(device: Device) -> Device {
    Device { atomics: false, ..device }
}

/// The library that stands in for libibverbs and librdmacm.
fn library() -> PathBuf {
    example::folder_with("railgauge-agent", "verbs_double").join("libverbs_double.so")
}

/// A run of two hosts with this device, whose double misbehaves as `hostile` says.
fn run(device: &Device, hostile: &str) -> (Scene, Ended, Results) {
    let scene = Scene::new();
    let fabric = scene.path("fabric");
    std::fs::create_dir(&fabric).unwrap();
    for host in ["1", "2"] {
        let values: Vec<_> = device.values.iter().copied().chain([("%host", host)]).collect();
        tree::unpack(&format!("double/{}.host", device.tree), &scene.path(&format!("root{host}")), &values);
    }
    let test = |op: &str, metric: &str, size: &str| {
        format!("[[test]]\nop = \"{op}\"\nmetric = \"{metric}\"\nsizes = \"{size}\"\nmeasure = \"64 iterations\"\n")
    };
    let mut tests = vec![
        test("write", "bandwidth", "64KiB"),
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
    let library = library();
    let plan = format!(
        "name = \"{profile}\"\nhosts = {{ names = [\"1\", \"2\"] }}\n\
         [launch]\nvia = \"command\"\n\
         command = [\"env\", \"VERBS_DOUBLE_HOST={{host}}\", \"RAILGAUGE_ROOT={root}{{host}}\"]\n\
         env = {{ RAILGAUGE_IBVERBS = \"{library}\", RAILGAUGE_RDMACM = \"{library}\", VERBS_DOUBLE_DIR = \"{fabric}\", \
         VERBS_DOUBLE_PROFILE = \"{profile}\", VERBS_DOUBLE_HOSTILE = \"{hostile}\" }}\n\
         [localise]\nwaive = [\"all\"]\n\
         [defaults]\nwarm_up = \"1ms\"\ndeadline = \"20s\"\n\
         [defaults.knobs]\ntimeout = 18\n{tests}",
        profile = device.profile,
        root = scene.path("root").display(),
        library = library.display(),
        fabric = fabric.display(),
        tests = tests.concat(),
    );
    let ended = scene.start(&scene.write("plan.toml", &plan)).end();
    let results = scene.results();
    (scene, ended, results)
}

/// What a run says of a device, without what changes from run to run.
fn said(results: &Results, ended: &Ended) -> Value {
    let facts: Value = serde_json::from_str(&std::fs::read_to_string(results.path("facts.json")).unwrap()).unwrap();
    let device = &facts["1"]["rdma"][0];
    let verdicts = results.verdicts();
    let journal = results.journal();
    let findings: Vec<_> = journal
        .iter()
        .filter_map(|line| line["event"].get("Findings"))
        .flat_map(|findings| findings.as_array().unwrap())
        .map(|finding| json!([finding["check"], finding["severity"], finding["observed"]]))
        .collect();
    // A case has one row for each metric: its first says how it went.
    let mut cases = BTreeMap::new();
    for row in results.rows() {
        let went = match row.error {
            Some(error) => json!({ "error": error }),
            None => json!({ "carrier": row.transport, "link_layer": row.link_layer, "ceiling": row.ceiling }),
        };
        cases.entry(row.test).or_insert(went);
    }
    let polled =
        results.outcomes().iter().find_map(|outcome| outcome["link"]["write_order"].as_str().map(str::to_owned));
    let judged: Vec<_> = verdicts["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| json!([verdict["kind"], verdict["status"]]))
        .collect();
    json!({
        "exit": ended.status.code(),
        "device": { "name": device["name"], "driver": device["driver"], "software": device["software"], "ports": device["ports"] },
        "findings": findings,
        "cases": cases,
        "write_order": polled,
        "verdicts": judged,
        "drivers_never_run": verdicts["drivers_never_run"],
    })
}

/// A device that is well: everything measured and verified, no finding above a notice, no failed verdict.
#[track_caller]
fn healthy(device: &Device) -> Results {
    let (_scene, ended, results) = run(device, "");
    let told = said(&results, &ended);
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
    // No one takes this for a run on hardware.
    for said in [&ended.said, &results.report()] {
        assert!(said.contains("RAILGAUGE_ROOT=") && said.contains("RAILGAUGE_IBVERBS="), "{said}");
    }
    insta::assert_json_snapshot!(device.profile, told);
    results
}

#[test]
fn connectx_as_roce() {
    healthy(&roce(
        "mlx5-roce",
        &[("%device", "mlx5_0"), ("%driver", "mlx5_core"), ("%rate", "400 Gb/sec (4X NDR)"), ("%speed", "400000")],
    ));
}

/// The tree has no members of the bond, so nobody knows what it carries.
#[test]
fn connectx_as_a_bond_of_unknown_members() {
    healthy(&roce(
        "mlx5-bond",
        &[("%device", "mlx5_bond_0"), ("%driver", "mlx5_core"), ("%rate", "400 Gb/sec (4X NDR)"), ("%speed", "400000")],
    ));
}

#[test]
fn connectx_as_infiniband() {
    healthy(&infiniband("mlx5-ib", &[("%pkey0", "0xffff"), ("%pkey1", "0x0000")]));
}

#[test]
fn a_virtual_function_that_wants_global_route_headers() {
    healthy(&infiniband("ib-vf", &[("%pkey0", "0xffff"), ("%pkey1", "0x0000")]));
}

#[test]
fn a_partition_at_index_one() {
    healthy(&infiniband("ib-pkey", &[("%pkey0", "0x7fff"), ("%pkey1", "0x8123")]));
}

#[test]
fn broadcom() {
    healthy(&without_atomics(roce(
        "bnxt",
        &[("%device", "bnxt_re0"), ("%driver", "bnxt_en"), ("%rate", "100 Gb/sec (4X EDR)"), ("%speed", "200000")],
    )));
}

#[test]
fn pensando() {
    healthy(&roce(
        "ionic",
        &[("%device", "ionic_0"), ("%driver", "ionic"), ("%rate", "100 Gb/sec (4X EDR)"), ("%speed", "200000")],
    ));
}

#[test]
fn intel_as_roce() {
    healthy(&without_atomics(roce(
        "irdma-roce",
        &[("%device", "irdma0"), ("%driver", "ice"), ("%rate", "100 Gb/sec (4X EDR)"), ("%speed", "100000")],
    )));
}

#[test]
fn intel_as_iwarp() {
    healthy(&Device { profile: "irdma-iwarp", tree: "iwarp", values: &[], atomics: false, collectives: false });
}

/// Nothing is measured and nothing passes; the words say EFA and what works there.
#[test]
fn efa_is_refused_by_its_name() {
    let device = Device { profile: "efa", tree: "efa", values: &[], atomics: false, collectives: false };
    let (_scene, ended, results) = run(&device, "");
    assert_ne!(ended.status.code(), Some(0), "{}", ended.said);
    assert!(results.rows().iter().all(|row| row.value.is_none()), "{}", ended.said);
    insta::assert_json_snapshot!(device.profile, said(&results, &ended));
}

/// A device that says it is done before the bytes are there, and one that places the last byte first.
#[test]
fn no_wrong_number_passes_on_a_device_that_lies_about_order() {
    let device = roce(
        "mlx5-roce",
        &[("%device", "mlx5_0"), ("%driver", "mlx5_core"), ("%rate", "400 Gb/sec (4X NDR)"), ("%speed", "400000")],
    );
    let (_scene, ended, results) = run(&device, "last-byte-first");
    assert_ne!(ended.status.code(), Some(0), "{}", ended.said);
    for row in results.rows() {
        let polled = row.test.contains("write") && row.metric.starts_with("latency");
        assert_eq!(row.value.is_none(), polled, "{row:?}\n{}", ended.said);
    }
}
