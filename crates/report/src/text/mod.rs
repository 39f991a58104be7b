//! The summary on the terminal at the end of a run: what carried the bytes, the tests in numbers, what is bad, the verdicts, the page. It
//! fits [`WIDTH`] columns: long text wraps, and a wide table continues below. It says how many rows are left out.

mod fit;

use std::{
    fmt::{Result, Write},
    path::Path,
};

pub use fit::WIDTH;
use fit::{columns, wrap};
use railgauge_analysis::{verdict::Status, words::count};
use railgauge_model::{border::text::path_text, plan::hostlist};

use super::view::{Parts, SoakView, Table, TestView, TroubleGroup, View};

/// `colour` puts ANSI colours on the verdicts.
pub fn summary(view: &View, page: &Path, colour: bool) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = whole(&mut out, view, page, colour);
    out
}

/// Only problems, for `-q`: verdicts that do not pass, what was not measured, bad and suspect parts.
pub fn wrong(view: &View, page: &Path, colour: bool) -> String {
    let mut out = String::new();
    let _ = only_wrong(&mut out, view, page, colour);
    out
}

const TOLD: [&str; 4] = ["costs", "beside", "collisions", "nics"];

fn whole(out: &mut String, view: &View, page: &Path, colour: bool) -> Result {
    head(out, view)?;
    for test in &view.tests {
        wrap(out, "", "  ", &format!("{}: {}", test.name, test.title))?;
        table(out, test)?;
        for block in test.blocks.iter().filter(|block| TOLD.contains(&block.name)) {
            wrap(out, "", "  ", &block.sentence)?;
        }
        writeln!(out)?;
    }
    if let Some(found) = &view.parts {
        parts(out, found)?;
    }
    if let Some(found) = &view.soak {
        soak(out, found)?;
    }
    for turns in &view.interleaved {
        wrap(out, "", "  ", &format!("in turn, {}: {}", turns.title, turns.comparison.sentence))?;
        groups(out, &turns.comparison.groups)?;
    }
    troubles(out, &view.troubles)?;
    explained(out, view)?;
    verdicts(out, view, colour, |_| true)?;
    end(out, view, page, colour)
}

fn only_wrong(out: &mut String, view: &View, page: &Path, colour: bool) -> Result {
    for remark in &view.run.remarks {
        wrap(out, "", "  ", remark)?;
    }
    if let Some(found) = view
        .parts
        .as_ref()
        .filter(|found| found.noisy || found.beside > 0 || found.named.iter().any(|part| !part.cleared))
    {
        wrap(out, "", "  ", &format!("parts: {}", found.sentence))?;
    }
    troubles(out, &view.troubles)?;
    verdicts(out, view, colour, |status| status != Status::Pass)?;
    end(out, view, page, colour)
}

fn head(out: &mut String, view: &View) -> Result {
    let run = &view.run;
    wrap(out, "", "  ", &format!("{}: {} of {}, {}", run.id, run.hosts.0, count(run.hosts.1, "host"), run.duration))?;
    for carrier in &view.carriers {
        wrap(out, "", "  ", &format!("carried by {} ({})", carrier.words, carrier.tests.join(", ")))?;
        if !carrier.caution.is_empty() {
            wrap(out, "  ", "  ", &carrier.caution)?;
        }
    }
    for driver in &view.never_run {
        wrap(out, "  ", "  ", driver)?;
    }
    if view.carriers.is_empty() {
        writeln!(out, "carried by nothing: no case was measured")?;
    }
    for remark in &run.remarks {
        wrap(out, "", "  ", remark)?;
    }
    writeln!(out)
}

fn verdicts(out: &mut String, view: &View, colour: bool, shown: impl Fn(Status) -> bool) -> Result {
    for verdict in view.expectations.iter().filter(|verdict| shown(verdict.status)) {
        let line = verdict.line.map_or_else(String::new, |line| format!(" (line {line})"));
        let waived = if verdict.waived { " (waived)" } else { "" };
        let scope = if verdict.scope.is_empty() { String::new() } else { format!(", {}", verdict.scope) };
        let demand = format!("{}: {}{scope}{line}{waived}", verdict.test, verdict.demand);
        marked(out, verdict.status, colour, &demand)?;
        wrap(out, INDENT, INDENT, &verdict.reason)?;
    }
    writeln!(out)
}

