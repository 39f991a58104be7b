//! Commands of the plan that change the cluster for a test, and undo that.
//!
//! At most one change of one test is in effect. It is undone before another test or another of its values is measured and at the end of the
//! run, interrupted or not; a started change counts. Every command is an event before it starts and when it has ended, so that a later
//! process knows what an earlier one left.

use std::{
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use railgauge_wire::{Failure, Kind, Stage, remedy};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

use super::{hosts::Hosts, spine::Spine};
use crate::cluster;
use railgauge_model::journal::event::{Change, Event};
use railgauge_model::{
    border::text,
    plan::{Plan, command, model::Host},
};

/// Most bytes of a command's last words in a message.
const LAST_WORDS: usize = 500;
const LAST_WAIT: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error("{}", .0.cause)]
    Template(Box<Failure>),
    #[error("it is empty")]
    Empty,
    #[error("cannot start `{command}`: {cause}")]
    Start { command: String, cause: io::Error },
    #[error("`{command}` {ending}; {}", if output.is_empty() { "it said nothing".to_owned() } else { format!("it said: {output}") })]
    Ended { command: String, ending: Ending, output: String },
}

#[derive(Debug, thiserror::Error)]
enum Ending {
    #[error("ended with {0}")]
    Status(ExitStatus),
    #[error("cannot be waited for: {0}")]
    Unknown(io::Error),
    #[error("took longer than {} s and was killed", .0.as_secs_f64())]
    TimedOut(Duration),
}

type Failed = (String, CommandError);

#[derive(Debug, Default)]
pub(super) struct Configuration {
    standing: Option<AppliedChange>,
}

#[derive(Debug)]
struct AppliedChange {
    test: usize,
    value: Option<Box<str>>,
    whole: bool,
    hosts: Vec<Host>,
}

impl Configuration {
    pub(super) fn left(plan: &Plan, change: Option<&Change>) -> Self {
        let of_test = |change: &Change| plan.tests.iter().enumerate().find(|(_, known)| known.name == change.test);
        let standing = change.and_then(|change| Some((of_test(change)?, change)));
        let standing = standing.map(|((index, test), change)| AppliedChange {
            test: index,
            // Only values of the plan are put into its commands.
            value: change
                .value
                .as_ref()
                .filter(|value| test.values().contains(value))
                .map(|value| value.as_str().into()),
            whole: false,
            hosts: plan.hosts.iter().filter(|host| test.hosts.contains(&host.name)).cloned().collect(),
        });
        Self { standing }
    }

    pub(super) fn differs(&self, plan: &Plan, test: usize, value: Option<&str>) -> bool {
        match &self.standing {
            Some(standing) => standing.test != test || standing.value.as_deref() != value || !standing.whole,
            None => plan.tests[test].configure.is_some(),
        }
    }

    /// Prepares the cluster for a test at this value: undoes the current change, then applies the test's own.
    ///
    /// # Errors
    /// A command failed. What had been started was undone where that worked; nothing may be measured.
    pub(super) async fn enter(
        &mut self,
        plan: &Plan,
        test: usize,
        value: Option<&str>,
        hosts: &Hosts,
        spine: &Spine,
    ) -> Result<(), Failure> {
        self.leave(plan, hosts, spine).await?;
        if plan.tests[test].configure.is_none() {
            return Ok(());
        }
        let up = |host: &&Host| plan.tests[test].hosts.contains(&host.name) && hosts.agents.contains_key(&host.name);
        let hosts_up = plan.hosts.iter().filter(up).cloned().collect();
        let standing =
            self.standing.insert(AppliedChange { test, value: value.map(Into::into), whole: false, hosts: hosts_up });
        let Err(failure) = change(plan, standing, false, hosts, spine).await else {
            standing.whole = true;
            return Ok(());
        };
        // Its own failure is an event; the first one is more informative.
        let _ = self.leave(plan, hosts, spine).await;
        Err(failure)
    }

    /// Undoes the current change. A failed command is tried again at the next call.
    pub(super) async fn leave(&mut self, plan: &Plan, hosts: &Hosts, spine: &Spine) -> Result<(), Failure> {
        if let Some(standing) = &self.standing {
            change(plan, standing, true, hosts, spine).await?;
        }
        self.standing = None;
        Ok(())
    }
}

