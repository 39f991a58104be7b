//! The main loop: rounds and conversations become events, journalled as they happen.
//!
//! A case goes one way: [`execute`] → [`rounds`] → `measure` → the agents → an outcome, which [`spine`] journals. The modules are layered,
//! and import only those below.
//!
//! | file | does |
//! | --- | --- |
//! | [`spine`] | stamps events and hands them to journal and progress |
//! | [`progress`] | output for people while it runs |
//! | [`execute`] | a whole run, from the first host to the last goodbye |
//! | [`aside`] | long work, given up when the run is interrupted |
//! | [`hosts`] | brings hosts up and learns what they are |
//! | `raw` | the source files of facts and counters, page by page |
//! | [`tools`] | output of a host's programs about its switches, page by page |
//! | `clocks` | clocks of the hosts relative to the controller's |
//! | `gpus` | which GPU an end of a pair uses |
//! | `fabric` | places of rails in the plan's topology, and ways of flows |
//! | [`links`] | what to open for a flow, and which links stay warm |
//! | `failures` | failures created where agents are asked |
//! | `configure` | commands of the plan that change the cluster for a test, and undo that |
//! | `work`, `order` | the work, and the order of tests, repeats and rounds |
//! | `measure` | one case: of a pair, of concurrent flows, of a collective |
//! | [`rounds`] | the loop over rounds, cells and flows |
//! | `watch` | asks the agents about their ports |
//! | `gather` | results of the windows of a soak, by flow |
//! | `soak` | traffic for hours after the tests, while ports are watched |
//! | [`confirm`] | suspects measured again, after the tests |
//! | [`contact`] | what a kit has of the hosts apart from a run: facts and raw files |

pub(crate) mod aside;
mod clocks;
mod configure;
pub mod confirm;
pub(crate) mod contact;
pub mod execute;
mod fabric;
mod failures;
mod gather;
mod gpus;
pub(crate) mod hosts;
mod links;
mod measure;
pub(crate) mod order;
pub mod progress;
pub(crate) mod raw;
mod rounds;
mod soak;
pub mod spine;
pub(crate) mod tools;
mod watch;
mod work;