fn end(out: &mut String, view: &View, page: &Path, colour: bool) -> Result {
    marked(out, view.status, colour, &view.sentence)?;
    if let Some(step) = &view.banner.remedy {
        wrap(out, "", "  ", &format!("first step: {}: {}", step.about, step.text))?;
    }
    // Never broken, so that the path can be copied.
    writeln!(out, "report: {}", path_text(page))
}

const INDENT: &str = "             ";

fn marked(out: &mut String, status: Status, colour: bool, text: &str) -> Result {
    let mut lines = String::new();
    wrap(&mut lines, INDENT, INDENT, text)?;
    writeln!(out, "{} {}", mark(status, colour), lines.trim())
}

fn troubles(out: &mut String, groups: &[TroubleGroup]) -> Result {
    for group in groups.iter().take(TROUBLES) {
        let place = if group.named { "at" } else { "between" };
        let hosts = if group.example { format!(", {place} {}", group.hosts) } else { String::new() };
        let cases = count(group.cases, "case");
        wrap(out, "", "    ", &format!("{} ({cases}{hosts}): {}", group.state.word(), group.error))?;
        if !group.help.is_empty() {
            wrap(out, "    ", "    ", &format!("help: {}", group.help))?;
        }
        for link in group.links.iter().take(TROUBLE_LINKS) {
            wrap(out, "    ", "      ", &format!("{} {} {}", link.test, link.link, link.sizes))?;
        }
        if let Some(more @ 1..) = (group.links.len() + group.links_more).checked_sub(TROUBLE_LINKS) {
            writeln!(out, "    and {}: see the report", count(more, "more link"))?;
        }
    }
    if groups.len() > TROUBLES {
        writeln!(out, "and {}: see the report", count(groups.len() - TROUBLES, "more cause"))?;
    }
    if groups.is_empty() { Ok(()) } else { writeln!(out) }
}

/// Findings of the preflight with the results that they fit; the report has all findings.
fn explained(out: &mut String, view: &View) -> Result {
    let told = || view.hosts.findings.iter().filter(|finding| !finding.explains.is_empty());
    for one in told().take(TROUBLES) {
        let finding = &one.finding;
        let hosts = hostlist::listed(finding.hosts.iter().map(String::as_str));
        let line = format!("{} {hosts}: {} [{}]", finding.severity.word(), finding.what, finding.check);
        wrap(out, "", "    ", &line)?;
        for fits in one.explains.iter().take(TROUBLE_LINKS) {
            wrap(out, "    ", "      ", &format!("{} {}", fits.how, fits.words))?;
        }
        if one.explains.len() > TROUBLE_LINKS {
            writeln!(out, "    and {}: see the report", count(one.explains.len() - TROUBLE_LINKS, "more test"))?;
        }
    }
    let n = told().count();
    if n > TROUBLES {
        writeln!(out, "and {}: see the report", count(n - TROUBLES, "more finding"))?;
    }
    if !view.hosts.unexplained.is_empty() {
        wrap(out, "configuration: ", "  ", &view.hosts.unexplained)?;
    }
    if n > 0 || !view.hosts.unexplained.is_empty() { writeln!(out) } else { Ok(()) }
}

