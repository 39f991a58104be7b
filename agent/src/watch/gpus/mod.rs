//! The state of GPUs while cases use them ([`railgauge_wire::gpu_state`]).
//!
//! ```text
//! case ─ Span::begin ─▶ separate thread ─ reads NVML or AMD SMI: now, then periodically
//! case ─ Span::end ───▶ reads once more, answers with the readings
//! ```
//!
//! Only that thread calls the libraries while tests run. A case does not wait for the first reading, and for the last one at most
//! [`PATIENCE`]: a failing GPU may block a library for minutes, and the case then reports that.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, channel},
    },
    time::Duration,
};

use railgauge_wire::{
    EVERY, EVERY_AT_LEAST, Failure, GpuReading, GpuSeen, Hold, Kind, MOST, Measurement, Nanoseconds, PcieSeen, Range,
    Stage, Window,
    gpu_state::{ANSWER_WITHIN, counter, is_of_program},
    remedy::{self, Entry},
};
use sampler::{OfGpu, Order, Sampler};

use crate::{
    bench::clock,
    gpu::{Lasting, Unread, monitor},
    worker::{self, caught},
};

mod sampler;

const PATIENCE: Duration = ANSWER_WITHIN;

fn silent(cause: String) -> Failure {
    Failure::new(Stage::Measure, Kind::Lost, cause)
}

pub(crate) struct Span {
    number: u64,
    begun: Nanoseconds,
    /// Or why there is no thread.
    to: Result<Sender<Order>, Failure>,
    ended: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Read {
    of_gpu: BTreeMap<String, OfGpu>,
    whole: (Nanoseconds, Nanoseconds),
    failure: Option<String>,
}

fn every(window: Window) -> Duration {
    (window.at_least() / 2).clamp(EVERY_AT_LEAST, EVERY)
}

impl Span {
    /// `None` without GPUs at these PCI addresses.
    pub(crate) fn begin(gpus: impl IntoIterator<Item = String>, window: Window) -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut gpus: Vec<String> = gpus.into_iter().collect();
        gpus.sort_unstable();
        gpus.dedup();
        gpus.truncate(MOST);
        if gpus.is_empty() {
            return None;
        }
        let (number, begun, to) = (NUMBER.fetch_add(1, Ordering::Relaxed), clock::now(), thread());
        if let Ok(to) = &to {
            // A thread that has ended is reported at the end.
            let _ = to.send(Order::Begin { span: number, gpus, every: every(window).into(), asked: begun });
        }
        Some(Self { number, begun, to, ended: false })
    }

    pub(crate) fn end(mut self) -> Read {
        self.ended = true;
        let (answer, read) = channel();
        let asked = self.to.as_ref().map_err(Clone::clone).and_then(|to| {
            to.send(Order::End { span: self.number, answer, asked: clock::now() })
                .map_err(|_| silent("the thread that reads the state of GPUs has ended".to_owned()))
        });
        let late =
            |_| silent(format!("{} has not answered within {} s", monitor::asked().monitor(), PATIENCE.as_secs()));
        let read = asked.and_then(|()| read.recv_timeout(PATIENCE).map_err(late));
        let whole = (self.begun, clock::now());
        match read {
            Ok(of_gpu) => Read { of_gpu, whole, failure: None },
            Err(why) => Read { failure: Some(why.cause), whole, ..Read::default() },
        }
    }
}

/// For a case that was given up: its readings are not needed.
impl Drop for Span {
    fn drop(&mut self) {
        if let Some(to) = self.to.as_ref().ok().filter(|_| !self.ended) {
            let _ = to.send(Order::Forget { span: self.number });
        }
    }
}

impl Read {
    pub(crate) fn seen(&self, pci: &str, pass: Option<(Nanoseconds, Nanoseconds)>) -> GpuSeen {
        let pass = pass.unwrap_or(self.whole);
        let Some(OfGpu { readings, lasting, counted, xids, failure }) = self.of_gpu.get(pci).cloned() else {
            let failure = self.failure.clone().or_else(|| Some("nothing was read".to_owned()));
            return GpuSeen { pci: pci.to_owned(), pass, failure, ..GpuSeen::default() };
        };
        let Lasting { index, best_mhz, best_pcie, limit_watts, is_amd } = lasting;
        let seen = seen(pci, &readings, pass, best_pcie);
        let lost = matches!(failure, Some(Unread::Lost(_)));
        let failure = failure.map(|why| why.to_string());
        GpuSeen { index, best_mhz, limit_watts, counted, is_amd, xids, lost, failure, ..seen }
    }

    /// Adds GPU faults during the case to its failure, with their remedy.
    pub(crate) fn explained<'g>(&self, failure: Failure, gpus: impl IntoIterator<Item = &'g str>) -> Failure {
        let known = gpus.into_iter().filter_map(|pci| Some((pci, self.of_gpu.get(pci)?)));
        explained(failure, known.flat_map(|(pci, of_gpu)| faults(pci, of_gpu)))
    }
}

