//! GPUs in a plan, on this machine: local agents with a double of NVIDIA's driver library.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use crate::{
    example,
    railgauge::{Results, Scene},
};

const STAGED: &str =
    "op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nmemory = \"cuda\"\nsizes = \"64KiB\"";
const ALL_REDUCE: &str = "op = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\nsizes = 8";

/// A folder for agents to find libraries in: the doubles, or none.
fn libraries(scene: &Scene, doubles: bool) -> PathBuf {
    let folder = scene.path("cuda");
    fs::create_dir(&folder).unwrap();
    if doubles {
        for (double, name) in [("cuda_double", "libcuda.so.1"), ("nccl_double", "libnccl_double.so.2")] {
            let library = example::folder_with(double).join(format!("lib{double}.so"));
            symlink(library, folder.join(name)).unwrap();
        }
    }
    folder
}

/// Runs one test on two local hosts, with the double where `double` says what it is, and without CUDA elsewhere.
fn run(test: &str, double: Option<&str>) -> (Scene, Results) {
    let scene = Scene::new();
    let folder = libraries(&scene, double.is_some());
    let plan = format!(
        "name = \"gpus\"\nhosts = {{ names = [\"a\", \"b\"] }}\n\
         launch = {{ via = \"local\", env = {{ LD_LIBRARY_PATH = \"{}\"{} }} }}\n\
         [[test]]\n{test}\nmeasure = \"20 iterations\"\nwarm_up = \"1ms\"\n",
        folder.display(),
        double.unwrap_or_default()
    );
    scene.start(&scene.write("plan.toml", &plan)).end();
    let results = scene.results();
    (scene, results)
}

/// NCCL waits for ever for a rank whose process is stopped, and so do the other ranks: what is said must name the one.
#[test]
fn a_rank_that_hangs_within_nccl_is_named_and_ended() {
    let test = format!("{ALL_REDUCE}\nlibrary = \"libnccl_double.so.2\"\ndeadline = \"2s\"");
    let ras = "Errors|======||INCOMPLETE|  Missing communicator data from 1 job process|";
    let double = format!(", NCCL_DOUBLE_STOP = \"1\", NCCL_DOUBLE_RAS = \"{ras}\"");
    let (_scene, results) = run(&test, Some(&double));
    let rows = results.rows();
    assert!(rows.iter().all(|row| row.value.is_none()), "{rows:?}");
    let error = rows[0].error.clone().unwrap();
    assert_eq!(results.verdicts()["run_exit_code"], 3);
    // Rank 1 is the GPU of host b. Host a, which waited, is not what hangs.
    assert!(error.contains("b: ") && !error.contains("a: "), "{error}");
    // What NCCL says of it, asked by the rank that waited, which shares its port with no other.
    assert!(error.contains("INCOMPLETE; Missing communicator data from 1 job process"), "{error}");
}

/// Operations of the double take some time, twice that while another one is under way: half of the bandwidth is lost.
#[test]
fn a_collective_beside_that_of_a_second_communicator_loses_what_they_share() {
    let test = "op = \"all_gather\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\nsizes = \"64KiB\"\nrepeats = 5\n\
                library = \"libnccl_double.so.2\"\nbeside = { op = \"reduce_scatter\" }\n\
                expect = [{ metric = \"overlap_loss\", at_most = \"1%\" }]";
    let double = ", NCCL_DOUBLE_GROUP = \"1\", NCCL_DOUBLE_PACE = \"5000\", NCCL_DOUBLE_SHARED = \"1\"";
    let (_scene, results) = run(test, Some(double));
    let rows = results.rows();
    let value = |metric: &str| rows.iter().find(|row| row.metric == metric).unwrap_or_else(|| panic!("{rows:?}")).value;
    assert!(value("overlap_loss").unwrap() > 20.0 && value("overlap_loss_other").unwrap() > 10.0, "{rows:?}");
    assert!(rows.iter().all(|row| row.wrong == 0 && row.error.is_none()), "{rows:?}");
    for outcome in results.outcomes() {
        assert!(outcome["result"]["Ok"]["overlap"]["other"]["operations"].as_u64().unwrap() > 0, "{outcome:#}");
    }
    assert_eq!(results.verdicts()["run_exit_code"], 1);
    assert!(results.report().contains("Alone and alongside other traffic"));
}

