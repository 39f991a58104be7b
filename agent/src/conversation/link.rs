//! The thread of one link, and the register of all of them.
//!
//! The reader only sets flags and passes requests on; the link's thread works on them in order and writes the replies
//! itself. `Serve` is answered as soon as it is armed, and what came of it is kept for the `Stop` that follows.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::{
    case::CaseSpec,
    failure::{Failure, Kind, Stage},
    link::{Endpoint, LinkId, LinkSpec},
    message::Answer,
    step::{Step, Stepped, Window},
    unit::Nanoseconds,
};

use super::{
    answering::caught,
    case::{self, Here},
    pipes::Outlet,
};
use crate::{
    bench::control::Control,
    fabric::{self, Link},
    system::{wait::Doorbell, workers},
    watch::gpus::{self, Span},
};

/// How long joining may take: a peer that does not come is named, not waited for.
const JOIN: Duration = Duration::from_secs(20);

/// How long links may take to close when the controller says goodbye.
const FAREWELL: Duration = Duration::from_millis(500);

pub(super) struct Links {
    register: Register,
    outlet: Outlet,
}

type Register = Arc<Mutex<HashMap<LinkId, Handle>>>;

struct Handle {
    work: Sender<Work>,
    /// Stop flag of the step passed on last: a flag of its own per step, so that a `Stop` is never lost to a step
    /// that has not begun yet, nor found by the next one.
    stop: Arc<AtomicBool>,
    abort: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
}

/// What the reader passes on, with the request's number.
enum Work {
    Join(u64, Endpoint),
    Step(u64, Step, Arc<AtomicBool>, Duration),
    Case(u64, CaseSpec),
    Stop(u64),
    Close(Option<u64>),
}

impl Links {
    /// No links yet.
    pub(super) fn new(outlet: Outlet) -> Self {
        Self { register: Register::default(), outlet }
    }

    pub(super) fn open(&self, id: u64, link: LinkId, spec: LinkSpec) {
        if let Err(failure) = self.start(id, link, spec) {
            self.outlet.reply(id, Err(failure));
        }
    }

    fn start(&self, id: u64, link: LinkId, spec: LinkSpec) -> Result<(), Failure> {
        let refused = |cause: String| Failure::new(Stage::Open, Kind::Internal, cause);
        let mut register = self.register.lock();
        if register.contains_key(&link) {
            return Err(refused(format!("link {link} is open already")));
        }
        let bell = Doorbell::new().map_err(|error| refused(format!("no descriptor for link {link}: {error}")))?;
        let (work, inbox) = channel();
        let handle = Handle { work, stop: Arc::default(), abort: Arc::default(), bell: Arc::new(bell) };
        let thread = Thread {
            link,
            register: self.register.clone(),
            outlet: self.outlet.clone(),
            abort: handle.abort.clone(),
            bell: handle.bell.clone(),
            here: Here::new(&spec),
            served: None,
            failed: false,
            has_begun: false,
        };
        workers::start(&format!("link-{link}"), move || thread.run(id, &spec, &inbox))
            .map_err(|error| refused(format!("no thread for link {link}: {error}")))?;
        // The thread cannot look for its entry before the lock is free.
        register.insert(link, handle);
        Ok(())
    }

    pub(super) fn join(&self, id: u64, link: LinkId, peer: Endpoint) {
        self.pass(id, link, |_| Work::Join(id, peer));
    }

    pub(super) fn step(&self, id: u64, link: LinkId, step: Step, limit_ms: u64) {
        self.pass(id, link, |handle| {
            handle.stop = Arc::default();
            Work::Step(id, step, handle.stop.clone(), Duration::from_millis(limit_ms))
        });
    }

    pub(super) fn case(&self, id: u64, link: LinkId, case: CaseSpec) {
        self.pass(id, link, |_| Work::Case(id, case));
    }

    /// Ends the step passed on last, and asks for its outcome.
    pub(super) fn stop(&self, id: u64, link: LinkId) {
        self.pass(id, link, |handle| {
            handle.stop.store(true, Ordering::Relaxed);
            handle.bell.ring();
            Work::Stop(id)
        });
    }

    /// Ends whatever a link does and closes it.
    pub(super) fn close(&self, id: u64, link: LinkId) {
        self.pass(id, link, |handle| handle.closing(Some(id)));
    }

