//! The process of one rank: `railgauge-agent --rank`. Its agent talks to it over stdin and stdout.
//!
//! One thread does the work; the main thread watches over it, so that a deadline or a lost agent ends a rank that hangs
//! inside the library or the driver.

use std::{
    collections::BTreeMap,
    ffi::c_void,
    fs::File,
    io::{self, BufReader},
    os::fd::AsFd,
    process::ExitCode,
    sync::{
        Arc, OnceLock,
        atomic::AtomicPtr,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    frame,
    group::{MemberOpened, MemberSpec, Ticket},
    remedy,
    unit::Bytes,
};

use super::{
    bench::{Bench, Phase},
    communicator::{self, Communicator},
    library::{Nccl, UniqueId},
    log,
};
use crate::collective::message::{RankAnswer, RankAsk, RankRequest, Reply};
use crate::{
    gpu::{Buffer, Device, Stream},
    system::{process, wait, workers},
};

/// The variable that names the file NCCL writes its log to; set by the agent.
pub(crate) const LOG_FILE: &str = "NCCL_DEBUG_FILE";
const TICK: Duration = Duration::from_millis(50);
/// How long aborting a communicator may take before the process ends without it.
const ABORT: Duration = Duration::from_secs(2);

/// What the watch must know of the work.
#[derive(Clone, Default)]
struct Watched {
    phase: Phase,
    nccl: Arc<OnceLock<Nccl>>,
    communicator: Arc<AtomicPtr<c_void>>,
    name: Arc<OnceLock<String>>,
}

/// Works until stdin ends.
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
    let inlet = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut outlet = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::open("/dev/null")?;
    process::replace_standard_streams(nothing.as_fd(), io::stderr().as_fd())?;
    let mut from = BufReader::new(inlet.try_clone()?);
    let watched = Watched::default();
    let (orders, inbox) = channel();
    let (replies, outbox) = channel();
    let theirs = watched.clone();
    workers::start("rank", move || work(&theirs, &inbox, &replies))?;
    while let Some(RankRequest { ask, limit_ms }) = frame::read::<RankRequest>(&mut from)? {
        let stage = match &ask {
            RankAsk::Open(_) => Stage::Open,
            RankAsk::Join(_) => Stage::Join,
            RankAsk::Measure(_) => Stage::Measure,
        };
        let limit = Duration::from_millis(limit_ms);
        let begin = Instant::now();
        let gone = || io::Error::other("the working thread is gone");
        orders.send(ask).map_err(|_| gone())?;
        let reply = loop {
            match outbox.recv_timeout(TICK) {
                Ok(reply) => break reply,
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
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

/// Aborts the communicator, if that works in time, and ends the process.
fn give_up(watched: &Watched) -> ! {
    let watched = watched.clone();
    let abort = workers::start("abort", move || {
        if let Some(nccl) = watched.nccl.get() {
            communicator::abort(nccl, &watched.communicator);
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
    let failure = Failure::new(stage, Kind::Deadline, cause).remedy(remedy::LOOK_AT_RANKS);
    named(watched, failure)
}

/// The failure with the rank's name, and the library's own complaint where it made one.
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

fn work(watched: &Watched, inbox: &Receiver<RankAsk>, replies: &Sender<Reply>) {
    let mut state = State::Nothing;
    while let Ok(ask) = inbox.recv() {
        let reply = state.grant(watched, ask);
        if replies.send(reply).is_err() {
            break;
        }
    }
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
                *self = Self::Joined(Box::new(Bench::new(communicator, stream, buffers, watched.phase.clone())));
                say(watched, "idle");
                Ok(RankAnswer::Joined)
            }
            (RankAsk::Measure(collective), Self::Joined(mut bench)) => {
                let measured = bench.run(&collective);
                *self = Self::Joined(bench);
                let mut measured = measured?;
                measured.carried = log::read(&read_log());
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
    // Both buffers at once, so that a lack of memory is known before anything moves.
    let (free, total) = device.memory()?;
    if spec.max_size.saturating_mul(2) > Bytes(free) {
        let cause = format!(
            "two buffers of {} bytes are wanted, and {free} of the GPU's {total} bytes are free",
            spec.max_size
        );
        return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(device.maker().free_memory()));
    }
    let nccl = Nccl::open(device.maker(), spec.library.as_deref())?;
    let buffers =
        [Buffer::new(&device, spec.max_size.0)?, Buffer::new(&device, spec.max_size.0)?, Buffer::new(&device, 8)?];
    let id = if spec.rank == 0 { Some(Box::new(communicator::fresh_id(&nccl)?)) } else { None };
    let mut settings = BTreeMap::from([
        ("nccl_library".to_owned(), nccl.path().to_owned()),
        ("nccl_version".to_owned(), nccl.version()),
        ("gpu_pci".to_owned(), device.pci().to_owned()),
    ]);
    // What CUDA does not tell the facts of the host say.
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
    let wrong = || Failure::new(Stage::Join, Kind::Internal, "the group's id is not one of NCCL");
    let mut id = UniqueId([0; 128]);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != id.0.len() || !rest.is_empty() {
        return Err(wrong());
    }
    for (byte, pair) in id.0.iter_mut().zip(pairs) {
        let text = std::str::from_utf8(pair).map_err(|_| wrong())?;
        *byte = u8::from_str_radix(text, 16).map_err(|_| wrong())?;
    }
    Ok(id)
}
