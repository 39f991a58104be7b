//! The summary on the terminal at the end of a run. The answer comes first and the whole fits one screen; with `-v` all
//! details follow.

mod fit;

use std::{
    fmt::{Result, Write},
    path::Path,
};

pub use fit::Screen;
pub(crate) use fit::cut;
use railgauge_analysis::{status::Status, words::count};
use railgauge_model::{border::text::path_text, plan::hostlist};

use super::view::{Parts, SoakView, Table, TestView, TroubleGroup, View};

pub fn summary(view: &View, page: &Path, screen: &Screen) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, view, page, screen);
    out
}

/// Rows of a screen.
pub const ROWS: usize = 24;

/// Causes without `-v`, and lines of each.
const CAUSES: usize = 5;
const LINES: usize = 2;

fn write(out: &mut String, view: &View, page: &Path, screen: &Screen) -> Result {
    let mut end = String::new();
    self::end(&mut end, view, page, screen)?;
    let room = ROWS.saturating_sub(end.lines().count() + 1);
    let mut most = if screen.verbose { usize::MAX } else { CAUSES };
    answer(out, view, screen, most)?;
    while !screen.verbose && out.lines().count() > room && most > 0 {
        (most, *out) = (most - 1, String::new());
        answer(out, view, screen, most)?;
    }
    let used = out.lines().count() + end.lines().count();
    tests(out, view, screen, ROWS.saturating_sub(used + 4))?;
    writeln!(out, "\n{}", end.trim_end())?;
    if screen.verbose { details(out, view, screen) } else { Ok(()) }
}

fn answer(out: &mut String, view: &View, screen: &Screen, most: usize) -> Result {
    match view.interleaved.first().filter(|_| view.status != Status::Fail) {
        // As the page: what an A/B comparison was run for comes before the verdicts on its cases.
        Some(turns) => coloured(out, turns.comparison.word, turns.class, &view.sentence, screen)?,
        None => marked(out, view.status, &view.sentence, screen)?,
    }
    let others = &view.banner.causes[view.banner.causes.len().min(1)..];
    for cause in others.iter().take(most) {
        screen.clip(out, "  ", "    ", cause, LINES)?;
    }
    if others.len() > most {
        writeln!(out, "  and {}: -v, or the report", count(others.len() - most, "more cause"))?;
    }
    if let Some(found) = view.soak.as_ref().filter(|_| view.status == Status::Pass) {
        screen.clip(out, "  soak: ", "    ", &found.sentence, LINES)?;
    }
    if let Some(step) = &view.banner.remedy {
        // What has a line already needs no other.
        let is_said = step.about.is_empty() || view.banner.causes.contains(&step.about);
        let about = if is_said { String::new() } else { format!("{}: ", step.about) };
        screen.wrap(out, "Next: ", "  ", &format!("{about}{}", step.text))?;
    }
    Ok(())
}

/// What was measured, and where the report is.
fn end(out: &mut String, view: &View, page: &Path, screen: &Screen) -> Result {
    let run = &view.run;
    screen.wrap(out, "", "  ", &format!("{}; {}", view.banner.counts, run.duration))?;
    let carried = view.carriers.iter().map(|carrier| {
        let tests = if view.carriers.len() > 1 { format!(" ({})", carrier.tests.join(", ")) } else { String::new() };
        let caution = if carrier.caution.is_empty() { String::new() } else { format!(": {}", carrier.caution) };
        format!("{}{tests}{caution}", carrier.words)
    });
    if !view.carriers.is_empty() {
        screen.clip(out, "carried by ", "  ", &carried.collect::<Vec<_>>().join("; "), LINES + 1)?;
    }
    for remark in view.never_run.iter().chain(&run.remarks) {
        screen.clip(out, "", "  ", remark, LINES)?;
    }
    // Never broken, so that the path can be copied.
    writeln!(out, "report: {}", path_text(page))
}