pub(crate) fn pass(measured: &Measurement) -> (Nanoseconds, Nanoseconds) {
    (measured.started, measured.started.saturating_add(measured.elapsed))
}

/// Started by the first case.
fn thread() -> Result<Sender<Order>, Failure> {
    static THREAD: OnceLock<Result<Sender<Order>, Failure>> = OnceLock::new();
    let start = || {
        let (to, orders) = channel();
        let work = move || {
            if let Err(failure) = caught(Stage::Measure, || Sampler::new(monitor::of_host()).run(&orders)) {
                crate::system::log!("the state of GPUs is not read any more: {failure}");
            }
        };
        let started = worker::start("gpus", work);
        started.map(|_| to).map_err(|error| silent(format!("no thread could be started: {error}")))
    };
    THREAD.get_or_init(start).clone()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    gpu: String,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// An Xid that a program's own mistake does not cause.
    Xid(u32),
    Memory(u64),
    Lost,
}

impl Fault {
    const fn remedy(&self) -> Entry {
        match self.what {
            What::Xid(_) => remedy::XID,
            What::Memory(_) => remedy::GPU_MEMORY_ERRORS,
            What::Lost => remedy::LOOK_AT_GPU,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gpu, what } = self;
        match what {
            What::Xid(xid) => write!(f, "the driver reported Xid {xid} of {gpu}"),
            What::Memory(1) => write!(f, "an error of the memory of {gpu} could not be corrected"),
            What::Memory(errors) => write!(f, "{errors} errors of the memory of {gpu} could not be corrected"),
            What::Lost => write!(f, "NVML lost {gpu}"),
        }
    }
}

/// The most informative first.
fn faults(pci: &str, seen: &OfGpu) -> Vec<Fault> {
    let gpu = match seen.lasting.index {
        Some(index) => format!("GPU {index} ({pci})"),
        None => format!("the GPU at {pci}"),
    };
    let mut xids: Vec<u32> = seen.xids.iter().flatten().copied().filter(|xid| !is_of_program(*xid)).collect();
    xids.dedup();
    let errors = seen.counted.get(counter::ECC_UNCORRECTED).copied().filter(|errors| *errors > 0);
    let lost = matches!(seen.failure, Some(Unread::Lost(_))).then_some(What::Lost);
    let all = xids.into_iter().map(What::Xid).chain(errors.map(What::Memory)).chain(lost);
    all.map(|what| Fault { gpu: gpu.clone(), what }).collect()
}

fn explained(mut failure: Failure, faults: impl Iterator<Item = Fault>) -> Failure {
    let faults: Vec<Fault> = faults.collect();
    let Some(first) = faults.first() else { return failure };
    let words: Vec<String> = faults.iter().map(Fault::to_string).collect();
    failure.cause = format!("{}; meanwhile {}", failure.cause, words.join(", "));
    failure.remedy(first.remedy())
}

fn seen(
    pci: &str,
    readings: &[GpuReading],
    pass: (Nanoseconds, Nanoseconds),
    best_pcie: Option<(u32, u32)>,
) -> GpuSeen {
    let from = readings.partition_point(|reading| reading.at < pass.0);
    let until = readings.partition_point(|reading| reading.at <= pass.1).max(from);
    let during = &readings[from..until];
    let range = |value: fn(&GpuReading) -> Option<f64>| Range::of(during.iter().filter_map(value));
    GpuSeen {
        pci: pci.to_owned(),
        pass,
        readings: during.len() as u64,
        sm_mhz: range(|reading| reading.sm_mhz.map(f64::from)),
        memory_mhz: range(|reading| reading.memory_mhz.map(f64::from)),
        watts: range(|reading| reading.watts),
        celsius: range(|reading| reading.celsius.map(f64::from)),
        memory_celsius: range(|reading| reading.memory_celsius.map(f64::from)),
        held: held(during),
        pcie: pcie(during, best_pcie),
        others: during.iter().filter_map(|reading| reading.others).max(),
        ..GpuSeen::default()
    }
}

/// By reason, the readings in which it held; `None` without data.
fn held(during: &[GpuReading]) -> Option<BTreeMap<Hold, u64>> {
    let told: Vec<&BTreeSet<Hold>> = during.iter().filter_map(|reading| reading.held.as_ref()).collect();
    let mut times = BTreeMap::new();
    told.iter().copied().flatten().for_each(|hold| *times.entry(*hold).or_default() += 1);
    (!told.is_empty()).then_some(times)
}

