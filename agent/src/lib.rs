//! railgauge's agent: one conversation over stdin and stdout, measurements in between.
//!
//! ```text
//! stdin ─ conversation ─▶ one thread per link ─ fabric (verbs, tcp) ─▶ memory, bench ─▶ replies on stdout
//!               └───────▶ facts, counters
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`conversation`] | requests in, exactly one reply each; the end of the process |
//! | [`endpoint`] | device, address, settings and handshake of one end: of a pair as of a rank |
//! | [`fabric`] | how bytes travel: the `Link` every fabric implements |
//! | [`verbs`] | libibverbs in safe hands |
//! | [`memory`] | where the bytes live, and whether they are the right ones |
//! | [`gpu`] | CUDA's driver API at run time, kernels, NVML's facts |
//! | [`collective`] | collectives over host memory, and what all collectives share |
//! | [`nccl`] | collectives between GPUs, a process for each rank |
//! | [`node`] | tests within this host: memory of its processors and GPUs |
//! | [`facts`] | what this host is |
//! | [`counters`] | what its devices have counted |
//! | [`watch`] | ports watched while traffic runs |
//! | [`errand`] | a command of the plan beside a measurement |
//! | [`tools`] | programs of the host that tell of switches and cables |
//! | [`raw`] | the files that facts and counters are made of, as they are read |
//! | [`bench`] | clock, window, slices, latency distribution: what every measuring loop shares |
//! | [`system`] | the kernel's calls, each behind a safe function |
//! | [`worker`] | named threads, threads that own something, and what a panic does to it |
//! | [`fault`] | what tests ask the agent to do wrong, so that it is found |
//!
//! Hosts get an agent that is compiled for size. Loops over bytes are in `railgauge-bulk` (agent/bulk), which is compiled for speed.

// What no other crate needs is not `pub`, so that the compiler sees what nobody uses.
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

/// What the tests, examples and fuzz targets of this repository drive directly. Not an interface for anyone else.
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
        gpu::{Buffer, Device, Stream, copies, kernels, table::Values},
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