/// One to three sizes of each test, as many as the screen has rows for.
fn tests(out: &mut String, view: &View, screen: &Screen, room: usize) -> Result {
    let measured: Vec<&TestView> = view.tests.iter().filter(|test| !test.brief.is_empty()).collect();
    if measured.is_empty() || room < 2 {
        return Ok(());
    }
    let each = (room / measured.len()).clamp(1, 3);
    let rows = measured.iter().flat_map(|test| {
        let n = test.brief.len();
        let chosen: Vec<usize> = match each {
            _ if n <= each => (0..n).collect(),
            3 => vec![0, n / 2, n - 1],
            2 => vec![0, n - 1],
            _ => vec![n - 1],
        };
        chosen.into_iter().map(move |at| [vec![test.name.clone()], test.brief[at].clone()].concat())
    });
    let table = Table::new("test | size | #cases | #slowest | #median | #fastest | ", rows);
    writeln!(out)?;
    screen.table(out, "", &table, &[0, 1, 2, 3, 4, 5, 6], room)
}

const TOLD: [&str; 3] = ["costs", "beside", "collisions"];

fn details(out: &mut String, view: &View, screen: &Screen) -> Result {
    writeln!(out, "\n{}\n", view.run.id)?;
    for test in &view.tests {
        screen.wrap(out, "", "  ", &format!("{}: {}", test.name, test.title))?;
        screen.table(out, "", &test.table, &Vec::from_iter(0..test.table.columns.len()), usize::MAX)?;
        for block in test.blocks.iter().filter(|block| TOLD.contains(&block.name)) {
            screen.wrap(out, "", "  ", &block.sentence)?;
        }
        writeln!(out)?;
    }
    if let Some(found) = &view.parts {
        parts(out, found, screen)?;
    }
    if let Some(found) = &view.soak {
        soak(out, found, screen)?;
    }
    for turns in &view.interleaved {
        groups(out, &turns.title, &turns.comparison.groups, screen)?;
    }
    troubles(out, &view.troubles, screen)?;
    explained(out, view, screen)?;
    verdicts(out, view, screen)
}

fn verdicts(out: &mut String, view: &View, screen: &Screen) -> Result {
    for verdict in &view.expectations {
        let line = verdict.line.map_or_else(String::new, |line| format!(" (line {line})"));
        let waived = if verdict.waived { " (waived)" } else { "" };
        let scope = if verdict.scope.is_empty() { String::new() } else { format!(", {}", verdict.scope) };
        marked(out, verdict.status, &format!("{}: {}{scope}{line}{waived}", verdict.test, verdict.demand), screen)?;
        screen.wrap(out, "  ", "  ", &verdict.reason)?;
    }
    Ok(())
}

impl Screen {
    /// The first lines of a screen: a status in its colour, and what it is about.
    pub fn answer(&self, status: Status, text: &str) -> String {
        let mut out = String::new();
        let _ = marked(&mut out, status, text, self);
        out
    }

    /// A text wrapped, with `others` before all lines but the first.
    pub fn wrapped(&self, text: &str, others: &str) -> String {
        let (mut out, rest) = (String::new(), text.trim_start());
        let _ = self.wrap(&mut out, &text[..text.len() - rest.len()], others, rest);
        out
    }
}

fn marked(out: &mut String, status: Status, text: &str, screen: &Screen) -> Result {
    coloured(out, status.word(), status, text, screen)
}

pub(crate) fn coloured(out: &mut String, word: &str, status: Status, text: &str, screen: &Screen) -> Result {
    let word = word.to_uppercase();
    let mut lines = String::new();
    screen.wrap(&mut lines, &format!("{word}  "), "  ", text)?;
    let code = match status {
        Status::Pass => 32,
        Status::Fail => 31,
        Status::Inconclusive | Status::NotRun => 33,
    };
    let rest = &lines[word.len()..];
    if screen.colour { write!(out, "\x1b[{code};1m{word}\x1b[0m{rest}") } else { out.write_str(&lines) }
}

