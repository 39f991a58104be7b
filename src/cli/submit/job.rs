//! A submitted job: submitted with sbatch, watched with scontrol, cancelled with scancel.

use std::{
    fmt::Display,
    io::{Read, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use railgauge_model::border::text;
use rustix::process::{Pid, Signal, kill_process_group};

use super::interrupts::Interrupts;
use crate::{
    cli::{Exit, Misuse, tell},
    cluster::scontrol::{self, field},
};

/// Pause between two questions about the job.
const PAUSE: Duration = Duration::from_secs(1);
/// How often slurmctld may give no answer in a row before the job is given up: it may be restarted meanwhile.
const UNANSWERED: u32 = 60;
/// Pause between two looks whether sbatch has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Reasons for which a job never starts unless its request or the limits of the cluster change, and parts of such reasons (squeue(1), "JOB
/// REASON CODES"). Nodes that are down or drained have others.
const NEVER: &[&str] = &[
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "BadConstraints",
    "DependencyNeverSatisfied",
    "InvalidAccount",
    "InvalidQOS",
    "NotAllowed",
    "ReservationDeleted",
    "PerJob",
    "PerNode",
];
/// Time for a run that was asked to end.
const GOODBYE: Duration = Duration::from_secs(30);

/// A submitted job.
pub(super) struct Job(String);

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Watched {
    state: String,
    /// Exit code and signal of the batch script, as Slurm writes them: `130:0`.
    status: String,
}

impl Job {
    /// Submits a script; `None` if it was interrupted before there was a job.
    ///
    /// # Errors
    /// sbatch cannot be started, or refuses the job.
    pub(super) fn submit(script: &str, interrupts: &Interrupts) -> anyhow::Result<Option<Self>> {
        let mut sbatch = Command::new("sbatch");
        // sbatch takes these before the lines of the script, so that they would replace what the plan says.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SBATCH_")) {
            sbatch.env_remove(name);
        }
        let mut child = sbatch
            .arg("--parsable")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C on the terminal is for this process, which then knows whether there is a job.
            .process_group(0)
            .spawn()
            .context("cannot start sbatch; Slurm's programs (Debian: slurm-client) must be installed here")?;
        if let Some(mut stdin) = child.stdin.take() {
            // An sbatch that does not read says why.
            let _ = stdin.write_all(script.as_bytes());
        }
        let is_over = ended(&mut child, interrupts)?;
        let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
        let words = stderr.split(|byte| *byte == b'\n').map(text::line).filter(|line| !line.is_empty());
        let words = words.collect::<Vec<_>>().join(" / ");
        // `JOB` or `JOB;CLUSTER`. An sbatch that was ended may have said it.
        let number = text::line(&stdout).split(';').next().unwrap_or_default().trim().to_owned();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        match is_over {
            None if !is_number => return Ok(None),
            Some(false) => {
                // What was asked for is wrong if Slurm knows no such thing; everything else may go well another time.
                let wrong =
                    ["nvalid partition", "nvalid account", "nvalid node name", "nrecognized option", "nvalid qos"];
                if wrong.iter().any(|part| words.contains(part)) {
                    let cause = format!("Slurm refuses the job: {words}; check [launch.slurm] and [hosts]");
                    return Err(Misuse(cause).into());
                }
                return Err(anyhow!("Slurm refuses the job: {words}"));
            }
            _ => {}
        }
        if !words.is_empty() {
            tell(&words);
        }
        match is_number {
            true => Ok(Some(Self(number))),
            false => Err(anyhow!("sbatch did not name a job: {}", text::line(&stdout))),
        }
    }

    /// Its number.
    pub(super) fn number(&self) -> &str {
        &self.0
    }

    /// Waits until it has ended, and says what it waits for. An interrupt ends the run in the job, or takes the job out of the
    /// queue. `None` if slurmctld has forgotten the job.
    ///
    /// # Errors
    /// slurmctld does not answer any more, or the job can never start: it is then taken out of the queue.
    pub(super) fn watch(&self, interrupts: &Interrupts, say: impl Fn(String)) -> anyhow::Result<Option<Watched>> {
        let (mut said, mut unanswered) = (String::new(), 0);
        let mut told_at: Option<Instant> = None;
        loop {
            let line = match self.shown() {
                Shown::Record(line) => line,
                Shown::Forgotten => return Ok(None),
                Shown::Nothing => {
                    unanswered += 1;
                    if unanswered > UNANSWERED {
                        let number = &self.0;
                        return Err(anyhow!(
                            "Slurm says nothing of job {number} any more; see `squeue --jobs={number}`"
                        ));
                    }
                    if interrupts.is_heard() {
                        let number = &self.0;
                        self.cancel(&[]);
                        return Err(anyhow!(
                            "interrupted, and Slurm says nothing of job {number}: see whether it was cancelled with `squeue --jobs={number}`"
                        ));
                    }
                    sleep(PAUSE);
                    continue;
                }
            };
            unanswered = 0;
            let field = |name: &str| field(&line, name).unwrap_or_default().to_owned();
            let state = field("JobState");
            if !is_under_way(&state) {
                return Ok(Some(Watched { state, status: field("ExitCode") }));
            }
            let reason = field("Reason");
            let now = match state.as_str() {
                "PENDING" => format!("job {} waits: {reason}", self.0),
                state => format!("job {} is {state} on {}", self.0, field("NodeList")),
            };
            if now != said {
                let named = NEVER.iter().any(|never| reason.contains(never)).then_some(reason);
                // Slurm's word for it may come first or later, and says less.
                if let Some(why) = lacking(&line).or(named).filter(|_| state == "PENDING") {
                    self.cancel(&[]);
                    return Err(anyhow!("job {} can never start, and was cancelled: {why}", self.0));
                }
                say(now.clone());
                said = now;
            }
            if interrupts.is_heard() {
                match told_at {
                    // A run that is asked to end writes its report; a job that waits has none.
                    None if state == "RUNNING" => self.cancel(&["--batch", "--signal=TERM"]),
                    Some(at) if at.elapsed() < GOODBYE => {}
                    _ => self.cancel(&[]),
                }
                told_at = told_at.or(Some(Instant::now()));
            }
            sleep(PAUSE);
        }
    }

    /// What slurmctld says of it.
    fn shown(&self) -> Shown {
        let asked = Command::new("scontrol").args(["--oneliner", "show", "job", &self.0]).stdin(Stdio::null()).output();
        let Ok(output) = asked else { return Shown::Nothing };
        match scontrol::job(&output.stdout, &self.0).filter(|record| field(record, "JobState").is_some()) {
            Some(record) => Shown::Record(record),
            None if scontrol::is_forgotten(&output.stderr) => Shown::Forgotten,
            None => Shown::Nothing,
        }
    }

    fn cancel(&self, how: &[&str]) {
        let said = Command::new("scancel").args(how).arg(&self.0).stdin(Stdio::null()).output();
        if let Err(error) = said {
            let number = &self.0;
            tell(format_args!("cannot start scancel: {error}; cancel the job with: scancel {number}"));
        }
    }
}

/// Why a job asks for more nodes than any of its partitions has: Slurm queues it all the same, for a reason that may pass.
fn lacking(job: &str) -> Option<String> {
    let asked: u64 = field(job, "NumNodes")?.split('-').next()?.parse().ok()?;
    let partitions = field(job, "Partition")?;
    let nodes = |name: &str| -> Option<u64> {
        let mut asked = Command::new("scontrol");
        let output = asked.args(["--oneliner", "show", "partition", name]).stdin(Stdio::null()).output().ok()?;
        field(&text::line(&output.stdout), "TotalNodes")?.parse().ok()
    };
    let most = partitions.split(',').map(nodes).collect::<Option<Vec<u64>>>()?.into_iter().max()?;
    (asked > most).then(|| format!("it asks for {asked} nodes, and partition {partitions} has {most}"))
}

/// What slurmctld says of a job.
enum Shown {
    /// Its record, in one line.
    Record(String),
    /// It does not know it any more.
    Forgotten,
    /// It does not answer.
    Nothing,
}

/// Whether a job in this state has not ended.
fn is_under_way(state: &str) -> bool {
    ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "RESIZING", "STAGE_OUT", "SIGNALING"]
        .iter()
        .any(|under_way| state.starts_with(under_way))
}

