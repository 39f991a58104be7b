//! Tests within hosts between plan and verdict: host memory of this machine, and GPUs that are not there.

use crate::railgauge::{Scene, program};

const PLAN: &str = r#"
name = "node"
launch = { via = "local" }
hosts = { names = ["a", "b"] }
localise = { waive = ["all"] }

[defaults]
transport = "tcp"
sizes = "64KiB"
measure = "200ms"
warm_up = "50ms"
knobs = { footprint = "cache" }
"#;

fn plan(tests: &str) -> String {
    format!("{PLAN}{tests}")
}

#[test]
fn memory_is_measured_verified_and_judged() {
    let scene = Scene::new();
    let tests = "[[test]]\nop = \"memory_read\"\nmetric = \"bandwidth\"\nsizes = \"8MiB\"\n\
                 [[test.expect]]\nmetric = \"memory_bandwidth\"\nat_least = \"1 MB/s\"\n\
                 [[test]]\nop = \"memory_copy\"\nmetric = \"bandwidth\"\nsizes = [\"4MiB\", \"8MiB\"]\nrepeats = 2\n\
                 [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n";
    scene.start(&scene.write("plan.toml", &plan(tests))).end().expect(0);
    let rows = scene.results().rows();
    let of = |op: &str| {
        rows.iter().filter(|row| row.test.starts_with(op) && row.metric == "memory_bandwidth").collect::<Vec<_>>()
    };
    let (read, copy) = (of("memory_read"), of("memory_copy"));
    assert!(read.len() >= 2 && copy.len() == 2 * read.len(), "{rows:?}");
    for row in read.iter().chain(&copy) {
        assert!(row.value.unwrap() > 0.0 && row.error.is_none() && row.src == row.dst, "{row:?}");
        assert!(row.verified >= 2 * 4 * 1024 * 1024, "{row:?}");
    }
    // What a network is asked for is taken from the defaults as before.
    assert!(rows.iter().any(|row| row.test == "write-bandwidth-tcp" && row.metric == "bandwidth"));
}

#[test]
fn a_wrong_byte_fails_the_case() {
    let scene = Scene::new();
    let path =
        scene.write("plan.toml", &plan("[[test]]\nop = \"memory_copy\"\nmetric = \"bandwidth\"\nsizes = \"4MiB\"\n"));
    let mut command = program();
    command.env("RAILGAUGE_FAULT", "flip-bit").args(["run", "-o"]).arg(scene.run_directory()).arg(path);
    scene.spawn(command, "run").end().expect(1);
    assert!(scene.results().rows().iter().all(|row| row.wrong > 0));
}

#[test]
fn what_lies_in_caches_and_gpus_that_are_not_there_are_named() {
    let scene = Scene::new();
    let tests = "[[test]]\nop = \"memory_write\"\nmetric = \"bandwidth\"\nsizes = \"4KiB\"\nknobs = { footprint = \"dram\" }\n\
                 [[test]]\nop = \"gpu_to_gpu\"\nmetric = \"bandwidth\"\nhosts = [\"a\"]\n";
    let ended = scene.start(&scene.write("plan.toml", &plan(tests))).end();
    ended.expect(3);
    let rows = scene.results().rows();
    let errors: Vec<&str> = rows.iter().filter_map(|row| row.error.as_deref()).collect();
    assert_eq!(errors.len(), rows.len(), "{rows:?}");
    ended.says("beyond-caches");
    ended.says("GPU");
}
