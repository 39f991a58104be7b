//! The bandwidth loop: keeps every queue pair's window full, and takes completions in batches.
//!
//! Differences from perftest: it signals every request over 8 KiB, posts one request per call by default, and reads the clock per
//! message. Here one request in `signal_every` completes, `post_list` requests are posted at once, and the clock is read once per batch
//! of completions.
//!
//! Messages need receives at the other end. The receiver announces how many it has posted and the sender never exceeds that, so RNR
//! retries never distort a measurement.

use railgauge_wire::{BitsPerSecond, Bytes, Failure, Measurement, Nanoseconds, Service, Stage, Window as Rule};

use super::{Copies, Mailbox, Reader, Slot, Waiter};
use crate::{
    bench::{Pacer, Window, clock},
    verbs::{
        Completion, Doing, Poller, Receives, Sends,
        words::{self},
    },
};

pub trait Credits {
    /// Messages of this pass that the peer can take on flow `flow`.
    fn allowed(&self, flow: usize) -> u64;

    #[inline]
    fn prepare(&mut self, _flow: usize, _messages: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn idle(&mut self, flows: &[Sends], now: Nanoseconds);
}

pub struct Unlimited;

impl Credits for Unlimited {
    #[inline]
    fn allowed(&self, _flow: usize) -> u64 {
        u64::MAX
    }

