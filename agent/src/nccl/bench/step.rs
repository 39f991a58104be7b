//! Training steps: gradients come in buckets while the backward pass goes on, and each bucket is reduced on the stream as
//! soon as it is full and the one before it is done.
//!
//! The backward pass is a timer of the host. It takes nothing from the GPU, so what a real one loses to the channels of NCCL
//! that run beside it is not in these numbers.

use railgauge_wire::{failure::Failure, group::CollectiveSpec, unit::Nanoseconds};

use super::{Bench, Timed};
use crate::{
    bench::{clock, cpu},
    collective::{cut::Cut, layout::Layout, training::buckets},
    nccl::communicator::Call,
};

pub(super) struct Step<'b> {
    /// Each with the time from the step's beginning after which the backward pass has filled it.
    calls: Vec<(Call<'b>, Nanoseconds)>,
    compute: Nanoseconds,
}

impl Bench {
    /// The step of a collective; `None` where none is measured.
    pub(super) fn step_of(&self, layout: &Layout, collective: &CollectiveSpec) -> Option<Step<'_>> {
        let training = collective.options.training.as_ref()?;
        let whole = self.call(layout, collective, 0);
        let calls = buckets(layout.count, layout.width, training).into_iter().map(|bucket| {
            let at = bucket.at.start * layout.width;
            let (send_at, receive_at) = (whole.send_at + at, whole.receive_at + at);
            (Call { count: bucket.at.end - bucket.at.start, send_at, receive_at, ..whole }, bucket.ready)
        });
        Some(Step { calls: calls.collect(), compute: training.compute })
    }

    /// Does one step, and tells its time: until all buckets are reduced and the backward pass is over.
    pub(super) fn step(&self, step: &Step<'_>) -> Result<Nanoseconds, Failure> {
        let begin = clock::now();
        for (call, ready) in &step.calls {
            super::spin_until(begin + *ready);
            self.communicator.queue(call, &self.stream)?;
        }
        self.settle()?;
        super::spin_until(begin + step.compute);
        Ok((clock::now() - begin).max(Nanoseconds(1)))
    }

    /// The time of the same buckets one after another, with no backward pass beside them.
    fn alone(&self, step: &Step<'_>) -> Result<Nanoseconds, Failure> {
        let begin = clock::now();
        step.calls.iter().try_for_each(|(call, _)| self.communicator.queue(call, &self.stream))?;
        self.settle()?;
        Ok((clock::now() - begin).max(Nanoseconds(1)))
    }

    /// The timed steps, each behind a barrier and after its buckets alone. The result is overwritten before the last one if
    /// that is going to be verified.
    pub(super) fn time_steps(
        &self,
        layout: &Layout,
        collective: &CollectiveSpec,
        cut: &Cut,
        step: &Step<'_>,
        verified: Option<u64>,
    ) -> Result<Timed, Failure> {
        self.say("timed training steps");
        let (mut times, mut alone) = (Vec::new(), Vec::new());
        let (before, begin) = (cpu::thread(), clock::now());
        let mut elapsed = Nanoseconds::ZERO;
        loop {
            let further = cut.further(times.len() as u64, elapsed);
            for _ in 0..further.max(1) {
                self.line_up(collective, None)?;
                alone.push(self.alone(step)?);
                if let Some(slot) = verified.filter(|_| further == 0 && !collective.options.in_place) {
                    self.poison(layout, collective, slot)?;
                }
                self.line_up(collective, None)?;
                times.push(self.step(step)?);
            }
            if further == 0 {
                return Ok(Timed { times, alone, cpu: cpu::thread() - before, pass: (begin, clock::now()) });
            }
            elapsed = self.largest(clock::now() - begin)?;
        }
    }
}
