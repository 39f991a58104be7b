//! One rank's part of a measurement over host memory: verify, warm up, time, verify what the last timed operation left
//! behind. All ranks agree over the group itself, so that all do the same number of operations.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    group::{CollectiveMeasurement, CollectiveSpec},
    link::Footprint,
    step::Checked,
    terms::{Algorithm, Datatype, Op, Reduction, TestMetric},
    unit::Nanoseconds,
};

use super::{
    cut::{self, Cut},
    engine::{self, Sides},
    job::Job,
    layout::Layout,
    memory::Memory,
    ready::{Part, Ready},
    reduce::kernel,
    script::Script,
    table::{Table, poison},
    wire::Wire,
};
use crate::{
    bench::control::Control,
    bench::{clock, cpu},
    fault,
};

pub(crate) struct Bench {
    rank: u32,
    ranks: u32,
    wire: Box<dyn Wire>,
    memory: Memory,
    footprint: Footprint,
    /// What tells the largest of the ranks' numbers.
    agreement: Script,
}

struct Timed {
    times: Vec<Nanoseconds>,
    /// Of the buckets of training steps by themselves.
    alone: Vec<Nanoseconds>,
    cpu: Nanoseconds,
}

impl Bench {
    pub(crate) fn new(rank: u32, ranks: u32, wire: Box<dyn Wire>, memory: Memory, footprint: Footprint) -> Self {
        let (own, all) = (rank as usize, ranks as usize);
        let job = Job { op: Op::AllReduce, rank: own, ranks: all, count: 1, width: 8, in_place: true };
        let agreement = job.script(Algorithm::RecursiveDoubling).unwrap_or_default();
        Self { rank, ranks, wire, memory, footprint, agreement }
    }

    pub(crate) fn run(
        &mut self,
        collective: &CollectiveSpec,
        control: &Control,
    ) -> Result<CollectiveMeasurement, Failure> {
        let refused = |cause: String| Failure::new(Stage::Measure, Kind::Configuration, cause);
        let (rank, ranks, capacity) = (self.rank, self.ranks, self.memory.capacity());
        let mut layout = Layout::new(collective, rank, ranks, capacity).ok_or_else(|| {
            refused(format!("{} bytes do not divide among {ranks} ranks, or not fit in {capacity}", collective.size))
        })?;
        if self.footprint == Footprint::Cache {
            layout.slots = 1;
        }
        let ready = Ready::new(collective, layout, rank, ranks)?;
        self.memory.scratch(ready.scratch)?;
        let (Timed { times, alone, cpu }, batch, checked) = self.measured(&ready, control)?;
        Ok(CollectiveMeasurement {
            times,
            batch,
            alone,
            checked,
            cpu,
            algorithm: Some(ready.algorithm),
            ..CollectiveMeasurement::default()
        })
    }

    fn measured(&mut self, ready: &Ready<'_>, control: &Control) -> Result<(Timed, u64, Checked), Failure> {
        let (collective, layout) = (ready.collective, &ready.layout);
        let mut checked = Checked::default();
        self.fill(ready);
        if collective.verify {
            self.once(ready, control)?;
            checked += self.compare(ready, 0);
        }
        let cut = self.agree(ready, control)?;
        if collective.options.in_place {
            self.fill(ready);
        }
        let verify_timed = collective.verify && layout.repeats(ready.reduction());
        let last = (cut.batch - 1) % layout.slots;
        let timed = self.time(ready, &cut, verify_timed.then_some(last), control)?;
        if verify_timed {
            checked += self.compare(ready, last);
        } else if collective.verify {
            self.fill(ready);
            self.once(ready, control)?;
            checked += self.compare(ready, 0);
        }
        Ok((timed, cut.batch, checked))
    }

    /// Input data. Results in place have overwritten it.
    fn fill(&mut self, ready: &Ready<'_>) {
        let part = ready.layout.input();
        let bytes = bytes(part.at, part.count, ready.layout.width);
        let table = Table::new(&ready.source, &part);
        let into = match ready.collective.options.in_place {
            true => &mut self.memory.output_mut()[bytes],
            false => &mut self.memory.input_mut()[bytes],
        };
        table.fill(into);
        fault::flip_bit(&mut into[..(ready.layout.count * ready.layout.width) as usize]);
    }

    /// One operation in slot 0, on a result that was overwritten before.
    fn once(&mut self, ready: &Ready<'_>, control: &Control) -> Result<(), Failure> {
        if !ready.collective.options.in_place {
            self.poison(ready, 0);
        }
        self.operation(ready, 0, control)
    }

    fn poison(&mut self, ready: &Ready<'_>, slot: u64) {
        let whole = ready.collective.size.0 / ready.layout.width;
        poison(&mut self.memory.output_mut()[bytes(slot * whole, whole, ready.layout.width)]);
    }

    #[inline]
    fn operation(&mut self, ready: &Ready<'_>, slot: u64, control: &Control) -> Result<(), Failure> {
        ready.parts.iter().try_for_each(|part| self.part(ready, part, slot, control))
    }

