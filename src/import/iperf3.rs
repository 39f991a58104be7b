//! iperf3's JSON (`--json`), of the client.

use railgauge_model::plan::per_end::PerEnd;
use railgauge_wire::{Bytes, Memory, Metric, Op, Service, TestMetric, Transport};
use serde::Deserialize;
use serde_json::Number;

use super::{ImportError, Kind, Output, Said};

const KNOWN: &str = "tests of one direction over TCP can be";

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    start: Start,
    end: Option<End>,
    error: Option<String>,
}

#[derive(Default, Deserialize)]
struct Start {
    #[serde(default)]
    connected: Vec<Connected>,
    version: Option<String>,
    timestamp: Option<Timestamp>,
    connecting_to: Option<Host>,
    test_start: Option<TestStart>,
}

#[derive(Deserialize)]
struct Connected {
    local_host: String,
}

#[derive(Deserialize)]
struct Timestamp {
    timesecs: i64,
}

#[derive(Deserialize)]
struct Host {
    host: String,
}

#[derive(Deserialize)]
struct TestStart {
    protocol: String,
    num_streams: u32,
    blksize: u64,
    #[serde(default)]
    reverse: u8,
    #[serde(default)]
    bidir: u8,
}

#[derive(Deserialize)]
struct End {
    sum_received: Option<Sum>,
    sum_sent_bidir_reverse: Option<Sum>,
}

#[derive(Deserialize)]
struct Sum {
    bits_per_second: Number,
}

pub(super) fn read(file: &str, text: &str) -> Result<Output, ImportError> {
    // A test that failed early has `start` and `intervals` alone.
    if !["\"test_start\"", "\"cookie\"", "\"intervals\""].iter().any(|word| text.contains(word)) {
        return Err(ImportError::unknown(file));
    }
    let document: Document = serde_json::from_str(text).map_err(|error| of_json(file, text, &error))?;
    let last = text.lines().count().max(1) as u64;
    let line_of = |word: &str| {
        let found = (1..).zip(text.lines()).find(|(_, line)| line.contains(word));
        found.map_or(1, |(line, _)| line)
    };
    if let Some(error) = &document.error {
        return Err(ImportError::malformed(file, line_of("\"error\""), "a finished test", error));
    }
    let start = document.start;
    let test = start.test_start.ok_or_else(|| ImportError::truncated(file, last, "`test_start`"))?;
    let unsupported = |word: &str, what: &str| Err(ImportError::unsupported(file, line_of(word), what, KNOWN));
    let end = document.end.ok_or_else(|| ImportError::truncated(file, last, "`end`"))?;
    if test.protocol != "TCP" {
        return unsupported("\"protocol\"", &format!("the protocol {}", test.protocol));
    }
    if test.bidir != 0 || end.sum_sent_bidir_reverse.is_some() {
        return unsupported("\"test_start\"", "a test of both directions");
    }
    let Some(to) = start.connecting_to else {
        return unsupported("\"start\"", "the output of the server, which does not say whom it served");
    };
    let received = end.sum_received.ok_or_else(|| ImportError::truncated(file, last, "`sum_received` in `end`"))?;
    let line = line_of("\"sum_received\"");
    let written = received.bits_per_second.to_string();
    if !received.bits_per_second.as_f64().is_some_and(|rate| rate.is_finite() && rate >= 0.0) {
        return Err(ImportError::malformed(file, line, "bits per second", &written));
    }
    if test.num_streams == 0 {
        return Err(ImportError::malformed(file, line_of("\"num_streams\""), "a number of streams", "0"));
    }
    let mut output = Output::of("iperf3");
    output.carrier = "tcp".to_owned();
    output.notes.push("bandwidth is what the receiver counted; retransmissions are not taken".to_owned());
    output.version = start.version.as_deref().and_then(|version| version.strip_prefix("iperf ")).map(str::to_owned);
    output.seconds = start.timestamp.map(|time| time.timesecs);
    let from = start.connected.into_iter().next().map(|socket| socket.local_host);
    output.ends = [from, Some(to.host)];
    if test.reverse != 0 {
        output.ends.reverse();
    }
    let kind = Kind {
        op: Some(Op::Send),
        metric: TestMetric::Bandwidth,
        transport: Transport::Tcp,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        qps: test.num_streams,
        bidirectional: false,
        elements: None,
    };
    output.said.push(Said::new(line, kind, Bytes(test.blksize), Metric::Bandwidth, written, (1.0, 1e9)));
    Ok(output)
}

fn of_json(file: &str, text: &str, error: &serde_json::Error) -> ImportError {
    let line = error.line().max(1) as u64;
    if error.is_eof() {
        return ImportError::truncated(file, line, format!("the rest of the JSON ({error})"));
    }
    let found = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    // One line may hold everything: show the text at the place.
    let start: String = found.chars().skip(error.column().saturating_sub(20)).collect();
    ImportError::malformed(file, line, format!("what this JSON has elsewhere ({error})"), start.trim())
}
