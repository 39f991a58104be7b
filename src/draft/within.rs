//! What can be measured within hosts: every GPU by itself, and the memory of the processors (docs/node.md).

use railgauge_wire::facts::{CUBLASLT, HIPBLASLT, HostFacts};

use serde::Serialize;

use super::seen::{all_equal, has};

/// What of the hosts' GPUs and memory can be measured and compared; nothing where tests of GPUs are left out.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Within {
    gpus: usize,
    nodes: usize,
    /// Whether all GPUs are of one product: others are no peers.
    has_equal_gpus: bool,
    has_equal_processors: bool,
    /// Whether the loader of every host finds a cuBLASLt or hipBLASLt.
    multiplies: bool,
    /// Nine tenths of the memory of the GPU that has least, in GiB; `None` where a driver does not tell.
    tested_gib: Option<u64>,
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
                 LD_LIBRARY_PATH (docs/node.md).",
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
