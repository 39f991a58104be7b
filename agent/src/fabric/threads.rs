//! A link on several threads: its queue pairs are divided among them, and every thread has an end of its own, with its
//! own context of the device, completion queue and memory. What the threads did is one account.
//!
//! perftest has nothing like it: it runs on one thread.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::{Endpoint, LinkSpec, Opened},
    measure::{Lane, Measurement},
    remedy::{self, Entry},
    step::{Step, Stepped, Timing, Window},
    terms::TestMetric,
    unit::Nanoseconds,
};

use super::Link;
use crate::{
    bench::{clock, control::Control},
    system::{
        panics::{self, Panicked},
        workers,
    },
};

type OpenOne = fn(&LinkSpec) -> Result<Box<dyn Link>, Failure>;

/// Time for every thread to hear of a timed pass: their windows begin together after it.
const LEAD: Nanoseconds = Nanoseconds::from_millis(10);

struct Threads {
    /// Dropped first, which ends the threads.
    orders: Vec<Sender<Order>>,
    answers: Receiver<(usize, Said)>,
    handles: Vec<JoinHandle<()>>,
    opened: Vec<Opened>,
    qps: Vec<u32>,
}

enum Order {
    Join(Endpoint, Control),
    Step(Step, Control),
    GiveTurn,
    AwaitTurn(Control),
    GiveUp,
}

impl Order {
    /// The stage to which a failure of it belongs.
    const fn stage(&self) -> Stage {
        match self {
            Self::Join(..) => Stage::Join,
            Self::Step(step, _) => step.stage(),
            Self::GiveTurn | Self::AwaitTurn(_) | Self::GiveUp => Stage::Measure,
        }
    }
}

/// What a thread answers to an order.
enum Said {
    Done(Done),
    Failed(Failure),
    /// It has panicked: this is the last that it says.
    Gone(Failure),
}

enum Done {
    Opened(Box<Opened>),
    Stepped(Stepped),
}

/// Opens a link of `spec.threads` threads, each of which opens its share with `one`.
pub(super) fn open(spec: &LinkSpec, one: OpenOne) -> Result<Box<dyn Link>, Failure> {
    let (answer, answers) = channel();
    let shares = shares(spec)?;
    let qps = shares.iter().map(|share| share.qps).collect();
    let mut link = Threads { orders: Vec::new(), answers, handles: Vec::new(), opened: Vec::new(), qps };
    for (number, share) in shares.into_iter().enumerate() {
        let (order, orders) = channel();
        let answer = answer.clone();
        let work = move || run(number, &share, one, &orders, &answer);
        let handle = workers::start(&format!("share-{number}"), work).map_err(|error| {
            Failure::new(Stage::Open, Kind::Configuration, format!("no thread {number} for the link: {error}"))
                .remedy(remedy::RAISE_PROCESSES)
        })?;
        link.orders.push(order);
        link.handles.push(handle);
    }
    // From here on a channel without senders means that all threads have ended.
    drop(answer);
    let opened = link.all(link.orders.len(), Stage::Open, None)?;
    link.opened = opened_of(opened);
    Ok(Box::new(link))
}

fn shares(spec: &LinkSpec) -> Result<Vec<LinkSpec>, Failure> {
    let (threads, qps) = (spec.threads, spec.qps);
    if threads == 0 || threads > qps {
        let cause = format!("{qps} queue pairs cannot be divided among {threads} threads");
        return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::QUEUE_PAIR_PER_THREAD));
    }
    let mut first = 0;
    let share = |number: u32| {
        let qps = qps / threads + u32::from(number < qps % threads);
        let mut knobs = spec.knobs.clone();
        // Queue pairs and threads go on counting where the share before has ended.
        knobs.flow_label = knobs.flow_label.map(|label| label + first);
        knobs.core = knobs.core.map(|core| core + number);
        first += qps;
        LinkSpec { qps, threads: 1, thread: number, knobs, ..spec.clone() }
    };
    Ok((0..threads).map(share).collect())
}

fn run(number: usize, share: &LinkSpec, one: OpenOne, orders: &Receiver<Order>, answer: &Sender<(usize, Said)>) {
    let gone = |stage, Panicked(words): Panicked| {
        let cause = format!("thread {number} of the link panicked: {words}");
        Said::Gone(Failure::new(stage, Kind::Internal, cause).remedy(remedy::REPORT_DEFECT))
    };
    // Nobody listens any more once the link is being dropped.
    let say = |said| answer.send((number, said)).is_ok();
    let opened = match panics::caught(|| one(share)) {
        Ok(Ok(link)) => Ok(link),
        Ok(Err(failure)) => Err(Said::Failed(failure)),
        Err(panicked) => Err(gone(Stage::Open, panicked)),
    };
    let mut link = match opened {
        Ok(link) => link,
        Err(said) => {
            say(said);
            return;
        }
    };
    if !say(Said::Done(Done::Opened(Box::new(link.opened())))) {
        return;
    }
    while let Ok(order) = orders.recv() {
        let stage = order.stage();
        let said = match panics::caught(|| obey(&mut *link, order)) {
            Ok(Ok(done)) => Said::Done(done),
            Ok(Err(failure)) => Said::Failed(failure),
            Err(panicked) => {
                let Said::Gone(failure) = gone(stage, panicked) else { return };
                say(Said::Gone(failure.clone()));
                // This is how the peer hears of it. What panicked once may panic again in its destructor.
                drop(panics::caught(|| drop(link)));
                // Whoever gives it an order meanwhile, or later, is answered like those that are there.
                while orders.recv().is_ok() && say(Said::Gone(failure.clone())) {}
                return;
            }
        };
        if !say(said) {
            return;
        }
    }
}

