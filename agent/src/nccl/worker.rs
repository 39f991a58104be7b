//! The process of one rank: `railgauge-agent --rank`. Its agent starts it with a separate environment and sends requests over stdin and
//! stdout. One thread does the work; the main thread monitors it, so that a deadline or a lost agent ends a rank that hangs inside the
//! library or the driver.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader},
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use railgauge_wire::{Answer, Failure, Kind, MemberOpened, MemberSpec, Stage, Ticket, frame, remedy};
use socket2::Socket;

use super::{
    bench::{self, Bench, Phase},
    library::{self, Communicator, Nccl, Shared, UniqueId},
    log, ras,
};
use crate::{
    bench::control::Control,
    collective::rank::{RankAnswer, RankAsk, RankRequest, Reply},
    facts::rdma,
    gpu::{Buffer, Device, Stream},
    system::{process, tree::Tree, wait},
    worker::{self, Worker},
};

/// NCCL's variable for its log file; set by the agent.
pub(crate) const LOG_FILE: &str = "NCCL_DEBUG_FILE";
const TICK: Duration = Duration::from_millis(50);
/// Limit for aborting a communicator before the process ends without it.
const ABORT: Duration = Duration::from_secs(2);

#[derive(Clone, Default)]
struct Watched {
    phase: Phase,
    nccl: Arc<OnceLock<Nccl>>,
    communicator: Shared,
    beside: Shared,
    name: Arc<OnceLock<String>>,
}

pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => process::exit_now(0),
        Err(error) => {
            crate::system::log!("rank: {error}");
            process::exit_now(2)
        }
    }
}

