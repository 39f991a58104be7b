//! Requests to one end of a link: single steps, and whole cases with their turns (see [`railgauge_wire::case`]). `Serve` is answered as
//! soon as it is ready, and its result is kept for the following `Stop`.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use railgauge_wire::{
    Answer, COUNTERS_LIMIT, CaseAccount, CaseSpec, Endpoint, Failure, Kind, LinkLayer, LinkSpec, MemberSpec,
    Nanoseconds, Pattern, Role, Stage, Step, Stepped, Timing, Transport, Window, facts::port_name,
    step::responder_takes_part,
};

use super::register::Request;
use crate::{
    bench::{clock, control::Control},
    collective::rank::{self, RankAsk},
    counters,
    fabric::{self, Link},
    nccl,
    system::tree::Tree,
    watch::gpus::{self, Span},
    worker,
};

const JOIN: Duration = Duration::from_secs(20);

pub(super) struct End {
    link: Box<dyn Link>,
    here: Here,
    /// Result of the last `Serve`, for the next `Stop`.
    served: Option<Result<Answer, Failure>>,
    /// Whether a case has failed: the two ends are no longer synchronized.
    failed: bool,
    has_begun: bool,
}

impl End {
    pub(super) fn open(spec: &LinkSpec) -> Result<(Self, Answer), Failure> {
        let link = fabric::open(spec)?;
        let opened = Answer::Opened(Box::new(link.opened()));
        let here = Here { role: spec.role, transport: spec.transport, port: spec.port };
        Ok((Self { link, here, served: None, failed: false, has_begun: false }, opened))
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
        // Only the peer stops it.
        let control = |limit| request.control_by(Arc::default(), limit);
        let account = run(self.link.as_mut(), &self.here, case, is_first, &control);
        self.failed = account.failure.is_some();
        Ok(Answer::Case(Box::new(account)))
    }
}

fn window(step: &Step) -> Option<Window> {
    match step {
        Step::Time(timing) => Some(timing.window),
        Step::Serve { window, .. } => *window,
        Step::Fill(_) | Step::Poison(_) | Step::Transfer { .. } | Step::Check(_) => None,
    }
}

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

/// Limit for a rank to open GPU and library. A first context on a host of eight GPUs takes seconds.
const OPEN: Duration = Duration::from_secs(60);

type AskRank = Box<dyn FnMut(RankAsk, &Control) -> Result<Answer, Failure>>;

pub(super) struct Member {
    ask: AskRank,
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
        // A separate process, since NCCL reads its environment once.
        Transport::Nccl => {
            let mut rank = nccl::worker::Rank::start(spec)?;
            Box::new(move |ask, control| rank.ask(ask, control))
        }
        Transport::Tcp | Transport::Verbs | Transport::Cpu | Transport::Gpu | Transport::Nic => {
            let mut rank = rank::Rank::new(spec.clone());
            Box::new(move |ask, control| rank.ask(ask, control))
        }
    })
}

#[derive(Debug, Clone)]
struct Here {
    role: Role,
    transport: Transport,
    port: u8,
}

/// `is_first`: no case ran on this link before. `control` makes the control of a step with this limit.
fn run(
    end: &mut dyn Link,
    here: &Here,
    case: &CaseSpec,
    is_first: bool,
    control: &dyn Fn(Duration) -> Control,
) -> CaseAccount {
    let (begun, deadline) = (Instant::now(), Duration::from_millis(case.deadline_ms));
    let mut part = Part { end, here, case, control, deadline, account: CaseAccount::default(), pass: None };
    let gpu = part.end.opened().settings.get("gpu_pci").cloned();
    let span = Span::begin(gpu.clone(), case.timing.window);
    let mut ran = part.all(is_first);
    if let Some((span, pci)) = span.zip(gpu) {
        let read = span.end();
        part.account.gpus = vec![read.seen(&pci, part.pass)];
        ran = ran.map_err(|failure| read.explained(failure, [&*pci]));
    }
    if let Err(failure) = ran {
        part.account.failure = Some(failure);
        part.end.give_up();
    }
    part.account.took = begun.elapsed().into();
    part.account
}

struct Part<'a> {
    end: &'a mut dyn Link,
    here: &'a Here,
    case: &'a CaseSpec,
    control: &'a dyn Fn(Duration) -> Control,
    deadline: Duration,
    account: CaseAccount,
    pass: Option<(Nanoseconds, Nanoseconds)>,
}

