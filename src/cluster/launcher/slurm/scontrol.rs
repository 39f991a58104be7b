//! The output of `scontrol --oneliner`: a record per line, with words `Name=value`.

use railgauge_model::border::text;

pub(crate) fn records(output: &[u8]) -> impl Iterator<Item = String> {
    output.split(|byte| *byte == b'\n').map(text::line).filter(|line| !line.is_empty())
}

/// The record of one job. For a job array or a heterogeneous job scontrol prints those of all its tasks or parts, each with a number of its
/// own, whichever was requested.
pub(crate) fn job(output: &[u8], number: &str) -> Option<String> {
    records(output).find(|record| field(record, "JobId") == Some(number))
}

pub(crate) fn field<'r>(record: &'r str, name: &str) -> Option<&'r str> {
    record.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// How a job in this state has ended, and whether more time would have helped; `None` for one that has not.
pub(crate) fn ended(state: &str) -> Option<(&'static str, bool)> {
    ENDS.iter().find(|(known, ..)| state.contains(known)).map(|(_, what, longer)| (*what, *longer))
}

const ENDS: [(&str, &str, bool); 12] = [
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

/// Whether scontrol failed because slurmctld has forgotten the job (`MinJobAge`, default 5 minutes). The words are those of Slurm 22.05,
/// ESLURM_INVALID_JOB_ID in slurm_errno.c.
pub(crate) fn is_forgotten(errors: &[u8]) -> bool {
    String::from_utf8_lossy(errors).to_lowercase().contains("invalid job id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_from_one_line() {
        let record = "JobId=7 JobName=interactive JobState=CANCELLED Reason=None ExitCode=0:15";
        assert_eq!(field(record, "JobState"), Some("CANCELLED"));
        assert_eq!(field(record, "State"), None);
    }

    #[test]
    fn of_an_array_or_a_heterogeneous_job_only_the_record_asked_for_counts() {
        // As Slurm 22.05 prints an array of three: its last task has the number of the array.
        let array = b"JobId=12 ArrayJobId=12 ArrayTaskId=3 JobName=a JobState=PENDING\n\
                      JobId=14 ArrayJobId=12 ArrayTaskId=2 JobName=a JobState=FAILED\n\
                      JobId=13 ArrayJobId=12 ArrayTaskId=1 JobName=a JobState=RUNNING\n";
        for (number, state) in [("12", Some("PENDING")), ("13", Some("RUNNING")), ("14", Some("FAILED")), ("1", None)] {
            let record = job(array, number);
            assert_eq!(record.as_deref().and_then(|record| field(record, "JobState")), state, "{number}");
        }
        let heterogeneous = b"JobId=21 HetJobId=20 HetJobOffset=1 JobState=COMPLETED\n\
                              JobId=20 HetJobId=20 HetJobOffset=0 JobState=RUNNING\n";
        assert_eq!(job(heterogeneous, "20").as_deref().and_then(|record| field(record, "JobState")), Some("RUNNING"));
    }
}
