use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "Cpus_allowed_list of /proc/self/status of the agent",
    meaning: "threads that send, receive and check share few processors, and cannot be placed near the NIC",
    source: "proc_pid_status(5); sched_setaffinity(2); Slurm's task/affinity and task/cgroup",
    spoils: Spoils::Everything,
    subject: Subject::Host,
    needs: &[Need::Host(|facts| facts.processors_allowed.is_some(), "which processors the agent may run on")],
    find,
};

/// Half of the processors are as many as there are cores: fewer are a deliberate or an overlooked restriction.
fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let in_slurm = matches!(scene.plan.launch.via, Launcher::Slurm(_));
    let remedy = if in_slurm { remedy::SLURM_PROCESSORS } else { remedy::CPU_MASK };
    found.extend(scene.hosts().filter_map(|(host, facts)| {
        let allowed = facts.processors_allowed.filter(|allowed| *allowed < facts.cpu.threads)?;
        let severity = if allowed * 2 < facts.cpu.threads { Warning } else { Notice };
        let what = format!("the agent may run on {allowed} of {} processors", facts.cpu.threads);
        Some(Found::host(severity, host, what, remedy).seen("processors_allowed", allowed))
    }));
}