impl Part<'_> {
    fn all(&mut self, is_first: bool) -> Result<(), Failure> {
        if is_first {
            self.begin()?;
        }
        self.verify(1)?;
        self.time()?;
        self.verify(2)
    }

    /// The initiator speaks first on a link. iWARP requires it: a responder may send nothing before it has received something (RFC 5044,
    /// section 7.1.2), and siw's initiator refuses what arrives together with the reply to its request.
    fn begin(&mut self) -> Result<(), Failure> {
        match self.here.role {
            Role::Initiator => self.end.give_turn(),
            Role::Responder => self.await_turn(self.patience()),
        }
    }

    /// `iteration` makes its bytes differ from those of other passes.
    fn verify(&mut self, iteration: u64) -> Result<(), Failure> {
        let Some(seed) = self.case.verify else { return Ok(()) };
        let (begun, waited) = (Instant::now(), self.account.spent.waiting);
        let op = self.case.timing.op;
        let pattern = Pattern { size: self.case.timing.size, seed, iteration };
        // A read brings the responder's bytes to the initiator, everything else the other way.
        let is_sink = op.pulls() == (self.here.role == Role::Initiator);
        self.step(if is_sink { Step::Poison(pattern) } else { Step::Fill(pattern) }, self.deadline)?;
        match self.here.role {
            Role::Initiator => {
                self.await_turn(self.patience())?;
                self.step(Step::Transfer { op, pattern }, self.deadline)?;
            }
            Role::Responder if responder_takes_part(self.here.transport, op) => {
                self.serve(Duration::ZERO, self.deadline + self.patience())?;
                self.await_turn(self.deadline)?;
            }
            Role::Responder => {
                self.end.give_turn()?;
                self.await_turn(self.deadline + self.patience())?;
            }
        }
        // Read results are compared before the responder may overwrite anything.
        if is_sink && let Stepped::Checked(checked) = self.step(Step::Check(pattern), self.deadline)? {
            self.account.checked += checked;
        }
        if self.here.role == Role::Initiator {
            self.end.give_turn()?;
        }
        let waited = self.account.spent.waiting.saturating_sub(waited);
        let spent = Nanoseconds::from(begun.elapsed()).saturating_sub(waited);
        self.account.spent.verify = self.account.spent.verify.saturating_add(spent);
        Ok(())
    }

    fn time(&mut self) -> Result<(), Failure> {
        let timing = self.case.timing;
        self.account.counters.0 = self.counters();
        let pass = self.deadline + Duration::from(timing.warm_up) + timing.window.at_most();
        let begin = clock::now();
        let took = match self.here.role {
            Role::Initiator => {
                self.await_turn(self.patience())?;
                let begun = Instant::now();
                let control = (self.control)(pass);
                let timed = self.end.step(&Step::Time(timing), &control);
                if timed.is_err() {
                    self.account.progress = control.progress();
                }
                let timed = timed?;
                self.measured(timed);
                let took = begun.elapsed();
                self.end.give_turn()?;
                took
            }
            Role::Responder => {
                let begun = Instant::now();
                let served =
                    self.serve(Duration::from(timing.warm_up) + timing.window.at_least(), pass + self.deadline)?;
                self.measured(served);
                let took = begun.elapsed();
                self.await_turn(self.deadline)?;
                took
            }
        };
        self.pass = self.account.measured.as_deref().map(gpus::pass).or(Some((begin, clock::now())));
        let window = self.account.measured.as_ref().map_or(Nanoseconds::ZERO, |measured| measured.elapsed);
        let spent = &mut self.account.spent;
        (spent.window, spent.warm_up) = (window, Nanoseconds::from(took).saturating_sub(window));
        self.account.counters.1 = self.counters();
        Ok(())
    }

    /// Limit for the peer's part before a pass: it reads its counters and prepares its memory.
    fn patience(&self) -> Duration {
        self.deadline + COUNTERS_LIMIT
    }

    fn serve(&mut self, not_before: Duration, limit: Duration) -> Result<Stepped, Failure> {
        let Timing { op, metric, size, .. } = self.case.timing;
        let control = (self.control)(limit).led_by_peer(not_before);
        self.end.step(&Step::Serve { op, metric, size, window: None }, &control)
    }

    fn step(&mut self, step: Step, limit: Duration) -> Result<Stepped, Failure> {
        self.end.step(&step, &(self.control)(limit))
    }

    fn measured(&mut self, stepped: Stepped) {
        if let Stepped::Measured(measured) = stepped {
            self.account.measured = Some(measured);
        }
    }

    fn await_turn(&mut self, limit: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        let taken = self.end.await_turn(&(self.control)(limit));
        self.waited(begun);
        taken
    }

    fn waited(&mut self, since: Instant) {
        let waiting = &mut self.account.spent.waiting;
        *waiting = waiting.saturating_add(since.elapsed().into());
    }

    /// Empty if unreadable, and on loopback, which everything on a host shares.
    fn counters(&mut self) -> BTreeMap<String, u64> {
        let begun = Instant::now();
        let opened = self.end.opened();
        let read = match opened.link_layer {
            LinkLayer::Loopback => BTreeMap::new(),
            _ => read(&opened.device, self.here.port),
        };
        self.waited(begun);
        read
    }
}

/// On a separate thread: a hanging driver must not block the link.
fn read(device: &str, port: u8) -> BTreeMap<String, u64> {
    // Ports other than the first have names such as `mlx5_0:2`; counters need device and port.
    let (device, _) = port_name(device);
    let device = device.to_owned();
    let read = worker::ask("counters", move || counters::read(&Tree::host(), &device, port));
    let why = match read.recv_timeout(COUNTERS_LIMIT) {
        Ok(Ok(counters)) => return counters,
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => format!("not read within {} s", COUNTERS_LIMIT.as_secs()),
    };
    // Without counters the check is skipped, and the report says so.
    crate::system::log!("counters: {why}");
    BTreeMap::new()
}