/// Waits for sbatch; whether it succeeded, or `None` if it was ended because somebody interrupted.
fn ended(child: &mut Child, interrupts: &Interrupts) -> anyhow::Result<Option<bool>> {
    let lost = "sbatch was lost";
    loop {
        if let Some(status) = child.try_wait().context(lost)? {
            return Ok(Some(status.success()));
        }
        if interrupts.is_heard() {
            // It may have ended in this moment; `wait` shows. What it started holds its streams open, and goes with it.
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let status = child.wait().context(lost)?;
            return Ok(status.success().then_some(true));
        }
        sleep(LOOK);
    }
}

/// What a program that has ended left in a stream.
fn read(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A stream that breaks off is as short as it is.
    let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
    bytes
}

impl Watched {
    /// The exit code of the run; `None` where it has none, such as one that its deadline kept from starting.
    pub(super) fn exit(&self, has_begun: bool) -> Option<Exit> {
        let is = |states: &[&str]| states.iter().any(|state| self.state.starts_with(state));
        if is(&["CANCELLED", "TIMEOUT", "PREEMPTED", "REVOKED"]) || is(&["DEADLINE"]) && has_begun {
            return Some(Exit::Interrupted);
        }
        match self.status.split_once(':')? {
            (code, "0") => Exit::of_code(code.parse().ok()?),
            _ => None,
        }
    }

    /// Why the job ended, where it was not the run that ended it.
    pub(super) fn ending(&self) -> Option<String> {
        let of_run = ["COMPLETED", "FAILED"].contains(&self.state.as_str());
        let words =
            scontrol::ended(&self.state).map_or_else(|| format!("ended as {}", self.state), |(what, _)| what.into());
        (!of_run).then_some(words)
    }

    /// How it ended, in Slurm's words.
    pub(super) fn status(&self) -> impl Display {
        format!("{}, ExitCode={}", self.state, self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_decides_unless_slurm_ended_it() {
        let ended = |state: &str, status: &str| Watched { state: state.into(), status: status.into() };
        for (state, status, exit, is_slurms) in [
            ("COMPLETED", "0:0", Some(Exit::Passed), false),
            ("FAILED", "1:0", Some(Exit::Failed), false),
            ("FAILED", "130:0", Some(Exit::Interrupted), false),
            ("FAILED", "127:0", None, false),
            ("CANCELLED", "0:15", Some(Exit::Interrupted), true),
            ("TIMEOUT", "0:1", Some(Exit::Interrupted), true),
            ("DEADLINE", "0:1", Some(Exit::Interrupted), true),
            ("NODE_FAIL", "0:9", None, true),
        ] {
            let watched = ended(state, status);
            assert_eq!(watched.exit(true), exit, "{state} {status}");
            assert_eq!(watched.ending().is_some(), is_slurms, "{state} {status}");
        }
        assert_eq!(ended("DEADLINE", "0:1").exit(false), None);
    }
}
