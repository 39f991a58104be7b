//! Results over nights: the states of components after all runs, for a monitoring system, as metrics, as a list of runs, and as lists of
//! hosts to take out of service.
//!
//! | file | does |
//! | --- | --- |
//! | `summary` | the content of one run directory, without its values |
//! | `states` | the state of every component: a fold over the runs in the order of time |
//! | `nights` | the runs of a plan and the states that follow; the results of the runs of a directory, and hosts by nights |
//! | `judged` | reads and judges a run, from its records only |
//! | `state` | OK, warning, critical or unknown, and the line of a monitoring plugin |
//! | `message` | a line for a chat, a web service or mail |
//! | `metrics` | values and states in Prometheus' text format |
//! | `prune` | which runs may be deleted, and deletes them |
//! | `lists` | commands for Slurm and Kubernetes, which railgauge never executes |
//!
//! Only `prune` changes anything, and only old runs. No host is taken out of service for an uncertain result.

mod judged;
mod lists;
mod message;
mod metrics;
mod nights;
mod prune;
mod state;
mod states;
mod summary;

pub use judged::{Judged, NightError};
pub use lists::{Lists, Scheduler};
pub use message::Message;
pub use metrics::metrics;
pub use nights::{Nights, index};
pub use prune::{Choice, Chosen, Keep, PruneError, choose, delete};
pub use state::{NAMED, Standing, State, reported};
pub use states::{Condition, Known, OfTest, Said, States};
pub use summary::Summary;
