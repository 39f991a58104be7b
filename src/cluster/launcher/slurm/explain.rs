//! Why a step ended: slurmctld's knowledge of the job, else srun's own words. srun's texts are those of Slurm 22.05.

use railgauge_wire::{Kind, Stage, remedy};

use super::{inquiry::Known, scontrol};
use crate::cluster::{ProcessEnd, Trouble, revoked::revoke};

pub(super) fn outside(job: &str, node: &str) -> Trouble {
    let cause = format!("the node {node} is not in the allocation of job {job}");
    Trouble::lasting(Stage::Connect, Kind::Configuration, cause).remedy(remedy::SLURM_NODE_OUTSIDE.with([("job", job)]))
}

/// Why a process of a step ended, or does not answer. `None` where the process itself ended.
pub(super) fn ended(end: Option<&ProcessEnd>, words: &str, node: &str, known: &Known) -> Option<Trouble> {
    if let Some((what, longer)) = end_of_job(words, known) {
        let cause = format!("job {} {what}", known.job);
        revoke(&cause);
        let remedy = if longer { remedy::SLURM_LONGER_TIME } else { remedy::SLURM_NEW_ALLOCATION };
        return Some(Trouble::lasting(Stage::Connect, Kind::Aborted, cause).remedy(remedy));
    }
    // An agent's output is in the same stream, and srun also reports how the process ended: `srun: error: n2: task 0: Killed`.
    let of_srun = |line: &&str| line.starts_with("srun: error:") && !line.contains(": task ");
    let own = words.split('\n').flat_map(|line| line.split(" / ")).map(str::trim).find(of_srun);
    let cause = match (own, end) {
        (Some(line), _) => line.to_owned(),
        (None, None) => format!("nothing comes from {node}: its slurmstepd, the agent or the node hangs or is dead"),
        (None, Some(_)) => return None,
    };
    let remedy = remedy::SLURM_STEP_BY_HAND.with([("node", node)]);
    Some(Trouble::lasting(Stage::Connect, Kind::Lost, cause).remedy(remedy))
}

pub(super) fn ending(known: &Known) -> Option<String> {
    end_of_job("", known).map(|(what, _)| format!("job {} {what}", known.job))
}

/// How the job has ended or is ending, and whether more time would have helped.
fn end_of_job(words: &str, known: &Known) -> Option<(&'static str, bool)> {
    why(words, known).or_else(|| is_ending(known).then_some(("has ended", false)))
}

/// It is COMPLETING until its nodes are free, whatever ends it, and slurmctld may not answer at all: then use its reason, or the words of
/// srun and slurmstepd.
fn why(words: &str, known: &Known) -> Option<(&'static str, bool)> {
    let words = words.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    let state = match () {
        () if known.reason == "TimeLimit" || says(&["due to time limit"]) => "TIMEOUT",
        () if says(&["due to node failure"]) => "NODE_FAIL",
        () if says(&["due to preemption"]) => "PREEMPTED",
        () if is_ending(known) && says(&["cancelled at"]) => "CANCELLED",
        () if says(&["invalid job id", "already completing or completed", "expired or invalid job"]) => "COMPLETED",
        () => "",
    };
    scontrol::ended(&known.state).or_else(|| scontrol::ended(state))
}

fn is_ending(known: &Known) -> bool {
    known.state.contains("COMPLETING")
}

/// Whether the job is being ended for a yet unknown reason: its state will show it, once its nodes are free.
pub(super) fn is_unexplained(words: &str, known: &Known) -> bool {
    is_ending(known) && why(words, known).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(state: &str, reason: &str) -> Known {
        Known { job: "7".into(), state: state.into(), reason: reason.into() }
    }

    fn id(trouble: Option<Trouble>) -> String {
        trouble.and_then(|trouble| trouble.failure.remedy).map_or("none".into(), |remedy| remedy.id.into_owned())
    }

    #[test]
    fn the_end_of_the_job_comes_before_that_of_a_step() {
        let cancelled = "slurmstepd-n1: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-25T01:37:35 ***";
        let limit = "slurmstepd-n3: error: *** STEP 4.0 ON n3 CANCELLED AT 2026-11-25T01:40:48 DUE TO TIME LIMIT ***";
        let code = Some(ProcessEnd::Code(1));
        for (words, state, expected) in [
            (cancelled, "CANCELLED", "slurm-new-allocation"),
            (cancelled, "COMPLETING", "slurm-new-allocation"),
            (limit, "COMPLETING", "slurm-longer-time"),
            (limit, "TIMEOUT", "slurm-longer-time"),
            (limit, "", "slurm-longer-time"),
            ("srun: error: Unable to confirm allocation: Invalid job id specified", "", "slurm-new-allocation"),
            ("srun: error: Task launch for StepId=3.0 failed on node n2: x", "RUNNING", "slurm-step-by-hand"),
            ("srun: error: timed out waiting for job step to complete", "RUNNING", "slurm-step-by-hand"),
            ("srun: error: n2: task 0: Exited with exit code 127", "RUNNING", "none"),
            ("slurmstepd: error: couldn't chdir to `/a': No such file or directory", "RUNNING", "none"),
            ("sh: not found", "RUNNING", "none"),
        ] {
            assert_eq!(id(ended(code.as_ref(), words, "n2", &known(state, ""))), expected, "{words} {state}");
        }
        assert_eq!(id(ended(None, "", "n2", &known("RUNNING", ""))), "slurm-step-by-hand");
    }

    #[test]
    fn an_ending_job_is_told_by_its_reason_where_its_state_hides_it() {
        assert_eq!(ending(&known("COMPLETING", "TimeLimit")).as_deref(), Some("job 7 reached its time limit"));
        assert_eq!(id(ended(None, "", "n2", &known("COMPLETING", "TimeLimit"))), "slurm-longer-time");
        assert!(is_unexplained("", &known("COMPLETING", "None")));
        assert!(!is_unexplained("", &known("COMPLETING", "TimeLimit")));
        assert!(!is_unexplained("*** STEP 7.0 ON n1 CANCELLED AT x ***", &known("COMPLETING", "None")));
        assert_eq!(ending(&known("CANCELLED", "None")).as_deref(), Some("job 7 was cancelled"));
        assert_eq!((ending(&known("RUNNING", "None")), ending(&known("", ""))), (None, None));
    }
}
