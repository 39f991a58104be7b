//! One rank's part of a measurement: verify, warm up, time, verify what the last timed operation left behind.
//!
//! Method of nccl-tests: batches of operations are queued back to back and a host clock runs from the first call to
//! the moment the stream is empty. Latency is the same with batches of one, each behind a barrier that is not timed. Warm-up, batches and
//! windows are agreed among the ranks over the group itself, so that all do the same number of operations. A training step
//! ([`step`]) is behind a barrier too.

use std::{ffi::c_int, sync::Arc};

use parking_lot::Mutex;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    group::{CollectiveMeasurement, CollectiveSpec},
    remedy,
    step::Checked,
    terms::{Datatype, Op, Reduction, TestMetric},
    unit::Nanoseconds,
};

mod step;

use super::{
    communicator::{Call, Communicator},
    library,
};
use crate::{
    bench::{clock, cpu},
    collective::{
        cut::{self, Cut},
        layout::Layout,
    },
    gpu::{Buffer, Stream, kernels, values::Values},
};

/// How long after the last rank came to a barrier all begin: longer than the barrier takes on one host. A
/// GPU that has been idle longer starts later: 100 µs cost latencies of 8 bytes 0.7 µs of 14, 300 µs cost 1.3.
const AHEAD: Nanoseconds = Nanoseconds(60_000);
/// Polls of the stream between two looks at the communicator's health.
const POLLS: u32 = 4_096;

/// What a rank is doing, for the words of a deadline.
pub(crate) type Phase = Arc<Mutex<String>>;

struct Timed {
    times: Vec<Nanoseconds>,
    /// Of the buckets of training steps by themselves.
    alone: Vec<Nanoseconds>,
    cpu: Nanoseconds,
    /// From the first to the end of the last.
    pass: (Nanoseconds, Nanoseconds),
}

pub(crate) struct Bench {
    /// Must go before stream and buffers.
    communicator: Communicator,
    stream: Stream,
    send: Buffer,
    receive: Buffer,
    /// 8 bytes for barriers and agreements.
    small: Buffer,
    filled: Option<(Datatype, Option<Reduction>, u64)>,
    /// The library's number of the reduction at hand.
    reduction: c_int,
    phase: Phase,
}

impl Bench {
    pub(crate) fn new(communicator: Communicator, stream: Stream, buffers: [Buffer; 3], phase: Phase) -> Self {
        let [send, receive, small] = buffers;
        Self { communicator, stream, send, receive, small, filled: None, reduction: 0, phase }
    }

    pub(crate) fn run(&mut self, collective: &CollectiveSpec) -> Result<CollectiveMeasurement, Failure> {
        let (rank, ranks) = (self.communicator.rank(), self.communicator.ranks());
        let capacity = self.send.len();
        let layout = Layout::new(collective, rank, ranks, capacity).ok_or_else(|| {
            let cause =
                format!("{} bytes do not divide among {ranks} ranks, or not fit in {capacity}", collective.size);
            Failure::new(Stage::Measure, Kind::Configuration, cause)
        })?;
        let options = &collective.options;
        let reduction = options.reduction.filter(|_| collective.op.reduces());
        if let Some(reduction) =
            reduction.filter(|reduction| collective.verify && !reduction.is_exact(options.datatype, ranks))
        {
            let cause =
                format!("{reduction} of {} over {ranks} ranks is rounded and cannot be verified", options.datatype);
            return Err(Failure::new(Stage::Measure, Kind::Configuration, cause).remedy(remedy::EXACT_REDUCTION));
        }
        self.reduction = self.communicator.reduction(reduction, options.datatype)?;
        self.say("preparing data");
        let values = Values::new(&self.stream, options.datatype, reduction, ranks, collective.seed)?;
        self.fill(&layout, &values, collective)?;
        let mut checked = Checked::default();
        if collective.verify {
            self.say("the verifying operation before");
            self.once(&layout, collective)?;
            checked += self.compare(&layout, &values, 0)?;
        }
        self.say("warming up");
        let cut = self.agree(&layout, collective)?;
        if options.in_place {
            self.fill(&layout, &values, collective)?;
        }
        let verify_timed = collective.verify && layout.repeats(reduction);
        let last = (cut.batch - 1) % layout.slots;
        let verified = verify_timed.then_some(last);
        let Timed { times, alone, cpu, pass } = match self.step_of(&layout, collective) {
            Some(step) => self.time_steps(&layout, collective, &cut, &step, verified)?,
            None => self.time(&layout, collective, &cut, verified)?,
        };
        if verify_timed {
            self.say("verifying what the last timed operation left behind");
            checked += self.compare(&layout, &values, last)?;
        } else if collective.verify {
            self.say("the verifying operation after");
            self.fill(&layout, &values, collective)?;
            self.once(&layout, collective)?;
            checked += self.compare(&layout, &values, 0)?;
        }
        self.say("idle");
        Ok(CollectiveMeasurement {
            times,
            batch: cut.batch,
            alone,
            checked,
            cpu,
            pass: Some(pass),
            ..CollectiveMeasurement::default()
        })
    }

