//! The latency loops: one message in flight, one sample per operation. The target of an RDMA WRITE polls its last byte in memory,
//! receives end by their completion, and reads and atomics are whole round trips.

use railgauge_wire::{Bytes, Failure, Measurement, Nanoseconds, Stage, Window as Rule};

use super::{
    Copies, OrderCheck, Waiter,
    order::{self},
};
use crate::{
    bench::{Recorder, Window, clock},
    verbs::{
        Beat, Doing, Poller, Receives, Sends,
        words::{self},
    },
};

/// Flag polls between two polls of the completion queue, where only errors can come from.
const QUEUE_EVERY: u32 = 64;

pub trait PingPongSide {
    fn send(&mut self) -> Result<(), Failure>;

    fn arrived(&mut self) -> Result<bool, Failure>;

    /// Whether all earlier arrivals were consumed, so that only what arrives from now on can be an answer.
    fn caught_up(&self) -> bool {
        true
    }

    /// Takes what completes by itself. Returns whether no more will.
    fn drain(&mut self) -> Result<bool, Failure>;
}

fn refused(errno: i32) -> Failure {
    words::verb(Stage::Measure, Doing::Post, "the measured queue pair", errno)
}

/// The first request of a pass completes: it also covers silent requests of earlier passes. The last ones need no completion: their
/// answers have arrived.
#[inline]
fn post(sends: &mut Sends) -> Result<(), Failure> {
    if sends.posted() == 0 { sends.post_last(1) } else { sends.post() }.map_err(refused)
}

fn told(sends: &Sends) -> bool {
    sends.in_flight() <= sends.silent()
}

/// Where every request completes, a message has arrived only once its own request is complete, as in perftest. The caller of `arrived`
/// looks for an abort; a wait in `send` would not.
#[inline]
fn is_full(sends: &Sends) -> bool {
    sends.in_flight() > 2 * (sends.signal_every() - 1)
}

fn reap(sends: &mut Sends, poller: &mut Poller) -> Result<usize, Failure> {
    poller.poll(|completion| sends.complete(completion.covered()))
}

/// RDMA WRITE: the message's last byte is a beat that counts up, and so is its first, which is read while the answer is on its way.
pub struct ByMemory<'a> {
    pub sends: &'a mut Sends,
    pub poller: &'a mut Poller,
    pub outgoing: Beat,
    pub incoming: Beat,
    sent: u8,
    seen: u8,
    looks: u32,
    /// Order check of the first messages, and how many of them were sent and seen.
    check: Option<OrderCheck>,
    checked: (u64, u64),
}

impl<'a> ByMemory<'a> {
    pub fn new(sends: &'a mut Sends, poller: &'a mut Poller, outgoing: Beat, incoming: Beat) -> Self {
        incoming.store(0);
        Self { sends, poller, outgoing, incoming, sent: 0, seen: 0, looks: 0, check: None, checked: (0, 0) }
    }

    #[must_use]
    pub(crate) fn checking(mut self, check: OrderCheck) -> Self {
        self.check = Some(check);
        self
    }

    #[cold]
    fn prepare(&mut self) {
        if let Some(check) = &self.check {
            check.write(self.checked.0, self.sent);
            self.checked.0 += 1;
        }
    }

    /// The check ends with the last of the first messages, in both directions: an answer is sent before the next message arrives.
    #[cold]
    fn compare(&mut self) -> Result<(), Failure> {
        if let Some(check) = &self.check {
            check.look(self.checked.1, self.seen)?;
            self.checked.1 += 1;
            if self.checked.0.min(self.checked.1) >= check.messages {
                self.check = None;
            }
        }
        Ok(())
    }

    /// Work while a message is on its way: not part of a sample.
    #[inline]
    fn meanwhile(&mut self) -> Result<(), Failure> {
        // The peer may have answered already, if this thread did not run for a moment.
        let (first, next) = (self.incoming.first(), self.seen.wrapping_add(1));
        if first != self.seen && first != next {
            return Err(order::late(0, self.incoming.length()));
        }
        // An earlier request has completed by now: the queue has room before it is needed.
        if self.sends.in_flight() > self.sends.signal_every() {
            reap(self.sends, self.poller)?;
        }
        Ok(())
    }
}

