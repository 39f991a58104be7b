use railgauge_model::plan::count::count;
use railgauge_preflight::{Held, Severity};

use super::{Card, Lost, PreflightView};
use crate::text::Screen;

/// Lines of each kind without `-v`.
const SHOWN: usize = 5;

/// Notices, what is met, and what differs between hosts are details.
pub fn summary(view: &PreflightView, screen: &Screen) -> String {
    let all = screen.verbose;
    let lost = |lost: &Lost| match lost.help.as_str() {
        "" => format!("  lost: {}: {}", lost.hosts, lost.why),
        help => format!("  lost: {}: {}: {help}", lost.hosts, lost.why),
    };
    // A failure repeats what is not met, with its remedy.
    let has_failure =
        |check: &str| view.cards.iter().any(|card| card.check == check && card.severity == Severity::Failure);
    let demands = view.demands.rows.iter().zip(&view.held).filter_map(|(row, held)| {
        let [answer, required, check, _, where_not] = row.as_slice() else { return None };
        let shown = all || held.0 != Held::Met && !(*held == (Held::Unmet, false) && has_failure(check));
        shown.then(|| format!("  {answer}: {required} [{check}] {where_not}"))
    });
    let card = |card: &Card| {
        let waived = if card.waived { ", waived" } else { "" };
        let meaning = if all { format!("; {}", card.meaning) } else { String::new() };
        format!(
            "  {} {}: {} [{}{waived}]{meaning}: {}",
            card.severity.word(),
            card.hosts,
            card.what,
            card.check,
            card.help
        )
    };
    let cards = view.cards.iter().filter(|card| all || card.severity != Severity::Notice);
    let drift = view.drift.rows.iter().map(|row| format!("  drift {}", row.join(": ")));
    let most = if all { usize::MAX } else { SHOWN };
    let mut out = screen.answer(view.status, &view.sentence);
    for (kind, lines) in [
        ("lost host", view.lost.iter().map(lost).collect::<Vec<String>>()),
        ("requirement", demands.collect()),
        ("finding", cards.map(card).collect()),
        ("difference between hosts", drift.filter(|_| all).collect()),
    ] {
        let more = lines.len().saturating_sub(most);
        out.extend(lines.iter().take(most).map(|line| screen.wrapped(line, "    ")));
        if more > 0 {
            out += &format!("  and {}: -v\n", count(more, &format!("more {kind}")));
        }
    }
    let notices = view.cards.iter().filter(|card| card.severity == Severity::Notice).count();
    if notices > 0 && !all {
        out += &format!("{}: -v\n", count(notices, "notice"));
    }
    if !view.drift.rows.is_empty() && !all {
        out += &format!("{} not the same on all hosts: -v\n", count(view.drift.rows.len(), "fact"));
    }
    out
}
