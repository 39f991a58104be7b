//! What the threads of one pass share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    measure::Latency,
    remedy, step,
    unit::{Bytes, Nanoseconds},
};

use super::signal::Pass;
use crate::{
    bench::{Slices, Tally, control::Control},
    system::wait::Doorbell,
};

pub(super) struct Shared<'a> {
    pub pass: Pass,
    pub control: &'a Control,
    /// Never sleep in a call: the sockets are non-blocking, and calls are repeated until they succeed.
    pub spin: bool,
    pub peer: String,
    /// The initiator's stop rule; latency loops follow it by themselves.
    pub rule: Option<step::Window>,
    /// Sources end after the message they are at.
    pub halt: AtomicBool,
    /// When the first payload byte of any stream arrived, in nanoseconds on the agent's clock; 0 before.
    pub origin: AtomicU64,
    pub lanes: Vec<Lane>,
    pub sources: Team,
    pub sinks: Team,
    /// Rung by every thread that ends.
    pub bell: Doorbell,
    failure: Mutex<Option<Failure>>,
    gate: (Mutex<bool>, Condvar),
}

/// Counters of one stream, on cache lines of their own.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct Lane {
    /// Payload bytes sent so far.
    pub sent: AtomicU64,
    /// Payload bytes received so far.
    pub received: AtomicU64,
    /// Bytes that will have come in all, the final byte included; 0 while that is not known.
    pub total: AtomicU64,
}

/// The threads on one side of the streams.
#[derive(Default)]
pub(super) struct Team {
    running: AtomicUsize,
    flows: Mutex<Vec<(usize, Flow)>>,
}

#[derive(Default)]
pub(super) struct Flow {
    pub bytes: Bytes,
    /// First and last moment, on the agent's clock.
    pub first: Nanoseconds,
    pub last: Nanoseconds,
    pub cpu: Nanoseconds,
    /// Bytes over time; sinks only.
    pub slices: Option<Slices>,
    /// Its own window and times; latency loops only.
    pub latency: Option<(Tally, Latency)>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        pass: Pass,
        control: &'a Control,
        spin: bool,
        peer: &str,
        streams: usize,
    ) -> Result<Self, Failure> {
        let bell = Doorbell::new().map_err(|error| {
            Failure::new(Stage::Measure, Kind::Configuration, format!("no descriptor for a doorbell: {error}"))
                .remedy(remedy::RAISE_OPEN_FILES)
        })?;
        Ok(Self {
            pass,
            control,
            spin,
            peer: peer.to_owned(),
            rule: None,
            halt: AtomicBool::new(false),
            origin: AtomicU64::new(0),
            lanes: (0..streams).map(|_| Lane::default()).collect(),
            sources: Team::default(),
            sinks: Team::default(),
            bell,
            failure: Mutex::new(None),
            gate: (Mutex::new(false), Condvar::new()),
        })
    }

    /// Runs `work` as a thread of `team`: notes its account or its failure, whatever happens.
    pub(super) fn take_part(&self, team: &Team, number: usize, work: impl FnOnce() -> Result<Flow, Failure>) {
        struct Leave<'a>(&'a Team, &'a Doorbell);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.running.fetch_sub(1, Ordering::AcqRel);
                self.1.ring();
            }
        }
        let leave = Leave(team, &self.bell);
        match work() {
            Ok(flow) => team.flows.lock().push((number, flow)),
            // The first failure is the cause; those of the other streams follow from it.
            Err(failure) => drop(self.failure.lock().get_or_insert(failure)),
        }
        drop(leave);
    }

    /// The first failure of any thread.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.failure.lock().clone()
    }

    pub(super) fn open_gate(&self) {
        *self.gate.0.lock() = true;
        self.gate.1.notify_all();
    }

    pub(super) fn wait_at_gate(&self) {
        self.gate.1.wait_while(&mut self.gate.0.lock(), |open| !*open);
    }
}

impl Team {
    /// Announces a thread that is about to start.
    pub(super) fn expect_one(&self) {
        self.running.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn expect_one_less(&self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether no thread runs any more.
    pub(super) fn is_done(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }

    /// The accounts, in the order of the streams.
    pub(super) fn flows(&self) -> Vec<Flow> {
        let mut flows = std::mem::take(&mut *self.flows.lock());
        flows.sort_by_key(|(number, _)| *number);
        flows.into_iter().map(|(_, flow)| flow).collect()
    }

    pub(super) fn bytes(&self) -> Vec<Bytes> {
        let mut bytes: Vec<_> = self.flows.lock().iter().map(|(number, flow)| (*number, flow.bytes)).collect();
        bytes.sort_unstable();
        bytes.into_iter().map(|(_, bytes)| bytes).collect()
    }
}