fn obey(link: &mut dyn Link, order: Order) -> Result<Done, Failure> {
    let nothing = || Done::Stepped(Stepped::Done);
    match order {
        Order::Join(peer, control) => link.join(&peer, &control).map(|()| Done::Opened(Box::new(link.opened()))),
        Order::Step(step, control) => link.step(&step, &control).map(Done::Stepped),
        Order::GiveTurn => link.give_turn().map(|()| nothing()),
        Order::AwaitTurn(control) => link.await_turn(&control).map(|()| nothing()),
        Order::GiveUp => {
            link.give_up();
            Ok(nothing())
        }
    }
}

fn opened_of(all: Vec<Done>) -> Vec<Opened> {
    let opened = |done| if let Done::Opened(opened) = done { Some(*opened) } else { None };
    all.into_iter().filter_map(opened).collect()
}

impl Threads {
    /// The answers of so many threads, in their order. Once one fails, those that serve are stopped by `control`: they would wait for
    /// a peer that is not coming. Once one is gone, all are ended by it.
    fn all(&self, asked: usize, stage: Stage, control: Option<&Control>) -> Result<Vec<Done>, Failure> {
        let mut done = BTreeMap::new();
        let mut failure = None;
        for _ in 0..asked {
            let first = match self.answers.recv() {
                Ok((number, Said::Done(answer))) => {
                    done.insert(number, answer);
                    continue;
                }
                Ok((_, Said::Failed(first))) => {
                    control.inspect(|control| control.stop());
                    first
                }
                Ok((_, Said::Gone(first))) => {
                    control.inspect(|control| control.abort());
                    first
                }
                Err(_) => {
                    let gone = || Failure::new(stage, Kind::Internal, "a thread of the link has ended");
                    return Err(failure.unwrap_or_else(gone));
                }
            };
            failure.get_or_insert(first);
        }
        failure.map_or_else(|| Ok(done.into_values().collect()), Err)
    }

    /// Gives each of these threads an order, and waits for all of them.
    fn tell(
        &self,
        numbers: Range<usize>,
        stage: Stage,
        control: Option<&Control>,
        order: impl Fn(usize) -> Order,
    ) -> Result<Vec<Done>, Failure> {
        let asked = numbers.len();
        let gone: Vec<usize> = numbers.filter(|&number| self.orders[number].send(order(number)).is_err()).collect();
        let Some(first) = gone.first() else { return self.all(asked, stage, control) };
        control.inspect(|control| control.abort());
        // Those that took the order answer it, and no answer may be left for the next one.
        let _ = self.all(asked - gone.len(), stage, control);
        Err(Failure::new(stage, Kind::Internal, format!("thread {first} of the link has ended")))
    }

    /// Tells every thread the same, and waits for all of them.
    fn tell_all(&self, control: Option<&Control>, order: impl Fn() -> Order) -> Result<(), Failure> {
        self.tell(0..self.orders.len(), Stage::Measure, control, |_| order()).map(drop)
    }

    /// A control for each of so many threads: the link is ready when all of them are.
    fn control(control: &Control, asked: usize) -> Control {
        let (parent, missing) = (control.clone(), AtomicUsize::new(asked));
        control.clone().on_ready(move || {
            if missing.fetch_sub(1, Ordering::AcqRel) == 1 {
                parent.ready();
            }
        })
    }
}

impl Link for Threads {
    fn opened(&self) -> Opened {
        let mut opened = self.opened[0].clone();
        opened.endpoint = Endpoint::Several(self.opened.iter().map(|share| share.endpoint.clone()).collect());
        opened.settings.insert("threads".to_owned(), self.opened.len().to_string());
        opened
    }

    fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure> {
        let Endpoint::Several(peers) = peer else { return Err(differs(1, self.orders.len())) };
        if peers.len() != self.orders.len() {
            return Err(differs(peers.len(), self.orders.len()));
        }
        let join = |number: usize| Order::Join(peers[number].clone(), control.clone());
        self.opened = opened_of(self.tell(0..peers.len(), Stage::Join, Some(control), join)?);
        Ok(())
    }

