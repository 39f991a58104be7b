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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    if !scene.needs_gpus() && scene.wanted().gpus.is_none() {
        return Vec::new();
    }
    let usual = Usual::of(scene.wanted().gpus, scene.hosts().map(|(_, facts)| facts.gpus.len()));
    let mut found = Vec::new();
    for (host, facts) in scene.hosts() {
        let count = facts.gpus.len();
        let why = facts.unreadable.get(GPUS).map(|why| format!(" ({why})")).unwrap_or_default();
        let remedy = remedy::FIND_GPUS;
        match &usual {
            _ if count == 0 && scene.needs_gpus() => {
                let found_none = Found::host(Severity::Failure, host, format!("no GPU{why}"), remedy);
                found.push(found_none.observed(Observation::seen("gpus", count)));
            }
            Some(usual) if count != usual.value => {
                let severity = if count < usual.value { Severity::Failure } else { Severity::Notice };
                let what = format!("{count} GPUs{why}, {}", usual.words(usize::to_string));
                let observed = Observation::with_usual("gpus", count, usual);
                found.push(Found::host(usual.severity(severity), host, what, remedy).observed(observed));
            }
            _ => {}
        }
    }
    found
}
