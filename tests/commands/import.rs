//! Outputs of other tools: what is taken of them, what is refused, and what an imported run is to the other commands.

mod malformed;
mod mutations;
mod recorded;
mod recorded_pairs;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::Scenario;
use railgauge::import;
use railgauge_analysis::{history::Run, imported::ImportedRun};
use railgauge_wire::terms::Metric;
use serde_json::Value;

/// Where the outputs lie.
fn outputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports")
}

fn text(name: &str) -> String {
    fs::read_to_string(outputs().join(name)).unwrap()
}

fn program(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_railgauge")).args(words).current_dir(outputs()).output().unwrap()
}

fn code(words: &[&str]) -> i32 {
    program(words).status.code().unwrap()
}

/// Imports a file into a folder and reads what came of it.
fn imported(place: &Path, file: &str, options: &[&str]) -> ImportedRun {
    let run = place.join(file);
    let made = program(&[&["runs", "import", file, "-o", run.to_str().unwrap()][..], options].concat());
    assert!(made.status.success(), "{file}: {}", String::from_utf8_lossy(&made.stderr));
    railgauge_analysis::imported::read(&run.join("records.jsonl")).unwrap().unwrap()
}

const PAIR: [&str; 4] = ["--from", "gpu01:1", "--to", "gpu02:1"];

