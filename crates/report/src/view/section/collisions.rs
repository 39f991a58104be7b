use super::block::{Block, Data, Table};
use railgauge_analysis::{
    collisions::{Collisions, LowFlow},
    words::short,
};

use crate::chart::ChartError;

const LISTED: usize = 32;

/// `None` for tests with one number of queue pairs, and where flows share ports.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let Some(found) = data.collisions else { return Ok(None) };
    Ok(Some(Block {
        heading: "Collision or damage",
        sentence: found.words(),
        table: table(found),
        method: format!(
            "Compared {}. A flow counts as colliding if it is low with few queue pairs, normal with many, if all low \
             flows of its pass fill paths together, if so few of all passes have others ({} of {} here) that slow paths are \
             ruled out, and if the loss of all flows vanishes with many. Each pass has new queue pairs: their numbers, or `flow_label`, decide the \
             UDP source port of RoCE v2, and switches hash it.",
            found.compared(),
            found.odd_passes,
            found.passes
        ),
        ..Block::default()
    }))
}

/// Low flows not shown to collide; `None` without any.
fn table(found: &Collisions) -> Option<Table> {
    let told = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), short);
    let row = |low: &LowFlow, what: &str| {
        vec![
            low.flow.clone(),
            what.to_owned(),
            told(low.fewest_percent),
            told(low.most_percent),
            low.passes.to_string(),
        ]
    };
    let suspects = found.suspects.iter().map(|low| row(low, "suspect"));
    let rows = suspects.chain(found.open.iter().map(|low| row(low, "not known"))).take(LISTED);
    Table::new("flow | what it is | #few queue pairs [%] | #many [%] | #passes", rows).filled()
}
