//! railgauge's agent: one conversation over stdin and stdout, measurements in between.
//!
//! ```text
//! stdin ─ conversation ─▶ one thread per link ─ fabric (verbs, tcp) ─▶ memory, bench ─▶ replies on stdout
//!               └───────▶ facts, counters
//! ```
//!
//! The agent is compiled for size. Loops over bytes are in `railgauge-bulk` (agent/bulk), which is compiled for speed.

// Items used only here are not `pub`, so that the compiler finds unused ones.
#![warn(unreachable_pub)]

mod bench;
mod collective;
mod conversation;
mod counters;
mod endpoint;
mod errand;
mod fabric;
mod facts;
mod fault;
mod gpu;
mod memory;
mod nccl;
mod node;
mod raw;
mod system;
mod tools;
mod verbs;
mod watch;
mod worker;

pub use conversation::run;
pub use errand::{ARGUMENT as TEND, run as tend};
pub use nccl::worker::run as run_rank;

/// For the tests, examples and fuzz targets of this repository. Not a public interface.
pub mod parts {
    pub use crate::{
        bench::{Recorder, clock, control::Control},
        collective::rank::{Rank, RankAsk},
        endpoint::verbs::settings::SIGNAL_EVERY,
        fabric::verbs::{
            pingpong::{ByCompletion, ByMemory, serve_first},
            stream::{How, Nothing, Unlimited, stream},
            waiter::Waiter,
        },
        facts::{Live, collect, interfaces, rdma::PortAnswer},
        gpu::{Buffer, Device, Stream, kernels, table::Values},
        memory::pattern::{self, Part},
        nccl::log,
        raw::read_below,
        system::{interfaces::Address, tree::Tree, wait::Doorbell},
        verbs::{
            completion::Poller,
            flag::{Beat, Flag},
            send::{Sends, Template, Verb, Walk},
        },
    };
}
