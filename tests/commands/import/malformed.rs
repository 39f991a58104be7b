//! Outputs that are refused, each with its line.

use super::{PAIR, import, program, text};

/// What becomes of an output whose piece is replaced: the line that is named.
fn refused(file: &str, from: &str, to: &str) -> Option<u64> {
    let whole = text(file);
    assert!(whole.contains(from), "{file} has no `{from}`");
    let error = import::read(file, whole.replacen(from, to, 1).as_bytes()).err()?.to_string();
    let line = error.strip_prefix(&format!("{file}:"))?.split(':').next()?;
    line.parse().ok()
}

/// The line on which a piece begins.
fn line_of(file: &str, piece: &str) -> u64 {
    let whole = text(file);
    1 + whole[..whole.find(piece).unwrap()].matches('\n').count() as u64
}

#[test]
fn malformed_outputs_are_refused_with_their_line() {
    let bandwidth = "perftest-4.5-write-bw-a.txt";
    let nccl = "nccl-tests-2.19.6-all-reduce.txt";
    let nixl = "nixlbench-write-vram.txt";
    let cases = [
        (bandwidth, "11012.55", "11012,55"),
        (bandwidth, "11012.55", "inf"),
        (bandwidth, "11012.55", "-11012.55"),
        (bandwidth, "11012.55", ""),
        (bandwidth, " 4096  ", " 4k    "),
        (bandwidth, "BW average[MB/sec]", "BW average[GB/sec]"),
        (bandwidth, "Number of qps   : 1", "Number of qps   : one"),
        (bandwidth, "Connection type : RC", "Connection type : XRC"),
        (bandwidth, "RDMA_Write BW Test", "Send_imm BW Test"),
        ("perftest-6.23-write-lat.txt", "t_avg[usec]", "t_mean[usec]"),
        (nccl, "104.03", "104.o3"),
        (nccl, "  float     sum", "  quad      sum"),
        (nccl, "16777216       4194304", "16777216"),
        (nccl, "#  Rank  1", "#  Rank  3"),
        (nccl, "all_reduce_perf", "hypercube_perf"),
        ("nccl-tests-2.9-all-gather.txt", "26.14", "nan"),
        ("iperf3.json", "\"blksize\":\t131072", "\"blksize\":\t\"128K\""),
        (nixl, "19.922944", "nan"),
        (nixl, "262144              64", "262144              32"),
        (nixl, "131072              64             5.767168", "131072              64"),
        (nixl, "B/W (GB/Sec)", "B/W (Gb/Sec)"),
        (nixl, "B/W (GB/Sec)   ", "B/W (GB/Sec)   Aggregate B/W (GB/Sec)   "),
        (nixl, "AZURE_BLOB]): UCX", "AZURE_BLOB]): POSIX"),
        (nixl, ": WRITE", ": SEND"),
        (nixl, ": VRAM", ": DISK"),
        (nixl, ": pairwise", ": tp"),
        (
            nixl,
            "Max batch size (--max_batch_size=N)                         : 64",
            "Max batch size (--max_batch_size=N)                         : 128",
        ),
    ];
    for (file, from, to) in cases {
        let line = refused(file, from, to);
        assert_eq!(line, Some(line_of(file, from)), "{file}: `{from}` for `{to}`");
    }
}

#[test]
fn what_is_not_whole_is_refused_at_its_end() {
    for (file, last) in [
        ("perftest-4.5-write-bw-a.txt", " 65536 "),
        ("nccl-tests-2.19.6-all-reduce.txt", "# Out of bounds"),
        ("nccl-tests-2.19.6-mpirun.txt", "[1,0]<stdout>:# Avg"),
        ("iperf3.json", "\"end\":\t{"),
        ("nixlbench-write-vram.txt", "4194304 "),
        ("nixlbench-write-vram.txt", "Block Size (B)"),
    ] {
        let whole = text(file);
        let cut = &whole[..whole.find(last).unwrap()];
        let error = import::read(file, cut.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("not whole"), "{file}: {error}");
    }
}

#[test]
fn what_the_frame_has_no_place_for_and_what_is_nothing_is_refused() {
    assert!(import::read("b", text("iperf3-bidir.json").as_bytes()).is_err());
    let failed = import::read("e", text("iperf3-refused.json").as_bytes()).unwrap_err().to_string();
    assert!(failed.starts_with("e:10:") && failed.contains("Connection refused"), "{failed}");
    for nothing in ["", "{}", "hello\n", "{\"a\": 1}\n", "12.5\n", "\u{feff}\n", "#bytes\n"] {
        assert!(import::read("x", nothing.as_bytes()).is_err(), "{nothing}");
    }
    assert!(import::read("x", &[0xff, 0xfe, b'\n']).is_err());
}

