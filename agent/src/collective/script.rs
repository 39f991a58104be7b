//! The script of one rank in one collective: its sends and its receives, each in order, and their dependencies.
//!
//! [`super::engine`] runs scripts. Sends and receives run concurrently, piece by piece: a send that passes on a receive follows it within
//! the stretch. So blocks stream through a rank, and transfer and reduction overlap without a piece size in the algorithm.
//!
//! Rings: every rank sends to the next and receives from the one before.
//!
//! All-reduce: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009). The
//! data is cut into as many parts as there are ranks. n - 1 steps reduce: each part travels round and collects every
//! rank's contribution; n - 1 steps gather: the results travel round. Every rank sends 2(n-1)/n of the data.
//!
//! Algorithms for a power of two of ranks, for any number of ranks.
//!
//! Of n = 2^k + m ranks the first 2m form pairs: the even one gives its data to the odd one, which takes part for both
//! and hands the result back (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
//! MPICH", 2005).
//!
//! Recursive halving and doubling (Rabenseifner, "Optimization of collective reduction operations", 2004): halves of
//! what is left are exchanged and reduced until every rank has its part of the result, which is then gathered over the
//! same partners in reverse. As few bytes as a ring in 2 log2 n steps.
//!
//! Recursive doubling: in step i every rank exchanges all of its data with the rank whose number differs in bit i.
//! Fewest steps; each moves everything.
//!
//! All-to-all: in step k every rank sends to the k-th after it and receives from the k-th before it.

use std::ops::Range;

use railgauge_wire::{Algorithm, Exchange, Op, starts};

/// The rank that broadcasts and that reductions go to.
pub(crate) const ROOT: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
    Scratch,
}

