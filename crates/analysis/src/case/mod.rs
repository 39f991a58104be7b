//! A planned case as it was measured, and what may be wrong with it. Data only: `truth`, `together`, `plausible` and `results` find it.

mod absent;
mod against;
mod contradiction;
mod doubt;
mod few;
mod gpu;
mod loss;
mod objection;
mod pass;
mod received;
mod result;
mod scattered;
mod wrong;

pub use absent::{Absent, Implausible, Impossible, Lack};
pub use against::Against;
pub(crate) use against::Aside;
pub use contradiction::Contradiction;
pub use doubt::Doubt;
pub use few::Few;
pub use gpu::Bad;
pub(crate) use loss::{LOSS_TOLERANCE, lost_at};
pub use objection::{NotRun, Objection, Objections, OtherLink, OtherThan};
pub use pass::{Alone, FlowShare, Load, Part, Pass};
pub use result::{CaseResult, State, of_host};
pub(crate) use result::{verified, without_remedy};
pub use scattered::{Scattered, Stray};
pub use wrong::{WrongBytes, WrongRank};
