//! The initiator's bandwidth pass, and the traffic of each queue pair with the UDP source port by which switches choose its path.
//!
//! Atomics move once for a verify pass, and are added up after a timed one. A verify pass uses the first word of each queue pair's
//! receiving half at the responder. A timed one steps through the first words of the cache lines of a page there, as perftest does: a
//! device that serializes atomics on one address runs those on several in parallel.

use railgauge_wire::{
    Bytes, Failure, Joining, Kind, Lane, LinkLayer, Measurement, Nanoseconds, Op, Pattern, Service, SourcePort, Stage,
    Timing, Window, remedy,
};

use super::{
    Batches, How, Layout, Phase, Slot, Unlimited, VerbsEnd, Waiter,
    stream::{Nothing, stream},
};
use crate::{
    bench::{clock, control::Control},
    memory::pattern,
    verbs::{Receives, Sends, Template, Verb, Walk},
};

/// After so long without arrivals, missing messages count as lost.
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
                "{op} over service {} is not measured in both directions at once: what is lost would not be counted",
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
        let (arrived, used) = (self.arrived(), clock::cpu());
        let (mut measurement, mut messages) = self.pass(timing, timing.window, &mut waiter)?;
        if let Some(reads) = &mut behind {
            // Until the last byte has arrived, which a completion of InfiniBand implies.
            self.move_once(reads, &mut waiter)?;
            measurement.elapsed = clock::now() - measurement.started;
        }
        drop(waiter);
        measurement.cpu = clock::cpu() - used;
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
            must_add_up(op, &words, &self.words(control)?, measurement.operations)?;
        }
        Ok(measurement)
    }

    pub(crate) fn arrived(&self) -> Vec<u64> {
        (0..self.connection.pairs.len()).map(|i| self.connection.mailbox.read(Slot::Consumed(i))).collect()
    }

    pub(crate) fn taken(&self) -> u64 {
        self.progress.receives.iter().map(Receives::consumed).sum()
    }

    /// Waits until so many messages have arrived, or none has for [`QUIET`]: a straggler must not count in the next pass.
    pub(crate) fn wait_for_stragglers(&self, expected: u64, control: &Control) -> Result<(), Failure> {
        let arrived = || self.arrived().iter().sum::<u64>();
        let (mut seen, mut since) = (arrived(), clock::now());
        while seen < expected {
            // Before the quiet time: an earlier deadline is reported even if this thread is late.
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
    fn pass(&mut self, timing: &Timing, rule: Window, waiter: &mut Waiter) -> Result<(Measurement, Vec<u64>), Failure> {
        let Timing { op, size: Bytes(size), bidirectional, only, pace, .. } = *timing;
        let mut flows = self.flows(op, size)?;
        let depth = self.resources.settings.pace(size).depth;
        let how = How { rule, size, depth, only: only.map(|i| i as usize), pace };
        let messages = |flows: &[Sends]| flows.iter().map(Sends::posted).collect();
        if !op.takes_receives() {
            let measured = stream(&mut flows, &mut self.resources.poller, waiter, how, &mut Unlimited, &mut Nothing)?;
            return Ok((measured, messages(&flows)));
        }
        let (mut granted, stage) = (self.granted(self.stage(op, size)), self.stage(op, size));
        let measured = if bidirectional {
            let mut sink = self.resources.sink(&mut self.progress.receives, &mut self.connection.mailbox, stage);
            stream(&mut flows, &mut self.resources.poller, waiter, how, &mut granted, &mut sink)
        } else {
            stream(&mut flows, &mut self.resources.poller, waiter, how, &mut granted, &mut Nothing)
        };
        self.account(&flows);
        Ok((measured?, messages(&flows)))
    }

    pub(crate) fn flows(&self, op: Op, size: u64) -> Result<Vec<Sends>, Failure> {
        let walk = self.walk(op, size)?;
        (0..self.connection.pairs.len()).map(|i| self.sends(i, op, size, walk, self.batches(size))).collect()
    }

    pub(crate) fn account(&mut self, flows: &[Sends]) {
        for (sent, flow) in self.progress.sent.iter_mut().zip(flows) {
            *sent += flow.posted();
        }
    }

    pub(crate) fn drain(&mut self) -> Result<(), Failure> {
        if self.progress.receives.is_empty() {
            return Ok(());
        }
        let mut sink = self.resources.sink(&mut self.progress.receives, &mut self.connection.mailbox, None);
        sink.take_all(&mut self.resources.poller)
    }
}

/// An unreliable service completes lost messages too: only what arrived counts.
fn delivered(measurement: &mut Measurement, arrived: u64) {
    let sent = measurement.operations.max(1);
    let arrived = arrived.min(sent);
    let part = |bytes: Bytes| Bytes((u128::from(bytes.0) * u128::from(arrived) / u128::from(sent)) as u64);
    measurement.bytes = part(measurement.bytes);
    measurement.slices.iter_mut().for_each(|bytes| *bytes = part(*bytes));
    measurement.operations = arrived;
}

impl VerbsEnd {
    /// Replaces the poison by the pattern's word by atomics alone, and checks their results.
    pub(crate) fn transfer_atomic(&mut self, op: Op, pattern: &Pattern, control: &Control) -> Result<(), Failure> {
        for i in 0..self.connection.pairs.len() {
            let (mut wanted, mut poison) = ([0; 8], [0; 8]);
            pattern::fill(&mut wanted, pattern, i as u32);
            pattern::poison(&mut poison, pattern, i as u32);
            let (wanted, poison) = (u64::from_ne_bytes(wanted), u64::from_ne_bytes(poison));
            let brought = if op == Op::AtomicFadd {
                let add = wanted.wrapping_sub(poison);
                [self.once(i, Verb::FetchAdd { add: 0 }, control)?, self.once(i, Verb::FetchAdd { add }, control)?]
            } else {
                // The first one compares with another word and must change nothing.
                let wrong = Verb::CompareSwap { compare: !poison, swap: 0 };
                let right = Verb::CompareSwap { compare: poison, swap: wanted };
                [self.once(i, wrong, control)?, self.once(i, right, control)?]
            };
            if let Some(other) = brought.iter().find(|word| **word != poison) {
                let cause = format!("{op} brought back {other:#018x} where {poison:#018x} had been put");
                return Err(Failure::new(Stage::Verify, Kind::Corruption, cause));
            }
        }
        Ok(())
    }

    /// The words of all queue pairs: one read of their page per queue pair, all at once, so that few round trips pass before a common
    /// start of several flows. A read follows the atomics before it on its queue pair (InfiniBand Architecture Specification, volume 1,
    /// 9.5 Transaction Ordering).
    pub(crate) fn words(&mut self, control: &Control) -> Result<Vec<u64>, Failure> {
        let walk = Layout::words();
        let pages = (0..self.connection.pairs.len()).map(|i| self.atomic(i)).collect::<Result<Vec<_>, _>>()?;
        let page = |like: &Template| Template {
            verb: Verb::Read,
            size: u32::try_from(walk.span).unwrap_or(u32::MAX),
            ..like.clone()
        };
        let reads = pages.iter().enumerate().map(|(i, like)| self.ring(i, page(like)));
        let mut reads = reads.collect::<Result<Vec<_>, _>>()?;
        self.move_once(&mut reads, &mut self.waiter(control, Stage::Measure))?;
        let places = pages.iter().flat_map(|like| (0..walk.places()).map(|n| like.local + walk.place(n)));
        places.map(|place| self.resources.region.backing().word(place)).collect()
    }

    /// One atomic on the first word of queue pair `i`; answers what it brought back.
    fn once(&mut self, i: usize, verb: Verb, control: &Control) -> Result<u64, Failure> {
        let like = self.atomic(i)?;
        let local = like.local;
        let mut sends = self.ring(i, Template { verb, ..like })?;
        self.move_once(std::slice::from_mut(&mut sends), &mut self.waiter(control, Stage::Verify))?;
        self.resources.region.backing().word(local)
    }

    fn atomic(&self, i: usize) -> Result<Template, Failure> {
        let batches = Batches { list: 1, signal_every: 1, inline: 0 };
        self.template(i, Op::AtomicFadd, 8, Walk::default(), batches)
    }
}

/// `Err` unless the words changed by exactly the operations done.
pub(crate) fn must_add_up(op: Op, before: &[u64], after: &[u64], operations: u64) -> Result<(), Failure> {
    let changes = || before.iter().zip(after).map(|(before, after)| after.wrapping_sub(*before));
    let change = changes().fold(0, u64::wrapping_add);
    let expected = if op == Op::AtomicFadd { operations } else { 0 };
    // A swap of nothing leaves every word as it was, not only their sum.
    if change == expected && (op == Op::AtomicFadd || changes().all(|change| change == 0)) {
        return Ok(());
    }
    let cause = format!(
        "{operations} operations {op} changed their words by {change}, not by {expected}: operations were lost or \
         carried out twice"
    );
    Err(Failure::new(Stage::Measure, Kind::Corruption, cause))
}

/// Lowest UDP source port of RoCE v2; the ports are those of 14 bits above it.
const FIRST: u16 = 0xc000;
const LABEL: u64 = 0xf_ffff;

impl VerbsEnd {
    /// Messages by queue pair as lanes, each message of `size` bytes.
    pub(crate) fn lanes(&self, messages: &[u64], size: u64) -> Vec<Lane> {
        let lane =
            |(i, messages): (usize, &u64)| Lane { bytes: Bytes(messages * size), source_port: self.source_port(i) };
        messages.iter().enumerate().map(lane).collect()
    }

    /// The port of queue pair `i`, where the kernel's rule gives it: connected queue pairs of RoCE v2, of a driver that follows it, and
    /// not joined by rdma_cm, which has another rule.
    fn source_port(&self, i: usize) -> Option<SourcePort> {
        let ruled = self.resources.choice.link_layer == LinkLayer::RoceV2
            && self.resources.choice.driver.follows_kernel_port_rule()
            && self.resources.service != Service::Ud
            && self.resources.settings.joining != Joining::RdmaCm;
        let (own, peer) =
            (self.connection.pairs.get(i)?.number(), *self.connection.peer.as_ref()?.endpoint.qp_numbers.get(i)?);
        ruled.then(|| SourcePort::PredictedUdp(predicted(self.resources.settings.label(i), own, peer)))
    }
}

/// `rdma_get_udp_sport` of the Linux kernel (`include/rdma/ib_verbs.h`), where the driver follows it
/// ([`Driver::follows_kernel_port_rule`](crate::endpoint::verbs::choice::Driver::follows_kernel_port_rule)): from the flow label, or
/// without one from both queue pair numbers. Both ends get the same result, so it holds whichever of them sends.
fn predicted(label: u32, own: u32, peer: u32) -> u16 {
    let label = if label == 0 {
        let product = u64::from(own) * u64::from(peer);
        let folded = product ^ (product >> 20);
        (folded ^ (folded >> 40)) & LABEL
    } else {
        u64::from(label) & LABEL
    };
    // The upper six bits of a label are folded onto the lower fourteen.
    FIRST | ((label ^ (label >> 14)) & 0x3fff) as u16
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

    #[test]
    fn sums_are_checked_across_the_wrap() {
        assert!(must_add_up(Op::AtomicFadd, &[u64::MAX, 5], &[1, 8], 5).is_ok());
        assert_eq!(must_add_up(Op::AtomicFadd, &[0], &[4], 5).unwrap_err().kind, Kind::Corruption);
        assert!(must_add_up(Op::AtomicCas, &[7], &[7], 100).is_ok());
        assert!(must_add_up(Op::AtomicCas, &[7], &[8], 100).is_err());
        assert!(must_add_up(Op::AtomicCas, &[7, 7], &[8, 6], 100).is_err());
    }

    #[test]
    fn labels_become_ports_as_the_kernel_makes_them() {
        assert_eq!(predicted(1, 17, 18), 49153);
        // 0xfc000 >> 14 is 0x3f.
        assert_eq!(predicted(0xf_c000, 17, 18), 0xc03f);
        assert_eq!(predicted(0xf_ffff, 17, 18), 0xc000 | (0x3fff ^ 0x3f));
        // 17 × 18 = 306; and what is over 20 bits is folded in: 2^21 → 2^21 ^ 2.
        assert_eq!(predicted(0, 17, 18), 49152 + 306);
        assert_eq!(predicted(0, 1 << 20, 2), 49154);
        assert_eq!(predicted(0, 0x1234, 0xabcd), predicted(0, 0xabcd, 0x1234));
    }
}
