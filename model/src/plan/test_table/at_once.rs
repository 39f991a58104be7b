use railgauge_wire::{Nanoseconds, TestMetric, Window};

use super::{
    members::{Members, one, two_groups},
    victim,
};
use crate::plan::{AtOnce, Cut, Mistake, Table, Test};

/// Shortest window: five slices of 100 ms, since the first and the last may be at the edge of the overlap.
const SHORTEST: Nanoseconds = Nanoseconds::from_millis(500);

pub fn read(test: &Table<'_>, name: &str, members: &Members<'_>) -> Option<AtOnce> {
    let named = |key| if test.has(key) { one(test, key, members).map(Some) } else { Some(None) };
    let rounds = || if test.has("rounds") { test.whole::<u32>("rounds").map(|at| at.value) } else { Some(1) };
    Some(match name {
        "incast" => AtOnce::Incast(named("to")?),
        "outcast" => AtOnce::Outcast(named("from")?),
        "all-to-all" => AtOnce::AllToAll,
        "permutation" => AtOnce::Permutation(rounds()?),
        "victim" => return victim::read(test, members),
        "bisection" if test.has("between") => {
            if let Some(span) = test.name_span("rounds") {
                let message = "`rounds` does not apply to a bisection between two groups";
                test.wrong(span, message, "leave it out: nothing is drawn");
            }
            let (one, other) = two_groups(test, members)?;
            AtOnce::Bisection(Cut::Groups(one, other))
        }
        "bisection" => AtOnce::Bisection(Cut::Drawn(rounds()?)),
        _ => AtOnce::Ring,
    })
}

/// Reports contradictions: only a window of fixed time can be the same for all flows, and only bytes over time can be cut to the part in
/// which all of them ran.
pub fn judge(table: &Table<'_>, test: &mut Test) {
    let wrong = |key: &str, message: &str, help: &str| {
        let span = table.written(key).unwrap_or(table.span.clone());
        let mistake = Mistake::at(span, message);
        let mistake = match table.written("pattern").filter(|_| key != "pattern") {
            Some(pattern) => mistake.also(pattern, "the pattern"),
            None => mistake,
        };
        table.book.add(mistake.help(help));
    };
    if test.metric != TestMetric::Bandwidth {
        let message = "latency cannot be measured on flows that run at once";
        wrong("metric", message, "measure bandwidth, or use a pattern without shared NICs");
    }
    if let Some(why) = unsteady(test.window) {
        wrong("measure", &format!("flows at once {why}"), "write measure = \"2s\"");
    }
    victim::judge(table, test);
    // A default that does not apply here is dropped.
    test.bidirectional &= table.name_span("bidirectional").is_some();
    if test.bidirectional {
        let message = "`bidirectional` does not apply to flows at once";
        wrong("bidirectional", message, "all-to-all, ring-at-once and bisection load both directions of every NIC");
    }
}

/// Why flows with such a window do not load their NICs together.
pub(super) fn unsteady(window: Window) -> Option<&'static str> {
    match window {
        Window::Duration(time) if time >= SHORTEST => None,
        Window::Duration(_) => Some("must be measured for at least half a second"),
        Window::Iterations(_) | Window::Adaptive { .. } => Some("need a fixed time, so that they end together"),
    }
}
