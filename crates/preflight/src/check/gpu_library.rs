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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let by_itself = |test: &Test| test.collective.as_ref().is_some_and(|join| join.library.is_none());
    let has_nccl = scene.has(|test| test.transport == Transport::Nccl && by_itself(test));
    let multiplies = scene.has(|test| test.op == Op::Matmul);
    // The library of NVIDIA's GPUs and that of AMD's.
    let libraries = [
        (scene.needs_gpus(), ("libcuda.so.1", remedy::GPU_LIBRARIES), (HIP, remedy::INSTALL_HIP)),
        (has_nccl, ("libnccl.so.2", remedy::GPU_LIBRARIES), (RCCL, remedy::INSTALL_RCCL)),
        (multiplies, (CUBLASLT, remedy::INSTALL_CUBLASLT), (HIPBLASLT, remedy::INSTALL_HIPBLASLT)),
    ];
    for (host, facts) in scene.hosts() {
        let needed = libraries.iter().filter(|(is_needed, ..)| *is_needed);
        found.extend(needed.filter_map(|(_, nvidia, amd)| {
            let (name, remedy) = if facts.has_amd_gpus() { *amd } else { *nvidia };
            Some(Found::host(Failure, host, facts.unfound(name)?, remedy))
        }));
        let monitor = facts.unfound(AMD_SMI).filter(|_| scene.needs_gpus() && facts.has_amd_gpus());
        found.extend(monitor.map(|words| {
            let missing = Found::host(Warning, host, words, remedy::INSTALL_AMD_SMI);
            missing.meaning("tests run; facts and the state of its GPUs are not read")
        }));
    }
}
