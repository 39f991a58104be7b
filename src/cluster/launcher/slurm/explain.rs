//! Turns srun's output and slurmctld's knowledge into a cause and a next step. srun's texts are those of Slurm 22.05, the only version
//! tried; slurmctld has precedence, because the end of a step says little about its reason.

use railgauge_wire::{
    failure::{Kind, Stage},
    remedy,
};

use super::inquiry::Known;
use crate::cluster::{pipe::ProcessEnd, revoked::revoke, trouble::Trouble};

/// How a job ended, where that ends the run: words of slurmctld, ours, and whether more time would have helped.
const ENDS: &[(&str, &str, bool)] = &[
    ("CANCELLED", "was cancelled", false),
    ("TIMEOUT", "reached its time limit", true),
    ("DEADLINE", "reached its deadline", true),
    ("PREEMPTED", "was preempted by another job", false),
    ("NODE_FAIL", "was ended by Slurm because one of its nodes failed", false),
    ("BOOT_FAIL", "was ended by Slurm because one of its nodes did not boot", false),
    ("REVOKED", "was revoked", false),
    ("REQUEUE", "was put back into the queue", false),
    ("STOPPED", "was stopped", false),
    ("COMPLETED", "has ended", false),
    ("FAILED", "has ended", false),
    ("OUT_OF_MEMORY", "was ended because it was out of memory", false),
];

pub(super) fn outside(job: &str, node: &str) -> Trouble {
    let cause = format!("the node {node} is not in the allocation of job {job}");
    Trouble::lasting(Stage::Connect, Kind::Configuration, cause).remedy(remedy::SLURM_NODE_OUTSIDE.with([("job", job)]))
}

/// Why a process of a step ended, or does not answer. `None` where the process itself ended and Slurm is well.
pub(super) fn ended(end: Option<&ProcessEnd>, words: &str, known: &Known) -> Option<Trouble> {
    let words = words.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let refused = says(&["unable to create step"]);
    // A draining node continues the job's steps: that does not explain a process that ended by itself.
    let drained = || (end.is_none() || refused).then(|| being_drained(known)).flatten();
    let known_to_slurm = job_ended(&words, known).or_else(|| node_lost(&words, known)).or_else(drained);
    if known_to_slurm.is_some() {
        return known_to_slurm;
    }
    let Known { job, node, .. } = known;
    let of_job = [("job", job.as_str())];
    let of_node = [("node", node.as_str())];
    let lasting = |kind: Kind, cause: String| Trouble::lasting(Stage::Connect, kind, cause);
    if says(&["invalid job id", "already completing or completed", "expired or invalid job"]) {
        return Some(over(job, "has ended", false));
    }
    if says(&["nodes are busy", "step creation temporarily disabled", "are still not ready"])
        || end.is_none() && known.job_state.contains("SUSPENDED")
    {
        return Some(waits(known));
    }
    let is_answered = !known.job_state.is_empty();
    if says(&["cancelled at"]) {
        let of = if is_answered { "the job still runs" } else { "slurmctld does not say whether the job still runs" };
        let cause = format!("its step of job {job} was cancelled; {of}");
        return Some(lasting(Kind::Lost, cause).remedy(remedy::SLURM_STEPS.with(of_job)));
    }
    // Only srun's own errors count: slurmstepd also reports missing directories or memory that ran out, and an agent's output is in the
    // same stream.
    let of_srun = |line: &str| {
        line.starts_with("srun: error:")
            && ["slurmstepd", "io error", "timed out waiting for job step"].iter().any(|part| line.contains(part))
    };
    if end.is_none() || words.split(['\n', '/']).map(str::trim).any(of_srun) {
        let well = match is_answered {
            true => format!("Slurm says that {node} and job {job} are well"),
            false => format!("nothing comes from {node}, and slurmctld does not answer either"),
        };
        let cause = format!("{well}: slurmstepd, the agent, or the whole node hangs or is dead");
        return Some(lasting(Kind::Lost, cause).remedy(remedy::SLURM_CHECK_STEPD));
    }
    refused.then(|| {
        let cause = format!("Slurm makes no step on {node}");
        lasting(Kind::Configuration, cause).remedy(remedy::SLURM_STEP_BY_HAND.with(of_node))
    })
}

pub(super) fn late(known: &Known) -> Option<Trouble> {
    job_ended("", known).or_else(|| node_lost("", known)).or_else(|| being_drained(known)).or_else(|| {
        let states = ["CONFIGURING", "PENDING", "SUSPENDED", "RESIZING", "SIGNALING"];
        states.iter().any(|state| known.job_state.contains(state)).then(|| waits(known))
    })
}

fn job_ended(words: &str, known: &Known) -> Option<Trouble> {
    end_of_job(words, known).map(|(what, longer)| over(&known.job, what, longer))
}

pub(super) fn ending(known: &Known) -> Option<String> {
    end_of_job("", known).map(|(what, _)| said(&known.job, what))
}

fn end_of_job(words: &str, known: &Known) -> Option<(&'static str, bool)> {
    let (_, what, longer) = why(words, known).or_else(|| is_ending(known).then(|| by("COMPLETED")).flatten())?;
    Some((what, *longer))
}

