//! The allocation that this process runs in: its nodes from the environment, the switches above them from slurmctld.

use std::{
    collections::BTreeMap,
    io::Read,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use railgauge_model::plan::{allocation::Allocation, hostlist};

use super::scontrol::{self, field};

/// An environment that Slurm does not write.
#[derive(Debug, thiserror::Error)]
pub(super) enum Strange {
    /// A job without nodes.
    #[error("job {0} tells no nodes: SLURM_JOB_NODELIST is not set")]
    NoNodes(String),
    /// Nodes that are no list of hosts.
    #[error("SLURM_JOB_NODELIST of job {job} is no list of hosts: {list}")]
    NoList { job: String, list: String },
}

/// The job and its nodes; `None` outside an allocation.
///
/// # Errors
/// Its environment says something else than Slurm writes.
pub(super) fn nodes() -> Result<Option<(String, Vec<String>)>, Strange> {
    let Ok(job) = std::env::var("SLURM_JOB_ID") else { return Ok(None) };
    let Ok(list) = std::env::var("SLURM_JOB_NODELIST") else { return Err(Strange::NoNodes(job)) };
    match hostlist::expand(&list) {
        Ok(nodes) if !nodes.is_empty() => Ok(Some((job, nodes))),
        _ => Err(Strange::NoList { job, list }),
    }
}

/// The Slurm allocation that this process runs in, for plans that take their hosts from it; `None` where there is none.
pub fn allocation() -> Option<Allocation> {
    let (job, nodes) = nodes().ok().flatten()?;
    // The same names as in SLURM_TOPOLOGY_ADDR, which only tasks of steps have, each that of its own node.
    let switches = shown(&["show", "topology"]).map(|text| switches(&text)).unwrap_or_default();
    Some(Allocation { job, nodes, switches, pods: None })
}

/// GPUs of the job on each of its nodes, where the job asked for so many in all (`--gpus`): a step that does not say how many it wants
/// is refused there ("Invalid generic resource"), because it is taken to want all of them on its one node.
pub(super) fn gpus(job: &str) -> BTreeMap<String, u32> {
    if std::env::var_os("SLURM_GPUS").is_none() {
        return BTreeMap::new();
    }
    shown(&["--details", "show", "job", job]).map(|text| gpus_of(&text, job)).unwrap_or_default()
}

/// The GPUs in a job's record with details: `Nodes=n[1-2] CPU_IDs=0-7 Mem=0 GRES=gpu:h100:2(IDX:0,3)` for nodes that have the same.
fn gpus_of(text: &str, job: &str) -> BTreeMap<String, u32> {
    let Some(record) = scontrol::job(text.as_bytes(), job) else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    for part in record.split(" Nodes=").skip(1) {
        let nodes = part.split(' ').next().unwrap_or_default();
        let list = field(part, "GRES").unwrap_or_default();
        let counts = list.split("gpu:").skip(1).filter_map(|one| {
            // A type may stand before the number.
            one.split(['(', ',']).next()?.rsplit(':').next()?.parse::<u32>().ok()
        });
        let count = counts.sum();
        found.extend(hostlist::expand(nodes).into_iter().flatten().map(|node| (node, count)));
    }
    found
}

/// Time for slurmctld to answer: a plan must be read where it is down, too.
const LIMIT: Duration = Duration::from_secs(5);

/// What slurmctld says of this; `None` where it does not answer in time.
fn shown(what: &[&str]) -> Option<String> {
    let mut asked = Command::new("scontrol")
        .arg("--oneliner")
        .args(what)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdout = asked.stdout.take()?;
    let (read, told) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Nobody waits any more for what comes too late.
        let _ = stdout.read_to_end(&mut bytes).map(|_| read.send(bytes));
    });
    let told = told.recv_timeout(LIMIT);
    // It has ended by itself, or is ended now.
    let _ = asked.kill();
    let _ = asked.wait();
    told.ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
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
        // As Slurm 22.05 writes it, and with types and lists of indices as its manual has them.
        let text = "JobId=2 JobName=x NodeList=n[1-4] NumNodes=4 TresPerJob=gres:gpu:3 Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1) \
                    Nodes=n[2-3] CPU_IDs=0 Mem=0 GRES=gpu:h100:3(IDX:0,2-3),gpu:t4:1(IDX:4) Nodes=n4 CPU_IDs=0 Mem=0 GRES= Command=x\n";
        let counts = ["n1", "n2", "n3", "n4"].map(str::to_owned).into_iter().zip([2, 4, 4, 0]).collect();
        assert_eq!(gpus_of(text, "2"), counts);
        assert!(gpus_of(text, "3").is_empty());
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
