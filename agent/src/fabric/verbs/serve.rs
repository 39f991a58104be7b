//! The responder's part: serves the initiator's announcements until stopped.

use std::{
    os::fd::AsFd,
    time::{Duration, Instant},
};

use railgauge_wire::{Bytes, Failure, Kind, Measurement, Nanoseconds, Op, Stage, TestMetric, Window as Rule};

use super::{
    ByMemory, How, Listener, Phase, Sink, Unlimited, VerbsEnd, Waiter,
    pingpong::return_all,
    stream::{Incoming, stream},
};
use crate::{
    bench::{Window, clock, control::Control},
    system::wait::{self, READABLE},
    verbs::{Completion, Sends},
};

const SHORT_NAP: Duration = Duration::from_micros(500);

const LONG_NAP: Duration = Duration::from_millis(100);

/// For the deadline only: nothing is announced, and the controller's word ends the sleep.
const DEADLINE_NAP: Duration = Duration::from_secs(1);

impl VerbsEnd {
    pub(crate) fn serve(
        &mut self,
        op: Op,
        metric: TestMetric,
        size: u64,
        control: &Control,
    ) -> Result<Measurement, Failure> {
        let op = self.operation(op, metric, size)?;
        if op.takes_receives() {
            self.post_receives()?;
        }
        let (started, used) = (clock::now(), clock::cpu());
        // Reads and atomics involve only the initiator and our device: nothing is announced.
        let alone = metric == TestMetric::Latency && (op.pulls() || op.is_atomic());
        let naps = if alone { DEADLINE_NAP..=DEADLINE_NAP } else { SHORT_NAP..=LONG_NAP };
        let (mut account, mut awaited) = (None, Instant::now());
        control.ready();
        let _watcher = match control.led {
            None => None,
            Some(not_before) => {
                self.progress.turns.give(&mut self.connection.mailbox)?;
                Some(self.progress.turns.watch(&self.connection.mailbox, control, not_before)?)
            }
        };
        while !control.stopped() {
            match self.progress.listener.news(&self.connection.mailbox) {
                None => {
                    control.check(Stage::Measure)?;
                    self.connection.watch.check(Stage::Measure)?;
                    self.connection.mailbox.reader().check(Stage::Measure)?;
                    self.connection.mailbox.reap()?;
                    nap((awaited.elapsed() / 4).clamp(*naps.start(), *naps.end()), control)?;
                    continue;
                }
                Some(Phase::Transfer) => self
                    .take_one_each(op, size, control)
                    .map_err(|failure| Failure { stage: Stage::Verify, ..failure })?,
                Some(Phase::Stream) => account = Some(self.sink(op, size, control)?),
                Some(Phase::BothWays) => account = Some(self.both_ways(op, size, control)?),
                Some(Phase::PingPong) => account = Some(self.return_pings(op, size, control)?),
                Some(phase @ (Phase::Counted | Phase::Over)) => return Err(unexpected(phase)),
            }
            awaited = Instant::now();
        }
        // The peer's device did everything: only our CPU time is reported.
        Ok(account.unwrap_or_else(|| Measurement {
            started,
            elapsed: clock::now() - started,
            cpu: clock::cpu() - used,
            ..Measurement::default()
        }))
    }

    fn take_one_each(&mut self, op: Op, size: u64, control: &Control) -> Result<(), Failure> {
        // Leftovers of an earlier pass are not part of this one.
        self.drain()?;
        for (received, receives) in self.progress.received.iter_mut().zip(&self.progress.receives) {
            // Written immediate data is at its destination, not in its receive.
            *received = (op == Op::Send).then(|| receives.consumed());
        }
        let (wanted, stage) = (self.connection.pairs.len() as u64, self.stage(op, size));
        let mut waiter = self.waiter(control, Stage::Verify);
        let mut sink = self.resources.sink(&mut self.progress.receives, &mut self.connection.mailbox, stage);
        // The initiator of an unreliable service counts arrivals from here on.
        sink.publish()?;
        self.progress.listener.acknowledge(sink.mailbox())?;
        while sink.operations < wanted {
            let stopped = waiter.stopped();
            if self.resources.poller.poll(|completion| sink.arrived(completion))? > 0 {
                sink.tend(0)?;
                sink.publish()?;
            } else if stopped {
                // Lost: the initiator is done, and the check will fail.
                break;
            } else {
                waiter.pause()?;
            }
        }
        Ok(())
    }

    fn sink(&mut self, op: Op, size: u64, control: &Control) -> Result<Measurement, Failure> {
        let mut waiter = self.waiter(control, Stage::Measure);
        let stage = self.stage(op, size);
        let mut sink = self.resources.sink(&mut self.progress.receives, &mut self.connection.mailbox, stage);
        let mut count = Count::default();
        self.progress.listener.acknowledge(sink.mailbox())?;
        loop {
            match self.progress.listener.news(sink.mailbox()) {
                None => {}
                Some(Phase::Counted) => {
                    // Late completions of the warm-up: they arrived before this announcement.
                    sink.take_all(&mut self.resources.poller)?;
                    count.begin(size);
                    self.progress.listener.acknowledge(sink.mailbox())?;
                }
                Some(Phase::Over) => {
                    let before = sink.operations;
                    sink.take_all(&mut self.resources.poller)?;
                    count.add(sink.operations - before);
                    sink.publish()?;
                    self.progress.listener.acknowledge(sink.mailbox())?;
                    return Ok(count.finish());
                }
                Some(phase) => return Err(unexpected(phase)),
            }
            let before = sink.operations;
            let taken = self.resources.poller.poll(|completion| sink.arrived(completion))?;
            if taken > 0 {
                sink.tend(0)?;
                count.add(sink.operations - before);
                waiter.progress();
            } else if waiter.stopped() {
                return Ok(count.finish());
            } else {
                sink.publish()?;
                waiter.pause()?;
            }
        }
    }