impl PingPongSide for ByMemory<'_> {
    #[inline]
    fn send(&mut self) -> Result<(), Failure> {
        self.sent = self.sent.wrapping_add(1);
        if self.check.is_some() {
            self.prepare();
        }
        self.outgoing.store(self.sent);
        post(self.sends)?;
        self.meanwhile()
    }

    #[inline]
    fn arrived(&mut self) -> Result<bool, Failure> {
        let expected = self.seen.wrapping_add(1);
        if self.incoming.last() == expected {
            if is_full(self.sends) {
                reap(self.sends, self.poller)?;
                return Ok(false);
            }
            self.seen = expected;
            if self.check.is_some() {
                self.compare()?;
            }
            return Ok(true);
        }
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(QUEUE_EVERY) {
            reap(self.sends, self.poller)?;
        }
        Ok(false)
    }

    fn drain(&mut self) -> Result<bool, Failure> {
        reap(self.sends, self.poller)?;
        Ok(told(self.sends))
    }
}

/// SEND, datagrams and WRITE with immediate data: each message completes a receive.
pub(crate) struct ByReceive<'a> {
    pub sends: &'a mut Sends,
    pub poller: &'a mut Poller,
    pub receives: &'a mut Receives,
    pub ahead: u64,
    /// Messages that have arrived and were not consumed yet.
    pub waiting: u64,
    pub used: u64,
    /// Copies around each message, where the device does not reach its memory.
    pub stage: Option<Copies>,
}

impl ByReceive<'_> {
    fn look(&mut self) -> Result<(), Failure> {
        let Self { sends, poller, waiting, used, .. } = self;
        poller.poll(|completion| {
            if completion.is_receive() {
                *waiting += 1;
                *used += 1;
            } else {
                sends.complete(completion.covered());
            }
        })?;
        Ok(())
    }
}

impl PingPongSide for ByReceive<'_> {
    #[inline]
    fn send(&mut self) -> Result<(), Failure> {
        if let Some(stage) = &self.stage {
            stage.fetch(0, 1)?;
        }
        post(self.sends)?;
        if self.used > 0 {
            self.receives.consume(std::mem::take(&mut self.used), self.ahead).map_err(refused)?;
        }
        Ok(())
    }

    #[inline]
    fn arrived(&mut self) -> Result<bool, Failure> {
        if self.waiting == 0 || is_full(self.sends) {
            self.look()?;
        }
        let here = self.waiting > 0 && !is_full(self.sends);
        if let Some(stage) = self.stage.as_ref().filter(|_| here) {
            let next = self.receives.consumed() + self.used - self.waiting;
            stage.deliver(0, self.receives.place(next))?;
        }
        self.waiting -= u64::from(here);
        Ok(here)
    }

    #[inline]
    fn caught_up(&self) -> bool {
        self.waiting == 0
    }

    fn drain(&mut self) -> Result<bool, Failure> {
        self.look()?;
        self.receives.consume(std::mem::take(&mut self.used), self.ahead).map_err(refused)?;
        Ok(told(self.sends))
    }
}

pub struct ByCompletion<'a> {
    pub sends: &'a mut Sends,
    pub poller: &'a mut Poller,
}

impl PingPongSide for ByCompletion<'_> {
    #[inline]
    fn send(&mut self) -> Result<(), Failure> {
        self.sends.post().map_err(refused)
    }

    #[inline]
    fn arrived(&mut self) -> Result<bool, Failure> {
        Ok(reap(self.sends, self.poller)? > 0)
    }

    fn drain(&mut self) -> Result<bool, Failure> {
        reap(self.sends, self.poller)?;
        Ok(told(self.sends))
    }
}

/// The initiator's side; runs for as long as `rule` says.
pub fn serve_first(
    side: &mut impl PingPongSide,
    waiter: &mut Waiter,
    (rule, size): (Rule, Bytes),
    recorder: &mut Recorder,
) -> Result<Measurement, Failure> {
    let mut window = Window::ready(rule, size);
    let (quota, mut done) = (window.quota(), 0);
    let (mut before, mut sample) = (clock::now(), None);
    // Time between operations, which a busy host may prolong.
    let mut aside = Nanoseconds::ZERO;
    window.start(before);
    while window.running && done < quota {
        side.send()?;
        if let Some(sample) = sample {
            recorder.record(sample);
        }
        if side.caught_up() {
            waiter.rest()?;
        }
        while !side.arrived()? {
            waiter.pause()?;
        }
        waiter.progress();
        let now = clock::now();
        sample = Some(now - before);
        window.completed(now, 1);
        before = now;
        done += 1;
        if waiter.is_due(now) {
            waiter.look()?;
            before = clock::now();
            aside = aside.saturating_add(before - now);
        }
    }
    if let Some(sample) = sample {
        recorder.record(sample);
    }
    while !side.drain()? {
        waiter.pause()?;
    }
    let mut measurement = window.finish(before);
    // Time outside operations is not part of the window.
    measurement.elapsed = measurement.elapsed.saturating_sub(aside);
    Ok(measurement)
}