fn serve() -> io::Result<()> {
    let (inlet, mut outlet) = process::claim_standard_streams()?;
    let mut from = BufReader::new(inlet.try_clone()?);
    let watched = Watched::default();
    let (worker, _) = Worker::start("rank", || Ok(State::Nothing))?;
    while let Some(RankRequest { ask, limit_ms }) = frame::read::<RankRequest>(&mut from)? {
        let stage = ask.stage();
        let limit = Duration::from_millis(limit_ms);
        let begin = Instant::now();
        let (answer, answered) = channel();
        let theirs = watched.clone();
        worker.pass(move |state| {
            let (reply, _broken) = worker::with(state, stage, |state| state.grant(&theirs, ask));
            let _ = answer.send(reply);
        });
        let reply = loop {
            match answered.recv_timeout(TICK) {
                Ok(reply) => break reply,
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("the working thread is gone")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if begin.elapsed() > limit {
                frame::write(&mut outlet, &Reply::Err(overdue(&watched, stage, limit)))?;
                give_up(&watched);
            }
            let events = wait::wait([(inlet.as_fd(), wait::HANG_UP)], Some(Duration::ZERO))?;
            if events[0] & wait::GONE != 0 {
                give_up(&watched);
            }
        };
        frame::write(&mut outlet, &reply.map_err(|failure| named(&watched, failure)))?;
    }
    Ok(())
}

/// Aborts the communicator, if possible in time, and ends the process.
fn give_up(watched: &Watched) -> ! {
    let watched = watched.clone();
    let abort = worker::start("abort", move || {
        if let Some(nccl) = watched.nccl.get() {
            watched.communicator.abort(nccl, ABORT);
            watched.beside.abort(nccl, ABORT);
        }
    });
    let until = Instant::now() + ABORT;
    while abort.as_ref().is_ok_and(|thread| !thread.is_finished()) && Instant::now() < until {
        std::thread::sleep(TICK);
    }
    process::exit_now(4)
}

fn overdue(watched: &Watched, stage: Stage, limit: Duration) -> Failure {
    let phase = watched.phase.lock().clone();
    let mut cause = format!("no end within {:.1} s", limit.as_secs_f64());
    if !phase.is_empty() {
        cause.push_str(&format!(", while busy with: {phase}"));
    }
    let mut failure = Failure::new(stage, Kind::Deadline, cause).remedy(remedy::LOOK_AT_RANKS);
    let library = watched.nccl.get().map_or("NCCL", Nccl::name);
    let said = std::env::var(ras::ADDRESS).ok().and_then(|address| ras::said(&address));
    failure.said = said.map(|said| format!("the RAS of {library} says: {said}"));
    named(watched, failure)
}

/// Adds the rank's name, and the library's own complaint if any.
fn named(watched: &Watched, failure: Failure) -> Failure {
    let name = watched.name.get().map_or("rank", String::as_str);
    let text = read_log();
    let library = watched.nccl.get().map_or("NCCL", Nccl::name);
    let complaint = log::complaint(&text).map(|words| format!("; {library} says: {words}")).unwrap_or_default();
    Failure { cause: format!("{name}: {}{complaint}", failure.cause), ..failure }
}

fn read_log() -> String {
    let file = std::env::var_os(LOG_FILE);
    file.and_then(|file| std::fs::read(file).ok())
        .map_or_else(String::new, |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

enum State {
    Nothing,
    Open { spec: Box<MemberSpec>, stream: Stream, buffers: [Buffer; 3], id: Option<Box<UniqueId>> },
    Joined(Box<Bench>),
}

impl State {
    fn grant(&mut self, watched: &Watched, ask: RankAsk) -> Reply {
        let unfit = || Failure::new(Stage::Converse, Kind::Internal, "the rank is not ready for this".to_owned());
        match (ask, std::mem::replace(self, Self::Nothing)) {
            (RankAsk::Open(spec), Self::Nothing) => {
                let (state, opened) = open(watched, spec)?;
                *self = state;
                Ok(RankAnswer::Opened(Box::new(opened)))
            }
            (RankAsk::Join(tickets), Self::Open { spec, stream, buffers, id }) => {
                let id = match tickets.first() {
                    Some(Ticket::Nccl { id: Some(text) }) => Some(Box::new(read_id(text)?)),
                    _ => id,
                };
                let (id, nccl) = (id.ok_or_else(unfit)?, watched.nccl.get().ok_or_else(unfit)?);
                stream.device().enter()?;
                say(watched, "joining the group");
                let communicator = Communicator::join(nccl, *id, spec.rank, spec.ranks, watched.communicator.clone())?;
                let bench = Bench::new(communicator, stream, buffers, watched.phase.clone(), watched.beside.clone())?;
                *self = Self::Joined(Box::new(bench));
                say(watched, "idle");
                Ok(RankAnswer::Joined)
            }
            (RankAsk::Measure(collective), Self::Joined(mut bench)) => {
                let measured = bench.run(&collective);
                *self = Self::Joined(bench);
                let mut measured = measured?;
                measured.carried = log::read(&read_log(), &rdma::layers(&Tree::host()));
                Ok(RankAnswer::Measured(Box::new(measured)))
            }
            (_, state) => {
                *self = state;
                Err(unfit())
            }
        }
    }
}

fn say(watched: &Watched, words: &str) {
    words.clone_into(&mut watched.phase.lock());
}

fn open(watched: &Watched, spec: Box<MemberSpec>) -> Result<(State, MemberOpened), Failure> {
    let gpu = spec.gpu.unwrap_or(spec.rank);
    let _ = watched.name.set(format!("rank {} (GPU {gpu})", spec.rank));
    say(watched, "opening the GPU");
    let device = Device::open(gpu)?;
    let stream = Stream::new(&device)?;
    let buffers = bench::buffers(&device, spec.max_size)?;
    let nccl = Nccl::open(device.vendor(), spec.library.as_deref())?;
    let id = if spec.rank == 0 { Some(Box::new(library::fresh_id(&nccl)?)) } else { None };
    let mut settings = BTreeMap::from([
        ("nccl_library".to_owned(), nccl.path.clone()),
        ("nccl_version".to_owned(), nccl.version()),
        ("gpu_pci".to_owned(), device.pci().to_owned()),
    ]);
    // The host's facts have what CUDA does not report.
    settings.extend(device.links().map(|layer| ("gpu_links".to_owned(), layer.word().to_owned())));
    let opened = MemberOpened {
        ticket: Ticket::Nccl { id: id.as_ref().map(|id| hex::encode(id.0)) },
        device: format!("GPU {gpu} ({})", device.name()),
        settings,
        rate_gbps: None,
        mtu: 0,
        software: false,
    };
    let _ = watched.nccl.set(nccl);
    say(watched, "idle");
    Ok((State::Open { spec, stream, buffers, id }, opened))
}

fn read_id(text: &str) -> Result<UniqueId, Failure> {
    let mut id = UniqueId([0; 128]);
    hex::decode_to_slice(text, &mut id.0)
        .map_err(|_| Failure::new(Stage::Join, Kind::Internal, "the group's id is not one of NCCL"))?;
    Ok(id)
}

/// Silence of a rank beyond its own limit. A live one answers before it aborts, as soon as RAS has; so the controller hears of the one that
/// does not while it still collects the others' answers.
const GRACE: Duration = Duration::from_secs(ras::LIMIT.as_secs() + 1);

/// A new file for the log of NCCL. It is evidence, so a file or link that is already there is not used: an agent that was killed may have
/// had the same process id.
fn new_log() -> io::Result<PathBuf> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("railgauge-nccl-{}-{number}.log", std::process::id()));
        match File::create_new(&log) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|_| log),
        }
    }
}

