//! Verify passes: the pattern is written, moved once, and compared where it arrived. Messages of GPU memory through host memory are
//! fetched before posting and delivered after arrival.

use std::{
    thread,
    time::{Duration, Instant},
};

use railgauge_wire::{Checked, Failure, GpuPath, Kind, LinkLayer, Op, Pattern, Service, Stage};

use super::{Batches, Copies, HEADER, Phase, VerbsEnd, Waiter, stream::Credits};
use crate::{
    bench::control::Control,
    verbs::{
        Doing, Sends, Walk,
        words::{self},
    },
};

/// How long bytes may be under way after the sender's completion. The completion of an RDMA WRITE does not mean that the target's memory
/// has the bytes, and that of an unreliable connection only that they were sent (InfiniBand Architecture Specification, 9.7.2 and 9.8).
const UNDER_WAY: Duration = Duration::from_millis(500);

/// Between two looks at bytes that have not arrived.
const PAUSE: Duration = Duration::from_millis(2);

impl VerbsEnd {
    fn fits(&self, pattern: &Pattern) -> Result<(), Failure> {
        if pattern.size.0 > self.resources.layout.max_size {
            let cause =
                format!("{} bytes to verify on a link opened for {}", pattern.size, self.resources.layout.max_size);
            return Err(Failure::new(Stage::Verify, Kind::Internal, cause));
        }
        Ok(())
    }

    /// Writes the pattern where every queue pair sends from, and where its peer reads.
    pub(crate) fn fill(&self, pattern: &Pattern) -> Result<(), Failure> {
        self.fits(pattern)?;
        (0..self.connection.pairs.len()).try_for_each(|i| {
            self.resources.region.backing().fill(self.resources.layout.outgoing(i), pattern, i as u32)
        })
    }

    /// Overwrites where the peer writes, and where the next receive lands.
    pub(crate) fn poison(&mut self, pattern: &Pattern) -> Result<(), Failure> {
        self.fits(pattern)?;
        for i in 0..self.connection.pairs.len() {
            let next = self.progress.receives.get(i).map_or(0, |receives| receives.consumed());
            for place in [self.resources.layout.incoming(i), self.receive_place(i, next)] {
                self.resources.region.backing().poison(place, pattern, i as u32)?;
            }
            self.progress.received[i] = None;
        }
        Ok(())
    }

    fn receive_place(&self, i: usize, n: u64) -> u64 {
        let header = if self.resources.layout.datagrams { HEADER } else { 0 };
        self.progress
            .receives
            .get(i)
            .map_or_else(|| self.resources.layout.incoming(i), |receives| receives.place(n) + header)
    }

    /// Wrong bytes have [`UNDER_WAY`] to become right.
    pub(crate) fn check(&self, pattern: &Pattern) -> Result<Checked, Failure> {
        self.fits(pattern)?;
        let begun = Instant::now();
        loop {
            let checked = self.compare(pattern)?;
            if checked.wrong.is_zero() || begun.elapsed() >= UNDER_WAY {
                return Ok(checked);
            }
            thread::sleep(PAUSE);
        }
    }

    fn compare(&self, pattern: &Pattern) -> Result<Checked, Failure> {
        let mut sum = Checked::default();
        for i in 0..self.connection.pairs.len() {
            let place = self.progress.received[i]
                .map_or_else(|| self.resources.layout.incoming(i), |n| self.receive_place(i, n));
            sum += self.resources.region.backing().check(place, pattern, i as u32)?;
        }
        Ok(sum)
    }

