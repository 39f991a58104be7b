//! The thread that reads NVML or AMD SMI: when a case begins, when it ends, and in between.
//!
//! Counters are read at both ends only. Cases of a GPU that begin or end together share a reading: a library may take a tenth of a
//! second. A GPU of several cases is read at their shortest interval, within [`SHARE`] of a processor.

use std::{
    collections::BTreeMap,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
};

use railgauge_wire::{Gather, GpuReading, MOST_XIDS, Nanoseconds};

use crate::{
    bench::clock,
    gpu::{Cards, Lasting, Unread},
    watch::counters::{Series, Values},
};

const SHARE: f64 = 0.02;

#[derive(Debug, Clone, Default)]
pub(super) struct OfGpu {
    pub readings: Vec<GpuReading>,
    pub lasting: Lasting,
    pub counted: BTreeMap<String, u64>,
    pub xids: Option<Vec<u32>>,
    pub failure: Option<Unread>,
}

/// Most readings kept of a GPU. Beyond that, neighbours are joined in pairs.
pub(super) const KEPT: usize = 4096;

#[derive(Debug, Clone, Default)]
pub(super) struct History(Vec<GpuReading>);

impl History {
    pub(super) fn push(&mut self, reading: GpuReading) {
        self.0.push(reading);
        if self.0.len() > KEPT {
            let mut left = std::mem::take(&mut self.0).into_iter();
            self.0 = std::iter::from_fn(|| left.by_ref().take(2).reduce(GpuReading::joined)).collect();
        }
    }

    /// Keeps the last reading before the moment.
    pub(super) fn forget(&mut self, before: Nanoseconds) {
        let old = self.0.partition_point(|reading| reading.at < before);
        self.0.drain(..old.saturating_sub(1));
    }

    /// Includes the last reading before the moment.
    pub(super) fn since(&self, from: Nanoseconds) -> Vec<GpuReading> {
        let first = self.0.partition_point(|reading| reading.at <= from).saturating_sub(1);
        self.0[first..].to_vec()
    }
}

pub(super) enum Order {
    Begin {
        span: u64,
        gpus: Vec<String>,
        every: Nanoseconds,
        asked: Nanoseconds,
    },
    /// Sends the readings to `answer`.
    End {
        span: u64,
        answer: Sender<BTreeMap<String, OfGpu>>,
        asked: Nanoseconds,
    },
    Forget {
        span: u64,
    },
}

struct Open {
    begun: Nanoseconds,
    every: Nanoseconds,
    gpus: BTreeMap<String, Counting>,
}

#[derive(Default)]
struct Counting {
    counters: Series,
    from: Nanoseconds,
    xids: Option<Vec<u32>>,
    failure: Option<Unread>,
    /// State at the start: a lost GPU reports nothing.
    lasting: Lasting,
}

/// Reading of a GPU for a case that began or ended, and since when it is under way.
#[derive(Clone)]
struct Fresh {
    at: Nanoseconds,
    counters: Values,
    lasting: Lasting,
}

pub(super) struct Sampler<S: ?Sized> {
    source: Box<S>,
    open: BTreeMap<u64, Open>,
    read: BTreeMap<String, History>,
    fresh: BTreeMap<String, Fresh>,
    /// Start and CPU time of the last round.
    last: (Nanoseconds, Nanoseconds),
}

impl<S: Cards + ?Sized> Sampler<S> {
    /// Call it on the thread that runs it: its CPU time counts.
    pub(super) fn new(source: Box<S>) -> Self {
        Self { source, open: BTreeMap::new(), read: BTreeMap::new(), fresh: BTreeMap::new(), last: Default::default() }
    }

