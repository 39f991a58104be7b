//! A command of the plan that runs beside a measurement, from its request to its end.
//!
//! ```text
//! agent ─ pipe ─▶ tender (railgauge-agent --tend, a process group of its own) ─▶ command (its own group)
//! ```
//! The agent may be killed at any moment, and so may the controller. So a small process tends the command: when the pipe from the agent
//! is closed, for whatever reason, it ends the command's whole group, and what of it moved to other groups.

pub(crate) mod tender;

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use railgauge_wire::{
    errand::Errand,
    failure::{Failure, Kind, Stage},
    frame,
    message::Answer,
    remedy,
};

use crate::{
    system::wait::{self, READABLE},
    worker::{self, Worker},
};
use tender::{GRACE, LEFT, Told};

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
            .arg(tender::ARGUMENT)
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The answer to a request.
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
