//! The comparison of what a table has collected, and its sentence.

use railgauge_stats::Refusal;

use super::{
    Case, Change, Comparison, Counts, Group, OneSided, Options, Word,
    causes::causes,
    digits, judge,
    reason::{fewest, unit},
    table::{Collected, Table},
};
use crate::{
    status::Status,
    words::{are, be, count, have},
};

const VERSION: u32 = 3;

/// # Errors
/// A statistic refuses values that the table accepted, which is a bug.
pub fn compare(table: Table, options: &Options) -> Result<Comparison, Refusal> {
    tell(table.finish(), options)
}

pub(super) fn tell(collected: Collected, options: &Options) -> Result<Comparison, Refusal> {
    let (made, judged) = judge::judge(&collected, options)?;
    let mut counts = Counts::default();
    judged.iter().for_each(|case| counts.add(case.case.verdict));
    let causes = causes(&collected, &judged);
    let mut cases: Vec<Case> = judged.into_iter().map(|judged| judged.case).collect();
    let size = |case: &Case| case.change.percent.abs();
    cases.sort_by(|a, b| a.verdict.cmp(&b.verdict).then(size(b).total_cmp(&size(a))));
    let mut comparison = Comparison { version: VERSION, counts, causes, cases, ..made };
    comparison.status = comes_to(&comparison);
    comparison.exit_code = comparison.status.exit_code();
    comparison.sentence = sentence(&comparison);
    Ok(comparison)
}

/// A pass needs a verdict of every case and row, no case of one side only, and a headline inside its margin.
fn comes_to(comparison: &Comparison) -> Status {
    let settled = |group: &Group| matches!(group.verdict, Word::Improved | Word::Equivalent);
    if comparison.counts.regressed > 0 {
        Status::Fail
    } else if !comparison.cases.is_empty()
        && comparison.one_sided.is_empty()
        && comparison.groups.iter().all(settled)
        && comparison.headline_kept()
    {
        Status::Pass
    } else {
        Status::Inconclusive
    }
}

fn sentence(comparison: &Comparison) -> String {
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
