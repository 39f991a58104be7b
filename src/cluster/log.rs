use std::{collections::VecDeque, fmt, sync::Arc};

use parking_lot::Mutex;
use railgauge_model::border::text;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Receives what agents and the programs that start them write outside the conversation: `(host, line)`.
#[derive(Clone)]
pub struct LogSink(Arc<Take>);

type Take = dyn Fn(&str, &str) + Send + Sync;

impl LogSink {
    /// `take` gets the host's name and one line without its end. It runs in asynchronous tasks and must not block.
    pub fn new(take: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub fn none() -> Self {
        Self::new(|_, _| {})
    }

    pub fn line(&self, host: &str, line: &str) {
        (self.0)(host, line);
    }
}

impl fmt::Debug for LogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogSink")
    }
}

/// Longest line passed on, in bytes; longer ones are split.
const LONGEST: u64 = 4096;
const LAST: usize = 6;

/// The last lines of one process, for the failure about its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    pub(super) fn push(&self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let mut lines = self.0.lock();
        if lines.len() == LAST {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    pub(super) fn text(&self) -> String {
        self.0.lock().iter().map(String::as_str).collect::<Vec<_>>().join(" / ")
    }
}

/// Passes every line of `from` to the sink and remembers the last ones, except those that `ours` consumes. Ends with the stream.
pub(crate) async fn drain(
    from: impl AsyncRead + Unpin,
    host: &str,
    log: &LogSink,
    last: &LastWords,
    ours: impl Fn(&str) -> bool,
) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut from).take(LONGEST).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let line = text::line(&line);
                if !ours(&line) {
                    log.line(host, &line);
                    last.push(&line);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_passed_on_and_the_last_ones_remembered() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let log = LogSink::new({
            let taken = Arc::clone(&taken);
            move |host, line| taken.lock().push(format!("{host}|{line}"))
        });
        let last = LastWords::default();
        let text = (0..10).map(|i| format!("line {i}\r\n")).collect::<String>() + "\x1b[31mred\n\nno end";
        drain(text.as_bytes(), "gpu1", &log, &last, |_| false).await;
        let taken = taken.lock();
        assert_eq!(taken.len(), 13, "{taken:?}");
        assert_eq!(taken[0], "gpu1|line 0");
        assert_eq!(taken[12], "gpu1|no end");
        assert_eq!(last.text(), "line 6 / line 7 / line 8 / line 9 / \u{fffd}[31mred / no end");
    }

    #[tokio::test]
    async fn an_endless_line_is_cut() {
        let last = LastWords::default();
        drain(vec![b'x'; 10_000].as_slice(), "gpu1", &LogSink::none(), &last, |_| false).await;
        assert_eq!(last.text().matches(" / ").count(), 2);
    }
}
