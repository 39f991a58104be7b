//! Keeps the flows of a round near each other: every measurement of a round is to meet the traffic of the same cell, or of the next.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use railgauge_model::plan::model::Test;
use railgauge_wire::{step::Window, unit::Nanoseconds};
use tokio::sync::watch;

/// Cells that a flow may be ahead of the slowest one.
const CELLS: usize = 2;
/// The time of cells that it may be ahead, where that is more: a controller far away must not be waited for after every window
/// of some milliseconds.
const TIME: Duration = Duration::from_secs(1);

/// The pace of a round.
#[derive(Clone)]
pub(crate) struct Pace {
    state: Arc<State>,
    ahead: usize,
}

struct State {
    /// The cell that each flow is at; `None` for a flow that is over.
    at: Mutex<Vec<Option<usize>>>,
    /// The last cell that any flow may be told of; all of them while there is no more than one flow.
    last: watch::Sender<usize>,
}

impl Pace {
    /// Of a test's rounds.
    pub(crate) fn new(test: &Test) -> Self {
        let window = match test.window {
            Window::Duration(time) | Window::Adaptive { at_least: time, .. } => time,
            Window::Iterations(_) => Nanoseconds::ZERO,
        };
        let cell = (test.warm_up + Duration::from(window)).as_nanos();
        let fit = TIME.as_nanos().checked_div(cell).and_then(|cells| usize::try_from(cells).ok());
        // Iterations take nobody knows how long.
        Self::of(if window.is_zero() { CELLS } else { fit.unwrap_or(CELLS).max(CELLS) })
    }

    fn of(ahead: usize) -> Self {
        let (at, last) = (Mutex::default(), watch::Sender::new(usize::MAX));
        Self { state: Arc::new(State { at, last }), ahead }
    }

    /// A flow's place in it, at its first cell. All places of a round are taken before its first flow begins.
    pub(crate) fn place(&self, first: usize) -> Place {
        let own = self.change(|at| {
            at.push(Some(first));
            at.len() - 1
        });
        Place { pace: self.clone(), last: self.state.last.subscribe(), own }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Option<usize>>) -> T) -> T {
        let mut at = self.state.at.lock();
        let changed = change(&mut at);
        let mut running = at.iter().flatten();
        let last = match (running.clone().min(), running.nth(1)) {
            (Some(slowest), Some(_)) => slowest.saturating_add(self.ahead),
            _ => usize::MAX,
        };
        self.state.last.send_if_modified(|known| std::mem::replace(known, last) != last);
        changed
    }
}

/// A flow's place. Dropping it lets the others go on without the flow.
pub(crate) struct Place {
    pace: Pace,
    last: watch::Receiver<usize>,
    own: usize,
}

impl Place {
    /// The flow has come to a cell, by its number in the round.
    pub(crate) fn at(&self, cell: usize) {
        self.pace.change(|at| at[self.own] = Some(cell));
    }

    /// Whether it may be told of a cell.
    pub(crate) fn may_begin(&self, cell: usize) -> bool {
        cell <= *self.last.borrow()
    }

    /// Resolves when something has changed since the last call.
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
    use super::*;

    #[test]
    fn a_flow_by_itself_is_told_of_everything_at_once() {
        let pace = Pace::of(2);
        assert!(pace.place(0).may_begin(1000));
    }

    #[test]
    fn no_flow_runs_far_ahead_of_the_slowest_one() {
        let pace = Pace::of(2);
        let (fast, slow) = (pace.place(0), pace.place(0));
        fast.at(2);
        assert!(fast.may_begin(2) && !fast.may_begin(3));
        slow.at(1);
        assert!(fast.may_begin(3) && !fast.may_begin(4));
        drop(slow);
        assert!(fast.may_begin(1000));
    }

    #[tokio::test]
    async fn who_waits_hears_of_the_slowest_one() {
        let pace = Pace::of(0);
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