    #[inline]
    fn part(&mut self, ready: &Ready<'_>, part: &Part, slot: u64, control: &Control) -> Result<(), Failure> {
        let start = (ready.collective.size * slot).as_usize();
        let mut sides = self.memory.sides(start + part.at.start..start + part.at.end);
        let width = ready.layout.width as usize;
        engine::play(&part.script, &mut sides, ready.kernel, width, self.wire.as_mut(), control)
    }

    /// A training step: every bucket once the backward pass has filled it, and then the rest of that pass.
    fn step(&mut self, ready: &Ready<'_>, compute: Nanoseconds, control: &Control) -> Result<(), Failure> {
        let begin = clock::now();
        for part in &ready.parts {
            clock::wait_until(begin + part.ready, control)?;
            self.part(ready, part, 0, control)?;
        }
        clock::wait_until(begin + compute, control)
    }

    fn compare(&self, ready: &Ready<'_>, slot: u64) -> Checked {
        let mut sum = Checked::default();
        for part in ready.layout.output(slot) {
            let bytes = bytes(part.at, part.count, ready.layout.width);
            let start = bytes.start as u64;
            let mut found = Table::new(&ready.source, &part).check(&self.memory.output()[bytes]);
            found.first_wrong = found.first_wrong.map(|at| start + at);
            sum += found;
        }
        sum
    }

    /// The largest of what the ranks say; also a barrier.
    fn largest(&mut self, mine: Nanoseconds, control: &Control) -> Result<Nanoseconds, Failure> {
        let most = kernel(Datatype::U64, Reduction::Max);
        let mut word = mine.0.to_le_bytes();
        let mut sides = Sides { input: &[], output: &mut word, scratch: &mut [] };
        engine::play(&self.agreement, &mut sides, most, 8, self.wire.as_mut(), control)?;
        Ok(Nanoseconds(u64::from_le_bytes(word)))
    }

    fn agree(&mut self, ready: &Ready<'_>, control: &Control) -> Result<Cut, Failure> {
        let one = cut::warm_up(ready.collective, |operations| {
            let begin = clock::now();
            self.repeat(ready, operations, control)?;
            self.largest(clock::now() - begin, control)
        })?;
        Ok(Cut::new(ready.collective, one))
    }

    fn repeat(&mut self, ready: &Ready<'_>, operations: u64, control: &Control) -> Result<(), Failure> {
        (0..operations).try_for_each(|k| match ready.compute() {
            Some(compute) => self.step(ready, compute, control),
            None => self.operation(ready, k % ready.layout.slots, control),
        })
    }

    /// The timed batches. The slot of the last operation of the last batch is overwritten before that batch if it is
    /// going to be verified.
    fn time(
        &mut self,
        ready: &Ready<'_>,
        cut: &Cut,
        verified: Option<u64>,
        control: &Control,
    ) -> Result<Timed, Failure> {
        let (mut times, mut alone) = (Vec::new(), Vec::new());
        let before = cpu::thread();
        self.largest(Nanoseconds::ZERO, control)?;
        let begin = clock::now();
        let mut elapsed = Nanoseconds::ZERO;
        // Agreeing brings the ranks together before the first batch of a stretch. Between its batches the last
        // operation itself has done so, closer than a barrier does.
        while let further @ 1.. = cut.further(times.len() as u64, elapsed) {
            for number in 0..further {
                if number > 0 && ready.collective.metric != TestMetric::Bandwidth {
                    self.largest(Nanoseconds::ZERO, control)?;
                }
                alone.extend(self.alone(ready, control)?);
                times.push(self.batch(ready, cut, control)?);
            }
            elapsed = self.largest(clock::now() - begin, control)?;
        }
        alone.extend(self.alone(ready, control)?);
        if let Some(slot) = verified.filter(|_| !ready.collective.options.in_place) {
            self.poison(ready, slot);
            self.largest(Nanoseconds::ZERO, control)?;
        }
        times.push(self.batch(ready, cut, control)?);
        Ok(Timed { times, alone, cpu: cpu::thread() - before })
    }

    /// The time of a training step's buckets by themselves; nothing for other operations. Ends with a barrier.
    fn alone(&mut self, ready: &Ready<'_>, control: &Control) -> Result<Option<Nanoseconds>, Failure> {
        if ready.compute().is_none() {
            return Ok(None);
        }
        let begin = clock::now();
        self.operation(ready, 0, control)?;
        let took = (clock::now() - begin).max(Nanoseconds(1));
        self.largest(Nanoseconds::ZERO, control)?;
        Ok(Some(took))
    }

    #[inline]
    fn batch(&mut self, ready: &Ready<'_>, cut: &Cut, control: &Control) -> Result<Nanoseconds, Failure> {
        let begin = clock::now();
        self.repeat(ready, cut.batch, control)?;
        Ok((clock::now() - begin).max(Nanoseconds(1)))
    }
}

fn bytes(at: u64, count: u64, width: u64) -> std::ops::Range<usize> {
    (at * width) as usize..((at + count) * width) as usize
}
