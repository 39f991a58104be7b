//! A whole comparison in a sentence or two.

use super::{Change, Comparison, Counts, Design, Group, OneSided, digits, reason::units};
use crate::analysis::words::count;

/// The comparison in a sentence.
pub(super) fn sentence(comparison: &Comparison) -> String {
    let Comparison { counts, .. } = comparison;
    let apart = not_compared(&comparison.one_sided);
    if counts.all() == 0 {
        let apart = if apart.is_empty() { " No cell has values.".to_owned() } else { apart };
        return format!("Nothing could be compared.{apart}");
    }
    let Counts { regressed, improved, equivalent, not_enough_data, too_noisy } = counts;
    let mut text = format!(
        "Of {} compared {regressed} regressed, {improved} improved, {equivalent} {} equivalent, {not_enough_data} {} \
         not enough data.",
        count(counts.all(), "cell"),
        if *equivalent == 1 { "is" } else { "are" },
        if *not_enough_data == 1 { "has" } else { "have" },
    );
    let mut add = |n: usize, words: &dyn Fn(&str, bool) -> String| {
        if n > 0 {
            text += &format!(" {}", words(&count(n, "cell"), n == 1));
        }
    };
    add(*too_noisy, &|cells, one| format!("{cells} {} too noisy to tell.", if one { "is" } else { "are" }));
    let lacking = comparison.cells.iter().filter(|cell| cell.missing.1 > 0).count();
    let units = if comparison.design == Design::Runs { "runs" } else { "blocks" };
    add(lacking, &|cells, one| {
        format!("{cells} {} no value in some of the {units} after.", if one { "has" } else { "have" })
    });
    let strays = comparison.cells.iter().filter(|cell| !cell.strays.is_empty()).count();
    add(strays, &|cells, _| format!("In {cells} single {units} lie far from the others."));
    let held = comparison.order.as_ref().map_or(0, |order| order.held_back);
    add(held, &|cells, _| format!("In {cells} the order of the runs cannot carry what shows: measure in turn."));
    text += &apart;
    let rows = comparison.groups.iter().filter(|group| leaves_margin(group)).count();
    if rows > 0 {
        let (leaves, of) = if rows == 1 { ("leaves its margin", "its") } else { ("leave their margins", "their") };
        text += &format!(" The intervals of {} {leaves}, though {of} links do not.", count(rows, "row"));
    }
    text + &over_all(comparison)
}

/// Whether each cell of a row has a verdict, and only its interval keeps it from one.
fn leaves_margin(group: &Group) -> bool {
    let Counts { regressed, not_enough_data, too_noisy, .. } = group.counts;
    group.verdict == super::Word::NotEnoughData && regressed + not_enough_data + too_noisy == 0
}

fn not_compared(cells: &[OneSided]) -> String {
    let neither = cells.iter().filter(|cell| cell.only.is_none()).count();
    let mut text = String::new();
    for (n, [one, more], words) in [
        (cells.len() - neither, ["has", "have"], "values on one side only"),
        (neither, ["has", "have"], "no value on either side"),
    ] {
        if n > 0 {
            text += &format!(" {} {} {words}.", count(n, "cell"), if n == 1 { one } else { more });
        }
    }
    text
}

fn over_all(comparison: &Comparison) -> String {
    let Some(Change { percent, interval, .. }) = comparison.headline else { return String::new() };
    let has_interval = interval.is_some();
    let interval = interval.map_or_else(
        || format!("no interval below 4 {}", units(comparison.design)),
        |(low, high)| digits::range(low, high),
    );
    let margin = match comparison.headline_margin {
        Some((low, high)) if has_interval && !comparison.headline_kept() && comparison.counts.regressed == 0 => {
            format!(", not within {} %", digits::margin(low, high))
        }
        _ => String::new(),
    };
    match digits::share(percent) {
        None => format!(" Over all, performance is the same ({interval}{margin})."),
        Some(share) => {
            let direction = if percent < 0.0 { "lower" } else { "higher" };
            format!(" Over all, performance is {share} {direction} ({interval}{margin}).")
        }
    }
}
