use std::collections::HashMap;

use railgauge_model::schedule::{Inventory, Round, devices::devices, schedule};
use railgauge_wire::{Memory, link::registered};

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

/// Registered memory of hosts is locked memory. One agent registers that of all ends that a round has on its host, and queues need some.
fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    if scene.hosts().all(|(_, facts)| facts.memlock_bytes.is_none()) {
        return;
    }
    let inventory = Inventory::of_run(scene.plan, |host, transport| {
        let facts = scene.cluster.facts.get(&host.name)?;
        u32::try_from(devices(host, Some(facts), transport).len()).ok()
    });
    // A plan without a schedule does not run.
    let rounds = schedule(scene.plan, &inventory).map(|schedule| schedule.rounds).unwrap_or_default();
    let mut most = HashMap::<&str, Bytes>::new();
    for round in &rounds {
        let test = &scene.plan.tests[round.test];
        for (host, ends) in ends_on_hosts(round, test) {
            let Some(facts) = scene.cluster.facts.get(host) else { continue };
            let most = most.entry(host).or_default();
            *most = of_end(test, facts).saturating_mul(ends).max(*most);
        }
    }
    found.extend(scene.hosts().filter_map(|(host, facts)| {
        let needed = most.get(host)?.saturating_add(QUEUES);
        let limit = facts.memlock_bytes.filter(|limit| *limit < needed)?;
        // In KiB as in the sentences, so that equal sentences are one finding.
        let (limit, needed) = (limit / Bytes::from_kib(1), needed / Bytes::from_kib(1));
        let what = format!("locked memory is limited to {limit} KiB, the plan needs about {needed} KiB");
        let short = Found::host(Failure, host, what, who_raises(scene.around(facts), facts));
        Some(short.wants("memlock", limit, needed).unit("KiB"))
    }));
}

/// Ends and ranks that register memory of their hosts, by host.
fn ends_on_hosts<'r>(round: &'r Round, test: &Test) -> HashMap<&'r str, u64> {
    let mut ends = HashMap::new();
    let registers = matches!(test.transport, Transport::Verbs | Transport::Nic);
    for flow in round.flows.iter().filter(|_| registers) {
        let ranks = flow.members.iter().map(|rank| (rank, test.memory.from));
        let pair = [(&flow.from, test.memory.from), (&flow.to, test.memory.to)];
        let pair = pair.into_iter().filter(|_| flow.members.is_empty());
        for (port, _) in ranks.chain(pair).filter(|(_, memory)| *memory == Memory::Host) {
            *ends.entry(&*port.host).or_default() += 1;
        }
    }
    ends
}

/// Once for each of its threads. Few queue pairs may need more than many: what the cache asks for does not depend on their number.
fn of_end(test: &Test, facts: &HostFacts) -> Bytes {
    let size = test.sizes.iter().max().copied().unwrap_or_default();
    let cache = facts.cpu.last_level_cache.unwrap_or_default();
    let (footprint, threads) = (test.knobs.footprint.unwrap_or_default(), test.threads.max(1));
    let of_threads =
        |qps: &u32| Bytes(registered(qps.div_ceil(threads), size.0, footprint, cache.0)) * u64::from(threads);
    test.qps.iter().map(of_threads).max().unwrap_or_default()
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
