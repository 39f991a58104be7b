//! A command of the plan that runs beside a measurement, from its request to its end.
//!
//! ```text
//! agent ─ pipe ─▶ tender (railgauge-agent --tend, a process group of its own) ─▶ command (its own group)
//! ```
//! The agent may be killed at any moment, and so may the controller. So a small process tends the command: when the pipe from the agent
//! is closed, for whatever reason, it ends the command's whole group, and what of it moved to other groups.

use std::{
    fs,
    io::{self, Read, Write},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, ChildStderr, Command, ExitCode, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use railgauge_wire::{
    errand::{EarlyEnd, Errand},
    failure::{Failure, Kind, Stage},
    frame,
    message::Answer,
    remedy,
};
use serde::{Deserialize, Serialize};

use crate::{
    system::{
        process::{self, Group},
        wait::{self, GONE, HANG_UP, READABLE},
    },
    worker::{self, Worker},
};

/// How long the tender may take to start the command.
const STARTED: Duration = Duration::from_secs(5);
/// How much longer than it needs the tender may take to end it.
const MORE: Duration = Duration::from_secs(1);

/// The command of this host; at most one runs. A thread of its own works on the requests, in their order.
#[derive(Default)]
pub(crate) struct Errands(OnceLock<Option<Worker<Option<Tended>>>>);

impl Errands {
    pub(crate) fn begin(&self, words: Vec<String>, reply: impl FnOnce(Result<Answer, Failure>) + Send + 'static) {
        self.pass(reply, move |running| {
            if running.is_some() {
                return Err(refused("a command runs beside a measurement already".to_owned()));
            }
            *running = Some(Tended::start(&words)?);
            Ok(Answer::Done)
        });
    }

    /// Ends the command that runs, and tells whether it ran until now.
    pub(crate) fn end(&self, reply: impl FnOnce(Result<Answer, Failure>) + Send + 'static) {
        self.pass(reply, |running| match running.take() {
            Some(tended) => tended.end().map(|errand| Answer::Errand(Box::new(errand))),
            None => Err(refused("no command runs beside a measurement".to_owned())),
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

/// A tender and its pipes. Dropping it closes them, which ends the command.
struct Tended {
    tender: Child,
}

impl Tended {
    fn start(words: &[String]) -> Result<Self, Failure> {
        // The file may be gone from its place; the running image is not.
        let tender = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What outlives the agent for a moment must not hold the way to its host open.
            .stderr(Stdio::null())
            // What ends the agent's group must leave it time to end the command.
            .process_group(0)
            .spawn()
            .map_err(|error| refused(format!("its tender cannot be started: {error}")))?;
        let mut tended = Self { tender };
        match tended.hear(STARTED)? {
            Told::Started => Ok(tended),
            Told::NotStarted(why) => {
                // It says that last, and ends.
                let _ = tended.tender.wait();
                let cause = format!("the command beside it cannot be started: {why}");
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

    /// Ends the command, and waits until nothing of it is left.
    fn end(mut self) -> Result<Errand, Failure> {
        // The tender hears that.
        self.tender.stdin = None;
        let told = self.hear(GRACE + LEFT + MORE)?;
        // It says that last, and ends.
        let _ = self.tender.wait();
        match told {
            Told::Over(errand) => Ok(errand),
            Told::Started | Told::NotStarted(_) => Err(refused("its tender says what it cannot".to_owned())),
        }
    }
}

fn refused(cause: String) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, format!("the command beside it: {cause}"))
}

/// The agent's argument that makes it a tender; the command's words follow.
pub const ARGUMENT: &str = "--tend";
/// From the signal that asks a command to end to the one that makes it.
const GRACE: Duration = Duration::from_secs(2);
/// How long processes that were killed are waited for.
const LEFT: Duration = Duration::from_secs(2);
/// Time for processes outside its group, however long its first process took.
const STRAYS: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(20);
/// How long the errors of a command that has ended are waited for: others may hold the pipe open.
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
        // Nobody listens any more.
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

/// Waits until the agent closes the pipe. Returns how long the command ran if it ended before that.
fn until_told(child: &Child, errors: &mut Errors, begun: Instant) -> Option<Duration> {
    let stdin = io::stdin();
    let mut ended = None;
    loop {
        let from = errors.from.as_ref().map(AsFd::as_fd);
        let events = match from {
            Some(from) => wait::wait([(stdin.as_fd(), HANG_UP), (from, READABLE)], Some(LOOK)),
            None => wait::wait([(stdin.as_fd(), HANG_UP)], Some(LOOK)).map(|[stdin]| [stdin, 0]),
        };
        // The command first: what ended before it was told to did so early.
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

/// Ends the command and all of its processes: asked first, then killed. Returns how its first process ended, and which are left.
fn finish(child: &mut Child, group: &Group) -> (String, Vec<u32>) {
    group.ask_to_end();
    let until = Instant::now() + GRACE;
    while !process::has_ended(child) && Instant::now() < until {
        thread::sleep(LOOK);
    }
    // Its other processes too, before its number can be anybody else's.
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
    // Those that left its group are children of this process once their parents are gone. Whether there are any the kernel's wait says:
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

/// The last of what a command writes to its standard error.
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
        assert!(answer(|reply| errands.end(reply)).unwrap_err().cause.contains("no command runs"));
    }
}
