//! How the timed operations of a collective are cut into batches.
//!
//! As in nccl-tests, batches of operations run back to back and the clock is read around each batch; a batch of one,
//! behind a barrier, is a latency.

use railgauge_wire::{group::Exercise, step::Window, terms::Aim};

/// Operations of a batch, as nccl-tests' default.
const BATCH: u64 = 20;
/// A batch of a timed window lasts at least this long, in nanoseconds: otherwise starting and ending it would count.
const SHORTEST: u64 = 1_000_000;
/// Most operations of a batch.
pub const MOST: u64 = 1_000;
/// Most batches of a window; the account of each travels to the controller.
const BATCHES: u64 = 20_000;
/// Operations timed to learn how long one takes.
pub const TRIAL: u64 = 5;

/// Equal on all ranks, since all are told the same time of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Operations of a batch.
    pub batch: u64,
    /// Batches.
    pub batches: u64,
    /// Operations before, to warm up.
    pub warm_up: u64,
}

impl Cut {
    /// The cut of an exercise of which one operation takes `one` nanoseconds.
    pub fn new(exercise: &Exercise, one: u64) -> Self {
        let one = one.max(1);
        let single = exercise.aim == Aim::Latency;
        let (batch, batches) = match exercise.window {
            Window::Iterations(count) if single => (1, count),
            Window::Iterations(count) => (BATCH.min(count), count.div_ceil(BATCH)),
            Window::Duration(time) | Window::Adaptive { at_most: time, .. } => {
                // Operations so long that a batch would outlast the window come in smaller ones.
                let batch = if single { 1 } else { (SHORTEST / one).clamp(BATCH, MOST).min(time / one).max(1) };
                (batch, time / (batch * one))
            }
        };
        let warm_up = (exercise.warm_up / one).min(MOST * 10);
        Self { batch: batch.max(1), batches: batches.clamp(1, BATCHES), warm_up }
    }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{
        group::Manner,
        terms::{Datatype, Op},
    };

    use super::*;

    #[test]
    fn batches_fill_the_window_and_never_outlast_it() {
        let manner = Manner {
            datatype: Datatype::F32,
            reduction: None,
            in_place: false,
            graph: false,
            ranks_per_host: 1,
            algorithm: None,
            env: [].into(),
        };
        let cut = |aim, window, one| {
            let manner = manner.clone();
            let warm_up = 2_000_000;
            let (op, size, verify, seed) = (Op::Broadcast, 4, true, 0);
            let cut = Cut::new(&Exercise { op, aim, size, manner, window, warm_up, verify, seed }, one);
            (cut.batch, cut.batches, cut.warm_up)
        };
        let second = Window::Duration(1_000_000_000);
        assert_eq!(cut(Aim::Bandwidth, second, 10_000), (100, 1_000, 200));
        assert_eq!(cut(Aim::Bandwidth, second, 5_000_000), (20, 10, 0));
        assert_eq!(cut(Aim::Bandwidth, second, 300_000_000), (3, 1, 0));
        assert_eq!(cut(Aim::Bandwidth, second, 5_000_000_000), (1, 1, 0));
        assert_eq!(cut(Aim::Latency, second, 50_000), (1, 20_000, 40));
        assert_eq!(cut(Aim::Bandwidth, Window::Iterations(50), 1), (20, 3, 10_000));
        assert_eq!(cut(Aim::Latency, Window::Iterations(50), 0).1, 50);
    }
}
