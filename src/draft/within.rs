//! Tests within hosts, before those of the network: every GPU by itself, and the memory of the processors (docs/tests.md).

use railgauge_wire::facts::{CUBLASLT, HIPBLASLT, HostFacts};

use super::{
    measure::{PEERS, expect},
    page::Page,
    seen::{Seen, all_equal, has},
};

/// What of the hosts' GPUs and memory can be measured and compared; nothing where tests of GPUs are left out.
#[derive(Debug, Default)]
pub(super) struct Within {
    /// GPUs of all hosts.
    gpus: usize,
    /// NUMA nodes with processors of all hosts.
    nodes: usize,
    /// Whether all GPUs are of one product: others are no peers.
    has_equal_gpus: bool,
    /// Whether all hosts have the same processors.
    has_equal_processors: bool,
    /// Whether the loader of every host finds a cuBLASLt or hipBLASLt.
    multiplies: bool,
    /// Nine tenths of the memory of the GPU that has least, in GiB; `None` where a driver does not tell.
    tested_gib: Option<u64>,
    /// What was left out, one sentence each.
    pub notes: Vec<String>,
}

impl Within {
    /// What these hosts have, each of which has a GPU that CUDA or HIP shows.
    pub(super) fn of(facts: &[(&String, &HostFacts)]) -> Self {
        let hosts = |is: fn(&HostFacts) -> bool| -> Vec<String> {
            facts.iter().filter(|(_, facts)| is(facts)).map(|(host, _)| (*host).clone()).collect()
        };
        // Tests within hosts are about all GPUs that NVML or AMD SMI counts, and CUDA or HIP copies for those alone that it shows.
        let hiding = hosts(|facts| facts.gpus.iter().any(|gpu| facts.cuda_number(gpu).is_none()));
        if !hiding.is_empty() {
            let note = format!(
                "{} GPUs that CUDA or HIP does not show: tests of GPUs by themselves are left out.",
                has(&hiding)
            );
            return Self { notes: vec![note], ..Self::default() };
        }
        let without = hosts(|facts| !multiplies(facts));
        let notes = match without.is_empty() {
            true => Vec::new(),
            false => vec![format!(
                "{} no cuBLASLt or hipBLASLt that the loader finds (libcublasLt.so, libhipblaslt.so): matrix products are left out. Install it, or name its folder in \
                 LD_LIBRARY_PATH (docs/tests.md).",
                has(&without)
            )],
        };
        Self {
            gpus: facts.iter().map(|(_, facts)| facts.gpus.len()).sum(),
            nodes: facts.iter().map(|(_, facts)| facts.cpu.nodes().len()).sum(),
            has_equal_gpus: all_equal(facts.iter().flat_map(|(_, facts)| &facts.gpus).map(|gpu| gpu.name.clone()))
                .is_some(),
            has_equal_processors: all_equal(facts.iter().map(|(_, facts)| facts.cpu.model.clone())).is_some(),
            multiplies: without.is_empty(),
            tested_gib: facts
                .iter()
                .flat_map(|(_, facts)| &facts.gpus)
                .map(|gpu| gpu.memory_bytes)
                .min()
                .flatten()
                .map(|bytes| (bytes.0 / 10 * 9) >> 30)
                .filter(|gib| *gib > 0),
            notes,
        }
    }
}

/// Whether the loader finds a cuBLASLt of any version, or a hipBLASLt.
fn multiplies(facts: &HostFacts) -> bool {
    facts.finds(CUBLASLT) || facts.finds(HIPBLASLT)
}

/// Writes the tests.
pub(super) fn tests(page: &mut Page, seen: &Seen) {
    let Seen { within, .. } = seen;
    if within.gpus == 0 {
        return;
    }
    let few = "Fewer than four to compare, so no limit: after a first run put an absolute one here (`at_least`, for a latency `at_most`).";
    let unlike = "Not all are of one product, so no limit: they are no peers. Put absolute ones here (`at_least`, for a latency `at_most`), by \
                  `group`.";
    // Why parts of which there are so many are not held against each other.
    let unjudged = |parts: usize, are_equal: bool| match () {
        () if seen.is_emulated => Some("No limit: what the hosts tell of themselves is replaced or emulated."),
        () if !are_equal => Some(unlike),
        () if parts < PEERS => Some(few),
        () => None,
    };
    let of_gpus = unjudged(within.gpus, within.has_equal_gpus);
    let first = "The hosts by themselves come first: a GPU in a narrow slot, or slow memory, looks like a slow fabric. All GPUs of a host, or \
                 all its NUMA nodes, work at once.";
    for (name, op, about) in [("host-to-gpu", "host_to_gpu", first), ("gpu-to-host", "gpu_to_host", "")] {
        test(page, about, name, op, "bandwidth");
        let reason =
            "Equal slots carry the same: less is a slot with fewer lanes, a lower generation, or one that is shared.";
        limit(page, of_gpus, reason, "memory_bandwidth", 5);
    }
    test(page, "", "gpu-memory", "gpu_copy", "bandwidth");
    limit(page, of_gpus, "Slow memory, or a memory clock that is held down, shows here.", "memory_bandwidth", 3);
    if seen.gpus > 1 {
        test(page, "Each GPU to every other one of its host, in turn.", "gpu-to-gpu", "gpu_to_gpu", "bandwidth");
        // A way is held against the same way on other hosts.
        let of_ways = unjudged(seen.hosts.len(), within.has_equal_gpus);
        limit(page, of_ways, "A way is held against the same way on other hosts.", "memory_bandwidth", 5);
    }
    if within.multiplies {
        let about = "GPUs before compute capability 8.0 need `knobs = { precision = \"fp16\" }`.";
        test(page, about, "matrix-products", "matmul", "compute");
        limit(page, of_gpus, "Lower clocks, by heat or power, show here.", "compute", 5);
    }
    if let Some(gib) = within.tested_gib {
        let about = "Patterns are written to the memory of each GPU and compared, to nine tenths of the smallest GPU's. Wrong bytes fail the test without a limit.";
        test(page, about, "gpu-memory-test", "gpu_memory_test", "bandwidth");
        page.line(format!("sizes = \"{gib}GiB\""));
    }
    test(page, "", "memory-read", "memory_read", "bandwidth");
    let of_nodes = unjudged(within.nodes, within.has_equal_processors);
    limit(page, of_nodes, "A memory module that is missing costs its share of the channels.", "memory_bandwidth", 10);
    test(page, "", "memory-latency", "memory_read", "latency");
    limit(page, of_nodes, "A lower memory clock, or a setting of the firmware, shows here.", "memory_latency", 10);
}

/// A test of this name, with a comment above it.
fn test(page: &mut Page, about: &str, name: &str, op: &str, metric: &str) {
    page.gap();
    if !about.is_empty() {
        page.say(about);
    }
    page.line(format!("[[test]]\nname = \"{name}\"\nop = \"{op}\"\nmetric = \"{metric}\""));
}

/// The limit below a test, or why there is none.
fn limit(page: &mut Page, unjudged: Option<&str>, reason: &str, metric: &str, percent: u32) {
    match unjudged {
        None => expect(page, reason, metric, &format!("within_percent_of_peers = {percent}"), None),
        Some(why) => page.say(why),
    }
}