pub(crate) struct Rank {
    child: Child,
    to: File,
    from: File,
    log: PathBuf,
    name: String,
    /// Keeps the port of RAS for the process.
    _ras: Option<Socket>,
}

impl Rank {
    pub(crate) fn start(spec: &MemberSpec) -> Result<Self, Failure> {
        let started = |error: io::Error| {
            Failure::new(
                Stage::Open,
                Kind::Internal,
                format!("the process of rank {} cannot start: {error}", spec.rank),
            )
        };
        let log = new_log().map_err(started)?;
        let (socket, address) = ras::reserve().unzip();
        // The file may be gone from its place; the running image is not.
        let mut child = Command::new("/proc/self/exe")
            .arg("--rank")
            .envs(address.map(|address| (ras::ADDRESS, address.to_string())))
            .envs(&spec.env)
            .env("NCCL_DEBUG", "INFO")
            .env("NCCL_DEBUG_SUBSYS", "INIT,ENV,NET")
            .env(LOG_FILE, &log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(started)?;
        let to = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let from = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let name = format!("rank {}", spec.rank);
        match (to, from) {
            (Some(to), Some(from)) => Ok(Self { child, to, from, log, name, _ras: socket }),
            _ => Err(started(io::Error::other("no pipes"))),
        }
    }

    /// Waits for the answer at most until shortly after the deadline.
    pub(crate) fn ask(&mut self, ask: RankAsk, control: &Control) -> Result<Answer, Failure> {
        let stage = ask.stage();
        let limit = control.deadline.saturating_duration_since(Instant::now());
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        if frame::write(&mut self.to, &RankRequest { ask, limit_ms }).is_err() {
            return Err(self.died(stage));
        }
        let until = control.deadline + GRACE;
        loop {
            let bell = control.bell().inspect(|bell| bell.quiet()).map_or(self.from.as_fd(), AsFd::as_fd);
            if control.aborted() {
                self.end();
                return Err(Failure::new(stage, Kind::Aborted, format!("{}: ended by the controller", self.name)));
            }
            let left = until.saturating_duration_since(Instant::now());
            let events = wait::wait([(self.from.as_fd(), wait::READABLE), (bell, wait::READABLE)], Some(left));
            match events {
                Ok([0, _]) if left.is_zero() => {
                    self.end();
                    let cause = format!(
                        "{}: its process did not answer within {:.1} s and was killed: it was stopped, or its GPU \
                         hangs",
                        self.name,
                        (limit + GRACE).as_secs_f64()
                    );
                    return Err(Failure::new(stage, Kind::Lost, cause).remedy(remedy::LOOK_AT_GPU));
                }
                Ok([0, _]) => {}
                Ok(_) => break,
                Err(error) => {
                    return Err(Failure::new(stage, Kind::Internal, format!("cannot wait for {}: {error}", self.name)));
                }
            }
        }
        match frame::read::<Reply>(&mut self.from) {
            Ok(Some(reply)) => reply.map(Answer::from),
            _ => Err(self.died(stage)),
        }
    }

    fn died(&mut self, stage: Stage) -> Failure {
        self.end();
        let how = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        Failure::new(stage, Kind::Lost, format!("{}: its process ended: {how}", self.name)).remedy(remedy::READ_LOG)
    }

    fn end(&mut self) {
        let _ = self.child.kill();
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        self.end();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_was_left_behind_is_not_used() {
        let first = new_log().unwrap();
        let number: u64 = first.file_stem().unwrap().to_str().unwrap().rsplit('-').next().unwrap().parse().unwrap();
        let next = first.with_file_name(format!("railgauge-nccl-{}-{}.log", std::process::id(), number + 1));
        std::fs::write(&next, "left behind").unwrap();
        let second = new_log().unwrap();
        assert!(second != first && second != next);
        assert_eq!(std::fs::read_to_string(&next).unwrap(), "left behind");
        for log in [first, next, second] {
            std::fs::remove_file(log).unwrap();
        }
    }
}
