//! Keeps the flows of a round together: every measurement of a round is to meet the traffic of the same cell.
//!
//! Flows that ran ahead by two cells, one measuring while another verified, scattered by ±55 % in the lab, and by ±17 % when together (one
//! run each of `bench/matrix-vs-shell`). So a round of several flows costs a round trip for each cell, and only a flow by itself gets all
//! its cells at once.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct Pace(Arc<State>);

struct State {
    at: Mutex<Vec<Option<usize>>>,
    /// The last cell that may be announced to any flow; unlimited while there is at most one flow.
    last: watch::Sender<usize>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self(Arc::new(State { at: Mutex::default(), last: watch::Sender::new(usize::MAX) }))
    }

    /// A flow's place, at its first cell. All places of a round are taken before its first flow begins.
    pub(crate) fn place(&self, first: usize) -> Place {
        let own = self.change(|at| {
            at.push(Some(first));
            at.len() - 1
        });
        Place { pace: self.clone(), last: self.0.last.subscribe(), own }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Option<usize>>) -> T) -> T {
        let mut at = self.0.at.lock();
        let changed = change(&mut at);
        let mut running = at.iter().flatten();
        let last = match (running.clone().min(), running.nth(1)) {
            (Some(slowest), Some(_)) => *slowest,
            _ => usize::MAX,
        };
        self.0.last.send_if_modified(|known| std::mem::replace(known, last) != last);
        changed
    }
}

/// A flow's place. Dropping it lets the others continue without the flow.
pub(crate) struct Place {
    pace: Pace,
    last: watch::Receiver<usize>,
    own: usize,
}

impl Place {
    pub(crate) fn at(&self, cell: usize) {
        self.pace.change(|at| at[self.own] = Some(cell));
    }

    pub(crate) fn may_begin(&self, cell: usize) -> bool {
        cell <= *self.last.borrow()
    }

    pub(crate) async fn changed(&mut self) {
        // The sender lives in `self`.
        let _ = self.last.changed().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pace.change(|at| at[self.own] = None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_flow_by_itself_is_told_of_everything_at_once() {
        assert!(Pace::new().place(0).may_begin(1000));
    }

    #[test]
    fn no_flow_begins_a_cell_before_the_slowest_one_has_come_to_it() {
        let pace = Pace::new();
        let (fast, slow) = (pace.place(0), pace.place(0));
        assert!(fast.may_begin(0) && slow.may_begin(0) && !fast.may_begin(1));
        fast.at(1);
        assert!(!fast.may_begin(1));
        slow.at(1);
        assert!(fast.may_begin(1) && slow.may_begin(1) && !fast.may_begin(2));
        drop(slow);
        assert!(fast.may_begin(1000));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_hears_of_the_slowest_one() {
        let pace = Pace::new();
        let (mut fast, slow) = (pace.place(1), pace.place(0));
        let wait = async {
            while !fast.may_begin(1) {
                fast.changed().await;
            }
        };
        let go = async {
            tokio::task::yield_now().await;
            slow.at(1);
        };
        tokio::time::timeout(Duration::from_secs(5), async { tokio::join!(wait, go) }).await.unwrap();
    }
}