#[test]
fn line_ends_of_other_systems_change_nothing_and_codes_of_terminals_are_refused() {
    for file in ["perftest-4.5-write-bw-a.txt", "nccl-tests-2.19.6-all-reduce.txt"] {
        let plain = text(file);
        let carriage = plain.replace('\n', "\r\n");
        assert_eq!(import::read(file, plain.as_bytes()), import::read(file, carriage.as_bytes()), "{file}");
    }
    let coloured = text("perftest-4.5-write-bw-a.txt").replace("11012.55", "\u{1b}[1m11012.55\u{1b}[0m");
    let refused = import::read("p", coloured.as_bytes()).unwrap_err().to_string();
    assert!(refused.starts_with("p:21:") && !refused.contains('\u{1b}'), "{refused}");
}

#[test]
fn a_file_of_two_tools_is_refused_where_the_second_begins() {
    let [bandwidth, nccl] = ["perftest-4.5-write-bw-a.txt", "nccl-tests-2.19.6-all-reduce.txt"].map(text);
    for (first, second, offset) in [(&bandwidth, &nccl, 3), (&nccl, &bandwidth, 2)] {
        let refused = import::read("m", format!("{first}{second}").as_bytes()).unwrap_err().to_string();
        let line = first.lines().count() + offset;
        assert!(refused.starts_with(&format!("m:{line}:")), "{refused}");
    }
}

#[test]
fn two_runs_in_a_file_are_repeats_of_one_tool_and_the_memory_of_one_is_not_that_of_the_other() {
    let gpu = text("perftest-6.29-write-bw-cuda.txt") + "deallocating GPU buffer 00007f0000000000\n";
    let both = gpu + &text("perftest-4.5-write-bw-a.txt");
    let outputs = import::read("b", both.as_bytes()).unwrap();
    let memory: Vec<&str> = outputs.iter().map(|output| output.said[0].kind.memory.from.word()).collect();
    assert_eq!(memory, ["cuda", "host"]);
}

#[test]
fn what_is_given_against_the_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    let run = run.to_str().unwrap();
    for (file, options, line) in [
        ("perftest-6.29-write-bw-cuda.txt", [&PAIR[..], &["--op", "read"]].concat(), 25),
        ("nccl-tests-2.19.6-all-reduce.txt", vec!["--op", "broadcast"], 14),
        ("nccl-tests-2.19.6-all-reduce.txt", vec!["--tool-version", "2.13"], 14),
        ("nccl-tests-2.19.6-all-reduce.txt", PAIR.to_vec(), 14),
        ("perftest-6.29-write-bw-cuda.txt", vec!["--from", "gpu01:1", "--to", "gpu01:1"], 25),
    ] {
        let ended = program(&[&["runs", "import", file, "-o", run][..], &options].concat());
        assert_eq!(ended.status.code(), Some(2), "{file} {options:?}");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains(&format!("{file}:{line}:")), "{options:?}: {said}");
    }
    assert!(!place.path().join("run").exists(), "nothing was written");
}

#[test]
fn what_nobody_says_is_asked_for_by_its_option() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    let run = run.to_str().unwrap();
    for (file, options, option) in [
        ("perftest-4.5-write-bw-a.txt", &[][..], "--from"),
        ("perftest-4.5-write-bw-a.txt", &PAIR[..2], "--to"),
        ("nccl-tests-2.9-all-reduce.txt", &[], "--op"),
    ] {
        let ended = program(&[&["runs", "import", file, "-o", run][..], options].concat());
        assert_eq!(ended.status.code(), Some(2), "{file}");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains(option) && said.contains(file), "{file}: {said}");
    }
    assert!(!place.path().join("run").exists(), "nothing was written");
}

#[test]
fn the_same_bytes_under_two_names_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let (copy, run) = (place.path().join("copy.txt"), place.path().join("run"));
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports/perftest-6.29-write-bw-cuda.txt");
    std::fs::copy(&file, &copy).unwrap();
    let [file, copy, run] = [&file, &copy, &run].map(|path| path.to_str().unwrap());
    let ended = program(&[&["runs", "import", file, copy, "-o", run][..], &PAIR].concat());
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("{copy}:1:")) && said.contains(file), "{said}");
}
