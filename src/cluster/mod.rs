//! Hosts and a launcher, turned into conversations with agents.
//!
//! ```text
//! Host ─ launcher ─▶ Connection (processes can be started there) ─ deploy ─▶ Pipe (the agent runs) ─ conversation ─▶ Agent
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`raise()`] | all hosts at once: a limit, time for a try, further tries with jitter |
//! | `launcher` | the ways to start a process on a host, one file each |
//! | `deploy`, `script`, `talk` | the agent's file on a host: looked for, sent, started, taken away, in one login |
//! | [`AgentBinary`] | the agent's file here: found, hashed, its architecture |
//! | [`Agent`] | a running agent: requests, answers, and what is said when it is gone |
//! | `revoked` | an allocation that ended, and all hosts with it |
//! | `gone` | how a conversation ended: the stream, the process, the last words |
//! | `explain`, `sign` | known words of loaders, shells and launchers, turned into a cause and a next step |
//! | `child`, `template` | processes of this machine, and commands with places for what the plan says of a host |
//! | [`LogSink`] | where the words of remote processes go, line by line |
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
mod sign;
mod talk;
mod template;
mod trouble;

pub(crate) use agent::Asked;
pub use agent::{Agent, BringUp};
pub(crate) use binary::Image;
pub use binary::{AgentBinary, Machine};
pub use bring_up::bring_up;
pub(crate) use bring_up::bring_up_asking;
pub use deploy::cleared;
pub use group::end_all;
pub(crate) use launcher::scontrol;
pub use launcher::{allocation, ending, pods, pods_again};
pub use log::LogSink;
pub use revoked::revoked;
pub(crate) use template::filled_at;
