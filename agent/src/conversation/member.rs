//! The ranks of collectives this agent holds: a thread for each, and for NCCL's a process.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use parking_lot::Mutex;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    group::MemberSpec,
    link::LinkId,
    message::Answer,
    terms::Transport,
};

use super::{answering::caught, pipes::Outlet};
use crate::{
    collective::{
        self,
        message::{RankAnswer, RankAsk},
    },
    nccl::process,
    system::{wait::Doorbell, workers},
    watch::gpus::Span,
};

/// How long a rank may take to open GPU and library. A first context on a host of eight GPUs takes seconds.
const OPEN: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct Members {
    register: Arc<Mutex<HashMap<LinkId, Handle>>>,
    outlet: Outlet,
}

struct Handle {
    work: Sender<Work>,
    abort: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
}

enum Work {
    Rank(u64, RankAsk, Duration),
    Close(u64),
}

impl Members {
    /// No ranks yet.
    pub(super) fn new(outlet: Outlet) -> Self {
        Self { register: Arc::default(), outlet }
    }

    pub(super) fn open(&self, id: u64, link: LinkId, spec: MemberSpec) {
        if let Err(failure) = self.start(id, link, spec) {
            self.outlet.reply(id, Err(failure));
        }
    }

    fn start(&self, id: u64, link: LinkId, spec: MemberSpec) -> Result<(), Failure> {
        let refused = |kind, cause: String| Failure::new(Stage::Open, kind, cause);
        let mut register = self.register.lock();
        if register.contains_key(&link) {
            return Err(refused(Kind::Internal, format!("rank {link} is open already")));
        }
        let bell = Doorbell::new().map_err(|error| refused(Kind::Internal, format!("no descriptor: {error}")))?;
        let (work, inbox) = channel();
        let handle = Handle { work, abort: Arc::default(), bell: Arc::new(bell) };
        let (abort, bell, outlet) = (handle.abort.clone(), handle.bell.clone(), self.outlet.clone());
        workers::start(&format!("rank-{link}"), move || serve(id, spec, &inbox, &abort, &bell, &outlet))
            .map_err(|error| refused(Kind::Internal, format!("no thread: {error}")))?;
        register.insert(link, handle);
        Ok(())
    }

    /// Passes what is asked on to the rank.
    pub(super) fn ask(&self, id: u64, link: LinkId, ask: RankAsk, limit_ms: u64) {
        let limit = Duration::from_millis(limit_ms).min(Duration::from_secs(30 * 86_400));
        let sent = self.register.lock().get(&link).is_some_and(|h| h.work.send(Work::Rank(id, ask, limit)).is_ok());
        if !sent {
            let cause = format!("rank {link} is not open");
            self.outlet.reply(id, Err(Failure::new(Stage::Converse, Kind::Internal, cause)));
        }
    }

    /// Ends a rank, whatever it does; `false` if `link` is not a rank.
    pub(super) fn close(&self, id: u64, link: LinkId) -> bool {
        let Some(handle) = self.register.lock().remove(&link) else { return false };
        handle.abort.store(true, Ordering::Relaxed);
        handle.bell.ring();
        if handle.work.send(Work::Close(id)).is_err() {
            self.outlet.reply(id, Ok(Answer::Done));
        }
        true
    }
}

enum Rank {
    /// A process, since NCCL reads its environment once.
    Process(process::Rank),
    Here(collective::rank::Rank),
}

impl Rank {
    fn start(spec: &MemberSpec) -> Result<Self, Failure> {
        Ok(match spec.transport {
            Transport::Nccl => Self::Process(process::Rank::start(spec)?),
            Transport::Tcp | Transport::Verbs | Transport::Cpu | Transport::Gpu | Transport::Nic => {
                Self::Here(collective::rank::Rank::new(spec.clone()))
            }
        })
    }

    fn ask(
        &mut self,
        ask: RankAsk,
        limit: Duration,
        abort: &Arc<AtomicBool>,
        bell: &Arc<Doorbell>,
    ) -> Result<RankAnswer, Failure> {
        match self {
            Self::Process(rank) => rank.ask(ask, limit, abort, bell),
            Self::Here(rank) => rank.ask(ask, limit, abort, bell),
        }
    }
}

fn serve(
    id: u64,
    spec: MemberSpec,
    inbox: &Receiver<Work>,
    abort: &Arc<AtomicBool>,
    bell: &Arc<Doorbell>,
    outlet: &Outlet,
) {
    let opening = || {
        let mut rank = Rank::start(&spec)?;
        let said = rank.ask(RankAsk::Open(Box::new(spec.clone())), OPEN, abort, bell)?;
        Ok((rank, said))
    };
    let mut gpu = None;
    let mut rank = match caught(Stage::Open, opening).flatten() {
        Ok((rank, said)) => {
            gpu = gpu_of(&said);
            outlet.reply(id, Ok(answer(said)));
            Ok(rank)
        }
        Err(failure) => {
            outlet.reply(id, Err(Failure::clone(&failure)));
            Err(failure)
        }
    };
    while let Ok(work) = inbox.recv() {
        match work {
            Work::Rank(id, ask, limit) => {
                let span = match &ask {
                    RankAsk::Measure(collective) => Span::begin(gpu.clone(), collective.window),
                    RankAsk::Open(_) | RankAsk::Join(_) => None,
                };
                let outcome = match &mut rank {
                    Ok(rank) => caught(Stage::Measure, || rank.ask(ask, limit, abort, bell)).flatten(),
                    Err(failure) => Err(failure.clone()),
                };
                outlet.reply(id, with_gpu(outcome, span).map(answer));
            }
            Work::Close(id) => {
                drop(rank);
                outlet.reply(id, Ok(Answer::Done));
                return;
            }
        }
    }
}

/// The PCI address of a rank's GPU, where it has one.
fn gpu_of(said: &RankAnswer) -> Option<String> {
    match said {
        RankAnswer::Opened(opened) => opened.settings.get("gpu_pci").cloned(),
        RankAnswer::Joined | RankAnswer::Measured(_) => None,
    }
}

/// What a rank said with the state of its GPU meanwhile.
fn with_gpu(outcome: Result<RankAnswer, Failure>, span: Option<Span>) -> Result<RankAnswer, Failure> {
    let Some(span) = span else { return outcome };
    let gpu = span.gpus().first().cloned();
    let read = span.end();
    match outcome {
        Ok(RankAnswer::Measured(mut measured)) => {
            measured.gpu = gpu.map(|pci| Box::new(read.seen(&pci, measured.pass)));
            Ok(RankAnswer::Measured(measured))
        }
        Ok(said) => Ok(said),
        Err(failure) => Err(read.explained(failure, gpu.as_deref())),
    }
}

fn answer(said: RankAnswer) -> Answer {
    match said {
        RankAnswer::Opened(opened) => Answer::MemberOpened(opened),
        RankAnswer::Joined => Answer::Done,
        RankAnswer::Measured(measured) => Answer::MemberMeasured(measured),
    }
}
