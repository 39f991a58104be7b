//! Flows of an `all_to_all_v` together and alone.

use railgauge_analysis::{
    flows::end,
    words::{count, number, size},
};
use railgauge_stats::robust::median;

use super::block::{Block, Data, Table};
use crate::chart::ChartError;

const LISTED: usize = 16;

/// `None` unless flows were measured alone.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    let mut above = 0;
    for result in data.results.iter().filter(|result| result.state.is_trusted()) {
        for (repeat, sample) in &result.samples {
            for flow in &sample.flows {
                let ratio = flow.over_alone() / 100.0;
                above += u32::from(ratio > 1.1 * flow.share);
                let row = vec![
                    end(sample, flow.from),
                    end(sample, flow.to),
                    size(flow.bytes),
                    data.cell_words((data.variant(result), result.case.cell.size)),
                    (repeat + 1).to_string(),
                    number(flow.alone.microseconds()),
                    number(flow.together.microseconds()),
                    format!("{ratio:.2}"),
                    format!("{:.2}", flow.share),
                ];
                rows.push((ratio, row));
            }
        }
    }
    let Ok(middle) = median(&rows.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>()) else { return Ok(None) };
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let heads = "from | to | #bytes | at | #repeat | #alone [µs] | #together [µs] | #together over alone | \
                 #by equal shares of the ports";
    Ok(Some(Block {
        heading: "Flows together and alone, the slowest first",
        sentence: format!(
            "Of {} measured alone, {above} took together at least 10 % longer than equal shares of their ports would make them. In the \
             median a flow took {middle:.2} times its time alone.",
            count(rows.len(), "flow")
        ),
        table: Some(Table::new(heads, rows.into_iter().take(LISTED).map(|(_, row)| row))),
        method: "A time is the median over rounds on the receiver's clock, from a barrier to the flow's last byte; ranks leave the barrier \
                 some message latencies apart. A rank sends its blocks one after another, to the next rank first. Equal shares: the bytes \
                 of the sender's or receiver's port in a round, whichever has more, over those of the flow."
            .to_owned(),
        ..Block::default()
    }))
}