    fn both_ways(&mut self, op: Op, size: u64, control: &Control) -> Result<Measurement, Failure> {
        let (mut flows, taken) = (self.flows(op, size)?, self.taken());
        let mut waiter = self.waiter(control, Stage::Measure);
        let depth = self.resources.settings.pace(size).depth;
        let how = How { rule: Rule::Iterations(u64::MAX), size, depth, only: None, pace: None };
        let (mut granted, delivering) = (self.granted(self.stage(op, size)), self.stage(op, size));
        let sink = self.resources.sink(&mut self.progress.receives, &mut self.connection.mailbox, delivering);
        let count = Count::default();
        let mut sink_of_peer =
            PeerLedStream { listener: &mut self.progress.listener, sink, count, size, over: false, control };
        sink_of_peer.listener.acknowledge(sink_of_peer.sink.mailbox())?;
        if op.takes_receives() {
            stream(&mut flows, &mut self.resources.poller, &mut waiter, how, &mut granted, &mut sink_of_peer)?;
        } else {
            stream(&mut flows, &mut self.resources.poller, &mut waiter, how, &mut Unlimited, &mut sink_of_peer)?;
        }
        let (mut measurement, over) = (sink_of_peer.count.finish(), sink_of_peer.over);
        if op.takes_receives() {
            self.account(&flows);
            self.drain()?;
            measurement.moved = Some(Bytes(flows.iter().map(Sends::posted).sum::<u64>() * size));
            measurement.received = Some(Bytes((self.taken() - taken) * size));
        }
        self.flush(op, Stage::Measure, control)?;
        if over {
            self.progress.listener.acknowledge(&mut self.connection.mailbox)?;
        }
        Ok(measurement)
    }

    fn return_pings(&mut self, op: Op, size: u64, control: &Control) -> Result<Measurement, Failure> {
        let mut sends = self.latency_sends(op, size)?;
        let mut waiter = self.waiter(control, Stage::Measure).undisturbed();
        let mut count = Count::default();
        let over = |waiter: &Waiter| waiter.stopped();
        let returned = if op == Op::Write {
            let (outgoing, incoming) = self.beats(size)?;
            let check = self.order_check(size)?;
            let mut side = ByMemory::new(&mut sends, &mut self.resources.poller, outgoing, incoming).checking(check);
            self.progress.listener.acknowledge(&mut self.connection.mailbox)?;
            count.begin(size);
            return_all(&mut side, &mut waiter, over)?
        } else {
            // Leftovers of an earlier pass are not pings.
            self.drain()?;
            self.progress.listener.acknowledge(&mut self.connection.mailbox)?;
            count.begin(size);
            let stage = self.stage(op, size);
            return_all(&mut self.by_receive(&mut sends, stage), &mut waiter, over)?
        };
        if op.takes_receives() {
            self.progress.sent[0] += sends.posted();
        }
        count.add(returned);
        Ok(count.finish())
    }
}

/// Sleeps until the time is over or the controller interrupts. An announcement follows soon after the last one or not at all: then our
/// device does everything alone, and wake-ups of this processor would be measured, so pauses grow with the idle time.
fn nap(time: Duration, control: &Control) -> Result<(), Failure> {
    let Some(bell) = control.bell() else {
        std::thread::sleep(time);
        return Ok(());
    };
    wait::wait([(bell.as_fd(), READABLE)], Some(time))
        .map_err(|error| Failure::new(Stage::Measure, Kind::Internal, format!("waiting failed: {error}")))?;
    // Other threads of the link sleep on the same bell: only a final word is for all.
    if !control.halted() {
        bell.quiet();
    }
    Ok(())
}

fn unexpected(phase: Phase) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, format!("the initiator announced {phase:?} out of turn"))
}

#[derive(Default)]
struct Count {
    window: Option<Window>,
    cpu: Nanoseconds,
    last: Nanoseconds,
}

impl Count {
    fn begin(&mut self, size: u64) {
        let now = clock::now();
        self.window = Some(Window::begin(Rule::Iterations(u64::MAX), Bytes(size), now));
        (self.cpu, self.last) = (clock::cpu(), now);
    }

    #[inline]
    fn add(&mut self, operations: u64) {
        if let Some(window) = &mut self.window
            && operations > 0
        {
            self.last = clock::now();
            window.completed(self.last, operations);
        }
    }

    fn finish(self) -> Measurement {
        let Self { window, cpu, last } = self;
        window
            .map_or_else(Measurement::default, |window| Measurement { cpu: clock::cpu() - cpu, ..window.finish(last) })
    }
}

/// The peer decides when it starts and ends.
struct PeerLedStream<'a> {
    listener: &'a mut Listener,
    sink: Sink<'a>,
    count: Count,
    size: u64,
    over: bool,
    control: &'a Control,
}

impl Incoming for PeerLedStream<'_> {
    fn arrived(&mut self, completion: Completion<'_>) {
        self.sink.arrived(completion);
    }

    fn tend(&mut self, sent: u64) -> Result<bool, Failure> {
        self.sink.tend(0)?;
        if !self.over {
            self.count.add(sent);
            match self.listener.news(self.sink.mailbox()) {
                None => {}
                Some(Phase::Counted) => {
                    self.count.begin(self.size);
                    self.listener.acknowledge(self.sink.mailbox())?;
                }
                // Acknowledged once all of ours has completed.
                Some(Phase::Over) => self.over = true,
                Some(phase) => return Err(unexpected(phase)),
            }
        }
        Ok(!self.over && !self.control.stopped())
    }
}
