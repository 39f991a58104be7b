//! One rank's part of a measurement: verify, warm up, time, verify the result of the last timed operation.
//!
//! Method of nccl-tests: batches of operations are queued back to back and a host clock runs from the first call until the stream is
//! empty. Latency uses batches of one, each behind an untimed barrier, and so does a training step. Its buckets are reduced on the stream
//! as soon as they are full and the one before is done. The backward pass is a timer of the host and does not use the GPU, so these
//! numbers exclude what a real one loses to NCCL's channels.

use std::{
    cell::{Cell, RefCell},
    ffi::c_int,
    sync::Arc,
};

use parking_lot::Mutex;
use railgauge_wire::{
    Bytes, Checked, CollectiveMeasurement, CollectiveSpec, Datatype, Failure, Kind, Nanoseconds, Op, Reduction, Stage,
    TestMetric, remedy,
};

use super::library::{self, Call, Communicator, Shared};
use crate::{
    bench::clock,
    collective::{
        bench::{self, Group},
        layout::{Layout, buckets},
    },
    gpu::{Buffer, Device, Graph, Pinned, Stream, kernels, table::Values},
    memory::{host, pattern::Part},
};

mod overlap;

/// Delay from the last rank's barrier to the common start: longer than the barrier takes on one host. A GPU that has been idle longer
/// starts later: 100 µs cost latencies of 8 bytes 0.7 µs of 14, 300 µs cost 1.3.
const AHEAD: Nanoseconds = Nanoseconds(60_000);
/// Polls of the stream between two checks of the communicator.
const POLLS: u32 = 4_096;

pub(crate) type Phase = Arc<Mutex<String>>;

pub(crate) struct Bench {
    communicator: Communicator,
    stream: Stream,
    send: Buffer,
    receive: Buffer,
    /// 8 bytes for barriers and agreements.
    small: Buffer,
    word: RefCell<Pinned>,
    filled: Cell<Option<(Datatype, Option<Reduction>, u64)>>,
    reduction: c_int,
    phase: Phase,
    /// Where a second communicator is kept for whoever has to end it.
    beside: Shared,
    second: Option<Box<Self>>,
}

/// What a rank sends, what it receives, and 8 bytes for barriers. Both large ones at once, so that a lack of memory shows before anything
/// moves.
pub(crate) fn buffers(device: &Arc<Device>, size: Bytes) -> Result<[Buffer; 3], Failure> {
    let (free, total) = device.memory()?;
    if size.saturating_mul(2) > Bytes(free) {
        let cause = format!("two buffers of {size} bytes are wanted, and {free} of the GPU's {total} bytes are free");
        return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(device.vendor().free_memory()));
    }
    Ok([Buffer::new(device, size.0)?, Buffer::new(device, size.0)?, Buffer::new(device, 8)?])
}

impl Bench {
    pub(crate) fn new(
        communicator: Communicator,
        stream: Stream,
        buffers: [Buffer; 3],
        phase: Phase,
        beside: Shared,
    ) -> Result<Self, Failure> {
        let [send, receive, small] = buffers;
        let word = RefCell::new(Pinned::new(stream.device(), host::Buffer::new(8, false)?)?);
        let filled = Cell::default();
        Ok(Self { communicator, stream, send, receive, small, word, filled, reduction: 0, phase, beside, second: None })
    }

    pub(crate) fn run(&mut self, collective: &CollectiveSpec) -> Result<CollectiveMeasurement, Failure> {
        let other = collective.beside.map(|op| Self::spec_of_second(collective, op));
        if other.is_some() && self.second.is_none() {
            self.second = Some(Box::new(self.join_second()?));
        }
        let ready = self.prepare(collective)?;
        let ready_other = match (&mut self.second, &other) {
            (Some(second), Some(other)) => Some((second.prepare(other)?, other)),
            _ => None,
        };
        let bench = &*self;
        let mut operation = Operation::new(bench, collective, &ready);
        let mut measured = bench::measure(&mut operation, collective, &ready.layout, ready.reduction)?;
        if let (Some(second), Some((ready, collective))) = (bench.second.as_deref(), &ready_other) {
            let mut other = Operation::new(second, collective, ready);
            let (passes, checked) = operation.overlap(&mut other)?;
            measured.overlap = passes;
            measured.checked += checked;
        }
        Ok(measured)
    }