fn parts(out: &mut String, found: &Parts) -> Result {
    wrap(out, "", "  ", &format!("parts: {}", found.sentence))?;
    for part in found.named.iter().take(TROUBLES) {
        wrap(out, "    ", "        ", &format!("{} ({})", part.name, part.standing))?;
        if !part.alternatives.is_empty() {
            wrap(out, "        ", "        ", &format!("the results also fit: {}", part.alternatives.join("; ")))?;
        }
        for [test, change, reason, which] in part.evidence.iter().take(TROUBLE_LINKS) {
            wrap(out, "        ", "          ", &format!("{test}{which}: {change}: {reason}"))?;
        }
        if part.evidence.len() > TROUBLE_LINKS {
            writeln!(
                out,
                "        and in {}: see the report",
                count(part.evidence.len() - TROUBLE_LINKS, "more test")
            )?;
        }
    }
    if found.named.len() > TROUBLES {
        writeln!(out, "    and {}: see the report", count(found.named.len() - TROUBLES, "more part"))?;
    }
    writeln!(out)
}

fn soak(out: &mut String, found: &SoakView) -> Result {
    wrap(out, "", "  ", &format!("soak: {}", found.sentence))?;
    for remark in &found.remarks {
        wrap(out, "    ", "        ", remark)?;
    }
    let events = &found.events;
    for row in events.table.rows.iter().take(EVENTS) {
        let told = events.table.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        let told: Vec<String> = told
            .map(|(column, cell)| if column.number { format!("{} {cell}", column.name) } else { cell.clone() })
            .collect();
        wrap(out, "    ", "        ", &told.join(", "))?;
    }
    let more = events.table.rows.len().saturating_sub(EVENTS) + events.more;
    if more > 0 {
        writeln!(out, "    and {}: see the report", count(more, "more event"))?;
    }
    if !found.counted.is_empty() {
        wrap(out, "    ", "        ", &format!("counted: {}", found.counted.join("; ")))?;
    }
    writeln!(out)
}

const EVENTS: usize = 4;

fn groups(out: &mut String, table: &Table) -> Result {
    let chosen: Vec<usize> = (0..table.columns.len()).filter(|at| *at != 3).collect();
    let head: Vec<(String, bool)> =
        chosen.iter().map(|&at| (table.columns[at].head(), table.columns[at].number)).collect();
    let row = |row: &Vec<String>| chosen.iter().map(|&at| row[at].clone()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = table.rows.iter().take(TROUBLES).map(row).collect();
    columns(out, &head, &rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect::<Vec<_>>(), 1)?;
    if table.rows.len() > TROUBLES {
        writeln!(out, "  and {}: see the report", count(table.rows.len() - TROUBLES, "more row"))?;
    }
    writeln!(out)
}

const TROUBLES: usize = 10;

/// Links listed per group of troubles, and tests per part.
const TROUBLE_LINKS: usize = 4;

fn table(out: &mut String, test: &TestView) -> Result {
    let all = &test.table.rows;
    let shown: Vec<&Vec<String>> = match all.len() {
        0..=3 => all.iter().collect(),
        n => vec![&all[0], &all[n / 2], &all[n - 1]],
    };
    let rows: Vec<Vec<&str>> = shown.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    let head: Vec<(String, bool)> = test.table.columns.iter().map(|column| (column.head(), true)).collect();
    // The size and the other keys of a row are in front of every piece.
    let keys =
        test.table.columns.iter().position(|column| !column.unit.is_empty()).map_or(1, |at| at.saturating_sub(1));
    columns(out, &head, &rows, keys.max(1))?;
    if all.len() > shown.len() {
        writeln!(out, "  {} of {} rows; the report has all", shown.len(), all.len())?;
    }
    Ok(())
}

pub(super) fn mark(status: Status, colour: bool) -> String {
    let word = format!("{:<12}", status.word().to_uppercase());
    let code = match status {
        Status::Pass => 32,
        Status::Fail => 31,
        Status::Inconclusive | Status::NotRun => 33,
    };
    if colour { format!("\x1b[{code};1m{word}\x1b[0m") } else { word }
}

/// Aligned; at most `most` rows, since the page has all.
pub(super) fn aligned(out: &mut String, title: &str, table: &Table, columns: &[usize], most: usize) -> Result {
    if table.rows.is_empty() {
        return Ok(());
    }
    if !title.is_empty() {
        writeln!(out, "{title}:")?;
    }
    let head: Vec<String> = columns.iter().map(|&at| table.columns[at].head()).collect();
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