pub(crate) fn return_all(
    side: &mut impl PingPongSide,
    waiter: &mut Waiter,
    mut over: impl FnMut(&Waiter) -> bool,
) -> Result<u64, Failure> {
    let mut returned = 0;
    loop {
        while !side.arrived()? {
            if over(waiter) {
                while !side.drain()? {
                    waiter.pause()?;
                }
                return Ok(returned);
            }
            waiter.pause()?;
        }
        waiter.progress();
        side.send()?;
        returned += 1;
        if side.caught_up() {
            waiter.rest()?;
        }
    }
}

#[cfg(test)]
#[path = "../../../examples/doubles/stub.rs"]
#[allow(unreachable_pub, reason = "an example has it too")]
mod stub;

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        time::{Duration, Instant},
    };

    use super::{stub::Stub, *};
    use crate::{
        bench::control::Control,
        endpoint::verbs::settings::SIGNAL_EVERY,
        verbs::send::{Template, Verb, Walk},
    };
    use railgauge_wire::Nanoseconds;

    #[derive(Default)]
    struct ThirdLook(u32);

    impl PingPongSide for ThirdLook {
        fn send(&mut self) -> Result<(), Failure> {
            self.0 = 0;
            Ok(())
        }

        fn arrived(&mut self) -> Result<bool, Failure> {
            self.0 += 1;
            Ok(self.0 == 3)
        }

        fn drain(&mut self) -> Result<bool, Failure> {
            Ok(true)
        }
    }

    fn on_stub(signal_every: u32, check: impl FnOnce(&mut ByMemory<'_>)) {
        let stub = Stub::new(true);
        let template = Template {
            verb: Verb::Write,
            size: 64,
            local: 0,
            remote: 0,
            remote_key: 0,
            walk: Walk::default(),
            inline: false,
            list: 1,
            signal_every,
            tag: 0,
        };
        let (mut sends, mut poller) = (stub.sends(template), stub.poller());
        let (outgoing, incoming) = stub.beats();
        check(&mut ByMemory::new(&mut sends, &mut poller, outgoing, incoming));
    }

    #[test]
    fn completions_are_taken_while_a_message_is_on_its_way_and_not_before_one_is_sent() {
        on_stub(SIGNAL_EVERY, |side| {
            for _ in 0..1000 {
                side.send().unwrap();
                assert!(side.sends.in_flight() <= u64::from(SIGNAL_EVERY), "{}", side.sends.in_flight());
                assert!(side.arrived().unwrap());
            }
        });
    }

    #[test]
    fn an_answer_counts_once_its_own_request_is_complete_if_every_request_completes() {
        on_stub(1, |side| {
            side.send().unwrap();
            // A queue without its completion.
            let other = Stub::new(true);
            let own = std::mem::replace(side.poller, other.poller());
            assert!((0..100).all(|_| !side.arrived().unwrap()));
            *side.poller = own;
            assert!(!side.arrived().unwrap() && side.arrived().unwrap());
            assert_eq!(side.sends.in_flight(), 0);
        });
    }

    #[test]
    fn a_first_byte_that_is_not_there_when_the_answer_is_sent_is_told_at_any_message() {
        on_stub(SIGNAL_EVERY, |side| {
            for _ in 0..1000 {
                side.send().unwrap();
                assert!(side.arrived().unwrap());
            }
            side.seen = side.seen.wrapping_sub(1);
            side.meanwhile().unwrap();
            side.seen = side.seen.wrapping_add(2);
            let failure = side.meanwhile().unwrap_err();
            assert!(failure.cause.contains("message of 64 bytes was here before byte 0"), "{failure}");
        });
    }

    #[test]
    fn the_times_of_the_operations_are_the_window() {
        let control = Control::new(Arc::default(), Arc::default(), Instant::now() + Duration::from_secs(60));
        let times = [2, 250].map(|time| Rule::Duration(Nanoseconds::from_millis(time)));
        for rule in [Rule::Iterations(1), Rule::Iterations(7)].into_iter().chain(times) {
            let (mut waiter, mut recorder) = (Waiter::polling(&control, Stage::Measure), Recorder::new());
            let measured =
                serve_first(&mut ThirdLook::default(), &mut waiter, (rule, Bytes(8)), &mut recorder).unwrap();
            let latency = recorder.finish(1);
            let sum = Nanoseconds((latency.mean.0 * latency.samples as f64).round() as u64);
            assert_eq!((latency.samples, sum), (measured.operations, measured.elapsed), "{rule:?}");
        }
    }
}