    pub(crate) fn transfer(&mut self, op: Op, pattern: &Pattern, control: &Control) -> Result<(), Failure> {
        self.supports(op, pattern.size.0)?;
        if op.is_atomic() {
            return self.transfer_atomic(op, pattern, control);
        }
        let mut flows = self.one_each(op, pattern.size.0)?;
        if !op.takes_receives() {
            self.move_once(&mut flows, &mut self.waiter(control, Stage::Verify))?;
            return self.flush(op, Stage::Verify, control);
        }
        self.progress.announcer.announce(Phase::Transfer, &mut self.connection.mailbox, control)?;
        let granted = self.granted(None);
        while (0..flows.len()).any(|i| granted.allowed(i) == 0) {
            control.check(Stage::Verify)?;
            std::thread::yield_now();
        }
        if let Some(stage) = self.stage(op, pattern.size.0) {
            (0..flows.len()).try_for_each(|i| stage.fetch(i, 1))?;
        }
        let arrived = self.arrived().iter().sum::<u64>();
        let moved = self.move_once(&mut flows, &mut self.waiter(control, Stage::Verify));
        self.account(&flows);
        moved?;
        self.flush(op, Stage::Verify, control)?;
        if self.resources.service == Service::Rc {
            return Ok(());
        }
        // Completions mean that the messages were sent. After this step the peer is stopped.
        self.wait_for_stragglers(arrived + flows.len() as u64, control)
    }

    /// Over iWARP, a read after the sends of every queue pair; `None` where a completion implies arrival. On iWARP it only means that the
    /// buffer may be reused: siw completes what it has handed to TCP. The peer answers a read after it has received everything before it
    /// (RFC 5040, section 5.5). Built before the window, since building is not part of it.
    pub(crate) fn behind(&self, op: Op) -> Result<Option<Vec<Sends>>, Failure> {
        if self.resources.choice.link_layer != LinkLayer::Iwarp || op.pulls() {
            return Ok(None);
        }
        self.one_each(Op::Read, 1).map(Some)
    }

    fn one_each(&self, op: Op, size: u64) -> Result<Vec<Sends>, Failure> {
        let batches = Batches { list: 1, signal_every: 1, inline: 0 };
        (0..self.connection.pairs.len()).map(|i| self.sends(i, op, size, Walk::default(), batches)).collect()
    }

    /// Waits until everything sent has arrived, where its completion does not imply it. No message may arrive here meanwhile: its
    /// completion would count as that of a read [`behind`](Self::behind).
    pub(crate) fn flush(&mut self, op: Op, stage: Stage, control: &Control) -> Result<(), Failure> {
        match self.behind(op)? {
            Some(mut reads) => self.move_once(&mut reads, &mut self.waiter(control, stage)),
            None => Ok(()),
        }
    }

    /// Posts each ring's first request and waits until all are complete.
    pub(crate) fn move_once(&mut self, flows: &mut [Sends], waiter: &mut Waiter) -> Result<(), Failure> {
        for flow in flows.iter_mut() {
            flow.post_last(1).map_err(|errno| words::verb(waiter.stage, Doing::Post, self.device(), errno))?;
        }
        // Tags are numbers of queue pairs; a single ring may be of any of them.
        let mut left = flows.len();
        while left > 0 {
            let taken = self.resources.poller.poll(|completion| {
                let single = flows.len() == 1;
                if let Some(flow) = flows.get_mut(if single { 0 } else { completion.tag() }) {
                    flow.complete(completion.covered());
                }
            })?;
            left -= taken.min(left);
            if taken == 0 {
                waiter.pause()?;
            }
        }
        Ok(())
    }
}

impl VerbsEnd {
    /// `None` where the device reaches the memory.
    pub(crate) fn stage(&self, op: Op, size: u64) -> Option<Copies> {
        (self.resources.gpu_path == GpuPath::Staged).then(|| Copies {
            region: self.resources.region.clone(),
            outgoing: (0..self.connection.pairs.len()).map(|i| self.resources.layout.outgoing(i)).collect(),
            incoming: (op != Op::Send)
                .then(|| (0..self.connection.pairs.len()).map(|i| self.resources.layout.incoming(i)).collect()),
            header: if self.resources.layout.datagrams { HEADER } else { 0 },
            size,
        })
    }
}
