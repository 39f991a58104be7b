//! The words railgauge's controller and agent share.
//!
//! One conversation runs over the agent's stdin and stdout:
//!
//! ```text
//! agent       the magic line, then frames
//! controller  Request { id, ask }      hello · facts · raw · clock · open · connect · step · stop · close · bye
//! agent       FromAgent::Reply { id, outcome }   exactly one per request, in any order
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`frame`] | the magic line, length-prefixed JSON frames |
//! | [`message`] | requests, replies and what is inside them |
//! | [`link`] | one endpoint of a measured connection: what to open, how to reach it |
//! | [`group`] | one rank of a collective: what to open, what the ranks do together |
//! | [`step`] | what a link is told to do: fill, transfer, check, serve, time |
//! | [`case`] | a whole case in one request to each end |
//! | [`copies`] | how fast bytes move between host and GPU |
//! | [`gpu_state`] | the state of GPUs while a case uses them |
//! | [`node`] | a case within a host: memory of processors and GPUs |
//! | [`measure`] | what came out of a timed step |
//! | [`terms`] | operations, metrics, transports, memories: the field's words, spelt once |
//! | [`gather`] | maps and sets of what an iterator gives |
//! | [`natural`] | names in the order a person expects |
//! | [`facts`] | what a host is |
//! | [`drivers`] | what is known of RDMA drivers: rates, counters |
//! | [`raw`] | files of sysfs and procfs as they are read |
//! | [`failure`] | what went wrong, at which stage, and what to do next |
//! | [`remedy`] | the table of what to do: ids, words, commands |
//! | [`errand`] | a command of the plan beside a measurement |
//! | [`neighbours`] | what lldpcli prints |
//! | [`tool`] | programs of a host that tell of switches and cables |
//! | [`shell`] | words of a shell's command line |
//! | [`unit`] | bytes, times and rates as types |
//! | [`watch`] | ports watched while traffic runs |

pub mod case;
pub mod copies;
pub mod drivers;
pub mod errand;
pub mod facts;
pub mod failure;
pub mod frame;
pub mod gather;
pub mod gpu_state;
pub mod group;
pub mod link;
pub mod measure;
pub mod message;
pub mod natural;
pub mod neighbours;
pub mod node;
pub mod raw;
pub mod remedy;
pub mod shell;
pub mod step;
pub mod terms;
pub mod tool;
pub mod unit;
pub mod watch;

/// Version of this conversation. Controller and agent must agree exactly: the controller ships the agent it was
/// built with, so a difference means that a stale or foreign agent answered.
pub const PROTOCOL: u32 = 10;
