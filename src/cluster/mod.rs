//! Hosts and a launcher, turned into conversations with agents.
//!
//! ```text
//! Host ─ launch ─▶ Connection (processes can be started there) ─ deploy ─▶ Pipe (the agent runs) ─ conversation ─▶ Agent
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`raise()`] | all hosts at once: a limit, time for a try, further tries with jitter |
//! | `launch` | the ways to start a process on a host: `local`, `ssh`, `command` |
//! | `deploy`, `script` | the agent's file on a host: looked for, sent, started, taken away |
//! | [`AgentBinary`] | the agent's file here: found, hashed, its architecture |
//! | [`Agent`] | a running agent: requests, answers, and what is said when it is gone |
//! | `gone` | how a conversation ended: the stream, the process, the last words |
//! | `explain`, `explain_ssh` | the words of loaders, shells and ssh, turned into a cause and a next step |
//! | [`LogSink`] | where the words of remote processes go, line by line |
//!
//! What stays on hosts in which case is written in `docs/launchers.md`.

mod agent;
mod binary;
mod border;
mod bring_up;
mod command;
mod conversation;
mod deploy;
mod explain;
mod explain_ssh;
mod gone;
mod group;
mod launch;
mod local;
mod log;
mod pipe;
mod progress;
mod script;
mod ssh;
mod trouble;

pub use agent::Agent;
pub use binary::{AgentBinary, Machine};
pub use bring_up::bring_up;
pub(crate) use command::filled;
pub use deploy::cleared;
pub use group::end_all;
pub use log::LogSink;
