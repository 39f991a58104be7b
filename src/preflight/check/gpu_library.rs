//! Hosts without CUDA, NCCL or cuBLASLt.

use super::{Found, Need, Rule, Scene, Severity, Spoils, Subject};
use railgauge_model::plan::model::Test;
use railgauge_wire::facts::{CUBLASLT, HostFacts};
use railgauge_wire::remedy;
use railgauge_wire::terms::{Op, Transport};

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
    let mut needed = Vec::new();
    if scene.needs_gpus() {
        needed.push("libcuda.so.1");
    }
    let by_itself = |test: &Test| test.collective.as_ref().is_some_and(|join| join.library.is_none());
    if scene.has(|test| test.transport == Transport::Nccl && by_itself(test)) {
        needed.push("libnccl.so.2");
    }
    let mut found = Vec::new();
    for (host, facts) in scene.hosts() {
        for name in &needed {
            if let Some(words) = facts.libraries.get(*name).filter(|path| !path.starts_with('/')) {
                let remedy = remedy::GPU_LIBRARIES;
                found.push(Found::host(Severity::Failure, host, format!("{name}: {words}"), remedy));
            }
        }
    }
    if scene.has(|test| test.op == Op::Matmul) {
        found.extend(scene.hosts().filter_map(|(host, facts)| {
            let words = no_cublaslt(facts)?;
            Some(Found::host(Severity::Failure, host, words, remedy::INSTALL_CUBLASLT))
        }));
    }
    found
}

/// The loader's words for every name of cuBLASLt; `None` where it finds one, or where nobody asked, as beside no CUDA.
fn no_cublaslt(facts: &HostFacts) -> Option<String> {
    let asked = || facts.libraries.iter().filter(|(name, _)| name.starts_with(CUBLASLT));
    let is_missing = asked().count() > 0 && asked().all(|(_, said)| !said.starts_with('/'));
    is_missing.then(|| asked().map(|(name, said)| format!("{name}: {said}")).collect::<Vec<_>>().join("; "))
}