/// The values of a file by size, with the words that stand for them in the file.
type Wanted = (&'static str, Vec<&'static str>, &'static str, Vec<(u64, Metric, f64)>);

fn wanted() -> Vec<Wanted> {
    use Metric::*;
    let mib = 8_388_608.0 / 1e9;
    let pair = || PAIR.to_vec();
    let with = |more: &[&'static str]| [&PAIR[..], more].concat();
    vec![
        (
            "perftest-4.5-write-bw-a.txt",
            with(&["--tool-version", "4.5"]),
            "perftest 4.5",
            vec![(2, Bandwidth, 6.94 * mib), (4096, Bandwidth, 11012.55 * mib), (65536, MessageRate, 0.184_542)],
        ),
        ("perftest-6.06-send-bw-bidir.txt", pair(), "perftest", vec![(65536, Bandwidth, 186.91)]),
        (
            "perftest-6.23-write-lat.txt",
            pair(),
            "perftest",
            vec![
                (8, LatencyMin, 1.01),
                (8, LatencyMax, 4.31),
                (8, LatencyP50, 1.04),
                (8, LatencyMean, 1.05),
                (8, LatencyP99, 1.12),
                (8, LatencyP999, 3.78),
            ],
        ),
        ("perftest-6.29-read-lat-duration.txt", pair(), "perftest", vec![(2, LatencyMean, 1.81)]),
        ("perftest-6.29-write-bw-ports.txt", pair(), "perftest", vec![(65536, Bandwidth, 196.22)]),
        ("perftest-6.29-write-bw-cuda.txt", pair(), "perftest", vec![(65536, Bandwidth, 46705.22 * mib)]),
        (
            "nccl-tests-2.19.6-all-reduce.txt",
            vec![],
            "nccl-tests 2.19.6",
            vec![(16_777_216, Busbw, 104.03), (16_777_216, Algbw, 69.36)],
        ),
        ("nccl-tests-2.19.6-mpirun.txt", vec![], "nccl-tests 2.19.6", vec![(16_777_216, Busbw, 104.03)]),
        ("nccl-tests-2.19.6-srun.txt", vec![], "nccl-tests 2.19.6", vec![(8_388_608, Busbw, 91.71)]),
        (
            "nccl-tests-2.19.6-per-iteration.txt",
            vec![],
            "nccl-tests 2.19.6",
            vec![(8_388_608, Busbw, 91.71), (16_777_216, Algbw, 69.36)],
        ),
        ("nccl-tests-2.9-all-reduce.txt", vec!["--op", "all_reduce"], "nccl-tests", vec![(1 << 20, Busbw, 18.06)]),
        ("nccl-tests-2.9-all-gather.txt", vec!["--op", "all_gather"], "nccl-tests", vec![(1 << 20, Algbw, 26.14)]),
        ("iperf3.json", vec![], "iperf3 3.12", vec![(131_072, Bandwidth, 22.410_292_173_859_2)]),
        (
            "nixlbench-write-vram.txt",
            pair(),
            "nixlbench",
            vec![(65_536, Bandwidth, 2.883_584 * 8.0), (4_194_304, Bandwidth, 44.040_192 * 8.0)],
        ),
    ]
}

#[test]
fn the_values_of_all_tools_and_versions_are_in_units_of_the_frame() {
    let place = tempfile::tempdir().unwrap();
    for (file, options, tool, values) in wanted() {
        let run = imported(place.path(), file, &options);
        assert_eq!(run.tools(), tool, "{file}");
        let rows = run.rows();
        for (size, metric, value) in values {
            let found: Vec<f64> = rows
                .iter()
                .filter(|row| row.size_bytes.0 == size && row.metric == metric && !row.env.contains("in_place=true"))
                .filter_map(|row| row.value)
                .collect();
            assert_eq!(found.len(), 1, "{file}: {metric} at {size}: {rows:?}");
            assert!((found[0] / value - 1.0).abs() < 1e-12, "{file}: {metric} at {size}: {} for {value}", found[0]);
        }
        assert!(rows.iter().all(|row| *row.tool == *tool && row.phase.word() == "imported" && row.n == 1), "{file}");
        let parquet = place.path().join(file).join("records.parquet");
        assert_eq!(railgauge_frame::read_parquet(&parquet, &["value"]).unwrap().height(), rows.len(), "{file}");
    }
}

#[test]
fn what_else_a_file_says_is_in_its_rows() {
    let place = tempfile::tempdir().unwrap();
    let cuda = imported(place.path(), "perftest-6.29-write-bw-cuda.txt", &PAIR).rows();
    assert!(cuda.iter().all(|row| (&*row.src_memory, &*row.transport) == ("cuda", "verbs-rc")));
    assert!(cuda.iter().all(|row| (&*row.src_host, &*row.dst_host, row.rail) == ("gpu01", "gpu02", 1)));
    let bidirectional = imported(place.path(), "perftest-6.06-send-bw-bidir.txt", &PAIR);
    assert!(bidirectional.said.plan.tests[0].bidirectional && bidirectional.rows()[0].qps == 4);
    assert_eq!(&*bidirectional.rows()[0].link_layer, "ethernet");
    let group = imported(place.path(), "nccl-tests-2.19.6-all-reduce.txt", &[]).rows();
    assert!(group.iter().all(|row| (row.ranks, &*row.src_host, &*row.dst_host) == (4, "gpu01", "gpu02")));
    let streams = imported(place.path(), "recorded-iperf3-3.21-p2.json", &[]).rows();
    assert!(streams[0].qps == 2 && &*streams[0].transport == "tcp");
    // What carried the bytes of nixlbench is unknown.
    let nixl = imported(place.path(), "nixlbench-write-vram.txt", &PAIR).rows();
    assert!(nixl.iter().all(|row| (&*row.src_memory, &*row.dst_memory, &*row.transport) == ("cuda", "host", "")));
    let run = imported(place.path(), "iperf3.json", &[]);
    assert_eq!(run.at.as_second(), 1_795_670_242, "the time is that of the file");
}

#[test]
fn wrong_data_is_never_a_value_that_is_compared() {
    let place = tempfile::tempdir().unwrap();
    let run = imported(place.path(), "nccl-tests-2.13-wrong.txt", &["--op", "all_reduce"]);
    let rows = run.rows();
    let (wrong, right): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.wrong > 0);
    assert!(wrong.len() == 2 && wrong.iter().all(|row| row.wrong == 17 && row.error.is_some()));
    assert!(right.len() == 2 && right.iter().all(|row| row.error.is_none()));
    let readings = Run::of_import(&run, place.path(), &[Metric::Busbw]).readings;
    assert_eq!(readings.iter().filter(|reading| reading.value.is_ok()).count(), 1);
}

#[test]
fn several_files_are_repeats_and_the_same_files_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| place.path().join(name).join("run"));
    for run in [&one, &two] {
        let words =
            ["runs", "import", "iperf3.json", "recorded-iperf3-3.7-rev.json", "--at", "2026-11-26T03:00:00Z", "-o"];
        let words = [&words[..], &[run.to_str().unwrap(), "--from", "a", "--to", "b"]].concat();
        assert_eq!(code(&words), 0);
    }
    let bytes = |run: &Path, name: &str| fs::read(run.join(name)).unwrap();
    for name in ["records.jsonl", "report.html"] {
        assert!(bytes(&one, name) == bytes(&two, name), "{name}");
    }
    assert_eq!(code(&["runs", "import", "iperf3.json", "-o", one.to_str().unwrap()]), 2, "it is not empty");
}

