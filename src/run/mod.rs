//! The one loop: rounds and conversations become events, journalled as they happen.
//!
//! | file | does |
//! | --- | --- |
//! | [`spine`] | stamps events and hands them to journal and progress |
//! | [`progress`] | what a person sees while it runs |
//! | [`execute`] | a whole run, from the first host to the last goodbye |
//! | [`aside`] | work that takes long, given up when the run is interrupted |
//! | [`hosts`] | brings hosts up and learns what they are |
//! | `gpus` | which GPU an end of a pair uses |
//! | `copies` | how fast bytes move between host and GPU, before the tests |
//! | [`links`] | what to open for a flow, and which links stay warm |
//! | [`pair`] | one case on one link: verify, time, verify |
//! | [`counters`] | what the NICs of both ends counted around a timed pass |
//! | `group` | the ranks of one collective: opened, joined, exercised together |
//! | `order` | in which order tests, repeats and rounds are run |
//! | `configure` | commands of the plan that change the cluster for a test, and take that back |
//! | `together` | flows that run at once, from a planned start |
//! | `times` | the slowest rank of each batch, and their distribution |
//! | [`rounds`] | the loop over rounds, cells and flows |
//! | [`confirm`] | suspects measured again, after the tests |

pub mod aside;
mod configure;
pub mod confirm;
mod copies;
mod counters;
pub mod execute;
mod gpus;
mod group;
pub mod hosts;
pub mod links;
mod order;
pub mod pair;
pub mod progress;
pub mod rounds;
pub mod spine;
mod times;
mod together;
