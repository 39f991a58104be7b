//! RDMA by libibverbs: links of queue pairs and the loops that measure them.

pub(crate) mod bandwidth;
pub(crate) mod end;
pub(crate) mod latency;
pub(crate) mod mailbox;
mod manager;
pub(crate) mod memory;
pub(crate) mod open;
mod order;
pub(crate) mod pingpong;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod turns;
pub(crate) mod verify;
pub(crate) mod waiter;

use railgauge_wire::{Endpoint, Failure, Kind, LinkSpec, Opened, Stage, Step, Stepped, TestMetric};

use super::link::{Link, not_of_pairs};
use crate::bench::control::Control;

pub(crate) use end::{Batches, Resources, VerbsEnd};
pub(crate) use mailbox::{Mailbox, Reader, Slot};
pub(crate) use manager::Manager;
pub(crate) use memory::{Copies, HEADER, Layout};
pub(crate) use order::OrderCheck;
pub(crate) use pingpong::ByMemory;
pub(crate) use stream::{How, Sink, Unlimited};
pub(crate) use turns::{Listener, Phase};
pub(crate) use waiter::Waiter;

pub(crate) fn open(spec: &LinkSpec) -> Result<Box<dyn Link>, Failure> {
    Ok(Box::new(VerbsEnd::open(spec)?))
}

impl Link for VerbsEnd {
    fn opened(&self) -> Opened {
        Self::opened(self)
    }

    fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure> {
        Self::join(self, peer, control)
    }

    fn step(&mut self, step: &Step, control: &Control) -> Result<Stepped, Failure> {
        let (watch, stage) = (self.connection.watch.clone(), step.stage());
        // Events since the last step, which may explain a later error.
        watch.check(stage)?;
        // A figure with an event on the link is invalid, though every message arrived.
        let done = self.do_step(step, control).and_then(|done| watch.check(stage).map(|()| done));
        done.map_err(|failure| {
            // Both passes use the same loops, which do not know their stage.
            let failure = if stage == Stage::Verify { Failure { stage, ..failure } } else { failure };
            // The link can continue with other steps.
            let goes_on = matches!(failure.kind, Kind::Unsupported | Kind::Configuration | Kind::Aborted);
            let behind = if goes_on { watch.check(failure.stage) } else { watch.check_behind(failure.stage) };
            let failure = match behind {
                // The loop itself has found it.
                Err(event) if event == failure => event,
                Err(event) => Failure { cause: format!("{}; then: {}", event.cause, failure.cause), ..event },
                Ok(()) if goes_on => return failure,
                Ok(()) => failure,
            };
            self.connection.mailbox.tell_failure();
            failure
        })
    }

    fn give_turn(&mut self) -> Result<(), Failure> {
        self.progress.turns.give(&mut self.connection.mailbox)
    }

    fn await_turn(&mut self, control: &Control) -> Result<(), Failure> {
        self.connection.watch.check(Stage::Measure)?;
        self.progress.turns.take(&mut self.connection.mailbox, control)
    }

    fn give_up(&mut self) {
        self.connection.mailbox.tell_failure();
    }
}

impl VerbsEnd {
    fn do_step(&mut self, step: &Step, control: &Control) -> Result<Stepped, Failure> {
        Ok(match step {
            Step::Fill(pattern) => {
                self.fill(pattern)?;
                Stepped::Done
            }
            Step::Poison(pattern) => {
                self.poison(pattern)?;
                Stepped::Done
            }
            Step::Transfer { op, pattern } => {
                self.transfer(*op, pattern, control)?;
                Stepped::Done
            }
            Step::Check(pattern) => Stepped::Checked(self.check(pattern)?),
            Step::Serve { op, metric, size, window: _ } => {
                Stepped::Measured(Box::new(self.serve(*op, *metric, size.0, control)?))
            }
            Step::Time(timing) => {
                let op = self.operation(timing.op, timing.metric, timing.size.0)?;
                Stepped::Measured(Box::new(match timing.metric {
                    TestMetric::Bandwidth => self.bandwidth(timing, control)?,
                    TestMetric::Latency => self.latency(op, timing, control)?,
                    TestMetric::Step | TestMetric::Compute => return Err(not_of_pairs()),
                }))
            }
        })
    }
}
