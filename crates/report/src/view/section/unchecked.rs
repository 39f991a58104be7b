use super::{
    Block, Data,
    table::{Table, number_column, text_column},
};
use railgauge_analysis::verdict::uncounted;

use crate::chart::ChartError;

const LISTED: usize = 16;

/// Ends whose bytes on the wire were not compared with the payload; `None` where all were.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let ends = uncounted(data.results.iter().copied());
    if ends.is_empty() {
        return Ok(None);
    }
    let sentence = match ends.len() {
        all if all > LISTED => format!("Of {all} ends and reasons the first {LISTED} are listed."),
        _ => String::new(),
    };
    let rows = ends.into_iter().take(LISTED).map(|(end, cases)| vec![end.to_string(), cases.to_string()]).collect();
    let columns = vec![text_column("end and reason"), number_column("cases", "")];
    Ok(Some(Block { heading: "Not checked", sentence, table: Some(Table { columns, rows }), ..Block::default() }))
}
