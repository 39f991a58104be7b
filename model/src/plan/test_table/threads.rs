use railgauge_wire::{TestMetric, Transport, Window};

use super::kind::Kind;
use crate::plan::{Table, count::count};

/// Reports threads where they do not apply, and drops such a default. `window` is the measurement's.
pub fn read(test: &Table<'_>, kind: &Kind, window: Option<Window>) -> u32 {
    let Some(threads) = test.whole::<u32>("threads").filter(|threads| threads.value > 1) else { return 1 };
    let fewest = kind.qps.iter().min().copied().unwrap_or(1);
    let wrong = if kind.op.is_some_and(|op| op.is_collective()) || kind.transport == Some(Transport::Nccl) {
        return 1;
    } else if kind.transport == Some(Transport::Tcp) {
        Some(("`threads` does not apply to TCP".to_owned(), "leave it out: every stream has a thread of its own"))
    } else if kind.metric == Some(TestMetric::Latency) {
        Some(("latency is measured on one thread".to_owned(), "leave `threads` out"))
    } else if threads.value > fewest {
        let qps = count(fewest as usize, "queue pair");
        Some((
            format!("{} threads for {qps}", threads.value),
            "every thread needs at least one queue pair: raise `qps`",
        ))
    } else if let Some(Window::Adaptive { .. }) = window {
        let message = "several threads cannot be measured adaptively: each would end at a different time";
        Some((message.to_owned(), "write measure = \"2s\", or leave `threads` out"))
    } else {
        None
    };
    let Some((message, help)) = wrong else { return threads.value };
    if threads.own {
        test.wrong(threads.span, message, help);
    }
    1
}