/// Each rank receives what the other one sends to it, at the place and with the length that the matrix gives.
#[test]
fn blocks_of_a_matrix_arrive_by_grouped_sends_and_receives() {
    let scene = Scene::new();
    let folder = libraries(&scene, true);
    scene.write("bytes.txt", "0 4000\n1200 0\n");
    let test = |rest: &str| {
        format!(
            "[[test]]\nmetric = \"bandwidth\"\ntransport = \"nccl\"\nlibrary = \"libnccl_double.so.2\"\n\
             measure = \"20 iterations\"\nwarm_up = \"1ms\"\n{rest}\n"
        )
    };
    let plan = format!(
        "name = \"matrix\"\nhosts = {{ names = [\"a\", \"b\"] }}\n[launch]\nvia = \"command\"\ncommand = [\"env\", \"NCCL_HOSTID={{name}}\"]\n\
         env = {{ LD_LIBRARY_PATH = \"{}\", NCCL_DOUBLE_GROUP = \"1\" }}\n{}{}{}",
        folder.display(),
        test("op = \"all_to_all_v\"\ntraffic = { file = \"bytes.txt\" }"),
        test("op = \"all_to_all\"\nsizes = 4096"),
        test("op = \"send_recv\"\nsizes = 4096"),
    );
    scene.start(&scene.write("plan.toml", &plan)).end();
    let results = scene.results();
    let verified = |outcome: &serde_json::Value| -> Vec<u64> {
        let ranks = outcome["result"]["Ok"]["ranks"].as_array().unwrap_or_else(|| panic!("{outcome:#}"));
        ranks.iter().map(|rank| rank["checked"]["verified"].as_u64().unwrap()).collect()
    };
    let outcomes = results.outcomes();
    assert_eq!(
        outcomes.iter().map(verified).collect::<Vec<_>>(),
        [[2 * 1200, 2 * 4000], [2 * 4096, 2 * 4096], [2 * 4096, 2 * 4096]]
    );
    assert!(results.rows().iter().all(|row| row.wrong == 0 && row.value.is_some()), "{:?}", results.rows());
}

/// Runs an all-reduce that demands sockets on two local hosts, each with an environment of its own: `words` for `env`,
/// where `{name}` is the host. The doubles of CUDA and NCCL join them; `fault` is what goes wrong there.
fn all_reduce(words: &[&str], fault: &str) -> (Scene, Results) {
    let scene = Scene::new();
    let folder = libraries(&scene, true);
    let words: String = words.iter().map(|word| format!(", \"{word}\"")).collect();
    let plan = format!(
        "name = \"two-hosts\"\nhosts = {{ names = [\"a\", \"b\"] }}\n\
         [launch]\nvia = \"command\"\ncommand = [\"env\"{words}]\n\
         env = {{ LD_LIBRARY_PATH = \"{}\", NCCL_DOUBLE_GROUP = \"1\", NCCL_DOUBLE_FAULT = \"{fault}\" }}\n\
         [[test]]\n{ALL_REDUCE}\nlibrary = \"libnccl_double.so.2\"\ncarried_by = \"nccl-socket\"\n\
         measure = \"20 iterations\"\nwarm_up = \"1ms\"\ndeadline = \"2s\"\n",
        folder.display()
    );
    scene.start(&scene.write("plan.toml", &plan)).end();
    let results = scene.results();
    (scene, results)
}

/// Two GPUs of one machine, or two agents on it, can stand for two hosts: the id travels through the controller, and the
/// log says what carried the bytes. The loopback did, though nothing but the addresses says so.
#[test]
fn two_hosts_of_one_machine_are_joined_by_sockets() {
    let (_scene, results) = all_reduce(&["NCCL_HOSTID={name}"], "");
    let rows = results.rows();
    assert!(rows.iter().all(|row| row.value.is_some() && row.verified > 0), "{rows:?}");
    assert_eq!((&*rows[0].transport, &*rows[0].link_layer), ("nccl-socket", "loopback"));
    let outcome = results.outcomes().remove(0);
    for rank in outcome["result"]["Ok"]["ranks"].as_array().unwrap() {
        assert_eq!((&rank["carried"], &rank["nics"][0]), (&"nccl-socket".into(), &"lo".into()), "{rank}");
    }
    assert!(results.report().contains("<td>lo"), "the page shows the interface of every rank");
}

