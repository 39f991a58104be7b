//! A controller small enough for tests: starts the real agent binary and talks to it over pipes.
#![allow(dead_code, missing_docs)] // each test file uses its own part of it
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test that cannot go on has failed

pub mod pair;

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use railgauge_wire::{
    PROTOCOL,
    failure::Failure,
    frame,
    message::{Answer, Ask, FromAgent, Request},
};

/// Longer than anything in a test takes.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub type Outcome = Result<Answer, Failure>;

pub struct Agent {
    pub child: Child,
    stdin: Option<ChildStdin>,
    replies: Receiver<(u64, Outcome)>,
    kept: HashMap<u64, Outcome>,
    next: u64,
}

pub fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_railgauge-agent"))
}

impl Agent {
    /// An agent that has been greeted.
    pub fn start() -> Self {
        Self::greeted(&mut command())
    }

    pub fn greeted(command: &mut Command) -> Self {
        let mut agent = Self::spawn(command);
        let hello = Ask::Hello { protocol: PROTOCOL, run_id: "test".into(), host: "here".into() };
        assert!(matches!(agent.ask(hello), Ok(Answer::Hello { protocol: PROTOCOL, .. })));
        agent
    }

    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (to, replies) = channel();
        std::thread::spawn(move || {
            let mut magic = Vec::new();
            stdout.read_until(b'\n', &mut magic).unwrap();
            assert_eq!(magic, frame::MAGIC);
            while let Ok(Some(FromAgent::Reply { id, outcome })) = frame::read(&mut stdout) {
                let _ = to.send((id, outcome));
            }
            let mut rest = Vec::new();
            stdout.read_to_end(&mut rest).unwrap();
            assert!(rest.is_empty(), "something that is no frame came over stdout: {rest:?}");
        });
        Self { stdin: child.stdin.take(), child, replies, kept: HashMap::new(), next: 0 }
    }

    /// Sends a request without waiting.
    pub fn post(&mut self, ask: Ask) -> u64 {
        self.next += 1;
        self.write(&frame::encode(&Request { id: self.next, ask }).unwrap());
        self.next
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Waits for one reply.
    pub fn wait(&mut self, id: u64) -> Outcome {
        loop {
            if let Some(outcome) = self.kept.remove(&id) {
                return outcome;
            }
            let (id, outcome) = self.replies.recv_timeout(PATIENCE).expect("a reply in time");
            assert!(self.kept.insert(id, outcome).is_none(), "request {id} was answered twice");
        }
    }

    pub fn ask(&mut self, ask: Ask) -> Outcome {
        let id = self.post(ask);
        self.wait(id)
    }

    /// Whether nothing has been answered that was not waited for.
    pub fn is_quiet(&mut self) -> bool {
        self.kept.is_empty() && self.replies.recv_timeout(Duration::from_millis(20)).is_err()
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the process, and says how long it took.
    pub fn ended(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, start.elapsed());
            }
            assert!(start.elapsed() < PATIENCE, "the agent does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
