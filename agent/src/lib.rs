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
//! | [`facts`] | what this host is |
//! | [`counters`] | what its devices have counted |
//! | [`bench`] | clock, window, slices, latency distribution: what every measuring loop shares |
//! | [`system`] | the kernel's calls, each behind a safe function |
//! | [`fault`] | what tests ask the agent to do wrong, so that it is found |

pub mod bench;
pub mod collective;
pub mod conversation;
pub mod counters;
pub mod endpoint;
pub mod fabric;
pub mod facts;
pub mod fault;
pub mod gpu;
pub mod memory;
pub mod nccl;
pub mod system;
pub mod verbs;

/// Writes one line to stderr, which the controller keeps per host. A lost stderr is no reason to stop.
#[macro_export]
macro_rules! log {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "railgauge-agent: {}", format_args!($($words)*));
    }};
}
