//! Estimates of a test's time and of the bytes over each of its links, before anything is known of its hosts.

use std::{
    collections::BTreeSet,
    fmt,
    iter::Sum,
    ops::{AddAssign, SubAssign},
    time::Duration,
};

use railgauge_wire::{GigabitsPerSecond, Metric, Nanoseconds, Op, TestMetric, Transport, Window};

use super::{Cell, Schedule};
use crate::plan::{Expectation, Limit, Plan, Test, count::lasting};

/// Time of one case in addition to warm-up, window and messages: joining, talking to the agents. `bench/overhead` verifies this limit with
/// local agents.
pub const OVERHEAD: Duration = Duration::from_millis(20);

/// Time from the start command of simultaneous flows to the planned end of their warm-ups: the most until the last agent receives it.
pub const LEAD: Duration = Duration::from_millis(250);

/// How long traffic alongside a flow is measured before the flow's window begins: its own begins with the next message of every connection,
/// which takes a while where many share a slow link.
pub const BEFORE: Duration = Duration::from_millis(500);

/// How long it continues after the planned end: windows end with the last completion, which may be late on a busy link.
pub const AFTER: Duration = Duration::from_secs(2);

/// Messages of each queue pair that are in flight when its warm-up ends, and again when its window ends.
const IN_FLIGHT: f64 = 2.0;
/// Bytes of each TCP stream that are in socket buffers then, in addition to one message. Measured on links of 30 and 80 Mb/s with messages
/// of 16 KiB to 4 MiB and one or four streams: 0.5 to 1.9 MB.
const BUFFERED: f64 = 1048576.0;
/// Messages of each queue pair in the verify passes.
const VERIFIED: f64 = 2.0;
/// Bytes a second that processors fill or compare; and the time for a GPU to fill and compare its own memory, and for NCCL's ranks to
/// connect, once a round. Measured on a server with two H200: 0.9 to 2.4 GB/s, 0.4 s, 0.9 s.
const FILLED: f64 = 1e9;
const GPU: Duration = Duration::from_millis(400);
const NCCL: Duration = Duration::from_millis(900);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    pub at_least: Duration,
    /// With the longest windows; `None` if a window is a number of iterations, or the rate of its links is unknown.
    pub at_most: Option<Duration>,
}

impl Time {
    pub fn of_case(test: &Test) -> Self {
        // Neighbours run longer than the flow on both sides.
        let beside = if test.beside.is_some() { BEFORE + AFTER } else { Duration::ZERO };
        // A collective is measured twice in a case.
        let windows = if test.beside.is_some() && test.collective.is_some() { 2 } else { 1 };
        let lead = if test.timed_together() { LEAD + beside } else { Duration::ZERO };
        let fixed = OVERHEAD.saturating_add(lead).saturating_add(test.warm_up);
        let (shortest, longest) = match test.window {
            Window::Duration(time) => (time, Some(time)),
            Window::Adaptive { at_least, at_most, .. } => (at_least, Some(at_most)),
            Window::Iterations(_) => (Nanoseconds::ZERO, None),
        };
        let with = |window: Nanoseconds| fixed.saturating_add(window.saturating_mul(windows).into());
        Self { at_least: with(shortest), at_most: longest.map(with) }
    }

    const fn exactly(time: Duration) -> Self {
        Self { at_least: time, at_most: Some(time) }
    }

    pub fn longest(self) -> Duration {
        self.at_most.unwrap_or(self.at_least)
    }

    pub fn less(self, by: Duration) -> Self {
        let less = |time: Duration| time.saturating_sub(by);
        Self { at_least: less(self.at_least), at_most: self.at_most.map(less) }
    }

    pub fn times(self, count: u64) -> Self {
        let many = |time: Duration| {
            let nanoseconds = time.as_nanos().saturating_mul(u128::from(count));
            Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
        };
        Self { at_least: many(self.at_least), at_most: self.at_most.map(many) }
    }
}

/// Time to fill the memory of a node test and to verify it.
fn prepared(test: &Test, cell: &Cell) -> Duration {
    let bytes = match cell.op {
        _ if !test.verify => 0.0,
        Op::HostToGpu | Op::GpuToHost => VERIFIED * cell.size.0 as f64,
        op if op.within_host() == Some(Transport::Cpu) => cell.size.0 as f64,
        op if op.within_host() == Some(Transport::Gpu) => return GPU,
        _ => 0.0,
    };
    Duration::try_from_secs_f64(bytes / FILLED).unwrap_or_default()
}

