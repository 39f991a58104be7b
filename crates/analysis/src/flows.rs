//! Flows of an `all_to_all_v` that were measured together and alone.

use railgauge_model::journal::event::{FlowAccount, Sample};

use super::words::size;

/// The flow with the highest value.
pub fn worst(sample: &Sample, of: fn(&FlowAccount) -> f64) -> Option<(&FlowAccount, f64)> {
    let known = sample.flows.iter().map(|flow| (flow, of(flow))).filter(|(_, value)| value.is_finite());
    known.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// `rank 3 (gpu02)`.
pub fn end(sample: &Sample, rank: u32) -> String {
    let host = sample.ranks.iter().find(|account| account.rank == rank).map(|account| &account.host);
    host.map_or_else(|| format!("rank {rank}"), |host| format!("rank {rank} ({host})"))
}

/// `1 MiB from rank 0 (gpu01) to rank 3 (gpu02): 198 % of its time alone, and equal shares of the ports make it 100 %`.
pub fn words(sample: &Sample, flow: &FlowAccount) -> String {
    let (bytes, from, to) = (size(flow.bytes), end(sample, flow.from), end(sample, flow.to));
    let (measured, expected) = (flow.over_alone(), 100.0 * flow.share);
    format!(
        "{bytes} from {from} to {to}: {measured:.0} % of its time alone, and equal shares of the ports make it {expected:.0} %"
    )
}