    /// Closes all links, and waits for them for a while.
    pub(super) fn close_all(&self) {
        for handle in self.register.lock().values_mut() {
            let work = handle.closing(None);
            // A thread that has ended has closed its link.
            let _ = handle.work.send(work);
        }
        let give_up = Instant::now() + FAREWELL;
        while !self.register.lock().is_empty() && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Passes work to the link's thread. An entry in the register means that the thread will answer what is sent:
    /// it takes its entry away, under this lock, before it looks for the last time.
    fn pass(&self, id: u64, link: LinkId, work: impl FnOnce(&mut Handle) -> Work) {
        let mut register = self.register.lock();
        let known = register.get_mut(&link).map(|handle| {
            let work = work(handle);
            handle.work.send(work).is_ok()
        });
        drop(register);
        if known != Some(true) {
            let cause = format!("link {link} is not open");
            self.outlet.reply(id, Err(Failure::new(Stage::Converse, Kind::Internal, cause)));
        }
    }
}

impl Handle {
    fn closing(&mut self, id: Option<u64>) -> Work {
        self.abort.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
        self.bell.ring();
        Work::Close(id)
    }
}

struct Thread {
    link: LinkId,
    register: Register,
    outlet: Outlet,
    abort: Arc<AtomicBool>,
    bell: Arc<Doorbell>,
    here: Here,
    /// What the last `Serve` came to, until a `Stop` asks for it.
    served: Option<Result<Answer, Failure>>,
    /// Whether a case has failed: the two ends no longer know where they are.
    failed: bool,
    has_begun: bool,
}

impl Thread {
    fn run(mut self, id: u64, spec: &LinkSpec, inbox: &Receiver<Work>) {
        let opened = caught(Stage::Open, || fabric::open(spec).map(|end| (Box::new(end.opened()), end))).flatten();
        let mut end = match opened {
            Ok((opened, end)) => {
                self.outlet.reply(id, Ok(Answer::Opened(opened)));
                Ok(end)
            }
            Err(failure) => {
                self.forget();
                self.outlet.reply(id, Err(failure.clone()));
                Err(failure)
            }
        };
        // The loop also ends when the register has forgotten this link and everything sent before is answered.
        while let Ok(work) = inbox.recv() {
            match work {
                Work::Join(id, peer) => {
                    let control = self.control(Arc::default(), JOIN);
                    let join = |end: &mut Box<dyn Link>| {
                        end.join(&peer, &control).map(|()| Answer::Joined(Box::new(end.opened())))
                    };
                    let outcome = with(&mut end, Stage::Join, join);
                    self.outlet.reply(id, outcome);
                }
                Work::Step(id, step, stop, limit) => self.step(id, &mut end, &step, stop, limit),
                Work::Case(id, case) => {
                    let outcome = self.case(&mut end, &case);
                    self.outlet.reply(id, outcome);
                }
                Work::Stop(id) => {
                    let nothing = || Failure::new(Stage::Converse, Kind::Internal, "nothing is being served");
                    let outcome = self.served.take().unwrap_or_else(|| Err(nothing()));
                    self.outlet.reply(id, outcome);
                }
                Work::Close(id) => {
                    if let Err(failure) = caught(Stage::Converse, || drop(end)) {
                        crate::system::log!("closing link {}: {failure}", self.link);
                    }
                    self.forget();
                    if let Some(id) = id {
                        self.outlet.reply(id, Ok(Answer::Done));
                    }
                    end = Err(Failure::new(Stage::Converse, Kind::Aborted, "the link was closed"));
                }
            }
        }
    }

    fn step(
        &mut self,
        id: u64,
        end: &mut Result<Box<dyn Link>, Failure>,
        step: &Step,
        stop: Arc<AtomicBool>,
        limit: Duration,
    ) {
        self.served = None;
        let armed = Arc::new(AtomicBool::new(false));
        let mut control = self.control(stop, limit);
        if matches!(step, Step::Serve { .. }) {
            let (armed, outlet) = (armed.clone(), self.outlet.clone());
            control = control.on_ready(move || {
                if !armed.swap(true, Ordering::Relaxed) {
                    outlet.reply(id, Ok(Answer::Done));
                }
            });
        }
        let timed = window(step).zip(end.as_ref().ok());
        let gpu = timed.and_then(|(_, end)| end.opened().settings.remove("gpu_pci"));
        let span = timed.and_then(|(window, _)| Span::begin(gpu.clone(), window));
        let outcome = with(end, step.stage(), |end| end.step(step, &control));
        let outcome = match span.zip(gpu) {
            Some((span, pci)) => on_gpu(outcome, span, &pci),
            None => outcome.map(Answer::Stepped),
        };
        if armed.load(Ordering::Relaxed) {
            self.served = Some(outcome);
        } else {
            self.outlet.reply(id, outcome);
        }
    }

    fn case(&mut self, end: &mut Result<Box<dyn Link>, Failure>, case: &CaseSpec) -> Result<Answer, Failure> {
        if self.failed {
            return Err(Failure::new(Stage::Measure, Kind::Aborted, "a case before it has failed on this link"));
        }
        // Nobody but the peer ends a step of it: each has a flag of its own.
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let control = |limit| self.control(Arc::default(), limit);
        let outcome =
            with(end, Stage::Measure, |end| Ok(case::run(end.as_mut(), &self.here, case, is_first, &control)));
        self.failed = outcome.as_ref().map_or(true, |account| account.failure.is_some());
        outcome.map(|account| Answer::Case(Box::new(account)))
    }

    fn control(&self, stop: Arc<AtomicBool>, limit: Duration) -> Control {
        // A limit too far away to be added is no limit; a century is near enough to that.
        let century = Duration::from_secs(100 * 365 * 86_400);
        let deadline = Instant::now() + limit.min(century);
        Control::new(stop, self.abort.clone(), deadline).ringing(self.bell.clone())
    }

    /// Takes the link out of the register: from here on nothing more is sent to this thread.
    fn forget(&self) {
        self.register.lock().remove(&self.link);
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

/// Works on an open end. A panic breaks the end: it is dropped, and returns the panic's failure from then on.
fn with<T>(
    end: &mut Result<Box<dyn Link>, Failure>,
    stage: Stage,
    work: impl FnOnce(&mut Box<dyn Link>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let open = end.as_mut().map_err(|failure| failure.clone())?;
    caught(stage, || work(open)).unwrap_or_else(|failure| {
        let broken = std::mem::replace(end, Err(failure.clone()));
        // What panicked once may panic again in its destructor; its failure is reported already.
        let _ = caught(stage, || drop(broken));
        Err(failure)
    })
}
