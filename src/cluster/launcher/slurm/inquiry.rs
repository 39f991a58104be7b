//! What slurmctld says of the job and of a node.

use std::{process::Stdio, time::Duration};

use railgauge_model::border::text;
use tokio::{process::Command, time::timeout};

/// Time for slurmctld to answer; it may be busy, or gone.
const LIMIT: Duration = Duration::from_secs(2);

/// The job and one of its nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The job's number.
    pub job: String,
    /// The node's name.
    pub node: String,
    /// State of the job, such as `RUNNING` or `CANCELLED`; empty where slurmctld does not say.
    pub job_state: String,
    /// Slurm's reason for that state, such as `TimeLimit`; empty where slurmctld does not say.
    pub job_reason: String,
    /// States of the node, such as `ALLOCATED+DRAIN` or `DOWN*`; empty where slurmctld does not say.
    pub node_state: String,
    /// Why the node is drained or down, in the administrator's words.
    pub node_reason: String,
}

/// Asks for the job, and at once for a node.
pub(super) async fn ask(job: &str, node: Option<&str>) -> Known {
    let of_node = async {
        match node {
            Some(node) => show("node", node).await,
            None => String::new(),
        }
    };
    let (of_job, of_node) = tokio::join!(show("job", job), of_node);
    Known {
        job: job.to_owned(),
        node: node.unwrap_or_default().to_owned(),
        job_state: field(&of_job, "JobState").unwrap_or_default(),
        job_reason: field(&of_job, "Reason").unwrap_or_default(),
        node_state: field(&of_node, "State").unwrap_or_default(),
        node_reason: reason(&of_node),
    }
}

/// `scontrol --oneliner show …`; empty where nobody answers in time.
async fn show(kind: &str, name: &str) -> String {
    let asked = Command::new("scontrol")
        .args(["--oneliner", "show", kind, name])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(LIMIT, asked).await {
        Ok(Ok(output)) => text::line(&output.stdout),
        _ => String::new(),
    }
}

/// `Name=value` in the one line of scontrol.
pub(super) fn field(line: &str, name: &str) -> Option<String> {
    let value = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.to_owned())
}

/// The reason of a node: words up to the time in brackets that slurmctld adds.
fn reason(line: &str) -> String {
    let Some((_, rest)) = line.split_once(" Reason=") else { return String::new() };
    rest.split(" [").next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_from_one_line() {
        let job = "JobId=7 JobName=interactive JobState=CANCELLED Reason=None ExitCode=0:15";
        assert_eq!(field(job, "JobState").as_deref(), Some("CANCELLED"));
        assert_eq!(field(job, "State"), None);
        let node =
            "NodeName=n2 State=MIXED+DRAIN ThreadsPerCore=1 Reason=bad cable in rail 3 [root@2026-11-25T01:39:02]";
        assert_eq!(field(node, "State").as_deref(), Some("MIXED+DRAIN"));
        assert_eq!(reason(node), "bad cable in rail 3");
        assert_eq!(reason("NodeName=n2 State=IDLE"), "");
    }
}
