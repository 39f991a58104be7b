//! Which NICs of each host carried a collective, the least balanced host first.

use railgauge_analysis::{nics, words::number};

use super::block::{Block, Data, Table};
use crate::chart::ChartError;

const LISTED: usize = 4;

/// `None` where no NICs were read. At the largest size, the sample with the lowest balance.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let largest = data.results.iter().map(|result| result.case.cell.size).max();
    let results =
        data.results.iter().filter(|result| Some(result.case.cell.size) == largest && result.state.is_trusted());
    let samples = results.flat_map(|result| &result.samples).map(|(_, sample)| *sample);
    let known = samples.filter_map(|sample| nics::worst(sample).map(|(_, balance)| (sample, balance)));
    let Some((sample, balance)) = known.min_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(None) };
    let mut hosts = nics::by_host(sample);
    hosts.sort_by(|a, b| a.balance().unwrap_or_default().total_cmp(&b.balance().unwrap_or_default()));
    let rows = hosts.iter().take(LISTED).flat_map(|host| {
        let row = |(nic, bytes): &(&str, railgauge_wire::unit::Bytes)| {
            let share = 100.0 * bytes.as_f64() / host.sum().as_f64().max(1.0);
            vec![host.host.to_owned(), (*nic).to_owned(), number(bytes.as_f64() / 1e9), number(share)]
        };
        host.nics.iter().map(row).collect::<Vec<_>>()
    });
    Ok(Some(Block {
        heading: "Share of each NIC",
        sentence: format!(
            "The least used NIC of a host carried {} % of what its most used one did: {}.",
            number(balance),
            nics::words(sample).unwrap_or_default()
        ),
        table: Some(Table::new("host | NIC | #carried [GB] | #of its host [%]", rows)),
        method: "Bytes sent and received by the ports' own counters during a pass, its warm-up and verification included. As many NICs are expected to carry \
                 alike as the host has ranks."
            .to_owned(),
        ..Block::default()
    }))
}
