//! The text of iperf3's client: a table of intervals, a line of dashes, the total, and `iperf Done.`

use railgauge_wire::{
    terms::{Memory, Metric, Op, Service, TestMetric, Transport},
    unit::Bytes,
};

use super::{
    ImportError, Kind, Output, Said,
    lines::{Line, Lines},
    number,
};

pub(super) const KNOWN: &str = "tests of one direction over TCP can be";

pub(super) fn is_start(text: &str) -> bool {
    ["Connecting to host ", "Server listening on ", "iperf3: error"].iter().any(|start| text.starts_with(start))
}

pub(super) fn kind(streams: u32) -> Kind {
    Kind {
        op: Some(Op::Send),
        metric: TestMetric::Bandwidth,
        transport: Some(Transport::Tcp),
        service: Service::Rc,
        memory: Memory::Host,
        qps: streams,
        bidirectional: false,
        elements: None,
    }
}

pub(super) fn output() -> Output {
    let mut output = Output::of("iperf3");
    output.carrier = "tcp".to_owned();
    output.notes.push("bandwidth is what the receiver counted; retransmissions are not taken".to_owned());
    output
}

pub(super) fn read(lines: &Lines<'_>) -> Result<Output, ImportError> {
    let mut output = output();
    let (mut to, mut from, mut streams, mut size) = (None, None, 0_u32, None);
    let (mut reverse, mut done, mut of_server) = (false, false, false);
    let (mut single, mut sum) = (None, None);
    for &line in lines.all() {
        let words = line.words();
        let unsupported = |what: &str| Err(line.unsupported(what, KNOWN));
        match words.as_slice() {
            ["iperf", "Done."] => done = true,
            // --get-server-output: the same again, as the other end saw it.
            ["Server", "output:"] => of_server = true,
            _ if of_server => {}
            ["Connecting", "to", "host", host, ..] if to.is_none() => to = Some(host.trim_end_matches(',').to_owned()),
            ["Connecting", "to", "host", ..] => return Err(line.malformed("one run in a file")),
            ["iperf", version] if version.starts_with(|c: char| c.is_ascii_digit()) => {
                output.version = Some((*version).to_owned());
            }
            ["Server", "listening", ..] => {
                return unsupported("the output of the server, which does not say how it ended");
            }
            ["Reverse", "mode,", ..] => reverse = true,
            ["iperf3:", "error", ..] => return Err(line.malformed("a test that came to its end")),
            [.., "local", address, "port", _, "connected", "to", _, "port", _] => {
                from = from.or_else(|| Some((*address).to_owned()));
                streams = streams.saturating_add(1);
            }
            ["Starting", "Test:", "protocol:", protocol, ..] => {
                if *protocol != "TCP," {
                    return unsupported("another protocol than TCP");
                }
                let at = words.iter().position(|word| *word == "byte").and_then(|at| words.get(at.checked_sub(1)?));
                size = at.and_then(|word| number::whole(word));
            }
            _ if line.text.contains("Total Datagrams") || line.text.contains("Jitter") => return unsupported("UDP"),
            _ if line.text.contains("[Role]") => return unsupported("a test of both directions"),
            [.., "receiver"] => {
                let found = Some(receiver(line)?);
                if line.text.starts_with("[SUM]") { sum = found } else { single = found }
            }
            _ => {}
        }
    }
    if !done {
        return Err(lines.truncated("`iperf Done.` as the client writes it at its end"));
    }
    // Of several streams only their sum is the bandwidth.
    let whole = if streams > 1 { sum } else { single };
    let Some((line, written, scale)) = whole else {
        return Err(lines.truncated("a line of the receiver for the whole test before `iperf Done.`"));
    };
    output.said.push(Said::new(line, kind(streams.max(1)), size.map(Bytes), Metric::Bandwidth, written, scale));
    output.ends = if reverse { [to, from] } else { [from, to] };
    Ok(output)
}

/// The rate of a line such as `[  5]   0.00-2.00   sec  4.56 GBytes  19.5 Gbits/sec   receiver`.
fn receiver(line: Line<'_>) -> Result<(u64, String, (f64, f64)), ImportError> {
    let words = line.words();
    let at = words.iter().rposition(|word| word.ends_with("/sec"));
    let found = at.and_then(|at| Some((*words.get(at.checked_sub(1)?)?, *words.get(at)?)));
    let (word, unit) = found.ok_or_else(|| line.malformed("a bitrate with its unit"))?;
    let written = number::real(word).ok_or_else(|| line.malformed("a number before its unit"))?;
    // Powers of ten for bits, powers of two for bytes (iperf3's units.c).
    let scale = match unit {
        "bits/sec" => (1.0, 1e9),
        "Kbits/sec" => (1.0, 1e6),
        "Mbits/sec" => (1.0, 1e3),
        "Gbits/sec" => (1.0, 1.0),
        "Tbits/sec" => (1e3, 1.0),
        "Bytes/sec" => (8.0, 1e9),
        "KBytes/sec" => (8.0 * 1024.0, 1e9),
        "MBytes/sec" => (8.0 * 1_048_576.0, 1e9),
        "GBytes/sec" => (8.0 * 1_073_741_824.0, 1e9),
        "TBytes/sec" => (8.0 * 1_099_511_627_776.0, 1e9),
        _ => return Err(line.malformed("a unit of iperf3 such as Gbits/sec")),
    };
    Ok((line.number, written.to_owned(), scale))
}