    fn idle(&mut self, _flows: &[Sends], _now: Nanoseconds) {}
}

pub trait Incoming {
    fn arrived(&mut self, completion: Completion<'_>);

    /// Called after every batch of completions, and now and then without any: posts new receives, polls the mailbox. `sent` messages of
    /// ours have completed since the last call. Returns whether to continue.
    fn tend(&mut self, sent: u64) -> Result<bool, Failure>;
}

pub struct Nothing;

impl Incoming for Nothing {
    fn arrived(&mut self, _completion: Completion<'_>) {}

    #[inline]
    fn tend(&mut self, _sent: u64) -> Result<bool, Failure> {
        Ok(true)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct How {
    pub rule: Rule,
    pub size: u64,
    /// Limit in flight per flow.
    pub depth: u32,
    /// The only flow in use.
    pub only: Option<usize>,
    /// Rate limit of each flow; unlimited if `None`.
    pub pace: Option<BitsPerSecond>,
}

/// Empty polls between two clock readings.
const CLOCK_EVERY: u32 = 64;

pub fn stream(
    flows: &mut [Sends],
    poller: &mut Poller,
    waiter: &mut Waiter,
    how: How,
    credits: &mut impl Credits,
    incoming: &mut impl Incoming,
) -> Result<Measurement, Failure> {
    let How { rule, size, only, pace, .. } = how;
    let depth = u64::from(how.depth);
    let refused = |errno| words::verb(Stage::Measure, Doing::Post, "the measured queue pair", errno);
    let (mut idle, mut wanted) = (0u32, true);
    let mut window = Window::begin(rule, Bytes(size), clock::now());
    let mut last = clock::now();
    let mut pacers: Vec<Pacer> = flows.iter().filter_map(|_| Pacer::new(pace, Bytes(size), last)).collect();
    let all = window.quota();
    let quota = |flow: usize| if only.is_none_or(|only| only == flow) { all } else { 0 };
    loop {
        let running = wanted && window.running;
        if running {
            let now = if pacers.is_empty() { last } else { clock::now() };
            for (i, flow) in flows.iter_mut().enumerate() {
                let list = u64::from(flow.list());
                let mut allowed = quota(i).min(credits.allowed(i));
                if let Some(pacer) = pacers.get_mut(i) {
                    allowed = allowed.min(pacer.allowed(now, flow.posted()));
                }
                while flow.in_flight() + list <= depth && flow.posted() + list < allowed {
                    credits.prepare(i, list)?;
                    flow.post().map_err(refused)?;
                }
                // The rest of a quota or of the peer's receives: at most a list, and the last one completes.
                let left = allowed - flow.posted().min(allowed);
                if left > 0 && left <= list && flow.in_flight() + left <= depth {
                    credits.prepare(i, left)?;
                    flow.post_last(left).map_err(refused)?;
                }
            }
        }
        let mut done = 0;
        let polled = poller.poll(|completion| {
            if completion.is_receive() {
                incoming.arrived(completion);
            } else if let Some(flow) = flows.get_mut(completion.tag()) {
                flow.complete(completion.covered());
                done += u64::from(completion.covered());
            }
        })?;
        if done > 0 {
            last = clock::now();
            window.completed(last, done);
            waiter.completed(last)?;
        }
        if polled > 0 {
            wanted &= incoming.tend(done)?;
            waiter.progress();
            idle = 0;
            continue;
        }
        let ending = !running || flows.iter().enumerate().all(|(i, flow)| flow.posted() >= quota(i));
        if ending && settled(flows, depth).map_err(refused)? {
            return Ok(window.finish(last));
        }
        waiter.pause()?;
        idle += 1;
        if idle.is_multiple_of(CLOCK_EVERY) || waiter.sleeps() {
            let now = clock::now();
            window.completed(now, 0);
            credits.idle(flows, now);
            wanted &= incoming.tend(0)?;
        }
    }
}

/// Makes sure that everything posted will complete; returns whether it has.
fn settled(flows: &mut [Sends], depth: u64) -> Result<bool, i32> {
    for flow in flows.iter_mut() {
        // A full window has a request that completes: signals are never farther apart than its depth.
        if flow.in_flight() < depth {
            flow.settle()?;
        }
    }
    Ok(flows.iter().all(|flow| flow.in_flight() == 0))
}

/// Time without progress after which an unreliable service's missing messages count as lost.
const LOST_AFTER: Nanoseconds = Nanoseconds::from_millis(2);

pub(crate) struct Granted {
    reader: Reader,
    /// Messages sent before this pass, per flow.
    before: Vec<u64>,
    lost: Vec<u64>,
    stalled: Vec<Option<Nanoseconds>>,
    lossy: bool,
    stage: Option<Copies>,
}

impl Granted {
    /// `before`: messages sent on each flow so far. `stage`: where messages are copied before they are sent.
    pub(crate) fn new(reader: Reader, before: &[u64], service: Service, stage: Option<Copies>) -> Self {
        let flows = before.len();
        let (lost, stalled) = (vec![0; flows], vec![None; flows]);
        let mut granted = Self { reader, before: before.to_vec(), lost, stalled, lossy: service != Service::Rc, stage };
        for (flow, sent) in before.iter().enumerate() {
            granted.forgive(flow, *sent);
        }
        granted
    }

    /// Counts what was sent and has not arrived as lost.
    fn forgive(&mut self, flow: usize, sent: u64) {
        if self.lossy {
            self.lost[flow] = sent.saturating_sub(self.reader.read(Slot::Consumed(flow)));
        }
    }
}

impl Credits for Granted {
    #[inline]
    fn allowed(&self, flow: usize) -> u64 {
        let may = self.reader.read(Slot::Posted(flow)) + self.lost[flow];
        may.saturating_sub(self.before[flow])
    }

    #[inline]
    fn prepare(&mut self, flow: usize, messages: u64) -> Result<(), Failure> {
        self.stage.as_ref().map_or(Ok(()), |stage| stage.fetch(flow, messages))
    }

    fn idle(&mut self, flows: &[Sends], now: Nanoseconds) {
        if !self.lossy {
            return;
        }
        for (i, flow) in flows.iter().enumerate() {
            let stuck = flow.in_flight() == 0 && flow.posted() >= self.allowed(i);
            match (stuck, self.stalled[i]) {
                (false, _) => self.stalled[i] = None,
                (true, None) => self.stalled[i] = Some(now),
                (true, Some(since)) if now - since > LOST_AFTER => {
                    self.forgive(i, self.before[i] + flow.posted());
                    self.stalled[i] = None;
                }
                (true, Some(_)) => {}
            }
        }
    }
}

pub(crate) struct Sink<'a> {
    receives: &'a mut [Receives],
    mailbox: &'a mut Mailbox,
    ahead: u64,
    lossy: bool,
    stage: Option<Copies>,
    fresh: Vec<u64>,
    told: Vec<u64>,
    pub operations: u64,
}

impl<'a> Sink<'a> {
    /// `stage`: where messages are copied after arrival.
    pub(crate) fn new(
        receives: &'a mut [Receives],
        mailbox: &'a mut Mailbox,
        ahead: u32,
        service: Service,
        stage: Option<Copies>,
    ) -> Self {
        let (fresh, told) = (vec![0; receives.len()], vec![u64::MAX; receives.len()]);
        let (ahead, lossy) = (u64::from(ahead), service != Service::Rc);
        Self { receives, mailbox, ahead, lossy, stage, fresh, told, operations: 0 }
    }

    pub(crate) fn mailbox(&mut self) -> &mut Mailbox {
        self.mailbox
    }

    pub(crate) fn take_all(&mut self, poller: &mut Poller) -> Result<(), Failure> {
        while poller.poll(|completion| {
            if completion.is_receive() {
                self.arrived(completion);
            }
        })? > 0
        {}
        self.tend(0).map(|_| ())
    }

    pub(crate) fn publish(&mut self) -> Result<(), Failure> {
        for (i, receives) in self.receives.iter().enumerate().filter(|_| self.lossy) {
            if self.told[i] != receives.consumed() {
                self.told[i] = receives.consumed();
                self.mailbox.write(Slot::Consumed(i), self.told[i])?;
            }
        }
        Ok(())
    }
}

impl Incoming for Sink<'_> {
    #[inline]
    fn arrived(&mut self, completion: Completion<'_>) {
        if let Some(fresh) = self.fresh.get_mut(completion.tag()) {
            *fresh += 1;
            self.operations += 1;
        }
    }

    #[inline]
    fn tend(&mut self, _sent: u64) -> Result<bool, Failure> {
        let refused = |errno| words::verb(Stage::Measure, Doing::Post, "the receiving queue pair", errno);
        for (i, (receives, fresh)) in self.receives.iter_mut().zip(&mut self.fresh).enumerate() {
            let count = std::mem::take(fresh);
            if let Some(stage) = &self.stage {
                let first = receives.consumed();
                (first..first + count).try_for_each(|n| stage.deliver(i, receives.place(n)))?;
            }
            if count > 0 && receives.consume(count, self.ahead).map_err(refused)? {
                self.mailbox.write(Slot::Posted(i), receives.posted())?;
                if self.lossy {
                    self.mailbox.write(Slot::Consumed(i), receives.consumed())?;
                }
            }
        }
        Ok(true)
    }
}