fn pcie(during: &[GpuReading], best: Option<(u32, u32)>) -> Option<PcieSeen> {
    let links = || during.iter().filter_map(|reading| reading.pcie);
    let span = |of: fn((u32, u32)) -> u32| Some((links().map(of).min()?, links().map(of).max()?));
    Some(PcieSeen { generation: span(|link| link.0)?, width: span(|link| link.1)?, best })
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{Kind, Stage};

    use super::{
        sampler::{History, KEPT},
        *,
    };

    #[test]
    fn a_short_window_has_two_readings_and_a_long_one_has_one_a_second() {
        let of = |milliseconds| every(Window::Duration(Nanoseconds::from_millis(milliseconds)));
        assert_eq!([20, 600, 60_000].map(of), [100, 300, 1_000].map(Duration::from_millis));
    }

    const PCI: &str = "0000:1b:00.0";

    fn told(seen: &OfGpu) -> Failure {
        explained(Failure::new(Stage::Measure, Kind::Internal, "the copy failed"), faults(PCI, seen).into_iter())
    }

    #[test]
    fn what_ends_the_work_on_a_gpu_is_in_the_words_of_the_failure() {
        let lasting = Lasting { index: Some(3), ..Lasting::default() };
        let counted = [(counter::ECC_UNCORRECTED.to_owned(), 2), (counter::PCIE_REPLAYS.to_owned(), 9)].into();
        let lost = Some(Unread::Lost(PCI.to_owned()));
        let seen = OfGpu { lasting, xids: Some(vec![45, 79, 79]), counted, failure: lost, ..OfGpu::default() };
        let failure = told(&seen);
        assert_eq!(
            failure.cause,
            "the copy failed; meanwhile the driver reported Xid 79 of GPU 3 (0000:1b:00.0), 2 errors of the memory of GPU 3 \
             (0000:1b:00.0) could not be corrected, NVML lost GPU 3 (0000:1b:00.0)"
        );
        assert_eq!(failure.remedy.unwrap().id, remedy::XID.id);
        let failure = told(&OfGpu { xids: None, ..seen });
        assert_eq!(failure.remedy.unwrap().id, remedy::GPU_MEMORY_ERRORS.id);
    }

    #[test]
    fn a_failure_of_a_healthy_gpu_stays_as_it_is() {
        let own = OfGpu { xids: Some(vec![13, 31, 43, 45]), ..OfGpu::default() };
        let unread = OfGpu { failure: Some(Unread::NoLibrary("none".to_owned())), ..OfGpu::default() };
        for seen in [OfGpu::default(), own, unread] {
            let failure = told(&seen);
            assert_eq!((failure.cause.as_str(), failure.remedy), ("the copy failed", None), "{seen:?}");
        }
    }

    fn reading(second: u64, sm: u32, held: &[Hold]) -> GpuReading {
        GpuReading {
            at: Nanoseconds::from_secs(second),
            sm_mhz: Some(sm),
            held: Some(held.iter().copied().collect()),
            pcie: Some((if sm > 1000 { 5 } else { 1 }, 16)),
            ..GpuReading::default()
        }
    }

    fn between(from: u64, until: u64) -> (Nanoseconds, Nanoseconds) {
        (Nanoseconds::from_secs(from), Nanoseconds::from_secs(until))
    }

    #[test]
    fn values_are_of_the_pass() {
        let readings = [
            reading(1, 300, &[]),
            reading(2, 1980, &[Hold::PowerCap]),
            reading(3, 1500, &[Hold::PowerCap, Hold::HotHardware]),
            reading(4, 1700, &[]),
            reading(5, 310, &[]),
            reading(6, 305, &[]),
        ];
        let seen = seen("0000:1b:00.0", &readings, between(2, 4), Some((5, 16)));
        assert_eq!((seen.readings, seen.sm_mhz.unwrap()), (3, Range { min: 1500.0, median: 1700.0, max: 1980.0 }));
        assert_eq!(seen.held.unwrap(), [(Hold::PowerCap, 2), (Hold::HotHardware, 1)].into());
        assert_eq!(seen.pcie.unwrap(), PcieSeen { generation: (5, 5), width: (16, 16), best: Some((5, 16)) });
    }

    #[test]
    fn a_pass_without_a_reading_says_so() {
        let seen = seen("0000:1b:00.0", &[reading(1, 300, &[]), reading(9, 310, &[])], between(3, 4), None);
        assert_eq!((seen.readings, seen.sm_mhz, seen.held, seen.pcie), (0, None, None, None));
    }

    #[test]
    fn a_long_pass_is_told_in_few_readings_that_lose_no_hold() {
        let mut history = History::default();
        for second in 0..3 * KEPT as u64 {
            history.push(reading(second, 1980, if second == 777 { &[Hold::PowerBrake] } else { &[] }));
        }
        let kept = history.since(Nanoseconds::ZERO);
        assert!(kept.len() <= KEPT);
        let seen = seen("0000:1b:00.0", &kept, between(0, 1 << 20), None);
        assert_eq!(seen.held.unwrap(), [(Hold::PowerBrake, 1)].into());
    }

    #[test]
    fn what_is_forgotten_leaves_the_last_reading_before() {
        let mut history = History::default();
        (0..10).for_each(|second| history.push(reading(second, 1980, &[])));
        history.forget(Nanoseconds::from_secs(5));
        assert_eq!(history.since(Nanoseconds::ZERO)[0].at, Nanoseconds::from_secs(4));
        assert_eq!(history.since(Nanoseconds::from_secs(7)).len(), 3);
    }
}