    fn prepare(&mut self, collective: &CollectiveSpec) -> Result<Prepared, Failure> {
        let (rank, ranks) = (self.communicator.rank, self.communicator.ranks);
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
        let values = Values::new(&self.stream, options.datatype, reduction, ranks, collective.seed)?;
        Ok(Prepared { layout, reduction, values })
    }

    /// Waits for the stream, and checks the group now and then.
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

    fn largest(&self, mine: Nanoseconds) -> Result<Nanoseconds, Failure> {
        self.word.borrow_mut().bytes()?.copy_from_slice(&mine.0.to_le_bytes());
        self.stream.deliver(&self.small, &self.word.borrow(), 0, 8)?;
        let call = Call {
            op: Op::AllReduce,
            count: 1,
            datatype: (library::datatype(Datatype::U64), 8),
            reduction: library::LARGEST,
            send: &self.small,
            send_at: 0,
            receive: &self.small,
            receive_at: 0,
            exchange: None,
        };
        self.communicator.queue(&call, &self.stream)?;
        self.stream.fetch(&self.word.borrow(), &self.small, 0, 8)?;
        self.settle()?;
        let mut word = [0; 8];
        word.copy_from_slice(self.word.borrow_mut().bytes()?);
        Ok(Nanoseconds(u64::from_le_bytes(word)))
    }
}

/// Without yielding; returns at once if it has passed.
fn spin_until(moment: Nanoseconds) {
    while clock::now() < moment {
        std::hint::spin_loop();
    }
}

struct Prepared {
    layout: Layout,
    reduction: Option<Reduction>,
    values: Values,
}

struct Operation<'b> {
    bench: &'b Bench,
    collective: &'b CollectiveSpec,
    layout: &'b Layout,
    values: &'b Values,
    /// Buckets of a training step, each with its time from the step's start.
    steps: Option<Vec<(Call<'b>, Nanoseconds)>>,
    calls: Vec<Call<'b>>,
    graph: Option<Graph<'b>>,
    /// Untimed operation before a batch, as in nccl-tests: the first operation after another kernel waits for its code.
    untimed: Option<Call<'b>>,
}

impl<'b> Operation<'b> {
    fn new(bench: &'b Bench, collective: &'b CollectiveSpec, ready: &'b Prepared) -> Self {
        let (layout, values) = (&ready.layout, &ready.values);
        let (calls, graph) = (Vec::new(), None);
        let new = Self { bench, collective, layout, values, steps: None, calls, graph, untimed: None };
        Self { steps: new.steps(), ..new }
    }

