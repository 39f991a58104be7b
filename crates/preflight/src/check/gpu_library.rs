//! Hosts without CUDA, NCCL or cuBLASLt, or with AMD GPUs without HIP, RCCL or hipBLASLt.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "what the loader finds on the host",
    meaning: "tests with GPUs fail on this host",
    source: "the loader's message",
    spoils: Spoils::Nothing,
    subject: Subject::Host,
    needs: &[Need::Host(
        |facts| ["libcuda.so.1", "libnccl.so.2"].iter().all(|name| facts.libraries.contains_key(*name)),
        "which libraries it has",
    )],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    // The library of NVIDIA's GPUs and that of AMD's.
    let mut needed = Vec::new();
    if scene.needs_gpus() {
        needed.push(("libcuda.so.1", HIP, remedy::INSTALL_HIP));
    }
    let by_itself = |test: &Test| test.collective.as_ref().is_some_and(|join| join.library.is_none());
    if scene.has(|test| test.transport == Transport::Nccl && by_itself(test)) {
        needed.push(("libnccl.so.2", RCCL, remedy::INSTALL_RCCL));
    }
    let mut found = Vec::new();
    for (host, facts) in scene.hosts() {
        for (nvidia, amd, install) in &needed {
            let (name, remedy) = if facts.has_amd_gpus() { (*amd, *install) } else { (*nvidia, remedy::GPU_LIBRARIES) };
            if let Some(words) = facts.unfound(name) {
                found.push(Found::host(Severity::Failure, host, words, remedy));
            }
        }
    }
    if scene.needs_gpus() {
        for (host, facts) in scene.hosts().filter(|(_, facts)| facts.has_amd_gpus()) {
            if let Some(words) = facts.unfound(AMD_SMI) {
                let missing = Found::host(Severity::Warning, host, words, remedy::INSTALL_AMD_SMI);
                found.push(missing.meaning("tests run; facts and the state of its GPUs are not read"));
            }
        }
    }
    if scene.has(|test| test.op == Op::Matmul) {
        found.extend(scene.hosts().filter_map(|(host, facts)| {
            // Not searched for without CUDA and HIP.
            let (name, install) = match facts.has_amd_gpus() {
                true => (HIPBLASLT, remedy::INSTALL_HIPBLASLT),
                false => (CUBLASLT, remedy::INSTALL_CUBLASLT),
            };
            Some(Found::host(Severity::Failure, host, facts.unfound(name)?, install))
        }));
    }
    found
}
