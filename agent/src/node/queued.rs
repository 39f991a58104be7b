//! Work of a GPU, such as copies and matrix products, that is queued on a stream and timed by events on the GPU's own clock.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    measure::Measurement,
    node::NodeSpec,
    step::Window,
    unit::{Bytes, Nanoseconds},
};

use crate::{
    bench::{clock, control::Control},
    gpu::{Event, Stream},
};

/// Time that a batch takes at least: so long that the queue never runs empty between two looks at it.
const BATCH: Nanoseconds = Nanoseconds::from_millis(10);
/// Most operations of a batch: drivers queue about a thousand commands before a call waits.
const MOST: u64 = 256;

/// An operation on a stream, which `queue` queues once.
pub(super) struct Queued<'s, Q> {
    /// Where it is queued.
    pub(super) stream: &'s Stream,
    pub(super) queue: Q,
}

impl<Q: Fn() -> Result<(), Failure>> Queued<'_, Q> {
    /// Time of one operation, with everything around it.
    pub(super) fn once(&self) -> Result<Nanoseconds, Failure> {
        let begun = clock::now();
        (self.queue)()?;
        self.stream.wait()?;
        Ok((clock::now() - begun).max(Nanoseconds(1)))
    }

    /// Warms up; the shortest time of one operation.
    pub(super) fn warm_up(&self, spec: &NodeSpec, control: &Control) -> Result<Nanoseconds, Failure> {
        let warm = clock::now().saturating_add(spec.warm_up);
        let mut one = self.once()?;
        while clock::now() < warm {
            one = one.min(self.once()?);
            control.check(Stage::Measure)?;
        }
        Ok(one)
    }

    /// The timed pass, of operations that take about `one` each: how many were done in which time.
    pub(super) fn time(&self, spec: &NodeSpec, control: &Control, one: Nanoseconds) -> Result<Measurement, Failure> {
        self.time_at_least(spec, control, one, 1)
    }

    /// The same, of so many operations at least, however short the window is.
    pub(super) fn time_at_least(
        &self,
        spec: &NodeSpec,
        control: &Control,
        one: Nanoseconds,
        fewest: u64,
    ) -> Result<Measurement, Failure> {
        let batch = (BATCH / one).clamp(1, MOST);
        let first = self.batch(0)?;
        first.wait()?;
        let started = clock::now();
        let (stop, most) = match spec.window {
            Window::Iterations(operations) => (Nanoseconds::MAX, operations),
            window => (started.saturating_add(window.at_most().into()), u64::MAX),
        };
        let mut done = 0;
        let mut last = None;
        while done < most && (done < fewest || clock::now() < stop) {
            let now = batch.min(most - done);
            let next = self.batch(now)?;
            done += now;
            // One batch is always queued behind the one that is waited for.
            if let Some(earlier) = last.replace(next) {
                Event::wait(&earlier)?;
            }
            control.check(Stage::Measure)?;
        }
        let nothing = || Failure::new(Stage::Measure, Kind::Internal, "a window of no operations");
        let last = last.ok_or_else(nothing)?;
        last.wait()?;
        let bytes = Bytes(spec.size.0.saturating_mul(done));
        Ok(Measurement { started, elapsed: last.since(&first)?, operations: done, bytes, ..Measurement::default() })
    }

    /// Queues a batch, and the event behind it.
    fn batch(&self, operations: u64) -> Result<Event, Failure> {
        (0..operations).try_for_each(|_| (self.queue)())?;
        let event = Event::new(self.stream.device())?;
        event.record(self.stream)?;
        Ok(event)
    }
}