    fn call(&self, slot: u64) -> Call<'b> {
        let (bench, layout, options) = (self.bench, self.layout, &self.collective.options);
        Call {
            op: self.collective.op,
            count: layout.count,
            datatype: (library::datatype(options.datatype), layout.width),
            reduction: bench.reduction,
            send: if options.in_place { &bench.receive } else { &bench.send },
            send_at: layout.send_at(slot) * layout.width,
            receive: &bench.receive,
            receive_at: layout.receive_at(slot) * layout.width,
            exchange: layout.exchange.as_ref(),
        }
    }

    fn steps(&self) -> Option<Vec<(Call<'b>, Nanoseconds)>> {
        let training = self.collective.options.training.as_ref()?;
        let (width, whole) = (self.layout.width, self.call(0));
        let calls = buckets(self.layout.count, width, training).into_iter().map(|bucket| {
            let at = bucket.at.start * width;
            let (send_at, receive_at) = (whole.send_at + at, whole.receive_at + at);
            (Call { count: bucket.at.end - bucket.at.start, send_at, receive_at, ..whole }, bucket.ready)
        });
        Some(calls.collect())
    }

    #[inline]
    fn queue(&self, call: &Call<'_>) -> Result<(), Failure> {
        self.bench.communicator.queue(call, &self.bench.stream)
    }

    fn step(&self, steps: &[(Call<'_>, Nanoseconds)]) -> Result<(), Failure> {
        let begin = clock::now();
        for (call, ready) in steps {
            spin_until(begin + *ready);
            self.queue(call)?;
        }
        self.bench.settle()?;
        let compute = self.collective.options.training.as_ref().map_or(Nanoseconds::ZERO, |training| training.compute);
        spin_until(begin + compute);
        Ok(())
    }

    /// Synchronizes the ranks by a barrier, and on a single host also by its clock, because they leave a barrier some microseconds apart.
    fn meet(&self) -> Result<(), Failure> {
        let latest = self.bench.largest(clock::now())?;
        if let Some(call) = &self.untimed {
            self.queue(call)?;
            self.bench.settle()?;
        }
        if self.collective.options.ranks_per_host == self.bench.communicator.ranks {
            spin_until(latest + AHEAD);
        }
        Ok(())
    }
}

impl Group for Operation<'_> {
    fn say(&self, words: &str) {
        words.clone_into(&mut self.bench.phase.lock());
    }

    fn fill(&mut self) -> Result<(), Failure> {
        let (bench, options) = (self.bench, &self.collective.options);
        if options.in_place {
            kernels::write_values(&bench.stream, &bench.receive, self.values, &self.layout.input())?;
            return bench.stream.wait();
        }
        let key = (options.datatype, options.reduction, self.collective.seed);
        if bench.filled.take() != Some(key) {
            // The whole buffer, so that the next sizes find it filled.
            let whole = Part { count: bench.send.len() / self.layout.width, ..self.layout.input() };
            kernels::write_values(&bench.stream, &bench.send, self.values, &whole)?;
            bench.stream.wait()?;
        }
        bench.filled.set(Some(key));
        Ok(())
    }

    fn poison(&mut self, slot: u64) -> Result<(), Failure> {
        // From the start of the buffer to the end of the slot: simple, and every slot is written again.
        let end = (slot + 1) * self.collective.size.0;
        self.bench.stream.set(&self.bench.receive, 0xff, end.min(self.layout.extent()))?;
        self.bench.stream.wait()
    }

    fn once(&mut self) -> Result<(), Failure> {
        self.queue(&self.call(0))?;
        self.bench.settle()
    }

    fn compare(&mut self, slot: u64) -> Result<Checked, Failure> {
        let mut sum = Checked::default();
        for part in self.layout.output(slot) {
            sum += kernels::check_values(&self.bench.stream, &self.bench.receive, self.values, &part)?;
        }
        Ok(sum)
    }

    fn largest(&mut self, mine: Nanoseconds) -> Result<Nanoseconds, Failure> {
        self.bench.largest(mine)
    }

    fn repeat(&mut self, operations: u64) -> Result<(), Failure> {
        if let Some(steps) = &self.steps {
            return (0..operations).try_for_each(|_| self.step(steps));
        }
        (0..operations).try_for_each(|k| self.queue(&self.call(k % self.layout.slots)))?;
        self.bench.settle()
    }

    fn begin(&mut self, batch: u64, verified: Option<u64>) -> Result<(), Failure> {
        if self.steps.is_some() {
            return Ok(());
        }
        self.calls = (0..batch).map(|k| self.call(k % self.layout.slots)).collect();
        if self.collective.options.graph {
            let graph = self.bench.communicator.capture(&self.calls, &self.bench.stream)?;
            // The first launch uploads the graph.
            graph.launch(&self.bench.stream)?;
            self.bench.settle()?;
            self.graph = Some(graph);
        }
        // Not in the last timed operation's slot, which may be poisoned already.
        let elsewhere = self.layout.slots > 1 || verified.is_none();
        let untimed = self.collective.metric == TestMetric::Bandwidth && elsewhere;
        self.untimed = untimed.then(|| self.call(batch % self.layout.slots));
        Ok(())
    }

    fn line_up(&mut self, number: u64) -> Result<(), Failure> {
        // Between batches the last operation has synchronized the ranks better than a barrier.
        let alike = self.collective.op.synchronizes() && self.collective.metric != TestMetric::Latency;
        let apart = number == 0 || self.steps.is_some() || !alike;
        if apart { self.meet() } else { Ok(()) }
    }

    fn alone(&mut self) -> Result<Option<Nanoseconds>, Failure> {
        let Some(steps) = &self.steps else { return Ok(None) };
        let begin = clock::now();
        steps.iter().try_for_each(|(call, _)| self.queue(call))?;
        self.bench.settle()?;
        let took = (clock::now() - begin).max(Nanoseconds(1));
        self.meet()?;
        Ok(Some(took))
    }

    #[inline]
    fn batch(&mut self, operations: u64) -> Result<(), Failure> {
        match &self.graph {
            Some(graph) => graph.launch(&self.bench.stream)?,
            None if self.steps.is_some() => return self.repeat(operations),
            None => self.calls.iter().try_for_each(|call| self.queue(call))?,
        }
        self.bench.settle()
    }
}