/// Cost of measurements in sequence; every estimate of time consists of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    time: Time,
    /// Bytes over a link in addition to warm-ups and windows. Those within hosts and between the ranks of a group are unknown.
    bytes: f64,
}

impl Cost {
    pub fn of<'c>(test: &Test, cells: impl IntoIterator<Item = &'c Cell>) -> Self {
        let is_link = test.collective.is_none() && !test.transport.is_within_host();
        let verified = if test.verify { VERIFIED } else { 0.0 };
        let of_pair = |size: f64| {
            let in_flight = if test.transport == Transport::Tcp { BUFFERED + size } else { IN_FLIGHT * size };
            2.0 * in_flight + verified * size
        };
        let bytes = |cell: &Cell| if is_link { of_pair(cell.size.0 as f64) * f64::from(cell.qps) } else { 0.0 };
        let of_case = Time::of_case(test);
        let one =
            |cell| Self { time: [of_case, Time::exactly(prepared(test, cell))].into_iter().sum(), bytes: bytes(cell) };
        let mut cells = cells.into_iter().peekable();
        let connects = test.transport == Transport::Nccl && cells.peek().is_some();
        let start = Self { time: Time::exactly(if connects { NCCL } else { Duration::ZERO }), bytes: 0.0 };
        cells.map(one).chain([start]).sum()
    }

    pub fn at(self, pace: Option<PerByte>) -> Time {
        let Some(PerByte(seconds)) = pace else {
            let Time { at_least, at_most } = self.time;
            return Time { at_least, at_most: at_most.filter(|_| at_least.is_zero()) };
        };
        let messages = Duration::try_from_secs_f64(seconds * self.bytes).unwrap_or_default();
        [self.time, Time::exactly(messages)].into_iter().sum()
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, more: Self) {
        self.time += more.time;
        self.bytes += more.bytes;
    }
}

impl SubAssign for Cost {
    fn sub_assign(&mut self, less: Self) {
        let Time { at_least, at_most } = less.time;
        self.time.at_least = self.time.at_least.saturating_sub(at_least);
        self.time.at_most = self.time.at_most.zip(at_most).map(|(all, less)| all.saturating_sub(less));
        self.bytes -= less.bytes;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        let mut sum = Self::default();
        costs.for_each(|cost| sum += cost);
        sum
    }
}

/// Seconds per byte of a message.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PerByte(f64);

impl PerByte {
    /// For links with this rate, or the one that the plan demands of them or of the test; `None` where all are unknown. Messages within
    /// hosts, and those of NCCL, are counted otherwise.
    pub fn of(plan: &Plan, test: &Test, rate: Option<GigabitsPerSecond>) -> Option<Self> {
        if test.transport.is_within_host() || test.transport == Transport::Nccl {
            return Some(Self::default());
        }
        let demanded = |one: &Expectation| match (one.metric, one.limit) {
            (Metric::Bandwidth, Limit::AtLeast(limit)) if limit > 0.0 => Some(limit),
            _ => None,
        };
        let of_test = || test.expect.iter().filter_map(demanded).min_by(f64::total_cmp).map(GigabitsPerSecond);
        Some(Self(8e-9 / rate.or(plan.preflight.wanted.link_rate_gbps).or_else(of_test)?.0))
    }
}

/// The pace of a test's links in finished rounds: time beyond their plan, by the bytes of their messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    seconds: f64,
    bytes: f64,
}

impl Seen {
    /// Records a duration. Windows of unknown length are ignored.
    pub fn add(&mut self, planned: Cost, took: Duration) {
        if planned.time.at_most == Some(planned.time.at_least) && planned.bytes > 0.0 {
            self.seconds += took.as_secs_f64() - planned.time.at_least.as_secs_f64();
            self.bytes += planned.bytes;
        }
    }