/// Why the job has ended or is ending. It is COMPLETING until its nodes are free, whatever ends it, and slurmctld may not answer at all:
/// then use its reason, or the words of slurmstepd.
fn why(words: &str, known: &Known) -> Option<&'static (&'static str, &'static str, bool)> {
    let by_state = ENDS.iter().find(|(state, ..)| known.job_state.contains(state));
    let by_reason = || (known.job_reason == "TimeLimit").then(|| by("TIMEOUT")).flatten();
    let reasons =
        [("due to time limit", "TIMEOUT"), ("due to node failure", "NODE_FAIL"), ("due to preemption", "PREEMPTED")];
    let by_words = || reasons.iter().find(|(text, _)| words.contains(text)).and_then(|(_, state)| by(state));
    let cancelled = || (is_ending(known) && words.contains("cancelled at")).then(|| by("CANCELLED")).flatten();
    by_state.or_else(by_reason).or_else(by_words).or_else(cancelled)
}

fn by(wanted: &str) -> Option<&'static (&'static str, &'static str, bool)> {
    ENDS.iter().find(|(state, ..)| *state == wanted)
}

fn is_ending(known: &Known) -> bool {
    known.job_state.contains("COMPLETING")
}

/// Whether the job is being ended for a yet unknown reason: its state will show it, once its nodes are free.
pub(super) fn is_unexplained(words: &str, known: &Known) -> bool {
    is_ending(known) && why(&words.to_lowercase(), known).is_none()
}

fn said(job: &str, what: &str) -> String {
    format!("job {job} {what}")
}

fn over(job: &str, what: &str, longer: bool) -> Trouble {
    let cause = said(job, what);
    revoke(&cause);
    let remedy = if longer { remedy::SLURM_LONGER } else { remedy::SLURM_NEW_ALLOCATION };
    Trouble::lasting(Stage::Connect, Kind::Aborted, cause).remedy(remedy)
}

fn node_lost(words: &str, known: &Known) -> Option<Trouble> {
    let Known { node, .. } = known;
    let unreachable =
        ["communication connection failure", "node failure on", "socket timed out", "unable to contact slurmd"];
    let silent = is_silent(known) || unreachable.iter().any(|part| words.contains(part));
    // POWER_DOWN alone is a request for the time after the job.
    (silent || is_in(known, &["DOWN", "POWERED_DOWN", "POWERING_DOWN"])).then(|| {
        let cause = format!("slurmd of {node} does not answer ({})", state_of(known));
        let remedy = remedy::SLURM_CHECK_SLURMD.with([("node", node.as_str())]);
        Trouble::lasting(Stage::Connect, Kind::Lost, cause).remedy(remedy)
    })
}

fn being_drained(known: &Known) -> Option<Trouble> {
    let Known { node, .. } = known;
    is_in(known, &["DRAIN", "DRAINING", "DRAINED", "FAIL", "FAILING"]).then(|| {
        let cause = format!("the node {node} is being taken out of service ({})", state_of(known));
        let remedy = remedy::SLURM_DRAINED.with([("node", node.as_str())]);
        Trouble::lasting(Stage::Connect, Kind::Lost, cause).remedy(remedy)
    })
}

/// The states of the node: a base state and flags, as `ALLOCATED*+DRAIN`. A sign after a state is a flag too.
fn states(known: &Known) -> impl Iterator<Item = &str> {
    known.node_state.split('+')
}

fn is_in(known: &Known, wanted: &[&str]) -> bool {
    states(known).any(|state| wanted.contains(&state.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())))
}

fn is_silent(known: &Known) -> bool {
    is_in(known, &["NOT_RESPONDING"]) || states(known).any(|state| state.ends_with('*'))
}

fn state_of(Known { node_state, node_reason, .. }: &Known) -> String {
    let state = if node_state.is_empty() { "unknown" } else { node_state };
    match node_reason.as_str() {
        "" => format!("its state is {state}"),
        reason => format!("its state is {state}, because: {reason}"),
    }
}

