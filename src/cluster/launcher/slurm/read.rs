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

use super::inquiry::field;

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
    let switches = topology().map(|text| switches(&text)).unwrap_or_default();
    Some(Allocation { job, nodes, switches, pods: None })
}

/// Time for slurmctld to tell the topology: a plan must be read where it is down, too.
const LIMIT: Duration = Duration::from_secs(5);

/// What slurmctld says of the topology; `None` where it does not answer in time.
fn topology() -> Option<String> {
    let mut asked = Command::new("scontrol")
        .args(["--oneliner", "show", "topology"])
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
        Some((name, hostlist::expand(&field(line, "Nodes")?).ok()?))
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
