use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "NVML, AMD SMI",
    meaning: "cases that need the missing GPU fail; collectives are smaller or do not run",
    source: "NVML; a GPU that fell off the bus leaves Xid 79 in the kernel's log",
    spoils: Spoils::GpuMemory,
    subject: Subject::Host,
    needs: &[Need::Readable(GPUS)],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    if !scene.needs_gpus() && scene.wanted().gpus.is_none() {
        return;
    }
    let usual = Usual::of(scene.wanted().gpus, scene.hosts().map(|(_, facts)| facts.gpus.len()));
    for (host, facts) in scene.hosts() {
        let count = facts.gpus.len();
        let why = facts.unreadable.get(GPUS).map(|why| format!(" ({why})")).unwrap_or_default();
        if count == 0 && scene.needs_gpus() {
            found.push(Found::host(Failure, host, format!("no GPU{why}"), remedy::FIND_GPUS).seen("gpus", count));
        } else {
            found.extend(counted(host, count, &format!("GPUs{why}"), usual.as_ref(), remedy::FIND_GPUS, "gpus"));
        }
    }
}