fn waits(known: &Known) -> Trouble {
    let Known { job, node, job_state, .. } = known;
    let state = if job_state.is_empty() { "unknown" } else { job_state };
    let cause = format!("the step on {node} waits (job {job} is {state})");
    let values = [("job", job.as_str())];
    Trouble::passing(Stage::Connect, Kind::Deadline, cause).remedy(remedy::SLURM_STEPS.with(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(job_state: &str, node_state: &str) -> Known {
        let [job_state, node_state] = [job_state, node_state].map(str::to_owned);
        Known { job: "7".into(), node: "n2".into(), job_state, node_state, ..Known::default() }
    }

    fn id(trouble: Option<Trouble>) -> String {
        trouble.and_then(|trouble| trouble.failure.remedy).map_or("none".into(), |remedy| remedy.id.into_owned())
    }

    #[test]
    fn ends_of_steps_are_told_apart() {
        let cancelled = "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-25T01:37:35 ***";
        let limit = "slurmstepd-n3: error: *** STEP 4.0 ON n3 CANCELLED AT 2026-11-25T01:40:48 DUE TO TIME LIMIT ***";
        let refused = "srun: error: Task launch for StepId=3.0 failed on node n2: Communication connection failure";
        let outside = "srun: error: Unable to create step for job 3: Requested node configuration is not available";
        let moved =
            "slurmstepd: error: couldn't chdir to `/home/a/run': No such file or directory: going to /tmp instead";
        let memory =
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7.3. Some of the step tasks have been OOM Killed.";
        let hung = "srun: error: timed out waiting for job step to complete";
        let busy = "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)";
        let code = Some(ProcessEnd::Code(1));
        for (words, job, node, expected) in [
            (cancelled, "CANCELLED", "IDLE", "slurm-new-allocation"),
            (cancelled, "COMPLETING", "IDLE", "slurm-new-allocation"),
            (limit, "COMPLETING", "IDLE", "slurm-longer-time"),
            (cancelled, "RUNNING", "MIXED", "slurm-steps"),
            (limit, "TIMEOUT", "IDLE", "slurm-longer-time"),
            (limit, "", "", "slurm-longer-time"),
            (refused, "RUNNING", "MIXED", "slurm-check-slurmd"),
            ("", "RUNNING", "DOWN+NOT_RESPONDING", "slurm-check-slurmd"),
            ("", "RUNNING", "ALLOCATED*", "slurm-check-slurmd"),
            ("", "RUNNING", "ALLOCATED*+DRAIN", "slurm-check-slurmd"),
            ("", "RUNNING", "DOWN*", "slurm-check-slurmd"),
            ("", "RUNNING", "ALLOCATED+POWERED_DOWN", "slurm-check-slurmd"),
            ("sh: not found", "RUNNING", "MIXED+POWER_DOWN", "none"),
            ("sh: not found", "RUNNING", "MIXED+POWERING_UP", "none"),
            ("srun: error: Unable to create step for job 7: x", "RUNNING", "MIXED+DRAIN", "slurm-drained"),
            ("agent: killed", "RUNNING", "MIXED+DRAIN", "none"),
            (outside, "RUNNING", "IDLE", "slurm-step-by-hand"),
            (moved, "RUNNING", "MIXED", "none"),
            (memory, "RUNNING", "MIXED", "none"),
            ("agent: io error, device not ready", "RUNNING", "MIXED", "none"),
            (hung, "RUNNING", "MIXED", "slurm-check-slurmstepd"),
            (busy, "RUNNING", "MIXED", "slurm-steps"),
            ("sh: not found", "RUNNING", "MIXED", "none"),
        ] {
            assert_eq!(id(ended(code.as_ref(), words, &known(job, node))), expected, "{words} {job} {node}");
        }
        assert_eq!(id(ended(None, "", &known("RUNNING", "MIXED"))), "slurm-check-slurmstepd");
        assert_eq!(id(ended(None, "", &known("SUSPENDED", "MIXED"))), "slurm-steps");
        let unanswered = ended(None, "", &known("", "")).unwrap().failure.cause;
        assert!(unanswered.contains("slurmctld does not answer") && !unanswered.contains("well"), "{unanswered}");
        let cancelled = ended(code.as_ref(), cancelled, &known("", "")).unwrap().failure.cause;
        assert!(cancelled.contains("slurmctld does not say"), "{cancelled}");
    }

    #[test]
    fn an_ending_job_is_told_by_its_reason_where_its_state_hides_it() {
        let of = |state: &str, reason: &str| Known { job_reason: reason.into(), ..known(state, "IDLE") };
        assert_eq!(ending(&of("COMPLETING", "TimeLimit")).as_deref(), Some("job 7 reached its time limit"));
        assert_eq!(id(ended(None, "", &of("COMPLETING", "TimeLimit"))), "slurm-longer-time");
        assert!(is_unexplained("", &of("COMPLETING", "None")) && !is_unexplained("", &of("COMPLETING", "TimeLimit")));
        assert!(!is_unexplained("*** STEP 7.0 ON n1 CANCELLED AT x ***", &of("COMPLETING", "None")));
        assert_eq!(ending(&of("CANCELLED", "None")).as_deref(), Some("job 7 was cancelled"));
        assert_eq!(ending(&of("RUNNING", "None")), None);
        assert_eq!(ending(&of("", "")), None);
    }

    #[test]
    fn a_late_node_is_told_by_the_states() {
        assert_eq!(id(late(&known("RUNNING", "DOWN"))), "slurm-check-slurmd");
        assert_eq!(id(late(&known("RUNNING", "MIXED+POWER_DOWN"))), "none");
        assert_eq!(id(late(&known("RUNNING", "DRAINED*"))), "slurm-check-slurmd");
        assert_eq!(id(late(&known("RUNNING", "ALLOCATED+DRAIN"))), "slurm-drained");
        assert_eq!(id(late(&known("CONFIGURING", "MIXED"))), "slurm-steps");
        assert_eq!(id(late(&known("RUNNING", "MIXED"))), "none");
    }
}
