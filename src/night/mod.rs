//! What a night hangs on to: the state of the newest run for a monitoring system, its values as metrics, and lists of hosts to take
//! out of service.
//!
//! | file | does |
//! | --- | --- |
//! | `newest` | which runs of a directory count |
//! | `judged` | reads and judges it, from its records alone |
//! | `blame` | which hosts a failed verdict blames by themselves |
//! | `state` | OK, warning, critical or unknown, and the line of a monitoring plugin |
//! | `metrics` | values and verdicts in Prometheus' text format |
//! | `lists` | commands for Slurm and Kubernetes, which railgauge never executes |
//!
//! A result that is too old is unknown, whatever it was. Nothing here takes a host out of service for a result that is not certain.

mod blame;
mod judged;
mod lists;
mod metrics;
mod newest;
mod state;

pub use blame::{Blame, Blamed, blame};
pub use judged::{Judged, NightError};
pub use lists::{Lists, Scheduler};
pub use metrics::metrics;
pub use newest::Runs;
pub use state::{Standing, State};