#[test]
fn an_imported_run_is_never_taken_for_one_of_ours() {
    let place = tempfile::tempdir().unwrap();
    imported(place.path(), "iperf3.json", &[]);
    let run = place.path().join("iperf3.json");
    let run = run.to_str().unwrap();
    // Where pages would go that nobody named.
    let elsewhere = tempfile::tempdir().unwrap();
    let program = |words: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_railgauge"));
        program.args(words).current_dir(elsewhere.path()).output().unwrap()
    };
    let code = |words: &[&str]| program(words).status.code().unwrap();
    let before: Vec<_> = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    for words in [
        &["signoff"][..],
        &["signoff", "--verify"],
        &["runs", "baseline"],
        &["status", "--format", "prometheus"],
        &["drain"],
        &["run", "--resume"],
        &["report", "--format", "ocp"],
    ] {
        let ended = program(&[words, &[run]].concat());
        assert_eq!(ended.status.code(), Some(4), "{words:?}: {ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains("imported from the output of iperf3"), "{words:?}: {said}");
    }
    assert_eq!(program(&["trend", run]).status.code(), Some(3));
    assert_eq!(code(&["status", run, "--format", "nagios"]), 3);
    assert_eq!(code(&["report", run]), 3, "never a pass");
    let after: Vec<_> = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(before.len(), after.len(), "nothing was added: {after:?}");
    // Beside runs of ours it is passed over.
    let ours = place.path().join("ours");
    fs::create_dir(&ours).unwrap();
    fs::write(ours.join("records.jsonl"), Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }.jsonl())
        .unwrap();
    let trend = |place: &Path| {
        let page = elsewhere.path().join("trend.html");
        let ended = program(&["trend", place.to_str().unwrap(), "--json", "-o", page.to_str().unwrap()]);
        serde_json::from_slice::<Value>(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    let (beside, alone) = (trend(place.path()), trend(&ours));
    for key in ["status", "exit_code", "series"] {
        assert_eq!(beside[key], alone[key], "an imported run is no night: {key}");
    }
    assert!(beside.to_string().contains("imported from the output of iperf3"), "it is said");
    let all = program(&["status", place.path().to_str().unwrap(), "--json", "--max-age", "999999h"]);
    let told: Value = serde_json::from_slice(&all.stdout).unwrap_or_else(|_| panic!("{all:?}"));
    assert_eq!(told["state"], "ok", "{told}");
}

#[test]
fn an_import_that_was_changed_or_cut_is_refused() {
    let place = tempfile::tempdir().unwrap();
    imported(place.path(), "iperf3.json", &[]);
    let path = place.path().join("iperf3.json/records.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let first = whole.lines().next().unwrap().to_owned() + "\n";
    for broken in [whole.replace("22410292173", "99410292173"), first.clone(), first.clone() + &first] {
        fs::write(&path, &broken).unwrap();
        assert!(railgauge_analysis::imported::read(&path).is_err());
        assert_eq!(code(&["report", path.parent().unwrap().to_str().unwrap()]), 4);
    }
}

#[test]
fn runs_of_ours_are_compared_with_imported_ones_and_the_page_says_that_methods_differ() {
    let place = tempfile::tempdir().unwrap();
    let ours = place.path().join("ours");
    fs::create_dir_all(&ours).unwrap();
    let scenario = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) };
    fs::write(ours.join("records.jsonl"), scenario.jsonl()).unwrap();
    let journal = railgauge_analysis::journal::read(&ours.join("records.jsonl")).unwrap();
    let case = &journal.cases[0];
    // The same thing as the first case of ours, as perftest writes it.
    let size = case.cell.size.0;
    let output = text("perftest-4.5-write-bw-a.txt").replace(" 65536  ", &format!(" {size} "));
    let file = place.path().join("their.txt");
    fs::write(&file, output).unwrap();
    let [from, to] = [&case.flow.from, &case.flow.to].map(|port| format!("{}:{}", port.host, port.rail));
    let theirs = place.path().join("theirs");
    let [file, theirs, ours] = [&file, &theirs, &ours].map(|path| path.to_str().unwrap());
    let made = program(&["runs", "import", file, "-o", theirs, "--from", &from, "--to", &to, "--test", &case.test]);
    assert!(made.status.success(), "{made:?}");
    let page = place.path().join("page.html");
    let compared = program(&["compare", ours, theirs, "--json", "-o", page.to_str().unwrap()]);
    let told: Value = serde_json::from_slice(&compared.stdout).unwrap_or_else(|_| panic!("{compared:?}"));
    assert_eq!(
        (&told["before"]["runs"][0]["imported"], &told["after"]["runs"][0]["imported"]),
        (&false.into(), &true.into())
    );
    let one_sided: Vec<&Value> = told["one_sided"].as_array().unwrap().iter().collect();
    assert!(!told["cases"].as_array().unwrap().is_empty(), "{:?} {one_sided:?}", case);
    assert!(fs::read_to_string(&page).unwrap().contains("Methods differ"));
    assert_eq!(code(&["compare", theirs, theirs]), 2, "one run on both sides");
    // The same flow with another operation: nothing is compared, and that is the reason.
    let sent = fs::read_to_string(file).unwrap().replace("RDMA_Write BW", "Send BW");
    let (file, theirs) = (place.path().join("sent.txt"), place.path().join("sent"));
    fs::write(&file, sent).unwrap();
    let [file, theirs] = [&file, &theirs].map(|path| path.to_str().unwrap());
    let made = program(&["runs", "import", file, "-o", theirs, "--from", &from, "--to", &to, "--test", &case.test]);
    assert!(made.status.success(), "{made:?}");
    let compared = program(&["compare", ours, theirs, "--json", "-o", page.to_str().unwrap()]);
    let told: Value = serde_json::from_slice(&compared.stdout).unwrap_or_else(|_| panic!("{compared:?}"));
    let one_sided = told["one_sided"].as_array().unwrap();
    let reasons = |side: &str, op: &str| {
        let of = one_sided.iter().filter(|one| one["only"] == side);
        of.filter(|one| one["reason"].as_str().unwrap().contains(&format!("`op = \"{op}\"`"))).count()
    };
    assert!(reasons("after", "write") > 0 && reasons("before", "send") > 0, "{one_sided:#?}");
}
