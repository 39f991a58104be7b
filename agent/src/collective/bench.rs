//! One rank's part of a measurement over host memory: verify, warm up, time, verify the result of the last timed operation. The ranks
//! agree on the number of operations over the group itself.

use railgauge_wire::{
    Algorithm, Checked, CollectiveMeasurement, CollectiveSpec, Datatype, Failure, Footprint, Kind, Nanoseconds, Op,
    Reduction, Stage, TestMetric,
};

use super::{
    cut::{self, Cut},
    engine::{self, Sides, Wire},
    layout::{Layout, Portion, Ready},
    memory::Memory,
    script::{Job, Script},
    table::{Table, kernel, poison},
};
use crate::{
    bench::{clock, control::Control},
    fault,
};

mod flows;

pub(crate) struct Bench {
    rank: u32,
    ranks: u32,
    wire: Box<dyn Wire>,
    memory: Memory,
    footprint: Footprint,
    agreement: Script,
}

pub(crate) trait Group {
    fn say(&self, _words: &str) {}

    fn fill(&mut self) -> Result<(), Failure>;

    fn poison(&mut self, slot: u64) -> Result<(), Failure>;

    fn once(&mut self) -> Result<(), Failure>;

    fn compare(&mut self, slot: u64) -> Result<Checked, Failure>;

    fn largest(&mut self, mine: Nanoseconds) -> Result<Nanoseconds, Failure>;

    fn repeat(&mut self, operations: u64) -> Result<(), Failure>;

    /// Prepares timed batches. `verified`: the slot whose last result will be compared.
    fn begin(&mut self, batch: u64, verified: Option<u64>) -> Result<(), Failure>;

    /// Synchronizes the ranks before batch `number` of a stretch, where required: agreeing does it before the first one.
    fn line_up(&mut self, number: u64) -> Result<(), Failure>;

    /// Time of a training step's buckets without a backward pass; `None` for other operations. Ends with a barrier.
    fn alone(&mut self) -> Result<Option<Nanoseconds>, Failure>;

    fn batch(&mut self, operations: u64) -> Result<(), Failure>;
}

pub(crate) fn measure(
    group: &mut impl Group,
    collective: &CollectiveSpec,
    layout: &Layout,
    reduction: Option<Reduction>,
) -> Result<CollectiveMeasurement, Failure> {
    let in_place = collective.options.in_place;
    let mut checked = Checked::default();
    group.say("preparing data");
    group.fill()?;
    if collective.verify {
        group.say("the verifying operation before");
        checked += verified(group, in_place)?;
    }
    group.say("warming up");
    let one = cut::warm_up(collective, |operations| {
        group.largest(Nanoseconds::ZERO)?;
        let begin = clock::now();
        group.repeat(operations)?;
        group.largest(clock::now() - begin)
    })?;
    let cut = Cut::new(collective, one);
    if in_place {
        group.fill()?;
    }
    let last = (cut.batch - 1) % layout.slots;
    let verify_timed = collective.verify && layout.repeats(reduction);
    group.say("timed operations");
    let mut measured = time(group, &cut, verify_timed.then_some(last), in_place)?;
    if verify_timed {
        group.say("verifying what the last timed operation left behind");
        checked += group.compare(last)?;
    } else if collective.verify {
        group.say("the verifying operation after");
        group.fill()?;
        checked += verified(group, in_place)?;
    }
    group.say("idle");
    measured.checked = checked;
    Ok(measured)
}

pub(crate) fn verified(group: &mut impl Group, in_place: bool) -> Result<Checked, Failure> {
    if !in_place {
        group.poison(0)?;
    }
    group.once()?;
    group.compare(0)
}

/// If the slot of the last operation is to be verified, it is overwritten before the last batch.
fn time(
    group: &mut impl Group,
    cut: &Cut,
    verified: Option<u64>,
    in_place: bool,
) -> Result<CollectiveMeasurement, Failure> {
    group.begin(cut.batch, verified)?;
    let (mut times, mut alone) = (Vec::new(), Vec::new());
    let (before, begin) = (clock::cpu(), clock::now());
    let mut elapsed = Nanoseconds::ZERO;
    while let further @ 1.. = cut.further(times.len() as u64, elapsed) {
        for number in 0..further {
            group.line_up(number)?;
            alone.extend(group.alone()?);
            times.push(timed(group, cut)?);
        }
        elapsed = group.largest(clock::now() - begin)?;
    }
    group.line_up(0)?;
    alone.extend(group.alone()?);
    if let Some(slot) = verified.filter(|_| !in_place) {
        group.poison(slot)?;
        group.largest(Nanoseconds::ZERO)?;
        group.line_up(0)?;
    }
    times.push(timed(group, cut)?);
    let (cpu, pass) = (clock::cpu() - before, Some((begin, clock::now())));
    Ok(CollectiveMeasurement { times, batch: cut.batch, alone, cpu, pass, ..CollectiveMeasurement::default() })
}

