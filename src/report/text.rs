//! The summary on the terminal at the end of a run: what carried the bytes, one line per test, the verdicts, the page.

use std::{fmt::Write, path::Path};

use super::view::{FindingView, Parts, Table, TestView, View};
use crate::{analysis::verdict::Status, plan::hostlist};

/// The summary. `colour` puts ANSI colours on the verdicts.
pub fn summary(view: &View, page: &Path, colour: bool) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, view, page, colour);
    out
}

fn write(out: &mut String, view: &View, page: &Path, colour: bool) -> std::fmt::Result {
    let run = &view.run;
    writeln!(out, "{}: {} of {} hosts, {}", run.id, run.hosts.0, run.hosts.1, run.duration)?;
    for carrier in &view.carriers {
        writeln!(out, "carried by {} ({})", carrier.words, carrier.tests.join(", "))?;
        if !carrier.caution.is_empty() {
            writeln!(out, "           {}", carrier.caution)?;
        }
    }
    if view.carriers.is_empty() {
        writeln!(out, "carried by nothing: no case was measured")?;
    }
    for remark in &run.remarks {
        writeln!(out, "{remark}")?;
    }
    writeln!(out)?;
    for test in &view.tests {
        writeln!(out, "{}: {}", test.name, test.title)?;
        table(out, test)?;
        writeln!(out)?;
    }
    if let Some(found) = &view.parts {
        parts(out, found)?;
    }
    for turns in &view.interleaved {
        writeln!(out, "in turn, {}: {}", turns.title, turns.comparison.sentence)?;
        aligned(out, "", &turns.comparison.groups, &[0, 1, 2, 4, 5, 6, 7, 8], TROUBLES)?;
    }
    for group in view.troubles.iter().take(TROUBLES) {
        writeln!(out, "{} ({}): {}", group.state, cases(group.cases), group.error)?;
        if !group.help.is_empty() {
            writeln!(out, "    help: {}", group.help)?;
        }
        for link in group.links.iter().take(TROUBLE_LINKS) {
            writeln!(out, "    {} {} {}", link.test, link.link, link.sizes)?;
        }
        if group.links.len() > TROUBLE_LINKS {
            writeln!(out, "    and {} more links: see the report", group.links.len() - TROUBLE_LINKS)?;
        }
    }
    if view.troubles.len() > TROUBLES {
        writeln!(out, "and {} more causes: see the report", view.troubles.len() - TROUBLES)?;
    }
    if !view.troubles.is_empty() {
        writeln!(out)?;
    }
    explained(out, view)?;
    for verdict in &view.expectations {
        let line = verdict.line.map_or_else(String::new, |line| format!(" (line {line})"));
        let status = mark(verdict.status, colour);
        let waived = if verdict.waived { " (waived)" } else { "" };
        writeln!(out, "{status} {}: {}, {}{line}{waived}", verdict.test, verdict.demand, verdict.scope)?;
        writeln!(out, "             {}", verdict.reason)?;
    }
    writeln!(out)?;
    writeln!(out, "{} {}", mark(view.status, colour), view.sentence)?;
    writeln!(out, "report: {}", page.display())
}

/// Findings of the preflight with results that they probably explain; all of them stand in the report.
fn explained(out: &mut String, view: &View) -> std::fmt::Result {
    let told = || view.hosts.findings.iter().filter(|finding| !finding.explains.is_empty());
    for FindingView { finding, explains } in told().take(TROUBLES) {
        let hosts = hostlist::fold(finding.hosts.iter().map(String::as_str));
        writeln!(out, "{} {hosts}: {} [{}]", finding.severity.word(), finding.what, finding.check)?;
        for sentence in explains.iter().take(TROUBLE_LINKS) {
            writeln!(out, "    probably explains {sentence}")?;
        }
    }
    if told().next().is_some() { writeln!(out) } else { Ok(()) }
}

/// Which part is bad; what was looked at stands in the report.
fn parts(out: &mut String, found: &Parts) -> std::fmt::Result {
    writeln!(out, "parts: {}", found.sentence)?;
    for part in found.named.iter().take(TROUBLES) {
        writeln!(out, "    {} ({})", part.name, part.standing)?;
        for [test, change, reason] in part.evidence.iter().take(TROUBLE_LINKS) {
            writeln!(out, "        {test}: {change}: {reason}")?;
        }
    }
    if found.named.len() > TROUBLES {
        writeln!(out, "    and {} more parts: see the report", found.named.len() - TROUBLES)?;
    }
    writeln!(out)
}

/// Groups of troubles and parts listed.
const TROUBLES: usize = 10;

/// Links listed per group of troubles, and tests per part.
const TROUBLE_LINKS: usize = 4;

fn cases(n: usize) -> String {
    crate::analysis::words::count(n, "case")
}

/// Smallest, middle and largest size of a test: the page has them all.
fn table(out: &mut String, test: &TestView) -> std::fmt::Result {
    let all = &test.table.rows;
    let shown: Vec<&Vec<String>> = match all.len() {
        0..=3 => all.iter().collect(),
        n => vec![&all[0], &all[n / 2], &all[n - 1]],
    };
    let head: Vec<String> = test
        .table
        .columns
        .iter()
        .map(
            |column| {
                if column.unit.is_empty() { column.name.clone() } else { format!("{} {}", column.name, column.unit) }
            },
        )
        .collect();
    let width = |at: usize| {
        shown.iter().map(|row| &row[at]).chain([&head[at]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in [&head].into_iter().chain(shown.iter().copied()) {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
        writeln!(out, "  {}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// The status in capitals, twelve wide.
pub(super) fn mark(status: Status, colour: bool) -> String {
    let word = format!("{:<12}", status.word().to_uppercase());
    let code = match status {
        Status::Pass => 32,
        Status::Fail => 31,
        Status::Inconclusive | Status::NotRun => 33,
    };
    if colour { format!("\x1b[{code};1m{word}\x1b[0m") } else { word }
}

/// These columns of a table, aligned; `most` of its rows, since the page has them all.
pub(super) fn aligned(
    out: &mut String,
    title: &str,
    table: &Table,
    columns: &[usize],
    most: usize,
) -> std::fmt::Result {
    if table.rows.is_empty() {
        return Ok(());
    }
    if !title.is_empty() {
        writeln!(out, "{title}:")?;
    }
    let head: Vec<String> = columns
        .iter()
        .map(|&at| {
            let column = &table.columns[at];
            if column.unit.is_empty() { column.name.clone() } else { format!("{} {}", column.name, column.unit) }
        })
        .collect();
    let shown: Vec<Vec<&str>> =
        table.rows.iter().take(most).map(|row| columns.iter().map(|&at| row[at].as_str()).collect()).collect();
    let width = |at: usize| {
        shown.iter().map(|row| row[at].chars().count()).chain([head[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    for row in [&head].into_iter().chain(&shown) {
        let cell = |(at, text): (usize, &&str)| {
            let width = widths[at];
            if table.columns[columns[at]].number { format!("{text:>width$}") } else { format!("{text:<width$}") }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        writeln!(out, "  {}", cells.join("  ").trim_end())?;
    }
    if table.rows.len() > most {
        writeln!(out, "  and {} more: see the page", table.rows.len() - most)?;
    }
    writeln!(out)
}
