//! A preview as text for people. Long lists are cut, and say how much they leave out.

use std::{fmt::Write, time::Duration};

use railgauge_analysis::words::count;
use railgauge_model::{
    plan::{
        count::lasting,
        model::{Soak, Test},
    },
    schedule::{Flow, Port, Round},
};
use railgauge_report::view::{how, title};
use railgauge_wire::{Nanoseconds, Transport, Window};

use super::preview::{Bytes, HostPreview, Preview, TestPreview};

/// Hosts, rounds of a test and links of a round that are listed.
const HOSTS: usize = 16;
const ROUNDS: usize = 8;
const LINKS: usize = 8;

/// The whole text, with the rounds if `verbose`.
pub(super) fn text(preview: &Preview<'_>, verbose: bool) -> String {
    let mut out = String::new();
    // Writing to a text does not fail.
    let _ = write_all(&mut out, preview, verbose);
    out
}

fn write_all(out: &mut String, preview: &Preview<'_>, verbose: bool) -> std::fmt::Result {
    writeln!(
        out,
        "plan {}, seed {}: {}, {}, {}, {}, {}",
        preview.plan,
        preview.seed,
        count(preview.hosts.len(), "host"),
        count(preview.tests.len(), "test"),
        many(preview.rounds, "round"),
        many(preview.cases, "case"),
        many(preview.measurements, "measurement"),
    )?;
    writeln!(out, "time   {}{}", preview.seconds.words, preview.then_suspects)?;
    let overhead = preview.overhead_seconds * 1e3;
    writeln!(
        out,
        "       counts warm-ups, timed windows and {overhead} ms per case, with running agents, and large messages where a rate is known"
    )?;
    let left_out = preview.tests.iter().map(|test| test.left_out).sum();
    if left_out > 0 {
        writeln!(out, "       not in `at_most`, and not run: {}", many(left_out, "measurement"))?;
    }
    if let Some(Soak { test, lasts, window, rate_limit, .. }) = &preview.soak {
        let of_test = preview.tests.iter().find(|one| one.test.name == *test);
        let rounds = count(of_test.map_or(0, |one| one.rounds.len()), "round");
        let [lasts, window] = [*lasts, *window].map(lasting);
        let rate = rate_limit.map_or_else(|| "as fast as it goes".to_owned(), |rate| rate.to_string());
        writeln!(
            out,
            "soak   {lasts} more, after the tests: {rounds} of {test} in turn, in windows of {window}, each flow {rate}"
        )?;
    }
    let pairs = || preview.tests.iter().filter(|test| test.test.collective.is_none());
    let unknown = pairs().any(|test| test.bytes_per_link.at_most.is_none());
    match preview.link_rate_gbps {
        Some(rate) => writeln!(out, "bytes  payload, at most what {rate} Gb/s links can carry in that time")?,
        None if unknown => {
            writeln!(out, "bytes  unknown without a link rate: --link-rate 100 computes upper bounds for 100 Gb/s")?
        }
        None => writeln!(out, "bytes  payload, exact")?,
    }
    hosts(out, &preview.hosts)?;
    preview.tests.iter().try_for_each(|test| one_test(out, test, verbose))?;
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

fn one_test(out: &mut String, preview: &TestPreview<'_>, verbose: bool) -> std::fmt::Result {
    let TestPreview { test, rounds, links, cases, measurements, .. } = preview;
    writeln!(out, "\ntest {}: {}", test.name, title(test))?;
    writeln!(out, "  {}", how(test))?;
    let verify = if test.verify { "verified before and after" } else { "not verified" };
    writeln!(out, "  window  {}; {verify}", window(test))?;
    let noun = if test.collective.is_some() { "group" } else { "link" };
    writeln!(
        out,
        "  cases   {} on {} in {}; × {} = {}",
        many(*cases, "case"),
        many(*links, noun),
        count(rounds.len(), "round"),
        count(test.repeats as usize, "repeat"),
        many(*measurements, "measurement"),
    )?;
    writeln!(out, "  time    {}", preview.seconds.words)?;
    if preview.left_out > 0 {
        writeln!(out, "  not run {}: not in `at_most`", many(preview.left_out, "measurement"))?;
    }
    match test.collective {
        Some(_) => writeln!(out, "  bytes   unknown: they depend on the algorithm")?,
        None if test.transport.is_within_host() => writeln!(out, "  bytes   none leave a host")?,
        None => writeln!(out, "  bytes   {} per link", amount(preview.bytes_per_link))?,
    }
    if !verbose {
        return Ok(());
    }
    rounds.iter().take(ROUNDS).try_for_each(|round| one_round(out, round, noun))?;
    left_out(out, "  ", rounds.len(), ROUNDS, "round")
}

fn one_round(out: &mut String, Round { number, flows, .. }: &Round, noun: &str) -> std::fmt::Result {
    let port = |port: &Port| format!("{}:{}", port.host, port.rail);
    let name = |flow: &Flow| match flow.members.is_empty() {
        true if flow.from == flow.to => port(&flow.from),
        true => format!("{} → {}", port(&flow.from), port(&flow.to)),
        false => flow.name(),
    };
    let shown = flows.iter().take(LINKS).map(name);
    // Names of groups hold commas.
    let between = if noun == "group" { "; " } else { ", " };
    write!(out, "  round {number:<3} {}", shown.collect::<Vec<_>>().join(between))?;
    match flows.len().saturating_sub(LINKS) {
        0 => writeln!(out),
        more => writeln!(out, " and {}", count(more, &format!("more {noun}"))),
    }
}

fn left_out(out: &mut String, indent: &str, all: usize, shown: usize, what: &str) -> std::fmt::Result {
    match all.saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "{indent}… and {}; --json has all", count(more, &format!("more {what}"))),
    }
}

/// So many of something.
fn many(number: u64, what: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), what)
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

/// How long one measurement is.
fn window(test: &Test) -> String {
    let time = |time: Nanoseconds| format!("{:?}", Duration::from(time));
    let window = match test.window {
        Window::Duration(length) => time(length),
        Window::Iterations(number) => {
            let iterations = many(number, "iteration");
            match test.transport {
                transport if transport.is_within_host() => iterations,
                Transport::Tcp => format!("{iterations} per stream"),
                _ => format!("{iterations} per queue pair"),
            }
        }
        Window::Adaptive { relative, at_least, at_most } => {
            format!("until ±{} %, {} to {}", relative * 100.0, time(at_least), time(at_most))
        }
    };
    if test.warm_up.is_zero() { window } else { format!("{window} after a warm-up of {:?}", test.warm_up) }
}
