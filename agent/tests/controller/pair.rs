//! Two agents and a link between them.

use railgauge_wire::{
    Answer, Ask, Bytes, Checked, Endpoint, Failure, Knobs, LinkSpec, Measurement, Memory, Nanoseconds, Op, Opened,
    Pattern, Role, Service, Step, Stepped, TestMetric, Timing, Transport, Window,
};

use super::{Agent, DEADLINE_MS, Outcome, patiently};

pub const LINK: u64 = 5;
pub const TOKEN: &str = "a token of this test";

pub struct Pair {
    pub initiator: Agent,
    pub responder: Agent,
}

/// A TCP link over the loopback address.
pub fn spec(role: Role, qps: u32, max_size: u64) -> LinkSpec {
    LinkSpec {
        role,
        transport: Transport::Tcp,
        service: Service::Rc,
        device: None,
        port: 1,
        address: Some("127.0.0.1".into()),
        memory: Memory::Host,
        gpu: None,
        gpu_path: None,
        qps,
        threads: 1,
        max_size: Bytes(max_size),
        token: TOKEN.into(),
        rides_out: false,
        knobs: Knobs::default(),
    }
}

pub fn opened(outcome: Outcome) -> Opened {
    match outcome {
        Ok(Answer::Opened(opened) | Answer::Joined(opened)) => *opened,
        other => panic!("not opened: {other:?}"),
    }
}

/// What a step came to, wherever its bytes lie.
pub fn stepped(outcome: Outcome) -> Result<Stepped, Failure> {
    match outcome? {
        Answer::Stepped(stepped) | Answer::SteppedOnGpu { stepped, .. } => Ok(stepped),
        other => panic!("not stepped: {other:?}"),
    }
}

pub fn measured(outcome: Outcome) -> Measurement {
    match stepped(outcome) {
        Ok(Stepped::Measured(measurement)) => *measurement,
        other => panic!("not measured: {other:?}"),
    }
}

impl Pair {
    pub fn new() -> Self {
        Self { initiator: Agent::start(), responder: Agent::start() }
    }

    /// Opens and joins both ends.
    pub fn linked(self, change: impl Fn(&mut LinkSpec), qps: u32, max_size: u64) -> Self {
        let mut pair = self;
        pair.open(change, qps, max_size).expect("a link");
        pair
    }

    pub fn open(
        &mut self,
        change: impl Fn(&mut LinkSpec),
        qps: u32,
        max_size: u64,
    ) -> Result<(Opened, Opened), Failure> {
        let open = |agent: &mut Agent, role| {
            let mut spec = spec(role, qps, max_size);
            change(&mut spec);
            opened(agent.ask(Ask::Open { link: LINK, spec: Box::new(spec) }))
        };
        let (near, far) = (open(&mut self.initiator, Role::Initiator), open(&mut self.responder, Role::Responder));
        self.join(near.endpoint, far.endpoint)
    }

    pub fn join(&mut self, near: Endpoint, far: Endpoint) -> Result<(Opened, Opened), Failure> {
        let one = self.responder.post(Ask::Join { link: LINK, peer: near });
        let other = self.initiator.post(Ask::Join { link: LINK, peer: far });
        let (near, far) = (self.initiator.wait(other), self.responder.wait(one));
        Ok((opened(Ok(near?)), opened(Ok(far?))))
    }

    /// Runs an initiator's step while the responder serves; both accounts.
    pub fn served(&mut self, op: Op, metric: TestMetric, size: u64, step: Step) -> (Outcome, Outcome) {
        let window = if let Step::Time(timing) = &step { Some(timing.window) } else { None };
        let serve = Step::Serve { op, metric, size: Bytes(size), window };
        assert_eq!(self.responder.ask(self::step(serve)), Ok(Answer::Done));
        let outcome = self.initiator.ask(self::step(step));
        (outcome, self.responder.ask(Ask::Stop { link: LINK }))
    }

    pub fn time(&mut self, timing: Timing) -> (Measurement, Measurement) {
        let (near, far) = self.served(timing.op, timing.metric, timing.size.0, Step::Time(timing));
        (measured(near), measured(far))
    }

    /// Passes until one has enough: on a busy machine a short window may be over before a thread runs.
    pub fn time_until(
        &mut self,
        timing: Timing,
        enough: impl Fn(&Measurement, &Measurement) -> bool,
    ) -> (Measurement, Measurement) {
        patiently("a pass with enough in it", || Some(self.time(timing)).filter(|(near, far)| enough(near, far)))
    }

    /// One verifying pass as the controller leads it.
    pub fn verify(&mut self, op: Op, size: u64, iteration: u64) -> Checked {
        let pattern = Pattern { size: Bytes(size), seed: 42, iteration };
        let (source, sink) = match op.pulls() {
            false => (&mut self.initiator, &mut self.responder),
            true => (&mut self.responder, &mut self.initiator),
        };
        let done = Ok(Answer::Stepped(Stepped::Done));
        assert_eq!(sink.ask(step(Step::Poison(pattern))), done);
        assert_eq!(source.ask(step(Step::Fill(pattern))), done);
        let transfer = Step::Transfer { op, pattern };
        let (near, far) = self.served(op, TestMetric::Bandwidth, size, transfer);
        assert_eq!(near, done);
        // The serving end of a verbs link accounts for the windows it has served: none.
        let far = stepped(far);
        let idle = matches!(&far, Ok(Stepped::Measured(served)) if served.operations == 0);
        assert!(far == Ok(Stepped::Done) || idle, "{far:?}");
        let sink = if op.pulls() { &mut self.initiator } else { &mut self.responder };
        match sink.ask(step(Step::Check(pattern))) {
            Ok(Answer::Stepped(Stepped::Checked(checked))) => checked,
            other => panic!("not checked: {other:?}"),
        }
    }
}

pub fn step(step: Step) -> Ask {
    Ask::Step { link: LINK, step, limit_ms: DEADLINE_MS }
}

pub fn timing(op: Op, metric: TestMetric, size: u64, window: Window) -> Timing {
    Timing {
        op,
        metric,
        size: Bytes(size),
        window,
        warm_up: Nanoseconds::ZERO,
        start_at: None,
        bidirectional: false,
        only: None,
        pace: None,
    }
}
