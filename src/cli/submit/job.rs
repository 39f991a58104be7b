//! A submitted job: submitted with sbatch, watched with scontrol, cancelled with scancel.

use std::{
    fmt::Display,
    io::Write,
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use railgauge_model::border::text;

use super::{Exit, Misuse, tell};

/// Pause between two questions about the job.
const PAUSE: Duration = Duration::from_secs(1);
/// How often slurmctld may give no answer in a row before the job is given up: it may be restarted meanwhile.
const UNANSWERED: u32 = 60;
/// Time for a run that was told to end.
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
    /// Submits a script.
    ///
    /// # Errors
    /// sbatch cannot be started, or refuses the job.
    pub(super) fn submit(script: &str) -> anyhow::Result<Self> {
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
            .spawn()
            .context("cannot start sbatch; Slurm's programs (Debian: slurm-client) must be installed here")?;
        if let Some(mut stdin) = child.stdin.take() {
            // An sbatch that does not read says why.
            let _ = stdin.write_all(script.as_bytes());
        }
        let Output { status, stdout, stderr } = child.wait_with_output().context("sbatch was lost")?;
        let words = stderr.split(|byte| *byte == b'\n').map(text::line).filter(|line| !line.is_empty());
        let words = words.collect::<Vec<_>>().join(" / ");
        if !status.success() {
            // What was asked for is wrong if Slurm knows no such thing; everything else may go well another time.
            let wrong = ["nvalid partition", "nvalid account", "nvalid node name", "nrecognized option", "nvalid qos"];
            if wrong.iter().any(|part| words.contains(part)) {
                return Err(Misuse(format!("Slurm refuses the job: {words}; check [launch.slurm] and [hosts]")).into());
            }
            return Err(anyhow!("Slurm refuses the job: {words}"));
        }
        if !words.is_empty() {
            tell(&words);
        }
        // `JOB` or `JOB;CLUSTER`.
        let number = text::line(&stdout).split(';').next().unwrap_or_default().trim().to_owned();
        match number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty() {
            true => Ok(Self(number)),
            false => Err(anyhow!("sbatch tells no job: {}", text::line(&stdout))),
        }
    }

    /// Its number.
    pub(super) fn number(&self) -> &str {
        &self.0
    }

    /// Waits until it has ended, and says what it waits for. An interrupt ends the run in the job, or takes the job out of the
    /// queue.
    ///
    /// # Errors
    /// slurmctld does not know it any more.
    pub(super) fn watch(&self, say: impl Fn(String)) -> anyhow::Result<Watched> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            // Where it cannot be caught, it ends this process and leaves the job.
            let _ = signal_hook::flag::register(signal, Arc::clone(&interrupted));
        }
        let (mut said, mut unanswered) = (String::new(), 0);
        let mut told_at: Option<Instant> = None;
        loop {
            let Some(line) = self.shown() else {
                unanswered += 1;
                if unanswered > UNANSWERED {
                    let number = &self.0;
                    return Err(anyhow!("Slurm says nothing of job {number} any more; see `squeue --jobs={number}`"));
                }
                if interrupted.load(Ordering::Relaxed) {
                    let number = &self.0;
                    self.cancel(&[]);
                    return Err(anyhow!(
                        "interrupted, and Slurm says nothing of job {number}: see whether it was cancelled with `squeue --jobs={number}`"
                    ));
                }
                sleep(PAUSE);
                continue;
            };
            unanswered = 0;
            let field = |name: &str| field(&line, name).unwrap_or_default().to_owned();
            let state = field("JobState");
            if !["PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "RESIZING", "STAGE_OUT", "SIGNALING"]
                .iter()
                .any(|under_way| state.starts_with(under_way))
            {
                return Ok(Watched { state, status: field("ExitCode") });
            }
            let now = match state.as_str() {
                "PENDING" => format!("job {} waits: {}", self.0, field("Reason")),
                state => format!("job {} is {state} on {}", self.0, field("NodeList")),
            };
            if now != said {
                say(now.clone());
                said = now;
            }
            if interrupted.load(Ordering::Relaxed) {
                match told_at {
                    // A run that is told to end writes its report; a job that waits has none.
                    None if state == "RUNNING" => self.cancel(&["--batch", "--signal=TERM"]),
                    Some(at) if at.elapsed() < GOODBYE => {}
                    _ => self.cancel(&[]),
                }
                told_at = told_at.or(Some(Instant::now()));
            }
            sleep(PAUSE);
        }
    }

    /// What slurmctld says of it, in one line.
    fn shown(&self) -> Option<String> {
        let output =
            Command::new("scontrol").args(["--oneliner", "show", "job", &self.0]).stdin(Stdio::null()).output();
        let line = output.ok().filter(|output| output.status.success()).map(|output| text::line(&output.stdout))?;
        field(&line, "JobState").is_some().then_some(line)
    }

    fn cancel(&self, how: &[&str]) {
        let said = Command::new("scancel").args(how).arg(&self.0).stdin(Stdio::null()).output();
        if let Err(error) = said {
            let number = &self.0;
            tell(format_args!("cannot start scancel: {error}; cancel the job with: scancel {number}"));
        }
    }
}

impl Watched {
    /// The exit code of the run; `None` where it has none.
    pub(super) fn exit(&self) -> Option<Exit> {
        if ["CANCELLED", "TIMEOUT", "DEADLINE", "PREEMPTED", "REVOKED"]
            .iter()
            .any(|state| self.state.starts_with(state))
        {
            return Some(Exit::Interrupted);
        }
        match self.status.split_once(':')? {
            (code, "0") => Exit::of_code(code.parse().ok()?),
            _ => None,
        }
    }

    /// Why the job ended, where it was not the run that ended it.
    pub(super) fn ending(&self) -> Option<String> {
        let (state, _) = self.state.split_once(' ').unwrap_or((&self.state, ""));
        Some(match state {
            "COMPLETED" | "FAILED" => return None,
            "CANCELLED" => "was cancelled".to_owned(),
            "TIMEOUT" => "reached its time limit".to_owned(),
            "DEADLINE" => "did not fit before its deadline".to_owned(),
            "PREEMPTED" => "was preempted by another job".to_owned(),
            "NODE_FAIL" => "was ended by Slurm because one of its nodes failed".to_owned(),
            "BOOT_FAIL" => "was ended by Slurm because one of its nodes did not boot".to_owned(),
            "OUT_OF_MEMORY" => "was ended because it was out of memory".to_owned(),
            other => format!("ended as {other}"),
        })
    }

    /// How it ended, in Slurm's words.
    pub(super) fn status(&self) -> impl Display {
        format!("{}, ExitCode={}", self.state, self.status)
    }
}

/// `Name=value` in the one line of scontrol.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
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
            ("NODE_FAIL", "0:9", None, true),
        ] {
            let watched = ended(state, status);
            assert_eq!(watched.exit(), exit, "{state} {status}");
            assert_eq!(watched.ending().is_some(), is_slurms, "{state} {status}");
        }
    }
}
