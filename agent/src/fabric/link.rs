//! What a link does, whatever carries it.

use railgauge_wire::{Endpoint, Failure, Kind, Opened, Stage, Step, Stepped};

use crate::bench::control::Control;

/// For training steps, which groups run, or matrix products, which GPUs run by themselves.
pub(super) fn not_of_pairs() -> Failure {
    Failure::new(Stage::Measure, Kind::Unsupported, "training steps and matrix products are not defined for a pair")
}

pub(crate) trait Link {
    /// Called before `join`, and again after it: then the link layer and the path MTU in use are certain.
    fn opened(&self) -> Opened;

    fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure>;

    /// `Serve` calls [`Control::ready`] as soon as the initiator may start, and ends when [`Control::stopped`] says so; its result
    /// answers the `Stop` request. Where the initiator leads ([`Control::led`]), it gives it the turn when ready, and ends when the turn
    /// is back, which [`Link::await_turn`] then takes.
    fn step(&mut self, step: &Step, control: &Control) -> Result<Stepped, Failure>;

    fn give_turn(&mut self) -> Result<(), Failure>;

    fn await_turn(&mut self, control: &Control) -> Result<(), Failure>;

    /// Notifies the peer, if still possible, that no turn will follow.
    fn give_up(&mut self);
}
