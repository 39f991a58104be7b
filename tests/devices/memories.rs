//! GPU memory at one end of a pair and host memory at the other, and another GPU at each, by the doubles of libibverbs and of the CUDA driver.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use super::{devices::named, example, run_with};
use crate::page;

#[test]
fn the_memory_of_each_end_is_that_of_the_plan_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let cuda = example::folder_with("cuda_double").join("libcuda_double.so");
    symlink(fs::canonicalize(cuda).unwrap(), folder.path().join("libcuda.so.1")).unwrap();
    let test = |name: &str, memory: &str| {
        format!(
            "[[test]]\nname = \"{name}\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\n\
             measure = \"64 iterations\"\npattern = \"pairs\"\npairs = [[\"1\", \"2\"]]\n{memory}\n"
        )
    };
    let of_gpus = "memory = \"cuda\"\ngpus = { from = 0, to = [1] }";
    let tests = [
        test("to-gpu", "memory = { from = \"host\", to = \"cuda\" }\ngpus = 1"),
        test("from-gpu", "memory = { from = \"cuda\", to = \"host\" }\ngpus = 1"),
        test("gpu-to-gpu", of_gpus),
        // A read goes the other way, between the same memories.
        test("read-from-gpu", "memory = { from = \"host\", to = \"cuda\" }\ngpus = 1").replace("\"write\"", "\"read\""),
    ]
    .concat();
    let device = named("mlx5-roce");
    let (scene, ended, results) = run_with([&device, &device], "", folder.path().to_str().unwrap(), &tests);
    let ends = |test: &str| {
        let rows = results.rows().into_iter().filter(|row| row.test == test);
        let row = rows.inspect(|row| assert!(row.value.is_some() && row.error.is_none(), "{row:?}")).next().unwrap();
        assert!(row.verified > 0 && row.wrong == 0, "{row:?}");
        assert_eq!(row.gpu_path, "gdr-dmabuf", "{row:?}");
        row.memory.map(|(memory, gpu)| (memory, gpu))
    };
    let (host, gpu) = (("host".to_owned(), None), |number| ("cuda".to_owned(), Some(number)));
    assert_eq!(ends("to-gpu"), [host.clone(), gpu(1)], "{}", ended.said);
    assert_eq!(ends("from-gpu"), [gpu(1), host.clone()]);
    assert_eq!(ends("gpu-to-gpu"), [gpu(0), gpu(1)]);
    assert_eq!(ends("read-from-gpu"), [host, gpu(1)]);
    let planned = results.journal().into_iter().find_map(|line| line["event"].get("Planned").cloned()).unwrap();
    assert_eq!(planned["cases"][0]["cell"]["memory"], json!({ "from": "host", "to": "cuda" }), "{planned}");
    for words in ["host to cuda memory", "cuda to host memory", "GPUDirect RDMA by dma-buf"] {
        assert!(page(&results).contains(words), "{words}");
    }
    drop(scene);
}
