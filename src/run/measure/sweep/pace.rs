//! Keeps the flows of a round near each other: every measurement of a round is to meet the traffic of the same cell, or of the next.

use std::{sync::Arc, time::Duration};

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
    /// The cell that each flow is at; `None` for a flow that is over.
    at: Arc<watch::Sender<Vec<Option<usize>>>>,
    ahead: usize,
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
        let ahead = if window.is_zero() { CELLS } else { fit.unwrap_or(CELLS).max(CELLS) };
        Self { at: Arc::new(watch::Sender::new(Vec::new())), ahead }
    }

    /// A flow's place in it.
    pub(crate) fn place(&self) -> Place {
        let mut own = 0;
        self.at.send_modify(|at| {
            own = at.len();
            at.push(Some(0));
        });
        Place { pace: self.clone(), changes: self.at.subscribe(), own }
    }
}

/// A flow's place. Dropping it lets the others go on without the flow.
pub(crate) struct Place {
    pace: Pace,
    changes: watch::Receiver<Vec<Option<usize>>>,
    own: usize,
}

impl Place {
    /// The flow has come to a cell, by its number in the round.
    pub(crate) fn at(&self, cell: usize) {
        self.pace.at.send_modify(|at| at[self.own] = Some(cell));
    }

    /// Whether it may be told of a cell.
    pub(crate) fn may_begin(&self, cell: usize) -> bool {
        let at = self.changes.borrow();
        let others = at.iter().enumerate().filter(|(place, _)| *place != self.own).filter_map(|(_, at)| *at);
        others.min().is_none_or(|slowest| cell <= slowest.saturating_add(self.pace.ahead))
    }

    /// Resolves when something has changed since the last call.
    pub(crate) async fn changed(&mut self) {
        // The sender lives in `self`.
        let _ = self.changes.changed().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pace.at.send_modify(|at| at[self.own] = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(ahead: usize) -> Pace {
        Pace { at: Arc::new(watch::Sender::new(Vec::new())), ahead }
    }

    #[test]
    fn a_flow_by_itself_is_told_of_everything_at_once() {
        let pace = pace(2);
        assert!(pace.place().may_begin(1000));
    }

    #[test]
    fn no_flow_runs_far_ahead_of_the_slowest_one() {
        let pace = pace(2);
        let (fast, slow) = (pace.place(), pace.place());
        fast.at(2);
        assert!(fast.may_begin(2) && !fast.may_begin(3));
        slow.at(1);
        assert!(fast.may_begin(3) && !fast.may_begin(4));
        drop(slow);
        assert!(fast.may_begin(1000));
    }

    #[tokio::test]
    async fn who_waits_hears_of_the_slowest_one() {
        let pace = pace(0);
        let (mut fast, slow) = (pace.place(), pace.place());
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
