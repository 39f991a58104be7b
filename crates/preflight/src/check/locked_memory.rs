use railgauge_wire::link::registered;

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/proc/self/limits of the agent; the limit does not apply with CAP_IPC_LOCK (root)",
    meaning: "registering buffers fails with ENOMEM",
    source: "rdma-core Documentation/libibverbs.md, locked memory",
    spoils: Spoils::Nothing,
    subject: Subject::Host,
    needs: &[Need::Readable(LIMITS)],
    find,
};

const QUEUES: Bytes = Bytes::from_mib(1);

/// Registered memory is locked memory: that of the link, once for each of its threads, and what queues need. A NIC that writes to itself has
/// both ends of its queue pair on one host, and all NICs of a host do so at once unless the plan has them take turns.
fn find(scene: &Scene<'_>) -> Vec<Found> {
    let of_test = |test: &Test, facts: &HostFacts| {
        let size = test.sizes.iter().max().copied().unwrap_or_default();
        let cache = facts.cpu.last_level_cache.unwrap_or_default();
        let (footprint, threads) = (test.knobs.footprint.unwrap_or_default(), test.threads.max(1));
        let ports = || facts.rdma.iter().map(|device| device.ports.len() as u64).sum::<u64>();
        let ends = match (test.transport, &test.rails) {
            (Transport::Nic, Rails::Each) => 2,
            (Transport::Nic, Rails::Only(rails)) => 2 * rails.len() as u64,
            (Transport::Nic, _) => 2 * ports().max(1),
            _ => 1,
        };
        let of_threads =
            |qps: u32| Bytes(registered(qps.div_ceil(threads), size.0, footprint, cache.0)) * u64::from(threads);
        // Few queue pairs may need more than many: what the cache asks for does not depend on their number.
        test.qps.iter().map(|qps| of_threads(*qps)).max().unwrap_or_default().saturating_mul(ends)
    };
    let verbs = || scene.plan.tests.iter().filter(|test| matches!(test.transport, Transport::Verbs | Transport::Nic));
    let short = scene.hosts().filter_map(|(host, facts)| {
        let needed = verbs().map(|test| of_test(test, facts)).max()?.saturating_add(QUEUES);
        let limit = facts.memlock_bytes.filter(|limit| *limit < needed)?;
        // In KiB as in the sentences, so that equal sentences are one finding.
        let (limit, needed) = (limit / Bytes::from_kib(1), needed / Bytes::from_kib(1));
        let what = format!("locked memory is limited to {limit} KiB, the plan needs about {needed} KiB");
        let observed = Observation::seen("memlock", limit).unit("KiB").wanted(needed, WantedBy::Check);
        Some(Found::host(Severity::Failure, host, what, who_raises(scene.around(facts), facts)).observed(observed))
    });
    short.collect()
}

/// What sets the limit: for a step of Slurm slurmd, or the shell its job was submitted from, for a container its engine or runtime (8 MiB
/// of containerd's unit on many distributions).
fn who_raises(around: Around, facts: &HostFacts) -> Entry {
    match (around, facts.ipc_lock) {
        (Around::Slurm, _) => remedy::SLURM_LOCKED_MEMORY,
        (Around::Machine, _) => remedy::LOCKED_MEMORY,
        (_, Some(IpcLock::InNamespace)) => remedy::IPC_LOCK_IN_NAMESPACE,
        (Around::Pod, Some(IpcLock::NotInEffect)) => remedy::IPC_LOCK_NOT_ROOT,
        (Around::Pod, _) => remedy::POD_LOCKED_MEMORY,
        (Around::Container, _) => remedy::CONTAINER_LOCKED_MEMORY,
    }
}
