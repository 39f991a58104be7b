//! What a night hangs on to: the state of the newest run for a monitoring system, its values as metrics, and lists of hosts to take
//! out of service.
//!
//! | file | does |
//! | --- | --- |
//! | `newest` | which runs of a directory count |
//! | `judged` | reads and judges it, from its records alone |
//! | `blame` | which hosts a failed verdict blames by themselves |
//! | `state` | OK, warning, critical or unknown, and the line of a monitoring plugin |
//! | `message` | a line for a chat, a web service or mail |
//! | `metrics` | values and verdicts in Prometheus' text format |
//! | `index` | what each run of a directory came to |
//! | `prune` | which runs may be deleted, and deletes them |
//! | `lists` | commands for Slurm and Kubernetes, which railgauge never executes |
//!
//! Only `prune` changes anything, and only old runs.
//!
//! A result that is too old is unknown, whatever it was. Nothing here takes a host out of service for a result that is not certain.

mod blame;
mod index;
mod judged;
mod lists;
mod message;
mod metrics;
mod newest;
mod prune;
mod state;

pub use blame::{Blame, Blamed, blame};
pub use index::index;
pub use judged::{Judged, NightError};
pub use lists::{Lists, Scheduler};
pub use message::Message;
pub use metrics::metrics;
pub use newest::Runs;
pub use prune::{Choice, Chosen, Keep, PruneError, choose, delete};
pub use state::{Standing, State};
