//! Limits on locked memory that are too small for the buffers.

use railgauge_model::plan::model::{Launcher, Test};
use railgauge_wire::{facts::LIMITS, unit::Bytes};

use super::{Found, Need, Observation, Rule, Scene, Severity, Spoils, Subject, WantedBy};
use railgauge_wire::remedy;
use railgauge_wire::terms::{Op, TestMetric, Transport};

pub(super) const RULE: Rule = Rule {
    reads: "/proc/self/limits of the agent; the limit does not apply with CAP_IPC_LOCK (root)",
    meaning: "registering buffers fails with ENOMEM",
    source: "rdma-core Documentation/libibverbs.md, locked memory",
    spoils: Spoils::Nothing,
    subject: Subject::Host,
    needs: &[Need::Readable(LIMITS)],
    find,
};

/// What queues and their doorbells take.
const QUEUES: Bytes = Bytes::from_mib(1);

/// Registered memory is locked memory: two buffers for each queue pair, and what queues need. Each is registered once; twice
/// where the latency of writes is wanted and relaxed ordering is asked for: the byte that is polled needs a key that keeps the
/// order.
fn find(scene: &Scene<'_>) -> Vec<Found> {
    let largest = |test: &Test| {
        let size = test.sizes.iter().max().copied().unwrap_or_default();
        let polled = test.op == Op::Write && test.metric == TestMetric::Latency;
        let keys = if polled && test.knobs.relaxed_ordering == Some(true) { 2 } else { 1 };
        size.saturating_mul(u64::from(test.qps.iter().max().copied().unwrap_or(1))).saturating_mul(2 * keys)
    };
    let verbs = scene.plan.tests.iter().filter(|test| test.transport == Transport::Verbs);
    let Some(largest) = verbs.map(largest).max() else { return Vec::new() };
    let needed = largest.saturating_add(QUEUES);
    // A step of Slurm has the limit of slurmd, or that of the shell its job was submitted from.
    let in_slurm = matches!(scene.plan.launch.via, Launcher::Slurm(_));
    let remedy = if in_slurm { remedy::SLURM_LOCKED_MEMORY } else { remedy::LOCKED_MEMORY };
    let short = scene.hosts().filter_map(|(host, facts)| {
        let limit = facts.memlock_bytes.filter(|limit| *limit < needed)?;
        // In KiB as the sentence has them, so that equal sentences are one finding.
        let (limit, needed) = (limit / Bytes::from_kib(1), needed / Bytes::from_kib(1));
        let what = format!("locked memory is limited to {limit} KiB, the plan needs about {needed} KiB");
        let observed = Observation::seen("memlock", limit).unit("KiB").wanted(needed, WantedBy::Check);
        Some(Found::host(Severity::Failure, host, what, remedy).observed(observed))
    });
    short.collect()
}
