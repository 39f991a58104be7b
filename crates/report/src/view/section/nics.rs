//! All NICs of a host at once against the sum of single ones.

use super::{Block, Data};
use railgauge_analysis::nics::AllNics;

use crate::chart::ChartError;

/// `None` for tests without an equal one of single rails.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let (heading, method) = match data.test.transport.is_within_host() {
        false => (
            "All NICs at once",
            "For each pair of hosts the rates of all rails measured at the same time, over the sum of the rates that the same rails \
             reach one after the other.",
        ),
        true => (
            "All of a host at once",
            "For each host what all of its parts reach at the same time, over the sum of what the same parts reach one after the \
             other.",
        ),
    };
    let words: Vec<String> = data.nics.iter().map(|nics| AllNics::words(nics)).collect();
    Ok((!words.is_empty()).then(|| Block {
        heading,
        sentence: words.join(" "),
        method: method.to_owned(),
        ..Block::default()
    }))
}
