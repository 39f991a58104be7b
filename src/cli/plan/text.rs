//! A preview as text for people. Long lists are cut, and say how much they leave out.

use std::fmt::Write;

use railgauge_wire::terms::Fabric;

use super::preview::{Bytes, HostPreview, Preview, RoundPreview, Seconds, TestPreview};
use crate::schedule::Port;

/// Hosts, rounds of a test and links of a round that are listed.
const HOSTS: usize = 16;
const ROUNDS: usize = 8;
const LINKS: usize = 8;

/// The whole text.
pub fn text(preview: &Preview<'_>) -> String {
    let mut out = String::new();
    // Writing to a text does not fail.
    let _ = write_all(&mut out, preview);
    out
}

fn write_all(out: &mut String, preview: &Preview<'_>) -> std::fmt::Result {
    writeln!(
        out,
        "plan {}, seed {}: {}, {}, {}, {}, {}",
        preview.plan,
        preview.seed,
        count(preview.hosts.len() as u64, "host"),
        count(preview.tests.len() as u64, "test"),
        count(preview.rounds, "round"),
        count(preview.cases, "case"),
        count(preview.measurements, "measurement"),
    )?;
    let overhead = preview.overhead_seconds * 1e3;
    writeln!(out, "time   {}", time(preview.seconds))?;
    writeln!(out, "       assumes {overhead} ms for a case beside warm-up and window, and agents that already run")?;
    let unknown = preview.tests.iter().any(|test| test.bytes_per_link.at_most.is_none());
    match preview.link_rate_gbps {
        Some(rate) => writeln!(out, "bytes  payload, at most what links of {rate} Gb/s can carry in the time")?,
        None if unknown => {
            writeln!(out, "bytes  unknown without a link rate: --link-rate 100 gives upper bounds for 100 Gb/s")?
        }
        None => writeln!(out, "bytes  payload, exact")?,
    }
    hosts(out, &preview.hosts)?;
    preview.tests.iter().try_for_each(|test| one_test(out, test))?;
    if !preview.notes.is_empty() {
        writeln!(out)?;
    }
    preview.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

fn hosts(out: &mut String, hosts: &[HostPreview<'_>]) -> std::fmt::Result {
    let rails = |rails: Option<u32>| rails.map_or("auto".to_owned(), |rails| rails.to_string());
    let head = ["host", "address", "verbs rails", "tcp rails", "links", "bytes"].map(str::to_owned);
    let row = |host: &HostPreview<'_>| {
        let HostPreview { name, address, verbs_rails, tcp_rails, links, bytes } = host;
        let bytes = amount(*bytes);
        [(*name).to_owned(), (*address).to_owned(), rails(*verbs_rails), rails(*tcp_rails), links.to_string(), bytes]
    };
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(hosts.iter().take(HOSTS).map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [name, address, verbs, tcp, links] = [0, 1, 2, 3, 4].map(width);
    writeln!(out)?;
    for [a, b, c, d, e, f] in &rows {
        writeln!(out, "{a:name$}  {b:address$}  {c:>verbs$}  {d:>tcp$}  {e:>links$}  {f}")?;
    }
    left_out(out, "", hosts.len(), HOSTS, "host")
}

fn one_test(out: &mut String, preview: &TestPreview<'_>) -> std::fmt::Result {
    let TestPreview { test, cells, rounds, links, cases, measurements, .. } = preview;
    let both = if test.bidirectional { ", both directions" } else { "" };
    writeln!(
        out,
        "\ntest {}: {} {} over {}{both}, {} memory",
        test.name,
        test.op,
        test.aim,
        preview.service.map_or_else(|| test.fabric.to_string(), |service| format!("{} {service}", test.fabric)),
        test.memory,
    )?;
    writeln!(out, "  pairs   {}; {}", preview.pattern, preview.rails)?;
    let sizes = match (test.sizes.first(), test.sizes.last()) {
        _ if test.op.is_atomic() => "8 B".to_owned(),
        (Some(first), Some(last)) if first != last => {
            format!("{} from {} to {}", count(test.sizes.len() as u64, "size"), size(*first), size(*last))
        }
        (Some(only), _) => size(*only),
        (None, _) => "no size".to_owned(),
    };
    let qps: Vec<String> = test.qps.iter().map(u32::to_string).collect();
    let lanes = if test.fabric == Fabric::Tcp { "streams" } else { "queue pairs" };
    writeln!(out, "  cells   {}: {sizes}; {lanes} {}", cells.len(), qps.join(", "))?;
    let verify = if test.verify { "verified before and after" } else { "not verified" };
    writeln!(out, "  window  {}; {verify}", preview.window)?;
    let rounds_count = count(rounds.len() as u64, "round");
    writeln!(
        out,
        "  cases   {rounds_count}, {} × {} = {}; × {} = {}",
        count(*links, "link"),
        count(cells.len() as u64, "cell"),
        count(*cases, "case"),
        count(test.repeats.into(), "repeat"),
        count(*measurements, "measurement"),
    )?;
    writeln!(out, "  time    {}", time(preview.seconds))?;
    writeln!(out, "  bytes   {} per link", amount(preview.bytes_per_link))?;
    rounds.iter().take(ROUNDS).try_for_each(|round| one_round(out, round))?;
    left_out(out, "  ", rounds.len(), ROUNDS, "round")
}

fn one_round(out: &mut String, RoundPreview { number, links }: &RoundPreview<'_>) -> std::fmt::Result {
    let port = |port: &Port| format!("{}/{}", port.host, port.rail);
    let shown = links.iter().take(LINKS).map(|flow| format!("{} → {}", port(&flow.from), port(&flow.to)));
    write!(out, "  round {number:<3} {}", shown.collect::<Vec<_>>().join(", "))?;
    match links.len().saturating_sub(LINKS) {
        0 => writeln!(out),
        more => writeln!(out, " and {}", count(more as u64, "more link")),
    }
}

fn left_out(out: &mut String, indent: &str, all: usize, shown: usize, what: &str) -> std::fmt::Result {
    match all.saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "{indent}… and {}; --json has all", count(more as u64, &format!("more {what}"))),
    }
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn time(Seconds { at_least, at_most }: Seconds) -> String {
    match at_most {
        Some(most) if most == at_least => clock(most),
        Some(most) => format!("{} to {}", clock(at_least), clock(most)),
        None => {
            let bound = if at_least < 60.0 { at_least } else { at_least.floor() };
            format!("more than {}: a number of iterations takes as long as the links need", clock(bound))
        }
    }
}

/// A time in the two largest units that it has.
fn clock(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{} s", (seconds * 100.0).round() / 100.0);
    }
    let whole = seconds.round() as u64;
    let (big, name, small, rest) = match whole {
        86_400.. => (whole / 86_400, "d", whole % 86_400 / 3_600, "h"),
        3_600.. => (whole / 3_600, "h", whole % 3_600 / 60, "min"),
        _ => (whole / 60, "min", whole % 60, "s"),
    };
    if small == 0 { format!("{big} {name}") } else { format!("{big} {name} {small} {rest}") }
}

/// An amount of bytes, in decimal units like link rates.
fn amount(bytes: Bytes) -> String {
    let Some(most) = bytes.at_most else { return "unknown".to_owned() };
    let (number, unit) = match most {
        1_000_000_000_000_000.. => (most as f64 / 1e15, "PB"),
        1_000_000_000_000.. => (most as f64 / 1e12, "TB"),
        1_000_000_000.. => (most as f64 / 1e9, "GB"),
        1_000_000.. => (most as f64 / 1e6, "MB"),
        1_000.. => (most as f64 / 1e3, "kB"),
        _ => (most as f64, "B"),
    };
    let digits = if number < 10.0 && unit != "B" { 1 } else { 0 };
    // Rounded up, so that an upper bound stays one; an exact number is rounded to the nearest.
    let step = 10f64.powi(digits);
    let rounded = if bytes.exact { (number * step).round() } else { (number * step).ceil() } / step;
    let bound = if bytes.exact { "" } else { "at most " };
    format!("{bound}{rounded} {unit}")
}

/// A message size, in binary units where it is a whole number of them.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
}
