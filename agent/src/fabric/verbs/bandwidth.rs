//! The initiator's bandwidth pass.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    measure::Measurement,
    remedy,
    step::{Timing, Window},
    terms::{LinkLayer, Op, Service},
    unit::{Bytes, Nanoseconds},
};

use super::{
    atomic,
    credit::{Granted, Sink},
    end::VerbsEnd,
    mailbox::Slot,
    phase::Phase,
    stream::{How, Nothing, Unlimited, stream},
    waiter::Waiter,
};
use crate::{
    bench::control::Control,
    bench::{Tally, clock, cpu},
    verbs::{receive::Receives, send::Sends},
};

/// How long nothing may arrive before what is still missing is taken for lost.
pub(crate) const QUIET: Nanoseconds = Nanoseconds::from_millis(100);

impl VerbsEnd {
    /// Warms up, then streams for as long as the window says.
    pub(crate) fn bandwidth(&mut self, timing: &Timing, control: &Control) -> Result<Measurement, Failure> {
        let Timing { op, size: Bytes(size), bidirectional, only, .. } = *timing;
        let takes = op.takes_receives();
        let heard = takes || bidirectional;
        let pairs = self.connection.pairs.len();
        if only.is_some_and(|only| bidirectional || only as usize >= pairs) {
            let cause = format!("one queue pair by itself goes in one direction and is one of {pairs}");
            return Err(Failure::new(Stage::Measure, Kind::Internal, cause));
        }
        let lossy = takes && self.resources.service != Service::Rc;
        if bidirectional && lossy {
            let cause = format!(
                "{op} over service {} is not measured in both directions at once: nobody would count what is lost",
                self.resources.service
            );
            return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).remedy(remedy::RC_OR_ONE_DIRECTION));
        }
        if bidirectional && takes && self.resources.choice.link_layer == LinkLayer::Iwarp {
            let cause = format!(
                "{op} over iWARP is not measured in both directions at once: its completions do not say what has arrived"
            );
            return Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).remedy(remedy::LEAVE_TESTS_OUT));
        }
        if bidirectional && takes {
            self.post_receives()?;
        }
        let taken = self.taken();
        if heard {
            let phase = if bidirectional { Phase::BothWays } else { Phase::Stream };
            self.progress.announcer.announce(phase, &mut self.connection.mailbox, control)?;
        }
        let mut moved = Bytes::ZERO;
        if timing.warm_up > Nanoseconds::ZERO {
            let arrived = self.arrived();
            let mut waiter = self.waiter(control, Stage::Measure);
            let (warm, _) = self.pass(timing, Window::Duration(timing.warm_up), &mut waiter)?;
            self.flush(op, Stage::Measure, control)?;
            moved += warm.bytes;
            if lossy {
                self.wait_for_stragglers(arrived.iter().sum::<u64>() + warm.operations, control)?;
            }
        }
        // Before the start that several flows have in common: it takes a round trip.
        let words = if op.is_atomic() { self.words(control)? } else { Vec::new() };
        let (mut behind, mut waiter) = (self.behind(op)?, self.waiter(control, Stage::Measure));
        if let Some(start) = timing.start_at {
            clock::wait_until(start, control)?;
        }
        if heard {
            self.progress.announcer.announce(Phase::Counted, &mut self.connection.mailbox, control)?;
        }
        let (arrived, used) = (self.arrived(), cpu::thread());
        let (mut tally, mut messages) = self.pass(timing, timing.window, &mut waiter)?;
        if let Some(reads) = &mut behind {
            // Until the last byte has arrived, as a completion of InfiniBand says by itself.
            self.move_once(reads, &mut waiter)?;
            tally.elapsed = clock::now() - tally.started;
        }
        drop(waiter);
        let mut measurement = tally.measurement(cpu::thread() - used);
        measurement.moved = Some(moved + Bytes(measurement.operations * size));
        if heard {
            if lossy {
                self.wait_for_stragglers(arrived.iter().sum::<u64>() + measurement.operations, control)?;
            }
            self.progress.announcer.announce(Phase::Over, &mut self.connection.mailbox, control)?;
            self.drain()?;
            measurement.received = (bidirectional && takes).then(|| Bytes((self.taken() - taken) * size));
        }
        if lossy {
            let before_and_now = arrived.iter().zip(self.arrived());
            messages = before_and_now.zip(messages).map(|((before, now), sent)| sent.min(now - before)).collect();
            delivered(&mut measurement, messages.iter().sum());
        }
        measurement.lanes = self.lanes(&messages, size).into();
        if op.is_atomic() {
            atomic::must_add_up(op, &words, &self.words(control)?, measurement.operations)?;
        }
        Ok(measurement)
    }

    /// Messages of ours that have arrived in all on each queue pair, as the peer says.
    pub(crate) fn arrived(&self) -> Vec<u64> {
        (0..self.connection.pairs.len()).map(|i| self.connection.mailbox.read(Slot::Consumed(i))).collect()
    }

    /// Messages of the peer's that have been taken in all.
    pub(crate) fn taken(&self) -> u64 {
        self.progress.receives.iter().map(Receives::consumed).sum()
    }

    /// Waits until so many messages have arrived, or nothing has arrived for [`QUIET`]: a straggler must not be counted in
    /// the next pass.
    pub(crate) fn wait_for_stragglers(&self, expected: u64, control: &Control) -> Result<(), Failure> {
        let arrived = || self.arrived().iter().sum::<u64>();
        let (mut seen, mut since) = (arrived(), clock::now());
        while seen < expected {
            // Before the quiet time: whatever is the matter with this thread, a deadline that comes first is reported.
            control.check(Stage::Measure)?;
            if clock::now() - since >= QUIET {
                break;
            }
            std::thread::yield_now();
            let now = arrived();
            if now != seen {
                (seen, since) = (now, clock::now());
            }
        }
        Ok(())
    }

    /// Streams once, over all queue pairs or the only one that is wanted; also returns the messages of each.
    fn pass(&mut self, timing: &Timing, rule: Window, waiter: &mut Waiter) -> Result<(Tally, Vec<u64>), Failure> {
        let Timing { op, size: Bytes(size), bidirectional, only, pace, .. } = *timing;
        let mut flows = self.flows(op, size)?;
        let depth = self.resources.settings.pace(size).depth;
        let how = How { rule, size, depth, only: only.map(|i| i as usize), pace };
        let messages = |flows: &[Sends]| flows.iter().map(Sends::posted).collect();
        if !op.takes_receives() {
            let tally = stream(&mut flows, &mut self.resources.poller, waiter, how, &mut Unlimited, &mut Nothing)?;
            return Ok((tally, messages(&flows)));
        }
        let mut granted = Granted::new(self.connection.mailbox.reader(), &self.progress.sent, self.resources.service)
            .staged(self.stage(op, size));
        let stage = self.stage(op, size);
        let tally = if bidirectional {
            let sink = Sink::new(
                &mut self.progress.receives,
                &mut self.connection.mailbox,
                self.resources.settings.receives,
                self.resources.service,
            );
            let mut sink = sink.staged(stage);
            stream(&mut flows, &mut self.resources.poller, waiter, how, &mut granted, &mut sink)
        } else {
            stream(&mut flows, &mut self.resources.poller, waiter, how, &mut granted, &mut Nothing)
        };
        self.account(&flows);
        Ok((tally?, messages(&flows)))
    }

    /// A ring of requests per queue pair.
    pub(crate) fn flows(&self, op: Op, size: u64) -> Result<Vec<Sends>, Failure> {
        let walk = self.walk(op, size)?;
        (0..self.connection.pairs.len()).map(|i| self.sends(i, op, size, walk, self.batches(size))).collect()
    }

    /// Remembers what has been sent, for the credits of the next pass.
    pub(crate) fn account(&mut self, flows: &[Sends]) {
        for (sent, flow) in self.progress.sent.iter_mut().zip(flows) {
            *sent += flow.posted();
        }
    }

    /// Takes what still arrives after the peer has stopped sending.
    pub(crate) fn drain(&mut self) -> Result<(), Failure> {
        if self.progress.receives.is_empty() {
            return Ok(());
        }
        let mut sink = Sink::new(
            &mut self.progress.receives,
            &mut self.connection.mailbox,
            self.resources.settings.receives,
            self.resources.service,
        );
        sink.take_all(&mut self.resources.poller)
    }
}

/// An unreliable service completes what it has sent, arrived or not: only what arrived counts.
fn delivered(measurement: &mut Measurement, arrived: u64) {
    let sent = measurement.operations.max(1);
    let arrived = arrived.min(sent);
    let part = |bytes: Bytes| Bytes((u128::from(bytes.0) * u128::from(arrived) / u128::from(sent)) as u64);
    measurement.bytes = part(measurement.bytes);
    measurement.slices.iter_mut().for_each(|bytes| *bytes = part(*bytes));
    measurement.operations = arrived;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_does_not_count() {
        let mut measurement = Measurement {
            operations: 100,
            bytes: Bytes(6400),
            slices: vec![Bytes(3200); 2].into(),
            ..Measurement::default()
        };
        delivered(&mut measurement, 75);
        assert_eq!((measurement.operations, measurement.bytes), (75, Bytes(4800)));
        assert_eq!(measurement.slices, [Bytes(2400); 2]);
    }
}
