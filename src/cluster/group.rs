//! Process groups of children: abandoned tries, and a controller that ends at once, leave no process.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Leaders of all groups whose first process was not awaited yet. Their numbers cannot be reused until then.
static LIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The process group that a child leads. Killed if dropped before [`Group::over`].
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The child must have been started with a group of its own.
    pub(super) fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(leader) = leader {
            LIVE.lock().insert(leader.as_raw_nonzero().get());
        }
        Self(leader)
    }

    pub(super) fn kill(&self) {
        if let Some(leader) = self.0 {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    /// Its first process was awaited: the number may be reused from now on.
    pub(super) fn over(mut self) {
        self.forget();
    }

    fn forget(&mut self) {
        if let Some(leader) = self.0.take() {
            LIVE.lock().remove(&leader.as_raw_nonzero().get());
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.forget();
    }
}

/// Kills all process groups that were started and not awaited: for a controller that ends at once.
pub fn end_all() {
    for leader in LIVE.lock().iter().copied().filter_map(Pid::from_raw) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}
