//! The cost of the order of runs, and how to measure without that cost.

use railgauge_stats::compare as stats;

use super::{Order, Turns, table::Collected};
use crate::words::count;

pub(super) fn told(order: &stats::Order, collected: &Collected, held_back: usize) -> Order {
    let turns = order.turns();
    let letter = |side: &stats::Variant| if *side == stats::Variant::A { 'A' } else { 'B' };
    let least = order.counts()[0].min(order.counts()[1]);
    let costs = (turns != Turns::InTurn).then(|| {
        let how = match turns {
            Turns::OneSideFirst => "All runs of one side were made before those of the other",
            _ => "The runs of the two sides do not take turns",
        };
        let mut text = format!(
            "{how}. Whatever else changed meanwhile is in the differences, and runs that resemble their neighbours look \
             like a change: {} a side {} worth {} here.",
            count(least, "run"),
            if least == 1 { "is" } else { "are" },
            number_of(least as f64 * order.worth()),
        );
        if held_back > 0 {
            let cases = count(held_back, "case");
            text += &format!(" Of {cases} that runs in turn would settle, nothing is said for that reason.");
        }
        text
    });
    let hint = (turns != Turns::InTurn).then(|| {
        "Measure in turn: a run before, a run after, a run after, a run before, and so on (A B B A). If the change can be \
         made by the plan, [[interleave]] does it within one run."
            .to_owned()
    });
    Order {
        turns,
        sequence: collected.order.iter().map(letter).collect(),
        worth: order.worth(),
        held_back,
        costs,
        hint,
    }
}

fn number_of(runs: f64) -> String {
    if runs < 1.95 { format!("{runs:.1}") } else { format!("{runs:.0}") }
}
