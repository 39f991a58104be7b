//! What is asked of one end of a link. `Serve` is answered as soon as it is armed, and what came of it is kept for the `Stop` that
//! follows.

use std::{sync::Arc, time::Duration};

use railgauge_wire::{
    case::CaseSpec,
    failure::{Failure, Kind, Stage},
    group::MemberSpec,
    link::{Endpoint, LinkSpec},
    message::Answer,
    step::{Step, Stepped, Window},
    terms::Transport,
    unit::Nanoseconds,
};

use super::{
    case::{self, Here},
    register::Request,
};
use crate::{
    bench::control::Control,
    collective::rank::{self, RankAsk},
    fabric::{self, Link},
    nccl::worker,
    watch::gpus::{self, Span},
};

/// How long joining may take: a peer that does not come is named, not waited for.
const JOIN: Duration = Duration::from_secs(20);

/// One end of a link.
pub(super) struct End {
    link: Box<dyn Link>,
    here: Here,
    /// What the last `Serve` came to, until a `Stop` asks for it.
    served: Option<Result<Answer, Failure>>,
    /// Whether a case has failed: the two ends no longer know where they are.
    failed: bool,
    has_begun: bool,
}

impl End {
    pub(super) fn open(spec: &LinkSpec) -> Result<(Self, Answer), Failure> {
        let link = fabric::open(spec)?;
        let opened = Answer::Opened(Box::new(link.opened()));
        Ok((Self { link, here: Here::new(spec), served: None, failed: false, has_begun: false }, opened))
    }

    pub(super) fn join(&mut self, peer: &Endpoint, request: &Request) -> Result<Answer, Failure> {
        self.link.join(peer, &request.control(JOIN))?;
        Ok(Answer::Joined(Box::new(self.link.opened())))
    }

    pub(super) fn step(&mut self, step: &Step, limit: Duration, request: &Arc<Request>) -> Result<Answer, Failure> {
        self.served = None;
        let mut control = request.control(limit);
        if matches!(step, Step::Serve { .. }) {
            let request = request.clone();
            control = control.on_ready(move || request.reply(Ok(Answer::Done)));
        }
        let timed = window(step).and_then(|window| {
            let gpu = self.link.opened().settings.remove("gpu_pci")?;
            Some((Span::begin([gpu.clone()], window)?, gpu))
        });
        let outcome = self.link.step(step, &control);
        let outcome = match timed {
            Some((span, pci)) => on_gpu(outcome, span, &pci),
            None => outcome.map(Answer::Stepped),
        };
        if request.is_answered() {
            self.served = Some(outcome.clone());
        }
        outcome
    }

    pub(super) fn served(&mut self) -> Result<Answer, Failure> {
        let nothing = || Failure::new(Stage::Converse, Kind::Internal, "nothing is being served");
        self.served.take().unwrap_or_else(|| Err(nothing()))
    }

    pub(super) fn case(&mut self, case: &CaseSpec, request: &Request) -> Result<Answer, Failure> {
        if self.failed {
            return Err(Failure::new(Stage::Measure, Kind::Aborted, "a case before it has failed on this link"));
        }
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let control = |limit| request.control_apart(limit);
        let account = case::run(self.link.as_mut(), &self.here, case, is_first, &control);
        self.failed = account.failure.is_some();
        Ok(Answer::Case(Box::new(account)))
    }
}

/// How long a step is timed; `None` where it is not.
fn window(step: &Step) -> Option<Window> {
    match step {
        Step::Time(timing) => Some(timing.window),
        Step::Serve { window, .. } => *window,
        Step::Fill(_) | Step::Poison(_) | Step::Transfer { .. } | Step::Check(_) => None,
    }
}

/// What a step came to, with the state of the GPU meanwhile.
fn on_gpu(outcome: Result<Stepped, Failure>, span: Span, pci: &str) -> Result<Answer, Failure> {
    let read = span.end();
    let pass = |stepped: &Stepped| match stepped {
        Stepped::Measured(measured) if measured.elapsed > Nanoseconds::ZERO => Some(gpus::pass(measured)),
        _ => None,
    };
    match outcome {
        Ok(stepped) => Ok(Answer::SteppedOnGpu { gpus: vec![read.seen(pci, pass(&stepped))], stepped }),
        Err(failure) => Err(read.explained(failure, [pci])),
    }
}

/// How long a rank may take to open GPU and library. A first context on a host of eight GPUs takes seconds.
const OPEN: Duration = Duration::from_secs(60);

type AskRank = Box<dyn FnMut(RankAsk, &Control) -> Result<Answer, Failure>>;

/// One rank.
pub(super) struct Member {
    ask: AskRank,
    /// The PCI address of its GPU, where it has one.
    gpu: Option<String>,
}

impl Member {
    pub(super) fn open(spec: MemberSpec, request: &Request) -> Result<(Self, Answer), Failure> {
        let mut member = Self { ask: start(&spec)?, gpu: None };
        let said = member.ask(RankAsk::Open(Box::new(spec)), OPEN, request)?;
        if let Answer::MemberOpened(opened) = &said {
            member.gpu = opened.settings.get("gpu_pci").cloned();
        }
        Ok((member, said))
    }

    pub(super) fn ask(&mut self, ask: RankAsk, limit: Duration, request: &Request) -> Result<Answer, Failure> {
        let span = match &ask {
            RankAsk::Measure(collective) => Span::begin(self.gpu.clone(), collective.window),
            RankAsk::Open(_) | RankAsk::Join(_) => None,
        };
        let outcome = (self.ask)(ask, &request.control(limit));
        let Some((read, pci)) = span.map(Span::end).zip(self.gpu.as_deref()) else { return outcome };
        match outcome {
            Ok(Answer::MemberMeasured(mut measured)) => {
                measured.gpu = Some(Box::new(read.seen(pci, measured.pass)));
                Ok(Answer::MemberMeasured(measured))
            }
            Ok(said) => Ok(said),
            Err(failure) => Err(read.explained(failure, [pci])),
        }
    }
}

fn start(spec: &MemberSpec) -> Result<AskRank, Failure> {
    Ok(match spec.transport {
        // A process, since NCCL reads its environment once.
        Transport::Nccl => {
            let mut rank = worker::Rank::start(spec)?;
            Box::new(move |ask, control| rank.ask(ask, control))
        }
        Transport::Tcp | Transport::Verbs | Transport::Cpu | Transport::Gpu | Transport::Nic => {
            let mut rank = rank::Rank::new(spec.clone());
            Box::new(move |ask, control| rank.ask(ask, control))
        }
    })
}
