//! Links between pairs. A link is one end of a measured connection, opened and joined by [`crate::endpoint`], on its own thread, so that
//! rails of a host are measured concurrently. A link of several threads consists of such links. A [`Link`] runs single steps; the
//! conversation requests them, or a whole case with turns between the two ends.

pub(crate) mod tcp;
mod threads;
pub(crate) mod verbs;

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::{Endpoint, LinkSpec, Opened},
    step::{Step, Stepped},
    terms::Transport,
};

use crate::bench::control::Control;

/// For training steps, which groups run, or matrix products, which GPUs run by themselves.
fn not_of_pairs() -> Failure {
    Failure::new(Stage::Measure, Kind::Unsupported, "training steps and matrix products are not defined for a pair")
}

/// On the calling thread, which the link then owns.
pub(crate) fn open(spec: &LinkSpec) -> Result<Box<dyn Link>, Failure> {
    match spec.transport {
        _ if spec.threads > 1 => threads::open(spec, open),
        Transport::Tcp => tcp::open(spec),
        Transport::Verbs => verbs::open(spec),
        Transport::Nccl => Err(Failure::new(
            Stage::Open,
            Kind::Unsupported,
            "NCCL joins groups of ranks; a pair cannot be opened on it",
        )),
        Transport::Cpu | Transport::Gpu | Transport::Nic => Err(Failure::new(
            Stage::Open,
            Kind::Unsupported,
            format!("{} stays within a host; a pair cannot be opened on it", spec.transport),
        )),
    }
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
