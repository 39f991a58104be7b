//! Links between pairs. A link is one end of a measured connection, opened and joined by [`crate::endpoint`], on its own thread, so that
//! rails of a host are measured concurrently. A link of several threads consists of such links. A [`Link`] runs single steps; the
//! conversation requests them, or a whole case with turns between the two ends.

mod link;
pub(crate) mod tcp;
mod threads;
pub(crate) mod verbs;

use railgauge_wire::{Failure, Kind, LinkSpec, Stage, Transport};

pub(crate) use link::Link;

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