#[inline]
fn timed(group: &mut impl Group, cut: &Cut) -> Result<Nanoseconds, Failure> {
    let begin = clock::now();
    group.batch(cut.batch)?;
    Ok((clock::now() - begin).max(Nanoseconds(1)))
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
        let (algorithm, reduction) = (Some(ready.algorithm), ready.source.reduction);
        let mut operation = Operation { bench: self, ready: &ready, control };
        let mut measured = measure(&mut operation, collective, &ready.layout, reduction)?;
        if let Some(alone) = ready.layout.exchange.as_ref().map(|all| &all.alone).filter(|alone| !alone.is_empty()) {
            if collective.verify {
                operation.poison(0)?;
            }
            measured.flows = operation.flows(alone)?;
            if collective.verify {
                measured.checked += operation.compare(0)?;
            }
        }
        Ok(CollectiveMeasurement { algorithm, pass: None, ..measured })
    }
}

struct Operation<'b> {
    bench: &'b mut Bench,
    ready: &'b Ready<'b>,
    control: &'b Control,
}

impl Operation<'_> {
    #[inline]
    fn operation(&mut self, slot: u64) -> Result<(), Failure> {
        self.ready.parts.iter().try_for_each(|part| self.part(part, slot))
    }

    #[inline]
    fn part(&mut self, part: &Portion, slot: u64) -> Result<(), Failure> {
        let Self { bench, ready, control } = self;
        let start = (ready.collective.size * slot).as_usize();
        let mut sides = bench.memory.sides(start + part.at.start..start + part.at.end);
        let width = ready.layout.width as usize;
        engine::play(&part.script, &mut sides, ready.kernel, width, bench.wire.as_mut(), control)
    }

    /// Every bucket once the backward pass has filled it, and then the rest of that pass.
    fn step(&mut self, compute: Nanoseconds) -> Result<(), Failure> {
        let begin = clock::now();
        for part in &self.ready.parts {
            clock::wait_until(begin + part.ready, self.control)?;
            self.part(part, 0)?;
        }
        clock::wait_until(begin + compute, self.control)
    }
}

impl Group for Operation<'_> {
    fn fill(&mut self) -> Result<(), Failure> {
        let (ready, memory) = (self.ready, &mut self.bench.memory);
        let part = ready.layout.input();
        let bytes = bytes(part.at, part.count, ready.layout.width);
        let table = Table::new(&ready.source, &part);
        let into = match ready.collective.options.in_place {
            true => &mut memory.output_mut()[bytes],
            false => &mut memory.input_mut()[bytes],
        };
        table.fill(into);
        fault::flip_bit(&mut into[..(ready.layout.count * ready.layout.width) as usize]);
        Ok(())
    }

    fn poison(&mut self, slot: u64) -> Result<(), Failure> {
        let (size, width) = (self.ready.collective.size.0, self.ready.layout.width);
        let whole = size / width;
        poison(&mut self.bench.memory.output_mut()[bytes(slot * whole, whole, width)]);
        Ok(())
    }

    fn once(&mut self) -> Result<(), Failure> {
        self.operation(0)
    }

    fn compare(&mut self, slot: u64) -> Result<Checked, Failure> {
        let mut sum = Checked::default();
        for part in self.ready.layout.output(slot) {
            let bytes = bytes(part.at, part.count, self.ready.layout.width);
            let start = bytes.start as u64;
            let mut found = Table::new(&self.ready.source, &part).check(&self.bench.memory.output()[bytes]);
            found.first_wrong = found.first_wrong.map(|at| start + at);
            sum += found;
        }
        Ok(sum)
    }

    fn largest(&mut self, mine: Nanoseconds) -> Result<Nanoseconds, Failure> {
        let most = kernel(Datatype::U64, Reduction::Max);
        let mut word = mine.0.to_le_bytes();
        let mut sides = Sides { input: &[], output: &mut word, scratch: &mut [] };
        let Bench { agreement, wire, .. } = &mut *self.bench;
        engine::play(agreement, &mut sides, most, 8, wire.as_mut(), self.control)?;
        Ok(Nanoseconds(u64::from_le_bytes(word)))
    }

    #[inline]
    fn repeat(&mut self, operations: u64) -> Result<(), Failure> {
        (0..operations).try_for_each(|k| match self.ready.compute() {
            Some(compute) => self.step(compute),
            None => self.operation(k % self.ready.layout.slots),
        })
    }

    fn begin(&mut self, _batch: u64, _verified: Option<u64>) -> Result<(), Failure> {
        self.largest(Nanoseconds::ZERO).map(drop)
    }

    fn line_up(&mut self, number: u64) -> Result<(), Failure> {
        let collective = self.ready.collective;
        // A rank that only sends would end its batches before the others: their slowest rank is that of equal starts.
        if number > 0 && (collective.metric != TestMetric::Bandwidth || !collective.op.synchronizes()) {
            self.largest(Nanoseconds::ZERO)?;
        }
        Ok(())
    }

    fn alone(&mut self) -> Result<Option<Nanoseconds>, Failure> {
        if self.ready.compute().is_none() {
            return Ok(None);
        }
        let begin = clock::now();
        self.operation(0)?;
        let took = (clock::now() - begin).max(Nanoseconds(1));
        self.largest(Nanoseconds::ZERO)?;
        Ok(Some(took))
    }

    #[inline]
    fn batch(&mut self, operations: u64) -> Result<(), Failure> {
        self.repeat(operations)
    }
}

fn bytes(at: u64, count: u64, width: u64) -> std::ops::Range<usize> {
    (at * width) as usize..((at + count) * width) as usize
}
