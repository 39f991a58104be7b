//! A link on several threads, which divide its queue pairs: each has its own end with device context, completion queue and memory, and
//! one account covers all. perftest uses one thread.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    thread::JoinHandle,
};

use railgauge_wire::{
    Endpoint, Failure, Kind, Lane, LinkSpec, Measurement, Nanoseconds, Opened, Stage, Step, Stepped, TestMetric,
    Timing, Window,
    remedy::{self, Entry},
};

use super::link::Link;
use crate::{
    bench::{clock, control::Control},
    worker::{self, Worker},
};

type OpenOne = fn(&LinkSpec) -> Result<Box<dyn Link>, Failure>;

/// Time for every thread to receive a timed pass: their windows begin together after it.
const LEAD: Nanoseconds = Nanoseconds::from_millis(10);

struct Threads {
    workers: Vec<Worker<Box<dyn Link>>>,
    handles: Vec<JoinHandle<()>>,
    opened: Vec<Opened>,
    qps: Vec<u32>,
}

pub(super) fn open(spec: &LinkSpec, one: OpenOne) -> Result<Box<dyn Link>, Failure> {
    let shares = shares(spec)?;
    let qps = shares.iter().map(|share| share.qps).collect();
    let mut link = Threads { workers: Vec::new(), handles: Vec::new(), opened: Vec::new(), qps };
    for (number, share) in shares.into_iter().enumerate() {
        let started = Worker::start(&format!("share-{number}"), move || one(&share)).map_err(|error| {
            Failure::new(Stage::Open, Kind::Configuration, format!("no thread {number} for the link: {error}"))
                .remedy(remedy::RAISE_PROCESSES)
        })?;
        link.workers.push(started.0);
        link.handles.push(started.1);
    }
    link.opened = link.tell(link.all(), Stage::Open, None, |_, link| Ok(link.opened()))?;
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
        // Flow labels and core numbers continue after those of the share before.
        knobs.flow_label = knobs.flow_label.map(|label| label + first);
        knobs.core = knobs.core.map(|core| core + number);
        first += qps;
        LinkSpec { qps, threads: 1, knobs, ..spec.clone() }
    };
    Ok((0..threads).map(share).collect())
}

impl Threads {
    /// Runs something on these threads, and waits for all. After a failure, `control` stops those that serve, since their peer will not
    /// answer. After a panic, it ends all.
    fn tell<R: Send + 'static>(
        &self,
        numbers: Range<usize>,
        stage: Stage,
        control: Option<&Control>,
        order: impl Fn(usize, &mut dyn Link) -> Result<R, Failure> + Send + Sync + 'static,
    ) -> Result<Vec<R>, Failure> {
        let (asked, order) = (numbers.len(), Arc::new(order));
        let (answer, answers) = channel();
        for number in numbers {
            let (answer, order) = (answer.clone(), order.clone());
            self.workers[number].pass(move |link| {
                let (outcome, _broken) = worker::with(link, stage, |link| order(number, &mut **link));
                let _ = answer.send((number, outcome, link.is_err()));
            });
        }
        drop(answer);
        let (mut done, mut failure) = (BTreeMap::new(), None);
        for (number, outcome, is_gone) in answers {
            match outcome {
                Ok(answer) => _ = done.insert(number, answer),
                Err(first) => {
                    control.inspect(|control| if is_gone { control.abort() } else { control.stop() });
                    let of_thread = format!("thread {number} of the link");
                    failure.get_or_insert(if is_gone { first.about(of_thread) } else { first });
                }
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None if done.len() < asked => Err(Failure::new(stage, Kind::Internal, "a thread of the link has ended")),
            None => Ok(done.into_values().collect()),
        }
    }

    fn all(&self) -> Range<usize> {
        0..self.workers.len()
    }

    /// A control for each thread: the link is ready when all of them are.
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
        let Endpoint::Several(peers) = peer else { return Err(differs(1, self.workers.len())) };
        if peers.len() != self.workers.len() {
            return Err(differs(peers.len(), self.workers.len()));
        }
        let (peers, shared) = (peers.clone(), control.clone());
        self.opened = self.tell(self.all(), Stage::Join, Some(control), move |number, link| {
            link.join(&peers[number], &shared)?;
            Ok(link.opened())
        })?;
        Ok(())
    }

    fn step(&mut self, step: &Step, control: &Control) -> Result<Stepped, Failure> {
        let mut step = together(step)?;
        let alone = alone(&mut step, &self.qps)?;
        let asked = alone.map_or(0..self.workers.len(), |thread| thread..thread + 1);
        let shared = Self::control(control, asked.len());
        let all = self.tell(asked, step.stage(), Some(control), move |_, link| link.step(&step, &shared))?;
        let mut stepped = all.into_iter().reduce(sum).unwrap_or(Stepped::Done);
        if let (Some(thread), Stepped::Measured(measured)) = (alone, &mut stepped) {
            // In the order of the link's queue pairs; those of other threads moved nothing.
            let (before, all) = (self.qps[..thread].iter().sum::<u32>(), self.qps.iter().sum::<u32>());
            measured.lanes.splice(0..0, (0..before).map(|_| Lane::default()));
            measured.lanes.resize(all as usize, Lane::default());
        }
        Ok(stepped)
    }

    fn give_turn(&mut self) -> Result<(), Failure> {
        self.tell(self.all(), Stage::Measure, None, |_, link| link.give_turn()).map(drop)
    }

    fn await_turn(&mut self, control: &Control) -> Result<(), Failure> {
        let shared = control.clone();
        self.tell(self.all(), Stage::Measure, Some(control), move |_, link| link.await_turn(&shared)).map(drop)
    }

    fn give_up(&mut self) {
        // A thread that has ended has notified its peer.
        let _ = self.tell(self.all(), Stage::Measure, None, |_, link| {
            link.give_up();
            Ok(())
        });
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.workers.clear();
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

fn differs(theirs: usize, ours: usize) -> Failure {
    let cause = format!("the peer's end has {theirs} threads, this one {ours}");
    Failure::new(Stage::Join, Kind::Internal, cause)
}

/// A timed pass gets a start that all can meet, after its warm-up.
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

/// The thread of a step with one queue pair only; the number in the step becomes that thread's.
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
        // It served without any announcement.
        (Stepped::Done, other) => other,
        (one, _) => one,
    }
}

/// Bytes of both over the time from the first start to the last end: windows that overlap badly give less, never more. Slices are added
/// as if they began together, which is nearly exact.
fn added(a: &Measurement, b: &Measurement) -> Measurement {
    let end = |one: &Measurement| one.started + one.elapsed;
    let (started, end) = match (a.operations, b.operations) {
        // A thread that served without work has no window.
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
