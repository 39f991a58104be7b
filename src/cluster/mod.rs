//! Hosts and a launcher, turned into conversations with agents.
//!
//! ```text
//! Host ─ launcher ─▶ Connection (processes can be started there) ─ deploy ─▶ Pipe (the agent runs) ─ conversation ─▶ Agent
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`raise()`] | all hosts at once: a limit, time for a try, retries with jitter |
//! | `launcher` | the ways to start a process on a host, one file each |
//! | `deploy`, `script`, `talk` | the agent's file on a host: found, sent, started, removed, in one login |
//! | [`AgentBinary`] | the agent's file here: found, hashed, its architecture |
//! | [`Agent`] | a running agent: requests, answers, and the reason of its end |
//! | `revoked` | an allocation that ended, and all hosts with it |
//! | `gone` | how a conversation ended: the stream, the process, the last words |
//! | `explain` | how agents end and why they do not start: a cause and a next step |
//! | `child`, `template` | processes of this machine, and commands with placeholders for a host |
//! | [`LogSink`] | the output of remote processes, line by line |
//!
//! What stays on hosts in which case is written in `docs/launchers.md`.

mod agent;
mod binary;
mod border;
mod bring_up;
mod child;
mod conversation;
mod deploy;
mod explain;
mod gone;
mod group;
mod launcher;
mod log;
mod pipe;
mod progress;
mod revoked;
mod script;
mod talk;
mod template;
mod trouble;

pub use agent::{Agent, BringUp};
pub(crate) use binary::Image;
pub use binary::{AgentBinary, Machine};
pub use bring_up::bring_up;
pub(crate) use bring_up::bring_up_asking;
pub(crate) use conversation::Asked;
pub use deploy::cleared;
pub use group::end_all;
pub(crate) use launcher::scontrol;
pub use launcher::{allocation, ending, pods, pods_again};
pub use log::LogSink;
pub use revoked::revoked;
pub(crate) use template::filled_at;

pub(crate) use gone::{Gone, Why};
pub(crate) use launcher::Connection;
pub(crate) use pipe::{Behind, Output, Pipe, ProcessEnd, Sink};
pub(crate) use progress::Progress;
pub(crate) use trouble::Trouble;