#[test]
fn what_goes_by_peer_to_peer_is_not_called_sockets() {
    let (_scene, results) = all_reduce(&["NCCL_HOSTID=one", "HOST={name}"], "");
    let row = results.rows().remove(0);
    assert_eq!(row.value, None);
    assert!(row.error.unwrap().contains("the plan demands nccl-socket, and nccl-p2p carried the bytes"));
    assert_eq!(results.outcomes()[0]["link"]["transport"], "nccl-p2p");
}

/// The rank that waits fails as well, and often first.
#[test]
fn a_rank_lost_in_a_collective_is_named_with_its_host() {
    for (rank, host, signal, how) in
        [(0, "a", 9, "SIGKILL"), (1, "b", 9, "SIGKILL"), (0, "a", 19, "did not answer"), (1, "b", 19, "did not answer")]
    {
        // The first collectives verify and agree; the tenth is in the middle.
        let (_scene, results) = all_reduce(&["NCCL_HOSTID={name}"], &format!("{rank}:{signal}:10"));
        let failure = &results.outcomes().remove(0)["result"]["Err"];
        assert_eq!((&failure["host"], &failure["stage"]), (&host.into(), &"measure".into()), "{failure}");
        let cause = failure["cause"].as_str().unwrap();
        let other = format!("rank {}", 1 - rank);
        assert!(cause.contains(&format!("rank {rank}")) && cause.contains(how) && !cause.contains(&other), "{cause}");
        assert_eq!(results.verdicts()["run_exit_code"], 3);
    }
}

/// The error of the only case.
fn error(test: &str, double: Option<&str>) -> String {
    let (_scene, results) = run(test, double);
    let rows = results.rows();
    assert!(rows.iter().all(|row| row.value.is_none()), "{rows:?}");
    rows[0].error.clone().unwrap()
}

#[test]
fn memory_of_the_gpu_that_the_plan_names_is_staged_and_verified() {
    let (_scene, results) = run(&format!("{STAGED}\ngpus = 1"), Some(""));
    assert!(results.rows().iter().all(|row| row.gpu_path == "staged" && row.verified > 0), "{:?}", results.rows());
}

#[test]
fn gpus_that_cannot_be_used_are_refused_in_words() {
    for (test, double, words) in [
        (STAGED, None, "this host has no CUDA driver"),
        (STAGED, Some(", CUDA_DOUBLE_VERSION = \"10020\""), "too old: 10.2"),
        (STAGED, Some(", CUDA_DOUBLE_MANAGED = \"1\""), "this is managed memory"),
        (&format!("{STAGED}\ngpus = 5"), Some(""), "GPU 5 does not exist: this host has GPUs 0 to 1"),
        (&STAGED.replace("64KiB", "1GiB"), Some(""), "are free"),
        (ALL_REDUCE, None, "this host has no CUDA driver"),
        (ALL_REDUCE, Some(""), "NCCL cannot be opened"),
        (&format!("{ALL_REDUCE}\ngpus = [4, 5]"), Some(""), "GPU 4 does not exist"),
        (&format!("{ALL_REDUCE}\nlibrary = \"libc.so.6\""), Some(""), "it is not NCCL, or too old"),
        (
            &format!("{ALL_REDUCE}\nlibrary = \"libnccl_double.so.2\""),
            Some(", NCCL_DOUBLE_VERSION = \"21003\""),
            "is NCCL 2.10.3, which is too old",
        ),
        (
            &format!("{ALL_REDUCE}\nlibrary = \"libnccl_double.so.2\""),
            Some(""),
            "making the group's id: NCCL error 3 (said by a double)",
        ),
        (&ALL_REDUCE.replace("sizes = 8", "sizes = \"768MiB\""), Some(""), "two buffers of 805306368 bytes are wanted"),
    ] {
        let error = error(test, double);
        assert!(error.contains(words), "{test}\n{words}: {error}");
    }
}