    fn step(&mut self, step: &Step, control: &Control) -> Result<Stepped, Failure> {
        let mut step = together(step)?;
        let alone = alone(&mut step, &self.qps)?;
        let asked = alone.map_or(0..self.orders.len(), |thread| thread..thread + 1);
        let shared = Self::control(control, asked.len());
        let all = self.tell(asked, step.stage(), Some(control), |_| Order::Step(step.clone(), shared.clone()))?;
        let mut stepped =
            all.into_iter().filter_map(|done| if let Done::Stepped(one) = done { Some(one) } else { None });
        let first = stepped.next().unwrap_or(Stepped::Done);
        let mut stepped = stepped.fold(first, sum);
        if let (Some(thread), Stepped::Measured(measured)) = (alone, &mut stepped) {
            // Lanes stand in the order of the link's queue pairs; those of other threads have moved nothing.
            let (before, all) = (self.qps[..thread].iter().sum::<u32>(), self.qps.iter().sum::<u32>());
            measured.lanes.splice(0..0, (0..before).map(|_| Lane::default()));
            measured.lanes.resize(all as usize, Lane::default());
        }
        Ok(stepped)
    }

    fn give_turn(&mut self) -> Result<(), Failure> {
        self.tell_all(None, || Order::GiveTurn)
    }

    fn await_turn(&mut self, control: &Control) -> Result<(), Failure> {
        self.tell_all(Some(control), || Order::AwaitTurn(control.clone()))
    }

    fn give_up(&mut self) {
        // A thread that has ended has let its peer know.
        let _ = self.tell_all(None, || Order::GiveUp);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.orders.clear();
        for handle in self.handles.drain(..) {
            // A thread that panicked has closed its end on the way.
            let _ = handle.join();
        }
    }
}

fn differs(theirs: usize, ours: usize) -> Failure {
    let cause = format!("the peer's end has {theirs} threads, this one {ours}");
    Failure::new(Stage::Join, Kind::Internal, cause)
}

/// A step for all threads: a timed pass gets a start that all of them can keep, behind its warm-up.
fn together(step: &Step) -> Result<Step, Failure> {
    let refused = |cause, remedy: Entry| Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).remedy(remedy));
    if let Step::Time(Timing { metric: TestMetric::Latency, .. }) | Step::Serve { metric: TestMetric::Latency, .. } =
        step
    {
        return refused("latency is measured on one thread", remedy::ONE_THREAD);
    }
    let Step::Time(timing) = step else { return Ok(step.clone()) };
    if let Window::Adaptive { .. } = timing.window {
        let cause = "several threads cannot be measured adaptively: each would end at a different time";
        return refused(cause, remedy::MEASURE_FIXED_TIME);
    }
    let start = timing.start_at.unwrap_or_else(|| clock::now().saturating_add(timing.warm_up).saturating_add(LEAD));
    Ok(Step::Time(Timing { start_at: Some(start), ..*timing }))
}

/// The only thread that a step is for, where it uses one queue pair only; the number in the step becomes that thread's.
fn alone(step: &mut Step, qps: &[u32]) -> Result<Option<usize>, Failure> {
    let Step::Time(Timing { only: Some(only), .. }) = step else { return Ok(None) };
    for (thread, &qps) in qps.iter().enumerate() {
        if *only < qps {
            return Ok(Some(thread));
        }
        *only -= qps;
    }
    Err(Failure::new(Stage::Measure, Kind::Internal, "the link has no queue pair of this number"))
}

fn sum(one: Stepped, other: Stepped) -> Stepped {
    match (one, other) {
        (Stepped::Checked(mut sum), Stepped::Checked(more)) => {
            sum += more;
            Stepped::Checked(sum)
        }
        (Stepped::Measured(a), Stepped::Measured(b)) => Stepped::Measured(Box::new(added(&a, &b))),
        // Who only served, and heard of nothing.
        (Stepped::Done, other) => other,
        (one, _) => one,
    }
}

/// Bytes of both over the time from the first start to the last end: windows that overlap badly give less, never more.
/// Slices are added as if they began together, which they do within the time it takes to leave a spin.
fn added(a: &Measurement, b: &Measurement) -> Measurement {
    let end = |one: &Measurement| one.started + one.elapsed;
    let (started, end) = match (a.operations, b.operations) {
        // A thread that served and had nothing to do has no window.
        (0, 1..) => (b.started, end(b)),
        (1.., 0) => (a.started, end(a)),
        _ => (a.started.min(b.started), end(a).max(end(b))),
    };
    let both = |of: fn(&Measurement) -> Option<railgauge_wire::unit::Bytes>| of(a).zip(of(b)).map(|(a, b)| a + b);
    Measurement {
        started,
        elapsed: end - started,
        operations: a.operations + b.operations,
        bytes: a.bytes + b.bytes,
        received: both(|end| end.received),
        moved: both(|end| end.moved),
        cpu: a.cpu + b.cpu,
        slices: a.slices.iter().zip(&b.slices).map(|(a, b)| *a + *b).collect(),
        lanes: a.lanes.iter().chain(&b.lanes).copied().collect(),
        ..Measurement::default()
    }
}

#[cfg(test)]
mod tests;