    /// Runs until all order senders are gone.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match self.due().map(|due| due.saturating_sub(clock::now())) {
                Some(wait) => orders.recv_timeout(wait.into()),
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match order {
                Ok(order) => self.obey(order),
                Err(RecvTimeoutError::Timeout) => self.round(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// `None` without a case.
    fn due(&self) -> Option<Nanoseconds> {
        let every = self.open.values().map(|open| open.every).min()?;
        let (begun, cost) = self.last;
        Some(begun.saturating_add(every.max(Nanoseconds((cost.as_f64() / SHARE) as u64))))
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Begin { span, gpus, every, asked } => self.begin(span, gpus, every, asked),
            Order::End { span, answer, asked } => {
                let read = self.end(span, asked);
                // The receiver may have given up waiting.
                let _ = answer.send(read);
            }
            Order::Forget { span } => self.forget(span),
        }
    }

    fn begin(&mut self, span: u64, gpus: Vec<String>, every: Nanoseconds, asked: Nanoseconds) {
        let begun = clock::now();
        let mut open = Open { begun, every, gpus: gpus.into_iter().map(|pci| (pci, Counting::default())).gathered() };
        // Discards earlier Xids.
        open.gpus.keys().for_each(|pci| self.collect_xids(pci));
        let mut unread = Vec::new();
        for (pci, counting) in &mut open.gpus {
            let (fresh, is_new) = self.fresh(pci, asked);
            counting.from = fresh.as_ref().map_or(begun, |(at, _)| *at);
            counting.count(fresh);
            counting.lasting = self.fresh.get(pci).map(|fresh| fresh.lasting).unwrap_or_default();
            if is_new {
                unread.push(pci.clone());
            } else if let Some(at) = self.fresh.get(pci).map(|fresh| fresh.at) {
                // The reading of the case that began with it also counts for this one.
                open.begun = open.begun.min(at);
            }
        }
        self.open.insert(span, open);
        unread.iter().for_each(|pci| self.look(pci));
        self.last.0 = begun;
    }

    fn end(&mut self, span: u64, asked: Nanoseconds) -> BTreeMap<String, OfGpu> {
        let gpus: Vec<String> = self.open.get(&span).into_iter().flat_map(|open| open.gpus.keys().cloned()).collect();
        let mut counters = BTreeMap::new();
        for pci in &gpus {
            // A late start has read after the case was over: the end still needs another reading.
            let from = self.open.get(&span).and_then(|open| Some(open.gpus.get(pci)?.from)).unwrap_or_default();
            let (fresh, is_new) = self.fresh(pci, asked.max(from.saturating_add(Nanoseconds(1))));
            if is_new {
                self.look(pci);
            }
            self.collect_xids(pci);
            counters.insert(pci.clone(), fresh);
        }
        let Some(open) = self.open.remove(&span) else { return BTreeMap::new() };
        let one = |(pci, mut counting): (String, Counting)| {
            let counted = counters.remove(&pci).and_then(|fresh| counting.count(fresh)).unwrap_or_default();
            let readings = self.read.get(&pci).map(|history| history.since(open.begun)).unwrap_or_default();
            let Counting { xids, failure, lasting, .. } = counting;
            let lasting = self.fresh.get(&pci).map_or(lasting, |fresh| fresh.lasting);
            (pci, OfGpu { readings, lasting, counted, xids, failure })
        };
        let read = open.gpus.into_iter().map(one).gathered();
        self.tidy();
        read
    }

    /// Counters read after `asked`, with their time, and whether they were read now.
    fn fresh(&mut self, pci: &str, asked: Nanoseconds) -> (Result<(Nanoseconds, Values), Unread>, bool) {
        if let Some(known) = self.fresh.get(pci).filter(|known| known.at >= asked) {
            return (Ok((known.at, known.counters.clone())), false);
        }
        let at = clock::now();
        let lasting = self.source.lasting(pci).ok().or_else(|| self.fresh.remove(pci).map(|known| known.lasting));
        let read = self.source.counters(pci);
        if let Ok(counters) = &read {
            let fresh = Fresh { at, counters: counters.clone(), lasting: lasting.unwrap_or_default() };
            self.fresh.insert(pci.to_owned(), fresh);
        }
        (read.map(|counters| (at, counters)), true)
    }

    fn forget(&mut self, span: u64) {
        self.open.remove(&span);
        self.tidy();
    }

    fn tidy(&mut self) {
        let open = &self.open;
        if open.is_empty() {
            self.fresh.clear();
        }
        self.read.retain(|pci, history| {
            let first = open.values().filter(|open| open.gpus.contains_key(pci)).map(|open| open.begun).min();
            first.is_some_and(|first| {
                history.forget(first);
                true
            })
        });
    }

    fn round(&mut self) {
        let (begun, before) = (clock::now(), clock::cpu());
        let mut gpus: Vec<String> = self.open.values().flat_map(|open| open.gpus.keys().cloned()).collect();
        gpus.sort_unstable();
        gpus.dedup();
        gpus.iter().for_each(|pci| self.look(pci));
        self.last = (begun, clock::cpu().saturating_sub(before));
    }

    fn look(&mut self, pci: &str) {
        match self.source.read(pci) {
            Ok(reading) => self.read.entry(pci.to_owned()).or_default().push(reading),
            Err(why) => self.using(pci).for_each(|counting| counting.fail(why.clone())),
        }
    }

    fn collect_xids(&mut self, pci: &str) {
        let Ok(Some(found)) = self.source.xids(pci) else { return };
        for counting in self.using(pci) {
            let known = counting.xids.get_or_insert_default();
            known.extend(found.iter().copied().take(MOST_XIDS.saturating_sub(known.len())));
        }
    }

    fn using(&mut self, pci: &str) -> impl Iterator<Item = &mut Counting> {
        self.open.values_mut().filter_map(move |open| open.gpus.get_mut(pci))
    }
}

impl Counting {
    /// Returns the rise since the last counters.
    fn count(&mut self, read: Result<(Nanoseconds, Values), Unread>) -> Option<BTreeMap<String, u64>> {
        match read {
            Ok((at, values)) => self.counters.read(at, values).map(|row| row.counted),
            Err(why) => {
                self.fail(why);
                None
            }
        }
    }

    /// Keeps the reason. Consequences of a loss do not replace it.
    fn fail(&mut self, why: Unread) {
        if !matches!(self.failure, Some(Unread::Lost(_))) {
            self.failure = Some(why);
        }
    }
}

#[cfg(test)]
#[path = "tests/sampler.rs"]
mod tests;
