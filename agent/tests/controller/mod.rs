//! A controller small enough for tests: starts the real agent binary and talks to it over pipes.

pub mod pair;

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use railgauge_wire::{Answer, Ask, Failure, FromAgent, Nanoseconds, PROTOCOL, Request, frame};

/// Longer than anything in a test takes on a busy machine, and much shorter than what a test asks for without end: an answer within this
/// time did not wait for that end.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A time that no test waits for.
pub const ENDLESS: Nanoseconds = Nanoseconds::from_secs(600);

/// The same, as the deadline of a request that is not to be ended by one.
pub const DEADLINE_MS: u64 = 600_000;

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

    /// Waits for the end of the process.
    pub fn ended(&mut self) -> ExitStatus {
        ended(&mut self.child)
    }
}

/// Waits for the end of a process.
pub fn ended(child: &mut Child) -> ExitStatus {
    patiently("the end of a process", || child.try_wait().unwrap())
}

/// Looks again and again until there is something, for as long as a test may take.
pub fn patiently<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
