use super::{
    Change, Comparison, Counts, Group, OneSided, digits,
    reason::{fewest, unit},
};
use crate::words::{are, be, count, have};

pub(super) fn sentence(comparison: &Comparison) -> String {
    let Comparison { counts, .. } = comparison;
    let apart = not_compared(&comparison.one_sided);
    if counts.all() == 0 {
        let apart = if apart.is_empty() { " No case has values.".to_owned() } else { apart };
        return format!("nothing could be compared.{apart}");
    }
    let Counts { regressed, improved, equivalent, undecided, too_noisy } = counts;
    let mut text = format!(
        "{}of {} {regressed} regressed, {improved} improved, {equivalent} {} equivalent, {undecided} undecided.",
        over_all(comparison),
        count(counts.all(), "case"),
        be(*equivalent),
    );
    let mut add = |n: usize, words: String| {
        if n > 0 {
            text += &format!(" {words}");
        }
    };
    add(*too_noisy, format!("{} too noisy to judge.", are(*too_noisy, "case")));
    let lacking = comparison.cases.iter().filter(|case| case.missing.1 > 0).count();
    let units = unit(comparison.design);
    add(lacking, format!("{} no value in some of the {units}s after.", have(lacking, "case")));
    let strays = comparison.cases.iter().filter(|case| !case.strays.is_empty()).count();
    add(strays, format!("In {} single {units}s lie far from the others.", count(strays, "case")));
    let held = comparison.order.as_ref().map_or(0, |order| order.held_back);
    add(held, format!("In {} the difference may be drift: alternate the runs.", count(held, "case")));
    text += &apart;
    let rows = comparison.groups.iter().filter(|group| leaves_margin(group)).count();
    if rows > 0 {
        let (leaves, of) = if rows == 1 { ("leaves its margin", "its") } else { ("leave their margins", "their") };
        text += &format!(" The intervals of {} {leaves}, though {of} links do not.", count(rows, "row"));
    }
    text
}

/// Whether each case of a row has a verdict, and only the row's interval prevents one.
fn leaves_margin(group: &Group) -> bool {
    let Counts { regressed, undecided, too_noisy, .. } = group.counts;
    group.verdict == super::Word::Undecided && regressed + undecided + too_noisy == 0
}

fn not_compared(cases: &[OneSided]) -> String {
    let neither = cases.iter().filter(|case| case.only.is_none()).count();
    let mut text = String::new();
    for (n, words) in [(cases.len() - neither, "values on one side only"), (neither, "no value on either side")] {
        if n > 0 {
            text += &format!(" {} {words}.", have(n, "case"));
        }
    }
    text
}

fn over_all(comparison: &Comparison) -> String {
    let Some(Change { percent, interval, .. }) = comparison.headline else { return String::new() };
    let has_interval = interval.is_some();
    let interval = interval.map_or_else(
        || format!("nothing can be concluded below {}", fewest(comparison.design)),
        |(low, high)| digits::range(low, high),
    );
    let margin = match comparison.headline_margin {
        Some((low, high)) if has_interval && !comparison.headline_kept() && comparison.counts.regressed == 0 => {
            format!(", not within {} %", digits::margin(low, high))
        }
        _ => String::new(),
    };
    match digits::share(percent) {
        None => format!("performance is the same ({interval}{margin}): "),
        Some(share) => {
            let direction = if percent < 0.0 { "lower" } else { "higher" };
            format!("performance is {share} {direction} ({interval}{margin}): ")
        }
    }
}
