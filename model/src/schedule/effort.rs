//! What a test costs before anything is known of its hosts: time, and bytes over each of its links.

use std::{ops::AddAssign, time::Duration};

use railgauge_wire::{
    step::Window,
    terms::{Op, TestMetric},
    unit::{GigabitsPerSecond, Nanoseconds},
};

use super::Cell;
use crate::plan::model::Test;

/// Time taken for one case beside warm-up and window: verifying, joining, talking to the agents. The bar that
/// `bench/overhead` holds between local agents, for small buffers. Large ones take longer, by memory, links and cores that nobody
/// knows before the run, and a window ends with a whole operation: sums of these times are told as "at least".
pub const OVERHEAD: Duration = Duration::from_millis(20);

/// Time from the moment in which flows at once are told to begin to the planned end of their warm-ups: what it may take
/// until the last agent has heard it.
pub const LEAD: Duration = Duration::from_millis(250);

/// How long traffic beside a flow is measured before the flow's window begins: its own begins with the next message of every
/// connection, which takes a while where many share a slow link.
pub const BEFORE: Duration = Duration::from_millis(500);

/// How long it goes on behind the planned end: windows end with the last completion, which may come late on a busy link.
pub const AFTER: Duration = Duration::from_secs(2);

/// How long something takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// At least this.
    pub at_least: Duration,
    /// The same if every window takes its longest; `None` if a window is a number of iterations. Of a plan it is no upper bound:
    /// the time that whole buffers take is not in it.
    pub at_most: Option<Duration>,
}

impl Time {
    /// The time of one measurement of `test`.
    pub fn of_case(test: &Test) -> Self {
        // Neighbours run longer than the flow on both sides.
        let beside = if test.beside.is_some() { BEFORE + AFTER } else { Duration::ZERO };
        let lead = if test.timed_together() { LEAD + beside } else { Duration::ZERO };
        let fixed = OVERHEAD.saturating_add(lead).saturating_add(test.warm_up);
        let (shortest, longest) = match test.window {
            Window::Duration(time) => (time, Some(time)),
            Window::Adaptive { at_least, at_most, .. } => (at_least, Some(at_most)),
            Window::Iterations(_) => (Nanoseconds::ZERO, None),
        };
        let with = |window: Nanoseconds| fixed.saturating_add(window.into());
        Self { at_least: with(shortest), at_most: longest.map(with) }
    }

    /// This many times as long.
    pub fn times(self, count: u64) -> Self {
        let many = |time: Duration| {
            let nanoseconds = time.as_nanos().saturating_mul(u128::from(count));
            Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
        };
        Self { at_least: many(self.at_least), at_most: self.at_most.map(many) }
    }
}

impl Default for Time {
    fn default() -> Self {
        Self { at_least: Duration::ZERO, at_most: Some(Duration::ZERO) }
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, more: Self) {
        self.at_least = self.at_least.saturating_add(more.at_least);
        self.at_most = self.at_most.zip(more.at_most).map(|(a, b)| a.saturating_add(b));
    }
}

/// Payload that passes a link, both directions together. Headers and repeated packets are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// Bytes whose number the plan fixes: windows of a number of iterations, and the verify passes.
    pub counted: u128,
    /// Nanoseconds in which a direction of the link carries what it can, both directions added up.
    pub flowing: u128,
}

impl Volume {
    /// All measurements of `test` on one of its links.
    pub fn of_link(test: &Test, cells: &[Cell]) -> Self {
        let directions = if test.bidirectional { 2 } else { 1 };
        let window = match test.window {
            Window::Duration(time) | Window::Adaptive { at_most: time, .. } => u128::from(time.0),
            Window::Iterations(_) => 0,
        };
        let one_cell = |cell: &Cell| {
            let message = u128::from(cell.size.0) * u128::from(cell.qps);
            let iterations = match test.window {
                Window::Iterations(count) => u128::from(count),
                _ => 0,
            };
            // A ping-pong sends every message back; it never fills both directions at once.
            let back = if ping_pong(cell) { 2 } else { directions };
            let verify = if test.verify { 2 } else { 0 };
            // What runs beside it fills what the flow leaves of its direction, and where the plan wants that all of the other one.
            let against = test.beside.as_ref().is_some_and(|beside| beside.direction.ways().1);
            let (longer, directions) = match cell.neighbours {
                Some(1..) => ((BEFORE + AFTER).as_nanos(), if against { 2 } else { directions }),
                // What a command moves nobody knows.
                Some(0) | None => (0, directions),
            };
            Self {
                counted: message.saturating_mul(iterations * back + verify),
                flowing: (window + longer + test.warm_up.as_nanos()).saturating_mul(directions),
            }
        };
        let mut sum = Self::default();
        cells.iter().for_each(|cell| sum += one_cell(cell));
        sum.times(test.repeats.into())
    }

    /// This many times as much.
    pub fn times(self, count: u64) -> Self {
        let count = u128::from(count);
        Self { counted: self.counted.saturating_mul(count), flowing: self.flowing.saturating_mul(count) }
    }

    /// Whether the plan alone fixes the number of bytes.
    pub fn is_exact(self) -> bool {
        self.flowing == 0
    }

    /// An upper bound in bytes for links of this rate in each direction; `None` if it takes a rate and there is none.
    pub fn at_most(self, rate: Option<GigabitsPerSecond>) -> Option<u128> {
        if self.is_exact() {
            return Some(self.counted);
        }
        // Gb/s are bits per nanosecond.
        Some(self.counted.saturating_add((rate?.0 / 8.0 * self.flowing as f64).ceil() as u128))
    }
}

impl AddAssign for Volume {
    fn add_assign(&mut self, more: Self) {
        self.counted = self.counted.saturating_add(more.counted);
        self.flowing = self.flowing.saturating_add(more.flowing);
    }
}

fn ping_pong(cell: &Cell) -> bool {
    cell.metric == TestMetric::Latency && matches!(cell.op, Op::Write | Op::WriteImm | Op::Send)
}
