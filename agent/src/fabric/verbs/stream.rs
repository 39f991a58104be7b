//! The bandwidth loop: every queue pair's window is kept full, completions are taken in batches.
//!
//! What perftest's loop does otherwise: it signals every request over 8 KiB, posts one request per call by default,
//! and takes the time per message. Here one request in `signal_every` completes, `post_list` requests are handed over
//! at once, and the clock is read once per batch of completions.

use railgauge_wire::{
    failure::{Failure, Stage},
    step::Window as Rule,
    unit::{BitsPerSecond, Bytes, Nanoseconds},
};

use super::waiter::Waiter;
use crate::{
    bench::{Pacer, Tally, Window, clock},
    verbs::{
        poll::{Completion, Poller},
        send::Sends,
        words::{self, Doing},
    },
};

/// How many messages a queue pair may have sent in all.
pub trait Credits {
    /// Messages of this pass that the peer can take on flow `flow`.
    fn allowed(&self, flow: usize) -> u64;

    /// So many messages are going to be posted on flow `flow`.
    #[inline]
    fn prepare(&mut self, _flow: usize, _messages: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn idle(&mut self, flows: &[Sends], now: Nanoseconds);
}

/// The peer's CPU takes no part: nothing to wait for.
pub struct Unlimited;

impl Credits for Unlimited {
    #[inline]
    fn allowed(&self, _flow: usize) -> u64 {
        u64::MAX
    }

    fn idle(&mut self, _flows: &[Sends], _now: Nanoseconds) {}
}

/// What to do about messages that arrive while we send.
pub trait Incoming {
    fn arrived(&mut self, completion: Completion<'_>);

    /// After every batch of completions, and now and then without any: posts new receives, looks at the mailbox.
    /// `sent` messages of ours have completed since the last call. Returns whether to go on sending.
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
    /// Bytes of a message.
    pub size: u64,
    /// What may be in flight per flow.
    pub depth: u32,
    /// The only flow that is used.
    pub only: Option<usize>,
    /// Most that each flow sends; as fast as it goes if `None`.
    pub pace: Option<BitsPerSecond>,
}

/// Empty polls between two looks at the clock.
const CLOCK_EVERY: u32 = 64;

/// Streams messages over `flows`, waits for all of them, and counts.
pub fn stream(
    flows: &mut [Sends],
    poller: &mut Poller,
    waiter: &mut Waiter,
    how: How,
    credits: &mut impl Credits,
    incoming: &mut impl Incoming,
) -> Result<Tally, Failure> {
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
        let running = wanted && window.running();
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

/// Makes sure that everything posted will complete; whether it has.
fn settled(flows: &mut [Sends], depth: u64) -> Result<bool, i32> {
    for flow in flows.iter_mut() {
        // A full window holds a request that completes by itself: signals are never farther apart than its depth.
        if flow.in_flight() < depth {
            flow.settle()?;
        }
    }
    Ok(flows.iter().all(|flow| flow.in_flight() == 0))
}