async fn change(
    plan: &Plan,
    standing: &AppliedChange,
    undo: bool,
    hosts: &Hosts,
    spine: &Spine,
) -> Result<(), Failure> {
    let test = &plan.tests[standing.test];
    let Some(configure) = &test.configure else { return Ok(()) };
    let words = if undo { &configure.undo } else { &configure.apply };
    let value = standing.value.as_deref();
    let change = Change { test: test.name.clone(), value: value.map(str::to_owned) };
    let Change { test, value: named } = change.clone();
    spine.emit(Event::Configuring { test, value: named, undo });
    let failed = if command::is_of_a_host(words) {
        everywhere((words, value), &standing.hosts, configure.timeout, plan.launch.in_flight).await
    } else {
        let failed = match cluster::filled_at(words, None, value) {
            Ok(words) => run(&words, configure.timeout).await.err(),
            Err(trouble) => Some(CommandError::Template(Box::new(trouble.failure))),
        };
        failed.map(|cause| (String::new(), cause)).into_iter().collect()
    };
    let (gone, failed): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|(host, _)| undo && !host.is_empty() && !hosts.agents.contains_key(host));
    for (host, cause) in gone {
        // A lost host is not measured any more, so its configuration is not a reason to stop.
        let text = format!("was lost while configured for {change}, which could not be undone: {cause}");
        spine.emit(Event::Note { host, text });
    }
    let failure = failed.split_first().map(|(first, others)| told(first, others, undo, value));
    spine.emit(Event::Configured { test: change.test, value: change.value, undo, failure: failure.clone() });
    spine.sync();
    failure.map_or(Ok(()), Err)
}

fn told((host, cause): &Failed, others: &[Failed], undo: bool, value: Option<&str>) -> Failure {
    let key = if undo { "undo" } else { "apply" };
    let others = match others {
        [] => String::new(),
        others => {
            format!("; it also failed on {}", others.iter().map(|(host, _)| &**host).collect::<Vec<_>>().join(", "))
        }
    };
    let at = value.map_or_else(String::new, |value| format!(" at `{value}`"));
    let cause = format!("`{key}` of the test failed{at}: {cause}{others}");
    let failure = Failure::new(Stage::Configure, Kind::Configuration, cause).remedy(remedy::CONFIGURE_BY_HAND);
    if host.is_empty() { failure } else { failure.at(host) }
}

/// Runs a command for every host, limited in parallel. Returns the hosts where it failed and why, in order.
async fn everywhere(
    (words, value): (&[String], Option<&str>),
    hosts: &[Host],
    limit: Duration,
    in_flight: usize,
) -> Vec<Failed> {
    let turns = Arc::new(Semaphore::new(in_flight.max(1)));
    let mut running = JoinSet::new();
    for (place, host) in hosts.iter().enumerate() {
        let (turns, name) = (turns.clone(), host.name.clone());
        let filled = cluster::filled_at(words, Some(host), value)
            .map_err(|trouble| CommandError::Template(Box::new(trouble.failure)));
        running.spawn(async move {
            // The semaphore is never closed; without a turn the command runs anyway.
            let _turn = turns.acquire().await;
            let result = match filled {
                Ok(words) => run(&words, limit).await,
                Err(cause) => Err(cause),
            };
            (place, name, result)
        });
    }
    let mut failed: Vec<(usize, String, CommandError)> = running
        .join_all()
        .await
        .into_iter()
        .filter_map(|(place, host, result)| Some((place, host, result.err()?)))
        .collect();
    failed.sort_unstable_by_key(|(place, ..)| *place);
    failed.into_iter().map(|(_, host, cause)| (host, cause)).collect()
}

async fn run(words: &[String], limit: Duration) -> Result<(), CommandError> {
    let Some((program, arguments)) = words.split_first() else { return Err(CommandError::Empty) };
    let command = text::command(words);
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C on the terminal must not interrupt it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(cause) => return Err(CommandError::Start { command, cause }),
    };
    let said = Arc::new(Mutex::new(Vec::new()));
    let mut listening = JoinSet::new();
    if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
        listening.spawn(listen(out, said.clone()));
        listening.spawn(listen(err, said.clone()));
    }
    let ending = match timeout(limit, child.wait()).await {
        Ok(Ok(status)) if status.success() => return Ok(()),
        Ok(Ok(status)) => Ending::Status(status),
        Ok(Err(error)) => Ending::Unknown(error),
        Err(_) => Ending::TimedOut(limit),
    };
    // What it started may keep its output open forever, as ssh's ControlPersist does.
    let _ = timeout(LAST_WAIT, listening.join_all()).await;
    let said = said.lock();
    // Shown on the terminal directly, before any journal is read.
    let output = text::line(said.trim_ascii());
    Err(CommandError::Ended { command, ending, output })
}

async fn listen(mut stream: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        let mut said = said.lock();
        said.extend_from_slice(&buffer[..n]);
        let older = said.len().saturating_sub(LAST_WORDS);
        said.drain(..older);
    }
}
