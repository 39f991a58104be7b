//! Ranks of a collective: every rank waits for the slowest, so its own clock only shows which one that is if operations
//! do not hide it; the numbers are shown without interpretation.

use railgauge_analysis::{
    case::CaseResult,
    words::{change, number},
};
use railgauge_stats::robust::median;

use super::block::{Block, Data, Table};
use crate::chart::ChartError;

const LISTED: usize = 10;

/// `None` for pairs.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let block = |table| Block { heading: "Ranks, the slowest first", table: Some(table), ..Block::default() };
    Ok(ranks(data).map(block))
}

/// At the largest size, those with the longest times against their group's median first.
fn ranks(data: &Data<'_>) -> Option<Table> {
    let largest = data.results.iter().map(|result| result.case.cell.size).max()?;
    let trusted = |result: &&&CaseResult<'_>| result.case.cell.size == largest && result.state.is_trusted();
    let samples = || data.results.iter().filter(trusted).flat_map(|result| &result.samples);
    // Only for NCCL, which chooses them.
    let uses_nics = samples().any(|(_, sample)| sample.ranks.iter().any(|rank| !rank.nics.is_empty()));
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for result in data.results.iter().filter(trusted) {
        for (repeat, sample) in &result.samples {
            let times: Vec<f64> = sample.ranks.iter().map(|rank| rank.p50.as_f64()).collect();
            let Ok(centre) = median(&times) else { continue };
            for (rank, time) in sample.ranks.iter().zip(&times) {
                let over = 100.0 * (time / centre - 1.0);
                let mut row = vec![rank.rank.to_string(), rank.host.clone(), rank.device.clone()];
                row.extend(uses_nics.then(|| rank.nics.join(", ")));
                row.extend([
                    data.cell_words((data.variant(result), largest)),
                    (repeat + 1).to_string(),
                    number(rank.p50.microseconds()),
                    number(rank.max.microseconds()),
                    change(over),
                ]);
                rows.push((over, row));
            }
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let interfaces = if uses_nics { " | interfaces" } else { "" };
    let heads = format!(
        "#rank | host | device{interfaces} | at | #repeat | #median time [µs] | #longest [µs] | #against its group's median"
    );
    Table::new(&heads, rows.into_iter().take(LISTED).map(|(_, row)| row)).filled()
}