    pub fn pace(self) -> Option<PerByte> {
        (self.bytes > 0.0).then(|| PerByte((self.seconds / self.bytes).max(0.0)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = lasting(self.at_least);
        match self.at_most.map(lasting) {
            Some(most) if most == least => write!(f, "about {least}"),
            Some(most) => write!(f, "about {least} to {most}"),
            None => write!(f, "at least {least}"),
        }
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        let mut sum = Self::default();
        times.for_each(|time| sum += time);
        sum
    }
}

impl Schedule {
    /// The time of each test, by its index in the plan: all of its rounds and repeats, on links of this rate.
    pub fn times(&self, plan: &Plan, rate: Option<GigabitsPerSecond>) -> Vec<Time> {
        let of_test = |(index, (test, cells)): (usize, (&Test, &Vec<Cell>))| {
            let pace = PerByte::of(plan, test, rate);
            let rounds = self.rounds.iter().filter(|round| round.test == index).count();
            Cost::of(test, cells).at(pace).times(rounds as u64 * u64::from(test.repeats))
        };
        plan.tests.iter().zip(&self.cells).enumerate().map(of_test).collect()
    }
}

impl Plan {
    /// How long its tests take, in words, with the hosts whose links may take any time for large messages.
    pub fn takes(&self, time: Time, rate: Option<GigabitsPerSecond>) -> String {
        let unknown = self.tests.iter().filter(|test| PerByte::of(self, test, rate).is_none());
        let hosts: BTreeSet<&String> = unknown.flat_map(|test| &test.hosts).collect();
        match hosts.len() {
            0 => time.to_string(),
            1 => format!("{time} (the link rate of 1 host is unknown)"),
            hosts => format!("{time} (the link rate of {hosts} hosts is unknown)"),
        }
    }

    /// The part of a time of tests that the plan allows after this much of the run.
    pub fn within(&self, time: Time, spent: Duration) -> Time {
        let most = self.until_suspects().map_or(Duration::MAX, |until| until.saturating_sub(spent));
        Time { at_least: time.at_least.min(most), at_most: time.at_most.map(|time| time.min(most)) }
    }

    pub fn then_suspects(&self) -> String {
        let most =
            self.until_soak().zip(self.until_suspects()).map_or(self.localise.at_most, |(end, tests)| end - tests);
        match self.localise.confirm {
            true => format!(", then up to {} where suspects are measured again", lasting(most)),
            false => String::new(),
        }
    }

    /// Latest start of the soak since the start of the run; without a soak, the latest end of the run.
    pub fn until_soak(&self) -> Option<Duration> {
        let soak = self.soak.as_ref().map_or(Duration::ZERO, |soak| soak.lasts);
        self.at_most.map(|at_most| at_most.saturating_sub(soak))
    }

    /// Latest end of the tests since the start of the run: a quarter of the time is kept to measure suspects again, less where `[localise]`
    /// gives less.
    pub fn until_suspects(&self) -> Option<Duration> {
        let again = if self.localise.confirm { self.localise.at_most } else { Duration::ZERO };
        self.until_soak().map(|until| until - again.min(until / 4))
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

/// Payload over a link, both directions together, without headers and retransmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// Bytes that the plan fixes: windows of a number of iterations, and the verify passes.
    pub counted: u128,
    /// Nanoseconds at full rate, both directions added.
    pub flowing: u128,
}

impl Volume {
    pub fn of_link(test: &Test, cells: &[Cell]) -> Self {
        let directions = if test.bidirectional { 2 } else { 1 };
        let (window, iterations) = match test.window {
            Window::Duration(time) | Window::Adaptive { at_most: time, .. } => (u128::from(time.0), 0),
            Window::Iterations(count) => (0, u128::from(count)),
        };
        let one_cell = |cell: &Cell| {
            let message = u128::from(cell.size.0) * u128::from(cell.qps);
            // A ping-pong returns every message; it never fills both directions at once.
            let back = if ping_pong(cell) { 2 } else { directions };
            let verify = if test.verify { 2 } else { 0 };
            // Traffic alongside fills the rest of the flow's direction, and of the other one where the plan wants that.
            let against = test.beside.as_ref().is_some_and(|beside| beside.direction.ways().1);
            let (longer, directions) = match cell.neighbours {
                Some(1..) => ((BEFORE + AFTER).as_nanos(), if against { 2 } else { directions }),
                // A command's traffic is unknown.
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

    pub fn times(self, count: u64) -> Self {
        let count = u128::from(count);
        Self { counted: self.counted.saturating_mul(count), flowing: self.flowing.saturating_mul(count) }
    }

    /// Whether the plan alone fixes the number of bytes.
    pub fn is_exact(self) -> bool {
        self.flowing == 0
    }

    /// An upper bound in bytes for links of this rate in each direction; `None` if a needed rate is missing.
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
