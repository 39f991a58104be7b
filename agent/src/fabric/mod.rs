//! What pairs measure. A link is one end of a measured connection, opened and joined by [`crate::endpoint`]; it lives on a
//! thread of its own, so that several rails of a host are measured at once. A link of several threads is made of such
//! links.
//!
//! A [`Link`] knows the steps of a case and nothing of who asks for them: the conversation asks for one step a request, or for
//! a whole case, in which the two ends wait for each other's turns.

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

/// What a link answers that is asked for training steps, which groups make, or for matrix products, which GPUs make by themselves.
fn not_of_pairs() -> Failure {
    Failure::new(Stage::Measure, Kind::Unsupported, "training steps and matrix products are not defined for a pair")
}

/// Opens one end of a link on the calling thread, which is the link's own from then on.
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
    /// What was opened; asked before `join`, and again after it: by then the link layer and the path MTU in use are
    /// known for certain.
    fn opened(&self) -> Opened;

    fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure>;

    /// Does one step and answers when it is over.
    ///
    /// `Serve` calls [`Control::ready`] as soon as the initiator may start, and is over when [`Control::stopped`]
    /// says so; what it returns answers the `Stop` request. Where the initiator leads ([`Control::led`]), it gives it the turn
    /// when it is ready, and is over when the turn comes back, which [`Link::await_turn`] then takes.
    fn step(&mut self, step: &Step, control: &Control) -> Result<Stepped, Failure>;

    /// Tells the peer's agent, over the link, that this end has done its part of a case.
    fn give_turn(&mut self) -> Result<(), Failure>;

    /// Waits until the peer's agent has given the turn once more.
    fn await_turn(&mut self, control: &Control) -> Result<(), Failure>;

    /// Lets the peer know, as far as it can still be told, that no turn will come any more.
    fn give_up(&mut self);
}