fn troubles(out: &mut String, groups: &[TroubleGroup], screen: &Screen) -> Result {
    for group in groups {
        let place = if group.named { "at" } else { "between" };
        let hosts = if group.example { format!(", {place} {}", group.hosts) } else { String::new() };
        let cases = count(group.cases, "case");
        screen.wrap(out, "", "    ", &format!("{} ({cases}{hosts}): {}", group.state.word(), group.error))?;
        if !group.help.is_empty() {
            screen.wrap(out, "    ", "    ", &format!("help: {}", group.help))?;
        }
        for link in group.links.iter().take(TROUBLE_LINKS) {
            screen.wrap(out, "    ", "      ", &format!("{} {} {}", link.test, link.link, link.sizes))?;
        }
        if let Some(more @ 1..) = (group.links.len() + group.links_more).checked_sub(TROUBLE_LINKS) {
            writeln!(out, "    and {}: see the report", count(more, "more link"))?;
        }
    }
    if groups.is_empty() { Ok(()) } else { writeln!(out) }
}

/// Findings of the preflight with the results that they fit; the report has all findings.
fn explained(out: &mut String, view: &View, screen: &Screen) -> Result {
    let explaining = || view.hosts.findings.iter().filter(|finding| !finding.explains.is_empty());
    for one in explaining() {
        let finding = &one.finding;
        let hosts = hostlist::listed(finding.hosts.iter().map(String::as_str));
        let line = format!("{} {hosts}: {} [{}]", finding.severity.word(), finding.what, finding.check);
        screen.wrap(out, "", "    ", &line)?;
        for fits in &one.explains {
            screen.wrap(out, "    ", "      ", &format!("may explain {}", fits.words))?;
        }
    }
    if !view.hosts.unexplained.is_empty() {
        screen.wrap(out, "configuration: ", "  ", &view.hosts.unexplained)?;
    }
    if explaining().next().is_some() || !view.hosts.unexplained.is_empty() { writeln!(out) } else { Ok(()) }
}

fn parts(out: &mut String, found: &Parts, screen: &Screen) -> Result {
    found.lines().try_for_each(|line| screen.wrap(out, "", "  ", &line))?;
    for part in &found.named {
        screen.wrap(out, "    ", "        ", &format!("{} ({})", part.name, part.standing))?;
        if !part.alternatives.is_empty() {
            screen.wrap(
                out,
                "        ",
                "        ",
                &format!("the results also fit: {}", part.alternatives.join("; ")),
            )?;
        }
        for [test, change, reason, which] in &part.evidence {
            screen.wrap(out, "        ", "          ", &format!("{test}{which}: {change}: {reason}"))?;
        }
    }
    writeln!(out)
}

fn soak(out: &mut String, found: &SoakView, screen: &Screen) -> Result {
    screen.wrap(out, "", "  ", &format!("soak: {}", found.sentence))?;
    for remark in &found.remarks {
        screen.wrap(out, "    ", "        ", remark)?;
    }
    let events = &found.events;
    for row in &events.table.rows {
        let cells = events.table.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        let cells: Vec<String> = cells
            .map(|(column, cell)| if column.number { format!("{} {cell}", column.name) } else { cell.clone() })
            .collect();
        screen.wrap(out, "    ", "        ", &cells.join(", "))?;
    }
    if events.more > 0 {
        writeln!(out, "    and {}: see the report", count(events.more, "more event"))?;
    }
    if !found.counted.is_empty() {
        screen.wrap(out, "    ", "        ", &format!("counted: {}", found.counted.join("; ")))?;
    }
    writeln!(out)
}

fn groups(out: &mut String, title: &str, table: &Table, screen: &Screen) -> Result {
    let columns: Vec<usize> = (0..table.columns.len()).filter(|at| *at != 3).collect();
    screen.table(out, title, table, &columns, usize::MAX)?;
    writeln!(out)
}

/// Links listed for each cause of cases without a result.
const TROUBLE_LINKS: usize = 4;
