//! A command of the plan that runs alongside a measurement.
//!
//! ```text
//! agent ─ pipe ─▶ tender (railgauge-agent --tend, a process group of its own) ─▶ command (its own group)
//! ```
//! The agent and the controller may be killed at any moment. So a small process tends the command: when the agent's pipe closes, it ends
//! the command's whole group, and its processes in other groups.

use std::{
    fs,
    io::{self, Read, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, ChildStderr, Command, ExitCode, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use railgauge_wire::{Answer, EarlyEnd, Errand, Failure, Kind, Stage, frame, remedy};
use serde::{Deserialize, Serialize};

use crate::{
    system::{
        process::{self, Group},
        wait::{self, GONE, HANG_UP, READABLE},
    },
    worker::{self, Worker},
};

/// Limit for the tender to start the command.
const STARTED: Duration = Duration::from_secs(5);
const MORE: Duration = Duration::from_secs(1);

/// At most one command runs on a host. A separate thread handles the requests in order.
#[derive(Default)]
pub(crate) struct Errands(OnceLock<Option<Worker<Option<Tended>>>>);

impl Errands {
    pub(crate) fn begin(&self, words: Vec<String>, reply: impl FnOnce(Result<Answer, Failure>) + Send + 'static) {
        self.pass(reply, move |running| {
            if running.is_some() {
                return Err(refused("a background command runs already".to_owned()));
            }
            *running = Some(Tended::start(&words)?);
            Ok(Answer::Done)
        });
    }

    /// Returns whether it ran until now.
    pub(crate) fn end(&self, reply: impl FnOnce(Result<Answer, Failure>) + Send + 'static) {
        self.pass(reply, |running| match running.take() {
            Some(tended) => tended.end().map(|errand| Answer::Errand(Box::new(errand))),
            None => Err(refused("no background command runs".to_owned())),
        });
    }

    fn pass(
        &self,
        reply: impl FnOnce(Result<Answer, Failure>) + Send + 'static,
        work: impl FnOnce(&mut Option<Tended>) -> Result<Answer, Failure> + Send + 'static,
    ) {
        let start = || Worker::start("errand", || Ok(None)).ok().map(|(worker, _)| worker);
        match self.0.get_or_init(start) {
            Some(worker) => {
                worker.pass(move |running| reply(worker::with(running, Stage::Measure, work).0));
            }
            None => reply(Err(refused("no thread could be started for it".to_owned()))),
        }
    }
}

/// Dropping it closes the pipes, which ends the command.
struct Tended {
    tender: Child,
}

impl Tended {
    fn start(words: &[String]) -> Result<Self, Failure> {
        // The file may be gone; the running image is not.
        let tender = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A process that outlives the agent must not keep the connection to its host open.
            .stderr(Stdio::null())
            // Killing the agent's group must leave it time to end the command.
            .process_group(0)
            .spawn()
            .map_err(|error| refused(format!("its tender cannot be started: {error}")))?;
        let mut tended = Self { tender };
        match tended.hear(STARTED)? {
            Told::Started => Ok(tended),
            Told::NotStarted(why) => {
                let _ = tended.tender.wait();
                let cause = format!("the background command cannot be started: {why}");
                Err(Failure::new(Stage::Measure, Kind::Configuration, cause).remedy(remedy::RUN_BESIDE_BY_HAND))
            }
            Told::Over(_) => Err(refused("its tender ended before it began".to_owned())),
        }
    }

    fn hear(&mut self, limit: Duration) -> Result<Told, Failure> {
        let silent = |why: String| refused(format!("its tender does not answer: {why}"));
        let until = Instant::now() + limit;
        let Some(from) = &mut self.tender.stdout else { return Err(silent("no pipe".to_owned())) };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match wait::wait([(std::os::fd::AsFd::as_fd(from), READABLE)], Some(left)) {
                Ok([0]) if left.is_zero() => return Err(silent(format!("for {} s", limit.as_secs_f64()))),
                Ok([0]) => {}
                Ok(_) => break,
                Err(error) => return Err(silent(error.to_string())),
            }
        }
        match frame::read(from) {
            Ok(Some(told)) => Ok(told),
            Ok(None) => Err(silent("it ended".to_owned())),
            Err(error) => Err(silent(error.to_string())),
        }
    }

    fn end(mut self) -> Result<Errand, Failure> {
        // The tender reacts to the closed pipe.
        self.tender.stdin = None;
        let told = self.hear(GRACE + LEFT + MORE)?;
        let _ = self.tender.wait();
        match told {
            Told::Over(errand) => Ok(errand),
            Told::Started | Told::NotStarted(_) => Err(refused("its tender says what it cannot".to_owned())),
        }
    }
}

fn refused(cause: String) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, format!("the background command: {cause}"))
}

/// The agent's argument for a tender; the command's words follow.
pub const ARGUMENT: &str = "--tend";
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Time to wait for killed processes.
const LEFT: Duration = Duration::from_secs(2);
/// Time for processes outside its group, however long its first process took.
const STRAYS: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(20);
const SAID: Duration = Duration::from_millis(100);
/// Last bytes of its errors that are kept.
const KEPT: usize = 1024;

