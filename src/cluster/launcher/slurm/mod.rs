//! Steps of the Slurm allocation that railgauge runs in: one `srun` for each process on a node, and its streams.
//!
//! | file | holds |
//! | --- | --- |
//! | `inquiry` | the state of the job, queried once for all hosts |
//! | `scontrol` | the output of `scontrol` |
//! | `explain` | what that and srun's output mean |
//! | `read` | the allocation: its nodes and the switches above them |

mod explain;
mod inquiry;
mod read;
pub(crate) mod scontrol;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    future::ready,
    sync::{Arc, OnceLock},
    time::Duration,
};

use railgauge_model::plan::model::{Host, Launch, Slurm};
use railgauge_wire::{
    Kind, Stage,
    remedy::{self, Remedy},
};

use super::{Connection, Launcher, Pending};
use crate::cluster::{Behind, Pipe, ProcessEnd, Trouble, child::child_without};

use inquiry::{Desk, Known};

pub use read::allocation;

/// Longest silence of an agent that is asked. srun does not notice that a slurmstepd was killed. The same as for ssh.
const SILENCE: Duration = Duration::from_secs(15);
/// Shown by `squeue --steps`.
const STEP: &str = "railgauge";

/// Options of every step.
///
/// `--unbuffered`: srun buffers lines, and frames are not lines. `--overlap`: several steps share a node and all that the job has of it.
/// `--mpi=none`: no PMI server, which can hang. `--cpu-bind=none`: task/affinity would put the one task on one core. `--mem=0`: what the
/// job has of the node, where a step would take an equal part for each CPU. One task gets all GPUs of the job on its node, and is bound to
/// none of them. `--cpus-per-task` would imply `--exact`, and less than the job has.
const OPTIONS: &[&str] =
    &["--unbuffered", "--overlap", "--mpi=none", "--cpu-bind=none", "--mem=0", "--nodes=1", "--ntasks=1"];

/// Variables that srun needs to find Slurm and the job. All others of Slurm would be options for a step, such as those of a job with
/// `--gpus-per-task=1`, and must not decide what an agent sees.
const NEEDED: &[&str] = &[
    "SLURM_CONF",
    "SLURM_CONF_SERVER",
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "SLURM_JOB_NODELIST",
    "SLURM_CLUSTERS",
    "SLURM_CLUSTER_NAME",
    "SLURM_WORKING_CLUSTER",
    "SLURM_JWT",
];

struct Allocated {
    job: String,
    nodes: BTreeSet<String>,
    /// GPUs of the job on its nodes, where a step must say how many it wants.
    gpus: BTreeMap<String, u32>,
    desk: Arc<Desk>,
}

struct Node {
    name: String,
    gpus: Option<u32>,
    desk: Arc<Desk>,
}

static IN_USE: OnceLock<Arc<Desk>> = OnceLock::new();
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Why the allocation of the agents has ended or is ending; `None` without one, or while it runs. For a process that was asked to end:
/// salloc may pass the end of its job on as a signal, before the first step has ended.
pub async fn ending() -> Option<String> {
    let desk = IN_USE.get()?;
    explain::ending(&settled("", 10, desk).await)
}

/// Queries slurmctld at most `most` times until it or the step's output gives a reason.
async fn settled(words: &str, most: u32, desk: &Desk) -> Known {
    let mut known = desk.known().await;
    for _ in 0..most {
        if !explain::is_unexplained(words, &known) {
            break;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
        known = desk.known().await;
    }
    known
}

pub(super) fn prepare(_slurm: &Slurm, _launch: &Launch) -> Result<Box<dyn Launcher>, Trouble> {
    let nowhere = |cause: String| {
        Trouble::lasting(Stage::Connect, Kind::Configuration, cause).remedy(remedy::SLURM_NO_ALLOCATION)
    };
    let Some((job, nodes)) = read::nodes().map_err(|strange| nowhere(strange.to_string()))? else {
        return Err(nowhere("this is no Slurm allocation: SLURM_JOB_ID is not set".to_owned()));
    };
    // A process runs in at most one allocation.
    let desk = Arc::clone(IN_USE.get_or_init(|| Arc::new(Desk::new(&job))));
    let gpus = read::gpus(&job);
    Ok(Box::new(Allocated { job, nodes: nodes.into_iter().collect(), gpus, desk }))
}

impl Launcher for Allocated {
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>> {
        let opened = if self.nodes.contains(&host.address) {
            let (name, gpus) = (host.address.clone(), self.gpus.get(&host.address).copied());
            let node: Box<dyn Connection> = Box::new(Node { name, gpus, desk: Arc::clone(&self.desk) });
            Ok(node)
        } else {
            Err(explain::outside(&self.job, &host.address))
        };
        Box::pin(ready(opened))
    }
}

impl Node {
    fn by_hand(&self) -> Remedy {
        remedy::SLURM_STEP_BY_HAND.with([("node", self.name.as_str())])
    }
}

impl Connection for Node {
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>> {
        let own = [format!("--job-name={STEP}"), format!("--nodelist={}", self.name)];
        let srun = ["srun"].iter().chain(OPTIONS).map(|word| (*word).to_owned());
        let gpus = self.gpus.map(|gpus| format!("--gpus={gpus}"));
        let words: Vec<String> = srun.chain(own).chain(gpus).chain(words.iter().cloned()).collect();
        let started = child_without(&words, &BTreeMap::new(), &shaping(), self.by_hand()).map(|pipe| {
            let (desk, node) = (Arc::clone(&self.desk), self.name.clone());
            let explain = move |end: Option<ProcessEnd>, words: String| -> Pending<'static, Option<Trouble>> {
                Box::pin(async move {
                    let known = settled(&words, 4, &desk).await;
                    explain::ended(end.as_ref(), &words, &node, &known)
                })
            };
            Pipe { way: Behind { silence: Some(SILENCE), explain: Some(Box::new(explain)) }, ..pipe }
        });
        Box::pin(ready(started))
    }

    /// Homes and often railgauge's installation are shared by all nodes.
    fn may_share_files(&self) -> bool {
        true
    }

    fn explain(&self, trouble: Trouble, end: &ProcessEnd, _words: &str) -> Trouble {
        match end {
            ProcessEnd::Code(127) => trouble.remedy_or(remedy::INSTALL_COREUTILS),
            _ => trouble.remedy_or(self.by_hand()),
        }
    }
}

fn shaping() -> Vec<OsString> {
    let is_shaping = |name: &OsString| {
        name.to_str().is_some_and(|name| {
            let is_option = name.starts_with("SRUN_") || name.starts_with("SLURM_") && !NEEDED.contains(&name);
            is_option && !name.starts_with("SLURM_SACK")
        })
    };
    std::env::vars_os().map(|(name, _)| name).filter(is_shaping).collect()
}
