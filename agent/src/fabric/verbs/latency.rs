//! The initiator's latency pass, and what both ends of a ping-pong share.

use railgauge_wire::{
    Completion, Failure, Kind, Measurement, Nanoseconds, Op, Service, Stage, Timing, Window, WriteLatency,
    remedy::{self, Entry},
};

use super::{
    Batches, ByMemory, Copies, OrderCheck, Phase, Resources, VerbsEnd, Waiter,
    bandwidth::QUIET,
    pingpong::{ByCompletion, ByReceive, PingPongSide, serve_first},
};
use crate::{
    bench::{Recorder, clock, control::Control},
    verbs::{Beat, Sends, Span, Walk},
};

impl VerbsEnd {
    /// Warms up, then samples for the window. `op` is the posted operation (see [`operation`](Self::operation)).
    pub(crate) fn latency(&mut self, op: Op, timing: &Timing, control: &Control) -> Result<Measurement, Failure> {
        if self.resources.service != Service::Rc {
            // Late stragglers of an earlier pass must not count as answers.
            std::thread::sleep(QUIET.into());
        }
        let mut sends = self.latency_sends(op, timing.size.0)?;
        let mut waiter = self.waiter(control, Stage::Measure).undisturbed();
        let measured = match op {
            Op::Write => {
                let (outgoing, incoming) = self.beats(timing.size.0)?;
                let check = self.order_check(timing.size.0)?;
                let rule = Window::Iterations(check.messages);
                let side = ByMemory::new(&mut sends, &mut self.resources.poller, outgoing, incoming);
                let mut side = side.checking(check);
                self.progress.announcer.announce(Phase::PingPong, &mut self.connection.mailbox, control)?;
                serve_first(&mut side, &mut waiter, (rule, timing.size), &mut Recorder::new())?;
                play(&mut side, &mut waiter, timing, control, 2)
            }
            _ if op.takes_receives() => {
                self.post_receives()?;
                self.drain()?;
                self.progress.announcer.announce(Phase::PingPong, &mut self.connection.mailbox, control)?;
                let stage = self.stage(op, timing.size.0);
                let mut side = self.by_receive(&mut sends, stage);
                play(&mut side, &mut waiter, timing, control, 2)
            }
            _ => {
                let mut side = ByCompletion { sends: &mut sends, poller: &mut self.resources.poller };
                play(&mut side, &mut waiter, timing, control, 1)
            }
        };
        if op.takes_receives() {
            self.progress.sent[0] += sends.posted();
            if measured.is_ok() && self.resources.service != Service::Rc {
                self.no_strays()?;
            }
        }
        measured.map(|measurement| Measurement { moved: Some(timing.size * sends.posted()), ..measurement })
    }

    /// `Err` for unexpected messages. A straggler that the peer took for a ping would make every answer look early.
    fn no_strays(&mut self) -> Result<(), Failure> {
        std::thread::sleep(QUIET.into());
        let before = self.progress.receives[0].consumed();
        self.drain()?;
        match self.progress.receives[0].consumed() - before {
            0 => Ok(()),
            strays => {
                let cause = format!(
                    "{strays} messages arrived unexpectedly, stragglers of an earlier pass over an \
                     unreliable service: the samples cannot be trusted"
                );
                Err(Failure::new(Stage::Measure, Kind::Fabric, cause).remedy(remedy::MEASURE_AGAIN))
            }
        }
    }

    pub(crate) fn latency_op(&self, op: Op) -> Result<Op, Failure> {
        let refuse =
            |cause: String, remedy: Entry| Err(Failure::new(Stage::Measure, Kind::Configuration, cause).remedy(remedy));
        if self.connection.pairs.len() > 1 {
            let cause = format!(
                "a latency loop has one message in flight, this link has {} queue pairs",
                self.connection.pairs.len()
            );
            return refuse(cause, remedy::ONE_QUEUE_PAIR);
        }
        if op != Op::Write {
            return Ok(op);
        }
        if self.resources.settings.write_latency == Some(WriteLatency::Immediate) {
            return Ok(Op::WriteImm);
        }
        if self.resources.settings.completion == Completion::Events {
            let cause = "an RDMA WRITE completes nothing at its target: in event mode there is nothing to wait for";
            return refuse(cause.to_owned(), remedy::WRITE_IMM_OR_POLL);
        }
        for (polled, whose) in [(self.resources.polled, "this end"), (self.peer()?.endpoint.polled, "the peer")] {
            if !polled {
                let cause = format!(
                    "the memory of {whose} cannot be polled: it is a GPU's, or is registered with relaxed ordering"
                );
                return refuse(cause, remedy::WRITE_IMMEDIATE);
            }
        }
        Ok(Op::Write)
    }

    pub(crate) fn latency_sends(&self, op: Op, size: u64) -> Result<Sends, Failure> {
        // A read's or an atomic's completion is the answer; otherwise the peer's message confirms it.
        let settings = &self.resources.settings;
        let signal_every = if op.pulls() || op.is_atomic() { 1 } else { settings.signal_latency };
        let batches = Batches { list: 1, signal_every, inline: settings.inline_latency };
        self.ring(0, self.template(0, op, size, Walk::default(), batches)?)
    }

    pub(crate) fn beats(&self, size: u64) -> Result<(Beat, Beat), Failure> {
        let Resources { region, layout, .. } = &self.resources;
        let beats = Beat::of(region, layout.outgoing(0), size).zip(Beat::of(region, layout.incoming(0), size));
        beats.ok_or_else(|| {
            Failure::new(Stage::Measure, Kind::Internal, "the last byte of a message in GPU memory cannot be polled")
        })
    }

    pub(crate) fn order_check(&self, size: u64) -> Result<OrderCheck, Failure> {
        let Resources { region, layout, .. } = &self.resources;
        let spans = Span::new(region, layout.outgoing(0), size).zip(Span::new(region, layout.incoming(0), size));
        spans.map(|(outgoing, incoming)| OrderCheck::new(outgoing, incoming)).ok_or_else(|| {
            Failure::new(Stage::Measure, Kind::Internal, "the bytes of a message in GPU memory cannot be looked at")
        })
    }

    pub(crate) fn by_receive<'a>(&'a mut self, sends: &'a mut Sends, stage: Option<Copies>) -> ByReceive<'a> {
        let (ahead, receives) = (u64::from(self.resources.settings.receives), &mut self.progress.receives[0]);
        ByReceive { sends, poller: &mut self.resources.poller, receives, ahead, waiting: 0, used: 0, stage }
    }
}

fn play(
    side: &mut impl PingPongSide,
    waiter: &mut Waiter,
    timing: &Timing,
    control: &Control,
    trips: u64,
) -> Result<Measurement, Failure> {
    if timing.warm_up > Nanoseconds::ZERO {
        serve_first(side, waiter, (Window::Duration(timing.warm_up), timing.size), &mut Recorder::new())?;
    }
    if let Some(start) = timing.start_at {
        clock::wait_until(start, control)?;
    }
    let mut recorder = Recorder::new();
    let used = clock::cpu();
    let mut measurement = serve_first(side, waiter, (timing.window, timing.size), &mut recorder)?;
    measurement.cpu = clock::cpu() - used;
    measurement.latency = Some(Box::new(recorder.finish(trips)));
    Ok(measurement)
}
