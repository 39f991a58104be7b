//! The state of GPUs while cases use them ([`railgauge_wire::gpu_state`]).
//!
//! ```text
//! case ─ Span::begin ─▶ a thread of its own ─ reads NVML or AMD SMI: now, then again and again
//! case ─ Span::end ───▶ reads once more, answers with what was read
//! ```
//!
//! Nobody but that thread calls them while tests run. A case does not wait for the first reading, and for the last one no longer than
//! [`PATIENCE`]: a GPU that is dying may hold a library for minutes, and the case then says so.
//!
//! | file | holds |
//! | --- | --- |
//! | `sampler` | the thread: what is read when |
//! | `fault` | what befell a GPU, in the words of a failure |
//! | `history` | what was read, and what of it a case is told |

mod fault;
mod history;
mod sampler;

use std::{
    collections::BTreeMap,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, channel},
    },
    time::Duration,
};

use railgauge_wire::{
    failure::Failure,
    gpu_state::{ANSWER_WITHIN, EVERY, EVERY_AT_LEAST, GpuReading, GpuSeen, MOST},
    measure::Measurement,
    step::Window,
    unit::Nanoseconds,
};

use crate::{
    bench::clock,
    gpu::cards::{self, Informant, Lasting, Unread},
    system::{
        panics::{self, Panicked},
        workers,
    },
};
use sampler::{Order, Sampler};

/// How long a case waits for the last reading of its GPUs.
const PATIENCE: Duration = ANSWER_WITHIN;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Silent {
    #[error("no thread could be started: {0}")]
    NoThread(String),
    #[error("the thread that reads the state of GPUs has ended")]
    Ended,
    #[error("{0} has not answered within {seconds} s", seconds = PATIENCE.as_secs())]
    Late(Informant),
}

/// A case that uses GPUs, from its begin on.
pub(crate) struct Span {
    number: u64,
    gpus: Vec<String>,
    begun: Nanoseconds,
    /// Where the thread takes orders; why there is none.
    to: Result<Sender<Order>, Silent>,
    ended: bool,
}

/// What was read of GPUs while a case used them.
#[derive(Debug, Default)]
pub(crate) struct Read {
    of_gpu: BTreeMap<String, OfGpu>,
    /// From the begin of the case to its end.
    whole: (Nanoseconds, Nanoseconds),
    failure: Option<String>,
}

#[derive(Debug, Clone, Default)]
struct OfGpu {
    readings: Vec<GpuReading>,
    lasting: Lasting,
    counted: BTreeMap<String, u64>,
    xids: Option<Vec<u32>>,
    failure: Option<Unread>,
}

fn every(window: Window) -> Duration {
    (window.at_least() / 2).clamp(EVERY_AT_LEAST, EVERY)
}

impl Span {
    /// A case with this window begins on the GPUs at these PCI addresses; `None` where there are none.
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
            // A thread that has ended is told at the end.
            let _ =
                to.send(Order::Begin { span: number, gpus: gpus.clone(), every: every(window).into(), asked: begun });
        }
        Some(Self { number, gpus, begun, to, ended: false })
    }

    pub(crate) fn end(mut self) -> Read {
        self.ended = true;
        let (answer, read) = channel();
        let asked = self.to.as_ref().map_err(Clone::clone).and_then(|to| {
            to.send(Order::End { span: self.number, answer, asked: clock::now() }).map_err(|_| Silent::Ended)
        });
        let read = asked.and_then(|()| read.recv_timeout(PATIENCE).map_err(|_| Silent::Late(Informant::asked())));
        let whole = (self.begun, clock::now());
        match read {
            Ok(of_gpu) => Read { of_gpu, whole, failure: None },
            Err(why) => Read { failure: Some(why.to_string()), whole, ..Read::default() },
        }
    }
}

/// A case that was given up: nobody asks what was read.
impl Drop for Span {
    fn drop(&mut self) {
        if let Some(to) = self.to.as_ref().ok().filter(|_| !self.ended) {
            let _ = to.send(Order::Forget { span: self.number });
        }
    }
}

impl Span {
    /// The GPUs, each once.
    pub(crate) fn gpus(&self) -> &[String] {
        &self.gpus
    }
}

impl Read {
    /// What was seen of a GPU in a timed pass, or in the whole case.
    pub(crate) fn seen(&self, pci: &str, pass: Option<(Nanoseconds, Nanoseconds)>) -> GpuSeen {
        let pass = pass.unwrap_or(self.whole);
        let Some(OfGpu { readings, lasting, counted, xids, failure }) = self.of_gpu.get(pci).cloned() else {
            let failure = self.failure.clone().or_else(|| Some("nothing was read".to_owned()));
            return GpuSeen { pci: pci.to_owned(), pass, failure, ..GpuSeen::default() };
        };
        let Lasting { index, best_mhz, best_pcie, limit_watts, is_amd } = lasting;
        let seen = history::seen(pci, &readings, pass, best_pcie);
        let lost = matches!(failure, Some(Unread::Lost(_)));
        let failure = failure.map(|why| why.to_string());
        GpuSeen { index, best_mhz, limit_watts, counted, is_amd, xids, lost, failure, ..seen }
    }

    /// The failure of a case with what befell its GPUs meanwhile, and what to do about that; as it is where nothing did.
    pub(crate) fn explained<'g>(&self, failure: Failure, gpus: impl IntoIterator<Item = &'g str>) -> Failure {
        let known = gpus.into_iter().filter_map(|pci| Some((pci, self.of_gpu.get(pci)?)));
        fault::explained(failure, known.flat_map(|(pci, of_gpu)| fault::faults(pci, of_gpu)))
    }
}

pub(crate) fn pass(measured: &Measurement) -> (Nanoseconds, Nanoseconds) {
    (measured.started, measured.started.saturating_add(measured.elapsed))
}

/// The thread, started when the first case asks for it.
fn thread() -> Result<Sender<Order>, Silent> {
    static THREAD: OnceLock<Result<Sender<Order>, Silent>> = OnceLock::new();
    let start = || {
        let (to, orders) = channel();
        let work = move || {
            if let Err(Panicked(words)) = panics::caught(|| Sampler::new(cards::of_host()).run(&orders)) {
                crate::system::log!("the state of GPUs is not read any more, as the agent panicked: {words}");
            }
        };
        let started = workers::start("gpus", work);
        started.map(|_| to).map_err(|error| Silent::NoThread(error.to_string()))
    };
    THREAD.get_or_init(start).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_window_has_two_readings_and_a_long_one_has_one_a_second() {
        let of = |milliseconds| every(Window::Duration(Nanoseconds::from_millis(milliseconds)));
        assert_eq!([20, 600, 60_000].map(of), [100, 300, 1_000].map(Duration::from_millis));
    }
}