/// A stretch of one of the memories, in bytes from where the operation's share of it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub side: Side,
    pub at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Send {
    pub to: usize,
    pub what: Stretch,
    /// Number of the receive that brings some of the bytes: a byte is sent once that receive has passed it.
    pub after: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receive {
    pub from: usize,
    pub into: Stretch,
    pub how: How,
    /// Number of the send that still reads the same bytes: one is written once that send has passed it.
    pub behind: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Place,
    /// Reduced with the bytes of this memory from this place on; the result is stored.
    Reduce(Side, usize),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Script {
    pub copies: Vec<(Stretch, Stretch)>,
    pub sends: Vec<Send>,
    pub receives: Vec<Receive>,
}

impl Stretch {
    pub(crate) fn output(at: Range<usize>) -> Self {
        Self { side: Side::Output, at }
    }
}

impl Script {
    pub(crate) fn send(&mut self, to: usize, what: Stretch, after: Option<usize>) {
        if !what.at.is_empty() {
            self.sends.push(Send { to, what, after });
        }
    }

    pub(crate) fn receive(&mut self, from: usize, into: Stretch, how: How, behind: Option<usize>) {
        if !into.at.is_empty() {
            self.receives.push(Receive { from, into, how, behind });
        }
    }

    /// Skips an empty copy and a copy onto itself.
    pub(crate) fn copy(&mut self, from: Stretch, to: Stretch) {
        if !from.at.is_empty() && from != to {
            self.copies.push((from, to));
        }
    }

    /// Of an exchange, at `rank`: the block `from` one rank `to` another, and nothing else.
    pub(crate) fn only(&self, rank: u32, from: u32, to: u32) -> Self {
        let mut one = Self::default();
        if rank == from {
            one.sends = self.sends.iter().filter(|send| send.to == to as usize).cloned().collect();
        }
        if rank == to {
            one.receives = self.receives.iter().filter(|receive| receive.from == from as usize).cloned().collect();
        }
        one
    }

    /// For sends that follow it.
    pub(crate) fn last_receive(&self) -> Option<usize> {
        self.receives.len().checked_sub(1)
    }

    /// For receives that must not overtake it.
    pub(crate) fn last_send(&self) -> Option<usize> {
        self.sends.len().checked_sub(1)
    }
}

/// All-reduces up to this many bytes take the fewest steps.
const SHORT: usize = 16 << 10;
const SHORT_OF_TWO: usize = 32 << 10;
/// Broadcasts up to this many bytes go down a tree.
const SHORT_BROADCAST: usize = 64 << 10;
/// All-reduces whose ring blocks would be smaller than this many bytes use halving and doubling instead: for a power of two of ranks, and
/// for others, where some ranks send everything twice.
const SMALL_BLOCK: (usize, usize) = (512 << 10, 32 << 10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub op: Op,
    pub rank: usize,
    pub ranks: usize,
    pub count: usize,
    pub width: usize,
    pub in_place: bool,
}

impl Job {
    /// `None` if the algorithm does not support the operation.
    pub(crate) fn script(&self, algorithm: Algorithm) -> Option<Script> {
        if !algorithm.does(self.op) {
            return None;
        }
        Some(match (self.op, algorithm) {
            (Op::AllReduce, Algorithm::Ring) => ring_all_reduce(self),
            (Op::AllReduce, Algorithm::RecursiveDoubling) => folded_all_reduce(self, double),
            (Op::AllReduce, Algorithm::HalvingDoubling) => folded_all_reduce(self, halve_and_double),
            (Op::AllGather, _) => all_gather(self),
            (Op::ReduceScatter, _) => reduce_scatter(self),
            (Op::Broadcast, Algorithm::Chain) => chain(self),
            (Op::Broadcast, _) => tree(self),
            _ => return None,
        })
    }

    /// The algorithm that suits size and number of ranks; `None` for operations without one.
    pub(crate) fn suited(&self) -> Option<Algorithm> {
        let bytes = self.count * self.width;
        match self.op {
            Op::AllReduce if bytes <= SHORT || self.ranks == 2 && bytes <= SHORT_OF_TWO => {
                Some(Algorithm::RecursiveDoubling)
            }
            Op::AllReduce if bytes / self.ranks.max(1) < self.small_block() => Some(Algorithm::HalvingDoubling),
            Op::AllReduce | Op::AllGather | Op::ReduceScatter => Some(Algorithm::Ring),
            Op::Broadcast if bytes <= SHORT_BROADCAST => Some(Algorithm::Tree),
            Op::Broadcast => Some(Algorithm::Chain),
            _ => None,
        }
    }

    fn small_block(&self) -> usize {
        if self.ranks.is_power_of_two() { SMALL_BLOCK.0 } else { SMALL_BLOCK.1 }
    }

    pub(crate) fn scratch(&self) -> usize {
        if self.op == Op::ReduceScatter { 2 * self.bytes() } else { 0 }
    }

    pub(super) fn given(&self) -> Side {
        if self.in_place { Side::Output } else { Side::Input }
    }

    pub(super) fn bytes(&self) -> usize {
        self.count * self.width
    }

    pub(super) fn all(&self) -> Range<usize> {
        0..self.bytes()
    }

    /// The contribution of rank `i`, or the data for it, in a memory that holds those of all ranks.
    pub(super) fn share(&self, i: usize) -> Range<usize> {
        i * self.bytes()..(i + 1) * self.bytes()
    }

    /// Part `i` of one contribution, divided by the number of ranks, in whole elements.
    pub(super) fn part(&self, i: usize) -> Range<usize> {
        let edge = |i: usize| i * self.count / self.ranks * self.width;
        edge(i)..edge(i + 1)
    }

    pub(super) fn before(&self, steps: usize) -> usize {
        (self.rank + self.ranks - steps % self.ranks) % self.ranks
    }

    pub(super) fn after(&self, steps: usize) -> usize {
        (self.rank + steps) % self.ranks
    }

    pub(super) fn is_root(&self) -> bool {
        self.rank == ROOT as usize
    }

    pub(super) fn whole(&self) -> Stretch {
        Stretch { side: self.given(), at: self.all() }
    }
}

pub(crate) fn ring_all_reduce(job: &Job) -> Script {
    let (next, previous) = (job.after(1), job.before(1));
    let mut script = Script::default();
    if job.ranks == 1 {
        script.copy(job.whole(), Stretch::output(job.all()));
    }
    for step in 0..job.ranks - 1 {
        let side = if step == 0 { job.given() } else { Side::Output };
        let after = script.last_receive();
        script.send(next, Stretch { side, at: job.part(job.before(step)) }, after);
        let part = job.part(job.before(step + 1));
        script.receive(previous, Stretch::output(part.clone()), How::Reduce(job.given(), part.start), None);
    }
    for step in 0..job.ranks - 1 {
        let after = script.last_receive();
        script.send(next, Stretch::output(job.part(job.before(step + job.ranks - 1))), after);
        // In place, the reducing send of step `step` read from here. This data depends on that send, so it has finished.
        script.receive(previous, Stretch::output(job.part(job.before(step))), How::Place, None);
    }
    script
}

/// n - 1 steps; in each a rank passes on what it received in the one before.
pub(crate) fn all_gather(job: &Job) -> Script {
    let (next, previous) = (job.after(1), job.before(1));
    let own = Stretch::output(job.share(job.rank));
    let given = if job.in_place { own.clone() } else { job.whole() };
    let mut script = Script::default();
    script.copy(given.clone(), own);
    for step in 0..job.ranks - 1 {
        let what = if step == 0 { given.clone() } else { Stretch::output(job.share(job.before(step))) };
        let after = script.last_receive();
        script.send(next, what, after);
        script.receive(previous, Stretch::output(job.share(job.before(step + 1))), How::Place, None);
    }
    script
}

/// The first half of [`ring_all_reduce`], such that part r ends at rank r. Partial results alternate between two scratch blocks, so that
/// the input stays unchanged.
pub(crate) fn reduce_scatter(job: &Job) -> Script {
    let (next, previous) = (job.after(1), job.before(1));
    let result = Stretch::output(if job.in_place { job.share(job.rank) } else { job.all() });
    let scratch = |step: usize| Stretch { side: Side::Scratch, at: job.share(step % 2) };
    let mut script = Script::default();
    if job.ranks == 1 {
        script.copy(job.whole(), result.clone());
    }
    for step in 0..job.ranks - 1 {
        let given = Stretch { side: job.given(), at: job.share(job.before(step + 1)) };
        // The send before this step's reads from the block that this step receives into.
        let behind = if step > 1 { script.last_send() } else { None };
        let after = script.last_receive();
        script.send(next, if step == 0 { given } else { scratch(step - 1) }, after);
        let with = job.share(job.before(step + 2)).start;
        let into = if step + 2 == job.ranks { result.clone() } else { scratch(step) };
        script.receive(previous, into, How::Reduce(job.given(), with), behind);
    }
    script
}

pub(crate) struct Circle {
    pub number: usize,
    pub size: usize,
    folded: usize,
}

impl Circle {
    pub(crate) fn rank(&self, number: usize) -> usize {
        if number < self.folded { 2 * number + 1 } else { number + self.folded }
    }
}

/// All-reduce by `exchange`, whose argument is the memory that holds this rank's contribution.
pub(crate) fn folded_all_reduce(job: &Job, exchange: fn(&Job, &Circle, Side, &mut Script)) -> Script {
    let size = 1 << job.ranks.ilog2();
    let folded = job.ranks - size;
    let mut script = Script::default();
    let output = Stretch::output(job.all());
    if job.rank < 2 * folded && job.rank.is_multiple_of(2) {
        script.send(job.rank + 1, job.whole(), None);
        script.receive(job.rank + 1, output, How::Place, script.last_send());
        return script;
    }
    let paired = job.rank < 2 * folded;
    let number = if paired { job.rank / 2 } else { job.rank - folded };
    let mut held = job.given();
    if paired {
        script.receive(job.rank - 1, output.clone(), How::Reduce(held, 0), None);
        held = Side::Output;
    }
    if size == 1 {
        script.copy(job.whole(), output.clone());
    }
    exchange(job, &Circle { number, size, folded }, held, &mut script);
    if paired {
        script.send(job.rank - 1, output, script.last_receive());
    }
    script
}

pub(crate) fn halve_and_double(job: &Job, circle: &Circle, held: Side, script: &mut Script) {
    let bytes = |elements: &Range<usize>| elements.start * job.width..elements.end * job.width;
    let mut held = held;
    let mut mine = 0..job.count;
    let mut given_away = Vec::new();
    for bit in (0..circle.size.ilog2()).rev() {
        let partner = circle.rank(circle.number ^ 1 << bit);
        let middle = mine.start + mine.len() / 2;
        let (lower, upper) = (mine.start..middle, middle..mine.end);
        let (keep, give) = if circle.number >> bit & 1 == 0 { (lower, upper) } else { (upper, lower) };
        script.send(partner, Stretch { side: held, at: bytes(&give) }, script.last_receive());
        let into = bytes(&keep);
        script.receive(partner, Stretch::output(into.clone()), How::Reduce(held, into.start), None);
        given_away.push((partner, give));
        (mine, held) = (keep, Side::Output);
    }
    for (partner, theirs) in given_away.into_iter().rev() {
        script.send(partner, Stretch::output(bytes(&mine)), script.last_receive());
        // Already sent: the incoming data depends on that send.
        script.receive(partner, Stretch::output(bytes(&theirs)), How::Place, None);
        mine = mine.start.min(theirs.start)..mine.end.max(theirs.end);
    }
}

pub(crate) fn double(job: &Job, circle: &Circle, held: Side, script: &mut Script) {
    let mut held = held;
    for bit in 0..circle.size.ilog2() {
        let partner = circle.rank(circle.number ^ 1 << bit);
        script.send(partner, Stretch { side: held, at: job.all() }, script.last_receive());
        // Must not reduce into memory that the send still reads.
        let behind = script.last_send().filter(|_| held == Side::Output);
        script.receive(partner, Stretch::output(job.all()), How::Reduce(held, 0), behind);
        held = Side::Output;
    }
}

/// Every rank sends a block to every other.
pub(crate) fn exchange(job: &Job, blocks: &Exchange) -> Script {
    let places = |counts: &[u64], side| -> Vec<Stretch> {
        let bytes = |elements: u64| elements as usize * job.width;
        let places = starts(counts).zip(counts);
        places.map(|(start, count)| Stretch { side, at: bytes(start)..bytes(start + count) }).collect()
    };
    let (given, taken) = (places(&blocks.send, job.given()), places(&blocks.receive, Side::Output));
    let mut script = Script::default();
    script.copy(given[job.rank].clone(), taken[job.rank].clone());
    for step in 1..job.ranks {
        let (to, from) = (job.after(step), job.before(step));
        script.send(to, given[to].clone(), None);
        script.receive(from, taken[from].clone(), How::Place, None);
    }
    script
}

/// A stream from rank to rank: each passes on data while receiving it.
pub(crate) fn chain(job: &Job) -> Script {
    let mut script = begun(job);
    let what = if job.is_root() { job.whole() } else { Stretch::output(job.all()) };
    if !job.is_root() {
        script.receive(job.before(1), Stretch::output(job.all()), How::Place, None);
    }
    if job.after(1) != ROOT as usize {
        let after = script.last_receive();
        script.send(job.after(1), what, after);
    }
    script
}

/// A binomial tree: ceil(log2 n) steps. The parent of a rank lacks its lowest set bit.
pub(crate) fn tree(job: &Job) -> Script {
    let mut script = begun(job);
    let what = if job.is_root() { job.whole() } else { Stretch::output(job.all()) };
    let reach = if job.is_root() { job.ranks.next_power_of_two() } else { 1 << job.rank.trailing_zeros() };
    if !job.is_root() {
        script.receive(job.rank - reach, Stretch::output(job.all()), How::Place, None);
    }
    let mut distance = reach / 2;
    while distance > 0 {
        if job.rank + distance < job.ranks {
            let after = script.last_receive();
            script.send(job.rank + distance, what.clone(), after);
        }
        distance /= 2;
    }
    script
}

fn begun(job: &Job) -> Script {
    let mut script = Script::default();
    if job.is_root() {
        script.copy(job.whole(), Stretch::output(job.all()));
    }
    script
}
