//! The allocation of this process: its nodes from the environment, the switches above them from slurmctld.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use railgauge_model::{
    border::text,
    plan::{allocation::Allocation, hostlist},
    topology::{Unread, slurm, told::Told},
};

use super::scontrol::{self, field};

#[derive(Debug, thiserror::Error)]
pub(super) enum Strange {
    #[error("job {0} names no nodes: SLURM_JOB_NODELIST is not set")]
    NoNodes(String),
    #[error("SLURM_JOB_NODELIST of job {job} is not a list of hosts: {list}")]
    NoList { job: String, list: String },
}

pub(super) fn nodes() -> Result<Option<(String, Vec<String>)>, Strange> {
    let Ok(job) = std::env::var("SLURM_JOB_ID") else { return Ok(None) };
    let Ok(list) = std::env::var("SLURM_JOB_NODELIST") else { return Err(Strange::NoNodes(job)) };
    match hostlist::expand(&list) {
        Ok(nodes) if !nodes.is_empty() => Ok(Some((job, nodes))),
        _ => Err(Strange::NoList { job, list }),
    }
}

pub fn allocation() -> Option<Allocation> {
    let (job, nodes) = nodes().ok().flatten()?;
    // All nodes at once; SLURM_TOPOLOGY_ADDR exists only in tasks of steps, with their own node.
    let answer = ask(&["show", "topology"]);
    let switches = answer.as_ref().map(|answer| switches(&answer.output)).unwrap_or_default();
    let (topology, unread) = match topology(answer) {
        Ok(topology) => (topology, None),
        Err(why) => (None, Some(why.to_string())),
    };
    Some(Allocation { job, nodes, switches, topology, unread, pods: None })
}

/// GPUs of the job on each of its nodes, if the job requested a total (`--gpus`): a step without a number is then refused ("Invalid generic
/// resource"), because it is assumed to want all of them on its one node.
pub(super) fn gpus(job: &str) -> BTreeMap<String, u32> {
    if std::env::var_os("SLURM_GPUS").is_none() {
        return BTreeMap::new();
    }
    let answer = ask(&["--details", "show", "job", job]);
    answer.map(|answer| gpus_of(&answer.output, job)).unwrap_or_default()
}

/// From a job's record with details: `Nodes=n[1-2] CPU_IDs=0-7 Mem=0 GRES=gpu:h100:2(IDX:0,3)` for nodes that have the same.
fn gpus_of(text: &str, job: &str) -> BTreeMap<String, u32> {
    let Some(record) = scontrol::job(text.as_bytes(), job) else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    for part in record.split(" Nodes=").skip(1) {
        let nodes = part.split(' ').next().unwrap_or_default();
        let list = field(part, "GRES").unwrap_or_default();
        let counts = list.split("gpu:").skip(1).filter_map(|one| {
            // A type may come before the number.
            one.split(['(', ',']).next()?.rsplit(':').next()?.parse::<u32>().ok()
        });
        let count = counts.sum();
        found.extend(hostlist::expand(nodes).into_iter().flatten().map(|node| (node, count)));
    }
    found
}

/// Seconds for slurmctld to answer: a plan must also be readable where it is down.
const LIMIT: &str = "5";

struct Answer {
    output: String,
    errors: String,
}

#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("scontrol cannot be started: {0}")]
    NotStarted(#[from] std::io::Error),
    #[error("scontrol did not answer within {LIMIT} s")]
    Late,
    #[error("{0}")]
    Complaint(String),
    #[error("scontrol show topology: {0}")]
    Unread(#[from] Unread),
}

/// With one line per record, in the C locale.
fn ask(what: &[&str]) -> Result<Answer, Unanswered> {
    let mut asked = Command::new("timeout");
    let output =
        asked.args([LIMIT, "scontrol", "--oneliner"]).args(what).env("LC_ALL", "C").stdin(Stdio::null()).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        // timeout(1), EXIT STATUS.
        Some(124) => Err(Unanswered::Late),
        _ => Ok(Answer { output: text(&output.stdout), errors: text(&output.stderr) }),
    }
}

fn topology(answer: Result<Answer, Unanswered>) -> Result<Option<Told>, Unanswered> {
    let Answer { output, errors } = answer?;
    if !output.trim().is_empty() {
        return Ok(slurm::running(&output)?);
    }
    // The words of Slurm 22.05 without a topology plugin; its exit code is 0 with and without a slurmctld.
    match errors.lines().find(|line| !line.trim().is_empty()) {
        Some(line) if !errors.contains("No topology information") => Err(Unanswered::Complaint(text::printable(line))),
        _ => Ok(None),
    }
}

/// Switches and blocks with all nodes below them, of lines like `SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]`.
fn switches(text: &str) -> BTreeMap<String, Vec<String>> {
    let one = |line: &str| {
        let name = field(line, "SwitchName").or_else(|| field(line, "BlockName"))?;
        Some((name.to_owned(), hostlist::expand(field(line, "Nodes")?).ok()?))
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_on_each_node() {
        // As Slurm 22.05 writes it, and with types and lists of indices as in its manual.
        let text = "JobId=2 JobName=x NodeList=n[1-4] NumNodes=4 TresPerJob=gres:gpu:3 Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1) \
                    Nodes=n[2-3] CPU_IDs=0 Mem=0 GRES=gpu:h100:3(IDX:0,2-3),gpu:t4:1(IDX:4) Nodes=n4 CPU_IDs=0 Mem=0 GRES= Command=x\n";
        let counts = ["n1", "n2", "n3", "n4"].map(str::to_owned).into_iter().zip([2, 4, 4, 0]).collect();
        assert_eq!(gpus_of(text, "2"), counts);
        assert!(gpus_of(text, "3").is_empty());
    }

    #[test]
    fn a_topology_is_known_or_there_is_none_or_it_is_said_why_not() {
        let told = |output: &str, errors: &str| {
            topology(Ok(Answer { output: output.to_owned(), errors: errors.to_owned() })).map_err(|why| why.to_string())
        };
        let tree = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n1,n2\nSwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=leaf1\n";
        assert_eq!(told(tree, "scontrol: a warning\n").unwrap().unwrap().cables.len(), 3);
        assert_eq!(told("", "scontrol: error: No topology information available\n"), Ok(None));
        assert_eq!(told("", ""), Ok(None));
        let down = "slurm_load_topo error: Unable to contact slurm controller (connect failure)";
        assert_eq!(told("", down), Err(down.to_owned()));
        assert!(told("nonsense\n", "").is_err());
        assert!(topology(Err(Unanswered::Late)).unwrap_err().to_string().contains("5 s"));
    }

    #[test]
    fn switches_and_blocks_have_their_nodes() {
        let text = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2] \nSwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] \
                    Switches=leaf[1-2] \nBlockName=b1 BlockIndex=0 Nodes=n[1-3] BlockSize=3\nNo topology\n";
        let told = switches(text);
        assert_eq!(told["leaf1"], ["n1", "n2"]);
        assert_eq!(told["spine"].len(), 4);
        assert_eq!(told["b1"].len(), 3);
        assert_eq!(told.len(), 3);
    }
}