#[derive(Debug, Serialize, Deserialize)]
enum Told {
    Started,
    NotStarted(String),
    Over(Errand),
}

pub fn run(words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    process::own_group();
    let mut words = words;
    let Some(program) = words.next() else { return say(&Told::NotStarted("it has no words".to_owned())) };
    let name = program.to_string_lossy().into_owned();
    if let Err(error) = children() {
        return say(&Told::NotStarted(format!("its processes could not be found to end them: {error}")));
    }
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    process::die_with_parent(&mut command);
    let begun = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return say(&Told::NotStarted(format!("{name}: {error}"))),
    };
    let group = Group::of(&child);
    let mut errors = Errors { from: child.stderr.take(), kept: Vec::new() };
    if say(&Told::Started) != ExitCode::SUCCESS {
        // The agent may no longer read.
        let _ = finish(&mut child, &group);
        return ExitCode::from(3);
    }
    let early = until_told(&child, &mut errors, begun);
    let (status, left) = finish(&mut child, &group);
    let early = early.map(|ran| {
        errors.rest();
        EarlyEnd { ran: ran.into(), status, said: errors.last_line() }
    });
    say(&Told::Over(Errand { early, left }))
}

/// Returns the command's run time if it ended before the pipe closed.
fn until_told(child: &Child, errors: &mut Errors, begun: Instant) -> Option<Duration> {
    let stdin = io::stdin();
    let mut ended = None;
    loop {
        let from = errors.from.as_ref().map(AsFd::as_fd);
        let events = match from {
            Some(from) => wait::wait([(stdin.as_fd(), HANG_UP), (from, READABLE)], Some(LOOK)),
            None => wait::wait([(stdin.as_fd(), HANG_UP)], Some(LOOK)).map(|[stdin]| [stdin, 0]),
        };
        // Check the command first: it may have ended early.
        if ended.is_none() && process::has_ended(child) {
            ended = Some(begun.elapsed());
        }
        match events {
            Ok([stdin, _]) if stdin & GONE != 0 => return ended,
            Ok([_, 0]) => {}
            Ok(_) => errors.take(),
            Err(_) => return ended,
        }
    }
}

/// Signals them first, then kills. Returns how its first process ended, and the remaining processes.
fn finish(child: &mut Child, group: &Group) -> (String, Vec<u32>) {
    group.ask_to_end();
    let until = Instant::now() + GRACE;
    while !process::has_ended(child) && Instant::now() < until {
        thread::sleep(LOOK);
    }
    // Its other processes too, before its number can be reused.
    group.kill();
    let until = Instant::now() + LEFT;
    while !process::has_ended(child) && Instant::now() < until {
        thread::sleep(LOOK);
    }
    let status = match child.try_wait() {
        Ok(Some(status)) => status.to_string(),
        Ok(None) => "it does not end".to_owned(),
        Err(error) => error.to_string(),
    };
    // Processes that left its group become children of this one when their parents end. The kernel's wait decides whether there are any:
    // the list may miss one while another ends (proc_pid_task_children(5)).
    let until = until.max(Instant::now() + STRAYS);
    loop {
        let has_more = process::reap_all();
        let left = children().unwrap_or_default();
        if !has_more || Instant::now() >= until {
            return (status, left);
        }
        left.iter().for_each(|child| process::kill(*child));
        thread::sleep(LOOK);
    }
}

fn children() -> io::Result<Vec<u32>> {
    let me = std::process::id();
    let text = fs::read_to_string(format!("/proc/self/task/{me}/children"))?;
    Ok(text.split_whitespace().filter_map(|number| number.parse().ok()).collect())
}

struct Errors {
    from: Option<ChildStderr>,
    kept: Vec<u8>,
}

impl Errors {
    fn take(&mut self) {
        let mut piece = [0; 4096];
        let Some(from) = &mut self.from else { return };
        match from.read(&mut piece) {
            Ok(n @ 1..) => {
                self.kept.extend_from_slice(&piece[..n]);
                let older = self.kept.len().saturating_sub(KEPT);
                self.kept.drain(..older);
            }
            _ => self.from = None,
        }
    }

    fn rest(&mut self) {
        let until = Instant::now() + SAID;
        while let Some(from) = self.from.as_ref().map(AsFd::as_fd) {
            let left = until.saturating_duration_since(Instant::now());
            match wait::wait([(from, READABLE)], Some(left)) {
                Ok([0]) | Err(_) => return,
                Ok(_) => self.take(),
            }
        }
    }

    fn last_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
    }
}

fn say(told: &Told) -> ExitCode {
    let mut out = io::stdout().lock();
    match frame::write(&mut out, told).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(3),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn answer(ask: impl FnOnce(Box<dyn FnOnce(Result<Answer, Failure>) + Send>)) -> Result<Answer, Failure> {
        let (to, from) = channel();
        ask(Box::new(move |answer| to.send(answer).unwrap()));
        from.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    #[test]
    fn nothing_is_ended_that_was_not_begun() {
        let errands = Errands::default();
        assert!(answer(|reply| errands.end(reply)).unwrap_err().cause.contains("no background command runs"));
    }
}