    fn say(&self, words: &str) {
        words.clone_into(&mut self.phase.lock());
    }

    /// Input data, where it is not there already. Results in place have overwritten it.
    fn fill(&mut self, layout: &Layout, values: &Values, collective: &CollectiveSpec) -> Result<(), Failure> {
        let options = &collective.options;
        if options.in_place {
            kernels::write_values(&self.stream, &self.receive, values, &layout.input())?;
            return self.stream.wait();
        }
        let key = (options.datatype, options.reduction, collective.seed);
        if self.filled == Some(key) {
            return Ok(());
        }
        self.filled = None;
        // All of the buffer, whatever this size needs of it: the next sizes find it filled.
        let whole = crate::memory::values::Part { count: self.send.len() / layout.width, ..layout.input() };
        kernels::write_values(&self.stream, &self.send, values, &whole)?;
        self.stream.wait()?;
        self.filled = Some(key);
        Ok(())
    }

    fn call(&self, layout: &Layout, collective: &CollectiveSpec, slot: u64) -> Call<'_> {
        let options = &collective.options;
        Call {
            op: collective.op,
            count: layout.count,
            datatype: (library::datatype(options.datatype), layout.width),
            reduction: self.reduction,
            send: if options.in_place { &self.receive } else { &self.send },
            send_at: layout.send_at(slot) * layout.width,
            receive: &self.receive,
            receive_at: layout.receive_at(slot) * layout.width,
        }
    }

    /// One operation in slot 0, on a result that was overwritten before.
    fn once(&self, layout: &Layout, collective: &CollectiveSpec) -> Result<(), Failure> {
        if !collective.options.in_place {
            self.stream.set(&self.receive, 0xff, collective.size.0)?;
        }
        self.communicator.queue(&self.call(layout, collective, 0), &self.stream)?;
        self.settle()
    }

    fn compare(&self, layout: &Layout, values: &Values, slot: u64) -> Result<Checked, Failure> {
        let mut sum = Checked::default();
        for part in layout.output(slot) {
            sum += kernels::check_values(&self.stream, &self.receive, values, &part)?;
        }
        Ok(sum)
    }

    /// Waits for the stream, looking at the group's health now and then.
    #[inline]
    fn settle(&self) -> Result<(), Failure> {
        loop {
            for _ in 0..POLLS {
                if self.stream.is_done()? {
                    return Ok(());
                }
            }
            self.communicator.healthy()?;
            std::thread::yield_now();
        }
    }

    /// The largest of what the ranks say; also a barrier.
    fn largest(&self, mine: Nanoseconds) -> Result<Nanoseconds, Failure> {
        let mut bytes = mine.0.to_le_bytes();
        self.stream.to_device(&self.small, 0, &bytes)?;
        let call = Call {
            op: Op::AllReduce,
            count: 1,
            datatype: (library::datatype(Datatype::U64), 8),
            reduction: library::LARGEST,
            send: &self.small,
            send_at: 0,
            receive: &self.small,
            receive_at: 0,
        };
        self.communicator.queue(&call, &self.stream)?;
        self.stream.to_host(&mut bytes, &self.small, 0)?;
        self.settle()?;
        Ok(Nanoseconds(u64::from_le_bytes(bytes)))
    }

    /// Brings the ranks together: by a barrier, and where all are on one host also by its clock, because they leave a
    /// barrier some microseconds apart. In between one operation is not timed, as in nccl-tests: the first one after
    /// another kernel waits for its code.
    fn line_up(&self, collective: &CollectiveSpec, untimed: Option<&Call<'_>>) -> Result<(), Failure> {
        let latest = self.largest(clock::now())?;
        if let Some(call) = untimed {
            self.communicator.queue(call, &self.stream)?;
            self.settle()?;
        }
        if collective.options.ranks_per_host == self.communicator.ranks() {
            spin_until(latest + AHEAD);
        }
        Ok(())
    }

    fn agree(&self, layout: &Layout, collective: &CollectiveSpec) -> Result<Cut, Failure> {
        let step = self.step_of(layout, collective);
        let repeat = |operations: u64| {
            if let Some(step) = &step {
                return (0..operations).try_for_each(|_| self.step(step).map(drop));
            }
            for k in 0..operations {
                self.communicator.queue(&self.call(layout, collective, k % layout.slots), &self.stream)?;
            }
            self.settle()
        };
        let one = cut::warm_up(collective, |operations| {
            self.largest(Nanoseconds::ZERO)?;
            let begin = clock::now();
            repeat(operations)?;
            self.largest(clock::now() - begin)
        })?;
        Ok(Cut::new(collective, one))
    }

    /// The timed batches. The slot of the last operation of the last batch is overwritten before that batch if it is
    /// going to be verified.
    fn time(
        &self,
        layout: &Layout,
        collective: &CollectiveSpec,
        cut: &Cut,
        verified: Option<u64>,
    ) -> Result<Timed, Failure> {
        let calls: Vec<Call<'_>> = (0..cut.batch).map(|k| self.call(layout, collective, k % layout.slots)).collect();
        let queue = || calls.iter().try_for_each(|call| self.communicator.queue(call, &self.stream));
        let graph = match collective.options.graph {
            true => Some(self.stream.capture(queue)?),
            false => None,
        };
        if let Some(graph) = &graph {
            // The first launch uploads the graph.
            graph.launch(&self.stream)?;
            self.settle()?;
        }
        // Not where the last timed operation stands, which may be overwritten already and must do its work itself.
        let elsewhere = layout.slots > 1 || verified.is_none();
        let untimed = (collective.metric == TestMetric::Bandwidth && elsewhere)
            .then(|| self.call(layout, collective, cut.batch % layout.slots));
        self.say("timed operations");
        let batch = || {
            let begin = clock::now();
            match &graph {
                Some(graph) => graph.launch(&self.stream)?,
                None => queue()?,
            }
            self.settle()?;
            Ok::<_, Failure>((clock::now() - begin).max(Nanoseconds(1)))
        };
        let mut times = Vec::new();
        let before = cpu::thread();
        let begin = clock::now();
        let mut elapsed = Nanoseconds::ZERO;
        while let further @ 1.. = cut.further(times.len() as u64, elapsed) {
            for number in 0..further {
                // Between batches the last operation itself has brought the ranks together, closer than a barrier does.
                if number == 0 || collective.metric == TestMetric::Latency {
                    self.line_up(collective, untimed.as_ref())?;
                }
                times.push(batch()?);
            }
            elapsed = self.largest(clock::now() - begin)?;
        }
        if let Some(slot) = verified.filter(|_| !collective.options.in_place) {
            self.poison(layout, collective, slot)?;
        }
        self.line_up(collective, untimed.as_ref())?;
        times.push(batch()?);
        Ok(Timed { times, alone: Vec::new(), cpu: cpu::thread() - before, pass: (begin, clock::now()) })
    }

    fn poison(&self, layout: &Layout, collective: &CollectiveSpec, slot: u64) -> Result<(), Failure> {
        // From the start of the buffer to the end of the slot: simple, and every slot is written again.
        let end = (slot + 1) * collective.size.0;
        self.stream.set(&self.receive, 0xff, end.min(layout.extent()))?;
        self.stream.wait()
    }
}

/// Waits for a moment without letting go of the processor; at once if it has passed.
fn spin_until(moment: Nanoseconds) {
    while clock::now() < moment {
        std::hint::spin_loop();
    }
}
